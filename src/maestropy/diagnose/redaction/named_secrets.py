"""Hide values in texts that a name beside them gives away, in whichever notation the text is. Pure.

`maestropy.journal.redact` knows `key=value` and JSON, which is what Maestro itself writes. Archives also hold what others
wrote: sentences, XML, YAML on one line, printed maps of Go and Python, percent-encoded queries, pairs of name and value.
Sentences of Kubernetes and Maestro about passwords, tokens and Secrets stay, because verdicts rest on them.
"""

# ruff: noqa: E501 - a rule that is broken into lines cannot be compared with the others

import re
from typing import Any, Final
from urllib.parse import unquote

import orjson

from maestropy.journal import redact
from maestropy.journal.redact import HIDDEN

_HINTS: Final = (
    "pass", "pwd", "secret", "token", "authoriz", "credential", "bearer", "basic ", "apikey", "api-key", "api_key", "api key",
    "private", "access", "account", "shared", "signing", "identified by", "value",
)  # fmt: skip
"""Texts of which every rule below needs one: most lines of a log have none."""
_INVISIBLE: Final = re.compile("[\0\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_ESCAPED: Final = re.compile(r"\\u00([3-7][0-9a-fA-F]|2[dDfF])")
"""A letter, a digit, `-` or `/` as JSON may write it; quotes stay as they are, because they end a text."""
_KEY: Final = r"(?:api|private|access|account|secret|shared|signing|subscription)[-_ ]?key"
_NAME: Final = rf"(?:password|passwd|passphrase|passcode|pwd|token|secret|credentials?|authorization|{_KEY})"
_PASS: Final = r"(?:(?<![A-Za-z])(?:[Pp]ass|PASS)|(?<=[a-z0-9])Pass)(?![a-z])"  # noqa: S105 - a pattern
_ANY: Final = rf"(?:{_PASS}|(?i:{_NAME}))"
_QUOTED: Final = r"(?P<q>\\{0,8}[\"'`])(?!\[redacted)(?:[^\"'`\\]|\\(?!\\{0,7}(?P=q))|(?!(?P=q))[\"'`\\])*?(?:(?P=q)|$)"
_BARE: Final = r"(?!\[redacted)[^\s\"'`\\,;&<>\[\](){}]+"
_VALUE: Final = rf"(?:{_QUOTED}|{_BARE})"
_SECRET_OBJECT: Final = re.compile(
    r"kind[\"'\\]*\s{0,8}[:=]\s{0,8}[\"'\\]*Secret(?:List)?\b|&?\bSecret\{", re.IGNORECASE
)
_NO_VALUE: Final = (
    r"(?!(?:a|about|absent|accepted|added|after|again|against|allowed|also|always|an|and|are|as|at|authentication|be|because|been"
    r"|before|being|but|by|can|cannot|changed|checked|correct|could|created|data|deleted|denied|disabled|does|empty|enabled"
    r"|encrypted|expired|expires|failed|field|file|files|for|forbidden|found|from|given|has|have|hidden|ignored|in|incorrect"
    r"|invalid|is|it|its|kept|key|known|longer|login|malformed|mandatory|may|mismatch|missing|mounted|must|name|named|needed"
    r"|never|nil|no|none|not|now|null|of|on|only|optional|or|present|provided|read|ready|refused|rejected|removed|renewed"
    r"|required|rotated|same|sent|set|shared|shorter|should|still|stored|taken|that|the|their|there|this|to|too|trusted|under"
    r"|unknown|unset|updated|used|using|valid|was|weak|were|when|which|will|with|without|wrong|your)\b)"
)
"""Words that follow in a sentence, and are no password."""
_RULES: Final = (
    # {"name": "password", "value": "…"} and {Name:PASSWORD Value:…}, also with other members between them.
    re.compile(
        rf"(?P<keep>(?:name|key|header)[\"'\\]{{0,8}}\s{{0,4}}[:=]\s{{0,4}}[\"'\\]{{0,8}}[\w .-]{{0,64}}?{_ANY}[\w.-]{{0,64}}[\"'\\]{{0,8}}"
        rf"[\s,;]{{1,4}}[^{{}}<>]{{0,64}}?(?<!\w)value[\"'\\]{{0,8}}\s{{0,4}}[:=]\s{{0,4}}){_VALUE}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?P<keep>(?<!\w)value[\"'\\]{{0,8}}\s{{0,4}}[:=]\s{{0,4}}){_VALUE}"
        rf"(?=[\s,;]{{1,4}}[\"'\\]{{0,8}}(?:name|key)[\"'\\]{{0,8}}\s{{0,4}}[:=]\s{{0,4}}[\"'\\]{{0,8}}[\w .-]{{0,64}}?{_ANY})",
        re.IGNORECASE,
    ),
    # An environment variable, whatever its name is: as JSON within a text, and as Go prints it.
    re.compile(
        rf"(?P<keep>\{{\\{{0,8}}[\"']name\\{{0,8}}[\"']\s?:\s?\\{{0,8}}[\"'][\w.-]{{1,128}}\\{{0,8}}[\"']\s?,\s?\\{{0,8}}[\"']value\\{{0,8}}[\"']\s?:\s?){_QUOTED}"
    ),
    re.compile(rf"(?P<keep>\{{Name:[\"\\]{{0,8}}[\w.-]{{1,128}}[\"\\]{{0,8}},? Value:){_VALUE}"),
    # Elements of XML.
    re.compile(rf"(?P<keep><[\w.:-]{{0,64}}?{_ANY}(?:\s[^<>]{{0,256}})?>\s{{0,8}})(?!\[redacted)[^<\s][^<]*"),
    # The whole of an Authorization header, whatever its scheme is.
    re.compile(
        r"(?P<keep>authorization[\"'\\]{0,8}\s{0,4}[:=]\s{0,4}[\"'\\\[]{0,8}(?:basic|bearer|negotiate|ntlm|token|apikey|sharedkey)\s{1,4})"
        r"(?!\[redacted)[^\s\"'\\\]]+",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<keep>authorization[\"'\\]{0,8}\s{0,4}[:=]\s{0,4}[\"'\\\[]{0,8}(?:digest|aws4-hmac-sha256)\s).+", re.IGNORECASE),
    re.compile(r"(?P<keep>\b(?:bearer|basic)\s{1,4})(?=[\w.~+/=-]{8})(?!\[redacted)[^\s\"'\\,;<>)\]}]+", re.IGNORECASE),
    # Ruby, Perl, Pascal, Go.
    re.compile(rf"(?P<keep>{_ANY}[\"'\\]{{0,8}}\s{{0,8}}(?:=>|:=|->|==)\s{{0,8}}){_VALUE}"),
    # `pass`, which is a word of its own only as a key.
    re.compile(rf"(?P<keep>{_PASS}[\"'\\]{{0,8}}\s{{0,4}}=\s{{0,4}}){_VALUE}"),
    re.compile(rf"(?P<keep>{_PASS}[\"'\\]{{1,8}}\s{{0,4}}:\s{{0,4}}){_VALUE}"),
    re.compile(rf"(?P<keep>(?:(?<![A-Za-z])pass|(?<=[a-z0-9])Pass|(?<![A-Za-z])[Pp]wd):\s{{0,4}})(?!\d+\b|true\b|false\b){_VALUE}"),
    # map[token:…], without a space: `token: expired` is how an error names its cause.
    re.compile(rf"(?P<keep>(?:\[|\{{|\s)(?:\w{{0,64}}[_-])?(?:token|secret):){_BARE}(?=\s[\w-]{{1,64}}:|\]|\}})", re.IGNORECASE),
    # password=…  with spaces
    re.compile(rf"(?P<keep>(?i:{_NAME})\s{{1,4}}=\s{{0,4}}|(?i:{_NAME})=\s{{1,4}}){_NO_VALUE}{_BARE}"),
    # Sentences.
    re.compile(
        rf"(?P<keep>\b(?:password|passwd|passphrase|passcode|pwd|{_KEY}|credential)s?[\"'`\\]{{0,4}}\s{{1,4}}(?:is|was|are|set to|changed to)(?::|\s)\s{{0,4}}[\"'`]?){_NO_VALUE}"
        r"(?!\[redacted)[^\s\"'`\\,;]+",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?P<keep>\b(?:token|secret)\s{{1,4}}(?:is|was|set to):?\s{{1,4}})(?:{_QUOTED}|{_NO_VALUE}(?!\[redacted)(?=[^\s,;]*\d)[^\s\"'`\\,;]{{6,}})",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?P<keep>\b(?:(?:with|using|by|and|the|new|old|login\s\S{{1,128}}|user(?:name)?\s\S{{1,128}}|account\s\S{{1,128}})\s{{1,4}}"
        rf"|^\s{{0,16}})(?:password|passwd|passphrase|passcode|pwd)\s{{1,4}}[\"'`]?){_NO_VALUE}(?!\[redacted|=|:|->)[^\s\"'`\\,;:=]+",
        re.IGNORECASE | re.MULTILINE,
    ),
    re.compile(rf"(?P<keep>\bidentified by\s{{1,4}}|\bpassword\s{{1,4}}){_QUOTED}", re.IGNORECASE),
)  # fmt: skip
_DATA: Final = re.compile(
    r"(?P<keep>(?:(?<![A-Za-z])|(?<=\\[nt]))(?:string|binary)?data[\"'\\]{0,8}\s{0,4}:\s{0,4})(?!\s*[\"'\\]*\[redacted)"
    r"(?:\{[^{}]*\}|map\[[^\]]*\]\{[^{}]*\}|map\[[^\]]*\]|.*)",
    re.IGNORECASE | re.DOTALL,
)
_TAIL: Final = re.compile(r"\[redacted\][!#$%^*+~=|][^\s\"'`\\,;&<>()\[\]{}@]*")
_ENCODED: Final = re.compile(r"[^\s\"']{0,512}?%[0-9A-Fa-f]{2}[^\s\"']*")
_WAITING: Final = re.compile(
    rf"{_ANY}[\"'\\]{{0,8}}\s{{0,8}}(?::|=|=>|:=|\bis:?)\s{{0,8}}[\"']?(?:[|>][-+]?)?\s*$|<[\w.:-]{{0,64}}?{_ANY}>\s*$"
)
_RECORD: Final = re.compile(
    r"\s*(?:[IWEF]\d{4} \d\d:[^\]]{0,128}\]|\d{4}-\d\d-\d\d[T ][\d:.,]+\S*(?: std(?:out|err) [FP])?|\{\")\s?"
)


def normalised(text: str) -> str:
    """Return a text without characters that show nothing and letters that are written as escapes: both hide a name."""
    if not text.isprintable() or not text.isascii():
        text = _INVISIBLE.sub("", text)
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "\\u00" in text else text


def hide(text: str) -> str:
    """Return a text without the values that names in it give away."""
    if "%" in text:
        text = _ENCODED.sub(_decoded, text)
    return _hide(text)


def without_tails(text: str) -> str:
    """Return a text without what a rule left of a value that has more characters than it knows."""
    return _TAIL.sub(HIDDEN, text) if HIDDEN in text else text


def names_value_of_next_line(line: str) -> bool:
    """Return whether a line ends with the name of a secret whose value is missing."""
    low = line[-200:].lower()
    return any(hint in low for hint in _HINTS) and _WAITING.search(line[-200:]) is not None


def hide_first(line: str) -> str:
    """Return a line without its text, which is the value of the line before; a record of a log keeps what begins it."""
    begin = _RECORD.match(line)
    text = line[begin.end() :] if begin else line
    if begin and len(text.split()) != 1:
        return line  # a record of its own
    return line[: len(line) - len(text)] + HIDDEN if text.strip() else line


def _hide(text: str) -> str:
    low = text.lower()
    if not any(hint in low for hint in _HINTS):
        return text
    if text[:1] in "{[":
        try:
            parsed = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
        else:
            cleaned = _value(parsed, depth=0)
            return text if cleaned == parsed else orjson.dumps(cleaned).decode()
    for rule in _RULES:
        text = rule.sub(_kept, text)
    if _SECRET_OBJECT.search(text):
        text = _DATA.sub(_kept, text)
    return text


def _kept(match: re.Match[str]) -> str:
    """Return what stands before a value, with the quotes of the value."""
    quote = match.groupdict().get("q") or ""
    is_closed = quote and match[0].endswith(quote) and len(match[0]) > len(match["keep"]) + len(quote)
    if quote and match[0] == f"{match['keep']}{quote}{quote}":
        return match[0]  # empty
    return f"{match['keep']}{quote}{HIDDEN}{quote if is_closed else ''}"


def _value(value: Any, *, depth: int) -> Any:
    """Clean the texts of a JSON value; its keys are dealt with by `maestropy.journal.redact`."""
    if isinstance(value, str):
        return _hide(value) if depth < 32 else HIDDEN
    if isinstance(value, list):
        return [_value(item, depth=depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned = {key: _value(item, depth=depth + 1) for key, item in value.items()}
    if is_named_value(value):
        cleaned["value"] = HIDDEN
    for key, item in cleaned.items():
        if isinstance(item, str) and item and _IS_PASS.search(key):
            cleaned[key] = HIDDEN
    return cleaned


_IS_PASS: Final = re.compile(rf"{_PASS}$")
_NAMES: Final = re.compile(rf"{_ANY}")


def is_secret_name(name: str) -> bool:
    """Return whether a name has a word for a secret anywhere."""
    return _NAMES.search(name) is not None


def is_named_value(pair: Any) -> bool:
    """Return whether a mapping is a pair of name and value, and its name says that the value is a secret."""
    value = pair.get("value")
    if not isinstance(value, str | int | float) or isinstance(value, bool) or value == "":
        return False
    return any(isinstance(pair.get(key), str) and _NAMES.search(pair[key]) for key in ("name", "key", "header"))


def _decoded(match: re.Match[str]) -> str:
    """Return a percent-encoded word as it is, or decoded if a secret is in it."""
    word, decoded = match[0], unquote(unquote(match[0]))
    cleaned = redact.text(_hide(decoded))
    return word if cleaned == decoded else "%20".join(cleaned.split())
