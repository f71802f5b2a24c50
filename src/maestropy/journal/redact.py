"""Remove secrets from log records.

Redacted are: values whose key names a secret, secrets with a recognisable format (PEM blocks, passwords in connection
strings and on command lines, bearer tokens, signatures of URLs), and inside payloads: the data of Kubernetes Secrets,
the values of environment variables, and the feedback values and condition messages of a manifest that is a Secret.
Pure. In doubt a value is redacted, but fields that hold an ID or a type by contract are not scanned: most log records
hold little else.
"""

import re
from collections.abc import Mapping
from typing import Final

import orjson

from maestropy.journal import chain, secret_names
from maestropy.journal.fields import LogKey

HIDDEN: Final = "[redacted]"
_ERROR_PHRASES: Final = (
    "admission webhook", "failed calling webhook", "validatingadmissionpolicy", "denied request", "denied the request",
    "exceeded quota", "is forbidden", "because it is being terminated", "no matches for kind", "is invalid",
    "the object has been modified", "already exists", "field is immutable", "conflict with", "not found",
    "connection refused", "context deadline exceeded", "request timed out", "not allowed to apply",
)  # fmt: skip
"""What an API server says about an object, whatever is in it: they classify an error whose text must not be logged."""

IDENTIFIERS: Final = frozenset(
    {
        LogKey.LOGGER,
        LogKey.OP_ID,
        LogKey.TRACE_ID,
        LogKey.RESOURCE_ID,
        LogKey.EVENT_ID,
        LogKey.EVENT_TYPE,
        LogKey.EVENT_SOURCE,
        LogKey.STATUS_EVENT,
        LogKey.STATUS_EVENT_TYPE,
        LogKey.INSTANCE_ID,
        "clustername",
        "logtracing",
        "originalsource",
        "resourceid",
        "resourceversion",
        "sequenceid",
        "statushash",
        "deletiontimestamp",
        "traceparent",
    }
)
"""Fields and CloudEvents extensions that hold an ID, a type or a number by contract; they are never scanned."""

_MAX_DEPTH = 64
_SEQUENCES: Final = (list, tuple, set, frozenset)
_SECRET_DATA: Final = ("data", "stringData")
_NAMED_VALUE: Final = frozenset({"name", "value"})
"""The members of an environment variable of a container, and of HTTP headers and parameters."""

_KEY = r"(?:api|private|access|account|secret|shared|signing|subscription)[-_]?key"
_NAME = rf"(?:password|passwd|passphrase|pwd|token|secret|authorization|credentials?|cookie|{_KEY})"
_VALUE_NAME = (
    rf"(?:password|passwd|passphrase|authorization|{_KEY}|\w[-_]secret|client[-_]?secret|\w[-_]token"
    r"|(?:access|refresh|id|auth|api|session|bearer)token)"
)
"""Keys whose value follows a colon. `token: expired` is how an error names its cause, so those words alone do not."""
_GAP = r"(?:\s|\\[nrt]){0,64}"
"""White space, also as Go escapes it within a quoted text."""
_QUOTED = r"(\\*[\"'])(?!\[redacted)(?:(?:|.*?[^\\])\2|.*)"
"""A quoted value at any depth of escaping; one without an end is cut, and all of it is the value."""
_PROSE = r"(?:and|are|cannot|for|from|has|is|must|not|or|to|was|with)\b"
"""Words that follow the name of an option in a sentence."""
_PATTERNS: Final = (
    # Also with escaped line breaks, and when the end of the block is missing.
    (re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?(?:-----END \1-----|\Z)", re.DOTALL), r"[redacted \1]"),
    # scheme://user:password@host; the last @ ends the password, because a password may contain one.
    (re.compile(r"(://[^\s:/@\"']*:)[^\s/\"']+@"), rf"\1{HIDDEN}@"),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), HIDDEN),
    # Keys of cloud providers and forges, which have a prefix.
    (
        re.compile(
            r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}"
            r"|AIza[\w-]{30,}|hvs\.[\w-]{20,}|sk_live_\w{16,})"
        ),
        HIDDEN,
    ),
    # Signatures of URLs, which are all that it takes to use them.
    (re.compile(r"(?<![A-Za-z0-9])((?:sig|signature)=)(?!\[redacted)[^\s,;&\"'\\]+", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(r"(\bcookie:\s{0,8})(?!\[redacted)[^\r\n\"'\\]+", re.IGNORECASE), rf"\1{HIDDEN}"),
    # `curl -u user:password` and `--password value`.
    (
        re.compile(r"((?<!\S)(?:-u|--(?:proxy-)?user)[ =]\\{0,8}[\"']?[^\s:\"'\\]{1,128}:)[^\s\"'\\]+"),
        rf"\1{HIDDEN}",
    ),
    (
        re.compile(rf"(--[\w-]{{0,32}}{_NAME} +)(?!-|\[redacted|{_PROSE})[^\s\"'\\,;]+", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),
    # key=value and "key":"value"; a quoted value ends at the closing quote, any other at the next separator.
    (
        re.compile(rf"({_NAME}\\*[\"']?\s*=\s*|{_NAME}\\*[\"']\s*:\s*){_QUOTED}", re.IGNORECASE | re.DOTALL),
        rf"\1\2{HIDDEN}\2",
    ),
    (re.compile(rf"({_NAME}=)(?!\[redacted)[^\s,;&\"'\\]+", re.IGNORECASE), rf"\1{HIDDEN}"),
    # How an API server names the field and the value of an invalid object, and `PASSWORD value "…"`. Names are bounded:
    # otherwise the time grows with the square of a text that repeats one.
    (
        re.compile(
            rf"((?:\b(?:data|stringData)(?:\[[^\]\n]{{0,64}}\]|\.[\w.-]{{1,64}})|{_NAME}\w{{0,64}})"
            rf"[\]\\\"']{{0,8}}(?::[\w ]{{0,64}}|\s{{1,8}})value:?\s+){_QUOTED}",
            re.IGNORECASE | re.DOTALL,
        ),
        rf"\1\2{HIDDEN}\2",
    ),
    # A value in quotes is no cause of an error.
    (
        re.compile(rf"((?:{_VALUE_NAME}|\b(?:token|pwd)){_GAP}:{_GAP}){_QUOTED}", re.IGNORECASE | re.DOTALL),
        rf"\1\2{HIDDEN}\2",
    ),
    (
        re.compile(
            rf"({_VALUE_NAME}{_GAP}:{_GAP})(?!(?:bearer |basic )?\[redacted)(?:(?:bearer|basic) )?[^\s,;\"'\\]+",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
)


def fields(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return `values` without secrets; the same mapping if there are none, which is nearly always the case."""
    if not _mapping_is_suspect(values, 0):
        return values
    return {name: _clean(name, item, 0) for name, item in values.items()}


def text(value: str) -> str:
    """Return `value` without secrets; it may be plain text or JSON."""
    return _clean_text(value, 0) if _text_is_suspect(value) else value


def _mapping_is_suspect(values: Mapping[str, object], depth: int) -> bool:
    if "value" in values and values.keys() == _NAMED_VALUE:
        return True
    for key, value in values.items():
        if key in IDENTIFIERS:
            continue
        if type(value) is str:
            if _text_is_suspect(value) or secret_names.is_secret_in_log(key):
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
    return secret_names.is_secret_in_log(key) or _text_is_suspect(_as_text(value))


def _text_is_suspect(value: str) -> bool:
    """Return whether `value` could hold a secret; cheap, because it only searches substrings."""
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
        or 'value"' in low  # a named value, such as an environment variable
        or "value\\" in low
        or "data[" in low
        or "data." in low
        or "akia" in low
        or "asia" in low
        or "ghp_" in low
        or "gho_" in low
        or "ghu_" in low
        or "ghs_" in low
        or "ghr_" in low
        or "github_pat" in low
        or "glpat-" in low
        or "xox" in low
        or "aiza" in low
        or "hvs." in low
        or "sk_live_" in low
        or "sig=" in low
        or "signature=" in low
        or "cookie" in low
        or "credential" in low
        or "-u " in low
        or "-user" in low
    )


def _clean(key: str, value: object, depth: int) -> object:
    if depth > _MAX_DEPTH:
        return HIDDEN
    if isinstance(value, Mapping):
        return _clean_mapping(value, depth)
    if isinstance(value, _SEQUENCES):
        return [_clean(key, item, depth + 1) for item in value]
    if key not in IDENTIFIERS and secret_names.is_secret_in_log(key):
        # None, booleans and empty strings reveal nothing, and show whether a secret was set.
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
        # The items of a list may have no kind.
        cleaned["items"] = [
            _clean_mapping({**item, "kind": "Secret"}, depth + 1) if isinstance(item, Mapping) else HIDDEN
            for item in items
        ]
    elif _is_secret_meta(value.get("resourceMeta")):
        cleaned.update(_without_read_values(cleaned))
    elif "conditions" in value and _has_secret(value.get("resourceStatus")):
        # The condition of a work repeats the message of the only manifest that has it.
        cleaned["conditions"] = _without_messages(cleaned["conditions"])
    elif value.keys() == _NAMED_VALUE and cleaned["value"]:
        cleaned["value"] = HIDDEN
    return cleaned


def _is_secret_meta(meta: object) -> bool:
    """Return whether a manifest status belongs to a Secret."""
    return isinstance(meta, Mapping) and (meta.get("kind") == "Secret" or meta.get("resource") == "secrets")


def _without_read_values(manifest_status: Mapping[object, object]) -> dict[object, object]:
    """Return feedback and conditions of a Secret without what was read from it."""
    masked: dict[object, object] = {}
    if "statusFeedback" in manifest_status:
        masked["statusFeedback"] = HIDDEN if manifest_status["statusFeedback"] else {}
    if "conditions" in manifest_status:
        masked["conditions"] = _without_messages(manifest_status["conditions"])
    return masked


def _without_messages(conditions: object) -> object:
    """Return conditions without their messages; type, status and reason stay, and which kind of error it is."""
    if not isinstance(conditions, list):
        return conditions
    return [
        {**condition, "message": _error_class(condition["message"])}
        if isinstance(condition, Mapping) and condition.get("message")
        else condition
        for condition in conditions
    ]


def _error_class(message: object) -> str:
    """Return the constant phrases of the API server that a hidden message has; these contain nothing of the Secret."""
    lower = str(message).lower()
    phrases = [phrase for phrase in _ERROR_PHRASES if phrase in lower]
    return f"{HIDDEN}: {', '.join(phrases)}" if phrases else HIDDEN


def _has_secret(resource_status: object) -> bool:
    """Return whether one of the manifest statuses of a work belongs to a Secret."""
    if isinstance(resource_status, Mapping):
        resource_status = resource_status.get("manifests")
    entries = resource_status if isinstance(resource_status, list) else []
    return any(isinstance(entry, Mapping) and _is_secret_meta(entry.get("resourceMeta")) for entry in entries)


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
