"""Classify errors with which an API server answers an agent. Pure.

The texts are those of Kubernetes. The order matters: a denial by a policy and a namespace that is being deleted also
say "is forbidden", a webhook that cannot be called also says "connection refused" or names a certificate, and a field
that may not be set or changed is "Forbidden" too. A denial by the authorizer names the user and what it cannot do; any
other reason after "is forbidden" is the answer of an admission plugin, of which there are more than anybody can list.
"""

import re
from typing import Final

_OF_RIGHTS: Final = (
    r"\buser (?:\\*\"[^\"]*\"|\S+) cannot ", "attempting to grant rbac permissions", "user not permitted to ",
    "cannot set blockownerdeletion", "cannot set an ownerref on a resource you can't",
)  # fmt: skip
"""What the authorizer says, and admission plugins that ask it."""
_PATTERNS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("MT-410", ("not allowed to apply", "executor")),
    ("MT-407", ("admission webhook", "validatingadmissionpolicy", "denied request", "denied the request",
                "violates podsecurity", "exceeded quota", "maximum .* usage per")),
    ("MT-423", ("failed calling webhook", "failed to call webhook", "conversion webhook for .* failed",
                "quota evaluation timed out")),
    ("MT-419", ("because it is being terminated",)),
    ("MT-406", (r"namespaces? \"?[^\"\s]+\"? not found",)),
    ("MT-418", (r"user \\*\"system:anonymous\\*\" cannot ",)),
    ("MT-403", _OF_RIGHTS),
    ("MT-404", (r"\bis invalid: ", r"[\w\])]: forbidden: (?!user )")),
    ("MT-409", ("not yet ready to handle request",)),
    ("MT-407", (r"is forbidden: \S",)),
    ("MT-403", ("forbidden",)),
    ("MT-418", ("unauthorized", "asked for the client to provide credentials", "remote error: tls: .*certificate")),
    ("MT-420", ("x509: ", "tls: failed to verify certificate")),
    ("MT-405", ("no matches for kind", "could not find the requested resource", "not found the kind",
                "doesn't have a resource type")),
    ("MT-413", ("the object has been modified", "please apply your changes to the latest version")),
    ("MT-422", ("already exists",)),
    ("MT-408", ("conflict",)),
    ("MT-401", ("manifests are invalid",)),
    ("MT-424", ("request is too large", "request entity too large", "larger than max")),
    ("MT-404", ("is invalid", "required value", "invalid value", "unsupported value", "immutable", "unknown field",
                "strict decoding", "cannot unmarshal", "unable to decode", "too large", "too long",
                "failed to create typed patch object", "field not declared in schema",
                "request to convert cr (?:from|to) an invalid group/version")),
    ("MT-409", ("deadline exceeded", "connection refused", "connection reset", "timed? ?out", "no route to host",
                "no such host", r"\beof\b", "unable to handle the request", "etcdserver", "too many requests",
                "service unavailable", "broken pipe", "client connection lost", "unable to connect",
                "error trying to reach", "stale groupversion discovery",
                "unable to retrieve the complete list of server apis")),
)  # fmt: skip
_RIGHTS: Final = re.compile("|".join(_OF_RIGHTS))
_COMPILED: Final = tuple((re.compile("|".join(texts)), code) for code, texts in _PATTERNS)
_VALIDITY: Final = re.compile(r"current time \S+ is (after|before) (\S+?)[\"';,.]*(?:\s|$)")
_HOST: Final = re.compile(r"https://([^/\s\"]+)")
_OF_API_SERVER: Final = frozenset({"MT-409", "MT-418", "MT-420"})
"""Errors of the connection to the API server: every request fails with them, whatever it is about."""


def code_of_apply_error(text: str) -> str:
    """Return the code of an error of the API server."""
    lower = text.lower()
    return next((code for pattern, code in _COMPILED if pattern.search(lower)), "MT-499")


def is_reason_told(text: str) -> bool:
    """Say whether an error that is taken for missing rights says that it is: a redacted one has lost its reason."""
    return code_of_apply_error(text) != "MT-403" or _RIGHTS.search(text.lower()) is not None


def of_certificate(text: str) -> str:
    """Return whose certificate an error is about, and until or from when it is valid, as far as the error says it."""
    moment, host = _VALIDITY.search(text), _HOST.search(text)
    if moment is None:
        return ""
    word = "was valid until" if moment.group(1) == "after" else "is valid from"
    return f"the certificate of {host.group(1) if host else 'the API server'} {word} {moment.group(2)}"


def code_of_connection_error(text: str) -> str:
    """Return the code of an error that the API server answers to every request, or does not answer; else nothing."""
    code = code_of_apply_error(text)
    return code if code in _OF_API_SERVER else ""
