"""Validate names by the rules of Kubernetes.

Each function returns a list of problems, empty for a valid name. The texts are those of Kubernetes, because operators
search for them.
"""

import re
from collections.abc import Iterable, Mapping

_DNS1123_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS1123_SUBDOMAIN = rf"{_DNS1123_LABEL}(\.{_DNS1123_LABEL})*"
_DNS1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED_NAME})?"

# Equivalent expressions that cannot backtrack exponentially; the expressions above are quoted in messages.
_is_dns1123_label = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?").fullmatch
_is_dns1123_subdomain = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*").fullmatch
_is_dns1035_label = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?").fullmatch
_is_qualified_name = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?").fullmatch

_LABEL_MAX = 63
_SUBDOMAIN_MAX = 253


def dns1123_label(value: str) -> list[str]:
    """Validate the name of a namespace or a consumer."""
    problems = _too_long(value, _LABEL_MAX)
    if not _is_dns1123_label(value):
        if _is_dns1123_subdomain(value):
            problems.append("must not contain dots")
        else:
            problems.append(
                _mismatch(
                    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                    "and must start and end with an alphanumeric character",
                    _DNS1123_LABEL,
                    examples=("my-name", "123-abc"),
                )
            )
    return problems


def dns1123_subdomain(value: str) -> list[str]:
    """Validate an API group or the prefix of a label key."""
    problems = _too_long(value, _SUBDOMAIN_MAX)
    if not _is_dns1123_subdomain(value):
        problems.append(
            _mismatch(
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
                "and must start and end with an alphanumeric character",
                _DNS1123_SUBDOMAIN,
                examples=("example.com",),
            )
        )
    return problems


def dns1035_label(value: str) -> list[str]:
    """Validate an API version."""
    problems = _too_long(value, _LABEL_MAX)
    if not _is_dns1035_label(value):
        problems.append(
            _mismatch(
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
                "alphabetic character, and end with an alphanumeric character",
                _DNS1035_LABEL,
                examples=("my-name", "abc-123"),
            )
        )
    return problems


def qualified_name(value: str) -> list[str]:
    """Validate a label key, an annotation key (in lower case) or a finalizer."""
    prefix, slash, name = value.partition("/")
    if not slash:
        prefix, name = "", value
    rule = _mismatch(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
        "character",
        _QUALIFIED_NAME,
        examples=("MyName", "my.name", "123-abc"),
    )
    if "/" in name:
        return [f"a qualified name {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in dns1123_subdomain(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _too_long(name, _LABEL_MAX)]
    if not _is_qualified_name(name):
        problems.append(f"name part {rule}")
    return problems


def label_value(value: str) -> list[str]:
    """Validate the value of a label."""
    problems = _too_long(value, _LABEL_MAX)
    if value and not _is_qualified_name(value):
        problems.append(
            _mismatch(
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
                "and must start and end with an alphanumeric character",
                _LABEL_VALUE,
                examples=("MyValue", "my_value", "12345"),
            )
        )
    return problems


def labels(field: str, values: object) -> list[str]:
    """Validate labels; the problem of a value names its key."""
    if values is None:
        return []
    if not isinstance(values, Mapping):
        return [f"{field}: must be an object with texts"]
    problems = []
    for key, value in values.items():
        problems += invalid(field, str(key), qualified_name(str(key)))
        if isinstance(value, str):
            problems += invalid(f"{field}[{key}]", value, label_value(value))
        else:
            problems.append(f"{field}[{key}]: must be a text; put it in quotes")
    return problems


def invalid(field: str, value: str, problems: Iterable[str]) -> list[str]:
    """Format the problems of `value` as Kubernetes reports them for `field`."""
    return [f"{field}: Invalid value: {quote(value)}: {problem}" for problem in problems]


def join(problems: Iterable[str]) -> str:
    """Join problems without duplicates to one text, in brackets when there are several."""
    unique = list(dict.fromkeys(problems))
    if len(unique) == 1:
        return unique[0]
    shown = unique[:_SHOWN_PROBLEMS]
    if len(unique) > len(shown):
        shown.append(f"and {len(unique) - len(shown)} more")
    return f"[{', '.join(shown)}]"


_SHOWN_PROBLEMS = 30
_SHOWN_CHARACTERS = 300
"""An error is sent in a gRPC trailer of a few kilobytes; the sender also recognises a shortened value."""

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r"} | {
    "\t": "\\t",
    "\v": "\\v",
}


def quote(value: str) -> str:
    """Return `value` in double quotes, with unprintable characters escaped and shortened if it is very long."""
    shown = value if len(value) <= _SHOWN_CHARACTERS else f"{value[:_SHOWN_CHARACTERS]}…"
    return '"' + "".join(map(_visible, shown)) + '"'


def _visible(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _too_long(value: str, limit: int) -> list[str]:
    # Kubernetes counts bytes, although its message says characters.
    too_long = len(value) > limit or len(value.encode("utf-8", "surrogatepass")) > limit
    return [f"must be no more than {limit} characters"] if too_long else []


def _mismatch(rule: str, pattern: str, *, examples: tuple[str, ...]) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"
