"""Take secrets out of what is about to be written.

Three things are hidden: values under a key that names a secret, secrets recognisable by their own shape (PEM blocks,
passwords in connection strings, bearer tokens), and the data of Kubernetes Secrets inside payloads.
Pure. Errs towards hiding, except that what holds an id or a type by contract is not looked at: most lines hold
little else.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import orjson

from maestropy.journal import chain
from maestropy.journal.fields import Key

HIDDEN: Final = "[redacted]"

IDENTIFIERS: Final = frozenset(
    {
        Key.LOGGER,
        Key.OP_ID,
        Key.RESOURCE_ID,
        Key.EVENT_ID,
        Key.EVENT_TYPE,
        Key.EVENT_SOURCE,
        Key.STATUS_EVENT,
        Key.STATUS_EVENT_TYPE,
        Key.INSTANCE_ID,
        "clustername",
        "logtracing",
        "originalsource",
        "resourceid",
        "resourceversion",
        "sequenceid",
        "statushash",
        "deletiontimestamp",
    }
)
"""Fields and CloudEvents extensions that hold an id, a type or a number by contract, so they are never scanned."""

_MAX_DEPTH = 64
_SEQUENCES: Final = (list, tuple, set, frozenset)
_SECRET_KEYS: Final = (
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "token",
    "secret",
    "authorization",
    "apikey",
    "privatekey",
    "accesskey",
    "credential",
    "credentials",
    "cookie",
)
_SECRET_DATA: Final = ("data", "stringData")

_NAME = r"(?:password|passwd|passphrase|pwd|token|secret|authorization|api[-_]?key|private[-_]?key|access[-_]?key)"
_PATTERNS: Final = (
    # Also with the line breaks escaped, and also when the end of the block was cut off.
    (re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?(?:-----END \1-----|\Z)", re.DOTALL), r"[redacted \1]"),
    # scheme://user:password@host; the last @ counts, because passwords hold them too.
    (re.compile(r"(://[^\s:/@\"']*:)[^\s/\"']+@"), rf"\1{HIDDEN}@"),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), HIDDEN),
    # key=value and "key":"value"; a value in quotes ends with them, any other at the next separator.
    (
        re.compile(rf"({_NAME}\\?[\"']?\s*=\s*|{_NAME}\\?[\"']\s*:\s*)(\\?[\"'])(?!\[redacted).*?\2", re.IGNORECASE),
        rf"\1\2{HIDDEN}\2",
    ),
    (re.compile(rf"({_NAME}=)(?!\[redacted)[^\s,;&\"'\\]+", re.IGNORECASE), rf"\1{HIDDEN}"),
    # `token: expired` is the way an error names its cause, so a colon alone betrays only these two.
    (
        re.compile(
            r"((?:password|authorization)\s*:\s*)(?!(?:bearer |basic )?\[redacted)(?:(?:bearer|basic) )?[^\s,;\"']+",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
)


def fields(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return `values` without secrets; the very same mapping when there are none, which is nearly always."""
    if not _mapping_is_suspect(values, 0):
        return values
    return {name: _clean(name, item, 0) for name, item in values.items()}


def text(value: str) -> str:
    """Return `value` without secrets, whether it is a sentence or JSON."""
    return _clean_text(value, 0) if _text_is_suspect(value) else value


def _mapping_is_suspect(values: Mapping[str, object], depth: int) -> bool:
    for key, value in values.items():
        if key in IDENTIFIERS:
            continue
        if type(value) is str:
            if _text_is_suspect(value) or _names_secret(key):
                return True
        elif type(value) is dict and depth < _MAX_DEPTH:
            if _mapping_is_suspect(value, depth + 1):
                return True
        elif _is_suspect(key, value, depth):
            return True
    return False


def _is_suspect(key: str, value: object, depth: int) -> bool:
    if depth >= _MAX_DEPTH:
        return True
    if isinstance(value, Mapping):
        return _mapping_is_suspect({str(name): item for name, item in value.items()}, depth + 1)
    if isinstance(value, _SEQUENCES):
        return any(_mapping_is_suspect({key: item}, depth + 1) for item in value)
    return _names_secret(key) or _text_is_suspect(_as_text(value))


def _text_is_suspect(value: str) -> bool:
    """Tell cheaply whether `value` could hold a secret: a few substring searches, no pattern."""
    low = value.lower()
    return (
        "@" in low
        or "secret" in low
        or "token" in low
        or "pass" in low
        or "pwd" in low
        or "-----begin" in low
        or "authoriz" in low
        or "bearer" in low
        or "basic " in low
        or "eyj" in low
        or "key" in low
    )


def _clean(key: str, value: object, depth: int) -> object:
    if depth > _MAX_DEPTH:
        return HIDDEN
    if isinstance(value, Mapping):
        return _clean_mapping(value, depth)
    if isinstance(value, _SEQUENCES):
        return [_clean(key, item, depth + 1) for item in value]
    if key not in IDENTIFIERS and _names_secret(key):
        # Nothing and yes or no give nothing away, and tell whether a secret was set at all.
        return value if value is None or isinstance(value, bool) or value == "" else HIDDEN
    return _clean_leaf(value, depth)


def _clean_leaf(value: object, depth: int) -> object:
    if isinstance(value, str):
        return _clean_text(value, depth)
    shown = _as_text(value)
    cleaned = _clean_text(shown, depth)
    return value if cleaned == shown else cleaned


def _clean_mapping(value: Mapping[object, object], depth: int) -> dict[object, object]:
    kind = value.get("kind")
    cleaned = {name: _clean(str(name), item, depth + 1) for name, item in value.items()}
    if kind == "Secret":
        for part in _SECRET_DATA:
            if part in cleaned:
                cleaned[part] = _mask(cleaned[part])
    elif kind == "SecretList" and isinstance(items := value.get("items"), list):
        # The items of a list may leave out their kind.
        cleaned["items"] = [
            _clean_mapping({**item, "kind": "Secret"}, depth + 1) if isinstance(item, Mapping) else HIDDEN
            for item in items
        ]
    return cleaned


def _mask(data: object) -> object:
    return dict.fromkeys(data, HIDDEN) if isinstance(data, Mapping) else HIDDEN


def _clean_text(value: str, depth: int) -> str:
    if value[:1] in ("{", "["):
        try:
            parsed = orjson.loads(value)
        except orjson.JSONDecodeError:
            pass
        else:
            cleaned = _clean("", parsed, depth + 1)
            return value if cleaned == parsed else orjson.dumps(cleaned).decode()
    for pattern, replacement in _PATTERNS:
        value = pattern.sub(replacement, value)
    return value


def _as_text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return chain.describe(value) if isinstance(value, BaseException) else ""


@lru_cache(maxsize=4096)
def _names_secret(key: object) -> bool:
    # By its end: `clientSecret` is one, `secretName` only names one.
    return re.sub(r"[^a-z]", "", str(key).lower()).endswith(_SECRET_KEYS)
