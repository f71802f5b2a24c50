"""Validate names, label keys and values, and annotation keys. Each function returns the error text, or None."""

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_DNS1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

# RBAC names only have to be valid path segments.
_PATH_NAMED = {"roles", "rolebindings", "clusterroles", "clusterrolebindings"}
_LABEL_NAMED = {"namespaces"}
_DNS1035_NAMED = {"services"}


def object_name(name: str, plural: str) -> str | None:
    """Return the error in the name of an object."""
    if plural in _PATH_NAMED:
        if name in (".", ".."):
            return f"may not be '{name}'"
        error = next((sign for sign in "/%" if sign in name), None)
        return f"may not contain '{error}'" if error else None
    if plural in _LABEL_NAMED:
        return namespace_name(name)
    if plural in _DNS1035_NAMED:
        return _bounded(name, _DNS1035, 63, _DNS1035_TEXT)
    return _bounded(name, _SUBDOMAIN, 253, _SUBDOMAIN_TEXT)


def namespace_name(name: str) -> str | None:
    """Return the error in the name of a namespace."""
    if "." in name:
        return "must not contain dots"
    return _bounded(name, _LABEL, 63, _LABEL_TEXT)


def label_key(key: str) -> str | None:
    """Return the error in the key of a label or annotation, or in the name of a finalizer."""
    prefix, slash, name = key.rpartition("/")
    if slash and not prefix:
        return "prefix part must be non-empty"
    if slash:
        error = _bounded(prefix, _SUBDOMAIN, 253, _SUBDOMAIN_TEXT)
        if error:
            return f"prefix part {error}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 characters"
    return None if _QUALIFIED.fullmatch(name) else _QUALIFIED_TEXT


def label_value(value: str) -> str | None:
    """Return the error in the value of a label."""
    return _bounded(value, _VALUE, 63, _VALUE_TEXT)


def _bounded(text: str, pattern: re.Pattern[str], limit: int, explanation: str) -> str | None:
    if len(text) > limit:
        return f"must be no more than {limit} characters"
    return None if pattern.fullmatch(text) else explanation


def is_config_key(key: str) -> bool:
    """Whether `key` may name an entry of a ConfigMap or Secret."""
    return len(key) <= 253 and re.fullmatch(r"[-._a-zA-Z0-9]+", key) is not None and key not in (".", "..")
