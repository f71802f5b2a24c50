"""Detect secrets in texts by known formats and by randomness. Pure.

`maestropy.journal.redact` knows keys that name a secret and the formats that logs of Maestro may hold. An archive goes
to people who have no access to the systems, so here in doubt a text is hidden: more formats, and every token that looks
random. Not hidden are UUIDs, hashes that are named as such, names of AppliedManifestWorks, and names in lower case,
because verdicts rest on these. A random text of lower-case letters and digits only is therefore not detected by itself.
"""

import math
import re
from collections import Counter
from functools import lru_cache
from typing import Final

from maestropy.diagnose.redaction import named_secrets
from maestropy.journal import redact
from maestropy.journal.redact import HIDDEN

_FORMATS: Final = (
    re.compile(r"\b(?:AIza[\w-]{30,}|ya29\.[\w.-]{20,}|GOCSPX-[\w-]{20,})"),  # Google
    re.compile(r"\b(?:sk|pk|rk)_(?:live|test)_\w{12,}"),  # Stripe
    re.compile(r"\b(?:npm_|pypi-|dop_v1_|hvs\.|hf_|sk-|SG\.)[\w.-]{16,}"),
    re.compile(r"\bAGE-SECRET-KEY-[0-9A-Z]{20,}"),
    re.compile(r"\bsha256~[\w-]{20,}"),  # OpenShift
    re.compile(r"\bLS0tLS1CRUdJTi[\w+/=]*"),  # a PEM block in base64
    re.compile(r"\b(?:ssh-(?:rsa|ed25519)|ecdsa-sha2-\S+) [\w+/=]{32,}"),
    re.compile(r"(?<=[?&;]sig=)[^\s&;\"'\\]+", re.IGNORECASE),  # a shared access signature of Azure
    re.compile(r"(?<=Signature=)[^\s&;,\"'\\]+", re.IGNORECASE),
    re.compile(r"(?<=AccountKey=)[^\s;,\"'\\]+", re.IGNORECASE),
    re.compile(r"(?<=hooks\.slack\.com/services/)[\w/]+"),
    # scheme://user:password@host, where the password has a slash
    re.compile(r"(?<=://)[^\s:/@\"']*:[^\s@\"']+(?=@)"),
)
_HINTS: Final = (
    "aiza", "ya29", "gocspx", "_live_", "_test_", "npm_", "pypi-", "dop_v1_", "hvs.", "hf_", "sk-", "sg.", "age-secret",
    "sha256~", "ls0tls", "ssh-", "ecdsa-", "sig=", "signature=", "accountkey=", "hooks.slack.com", "://",
)  # fmt: skip
"""Texts of which each format above has one: most lines of a log have none, and searching a text is much faster."""
_CANDIDATE: Final = re.compile(r"[A-Za-z0-9+/_~.!#$^*-]{10,}={0,2}")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_HEX: Final = re.compile(r"(?<![0-9a-z])(?:[0-9a-f]{32,}|[0-9A-F]{32,})(?![0-9a-z])")
_APPLIED_WORK: Final = re.compile(r"[0-9a-f]{64}-[a-z0-9]")
_SYMBOLS: Final = frozenset("!#$^*~")
_LEAST_RANDOM: Final = 16
_LEAST_ENTROPY: Final = 3.3
"""Bits per character: English words in CamelCase have less, base64 of random bytes has more from 16 characters on."""
_LEAST_WORD: Final = 3.2
"""Characters of a word: those of names have more on average, parts of random texts fewer."""
_PART: Final = re.compile(r"[^\s./_-]+")
_WORD: Final = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])|[a-z]+|\d+|[A-Z]")


def clean(text: str) -> str:
    """Return `text` with everything hidden that is, or may be, a secret."""
    plain = named_secrets.normalised(text)
    if plain != text:
        cleaned = _clean(plain)
        return text if cleaned == plain else cleaned
    return _clean(text)


def _clean(text: str) -> str:
    text = redact.text(named_secrets.hide(text))
    low = text.lower()
    if any(hint in low for hint in _HINTS):
        for pattern in _FORMATS:
            text = pattern.sub(HIDDEN, text)
    return named_secrets.without_tails(_CANDIDATE.sub(_hide_token, text))


def is_suspect(text: str) -> bool:
    """Return whether anything of `text` would be hidden."""
    return clean(text) != text


def _hide_token(match: re.Match[str]) -> str:
    token = match[0]
    before = match.string[max(0, match.start() - 12) : match.start()].lower()
    if "hash" in before or before.endswith(("sha256:", "sha512:")):
        return token
    return HIDDEN if _is_random(token) else token


@lru_cache(maxsize=1 << 16)
def _is_random(token: str) -> bool:
    bare = _UUID.sub("", token)
    if len(bare) < 10:
        return False
    has = {"upper": False, "lower": False, "digit": False}
    for char in bare:
        has["upper"] |= char.isupper()
        has["lower"] |= char.islower()
        has["digit"] |= char.isdigit()
    if all(has.values()) and _SYMBOLS & set(bare):
        return True
    if _HEX.search(bare) and not _APPLIED_WORK.match(token):
        return True
    if len(bare) < _LEAST_RANDOM or not (has["upper"] and has["lower"]):
        return False
    return _entropy(bare) >= _LEAST_ENTROPY and _is_no_name(bare)


def _entropy(token: str) -> float:
    counts = Counter(token)
    return -sum(count / len(token) * math.log2(count / len(token)) for count in counts.values())


def _is_no_name(token: str) -> bool:
    """Return whether a token does not consist of words: random texts change between cases and digits all the time."""
    words = [word for part in _PART.findall(token) for word in _WORD.findall(part)]
    letters = sum(map(len, words))
    return bool(words) and letters / len(words) < _LEAST_WORD
