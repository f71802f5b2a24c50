"""Map rejected gRPC calls and failed HTTP responses of Maestro to client errors.

A Go server rejects nearly every call with the gRPC code Unknown and a message, so the message is matched first; codes
decide only if no message matches. The first matching row of a table counts. Pure.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from maestropy.sdk import errors
from maestropy.sdk.errors import MaestroError
from maestropy.transport.grpc.status import StatusCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The operation that an error names, and its operation ID."""

    doing: str
    operation_id: str = ""
    span: Any = None
    """The span of the application's OpenTelemetry that publishes it; None if it uses none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What the client presents to a server, as far as errors depend on it."""

    uses_tls: bool = False
    client_cert_file: str = ""
    """Empty: the client presents no certificate."""
    current_token: Callable[[], str] = str
    """Returns the current token; empty without one."""


NO_CREDENTIALS = Credentials()


@dataclass(frozen=True, slots=True)
class ErrorMeaning:
    """One row of a table: the error class and its advice."""

    kind: type[MaestroError]
    advice: str = ""
    is_retryable: bool | None = None
    """None for the default of the error class."""
    reason: str = ""
    """What to say instead of the server's text, if that speaks of tables and constraints."""


_TLS = ErrorMeaning(errors.Unavailable, "check the CA file, the certificate's names and its dates", is_retryable=False)

_NO_TLS = ErrorMeaning(
    errors.Unavailable, "the server does not use TLS: use http://, or no CA file", is_retryable=False
)

_NOT_REST = ErrorMeaning(
    errors.Unavailable,
    "this is not a Maestro REST endpoint; check MAESTRO_API_URL (--rest-url): it may be the address of gRPC",
)
_NOT_GRPC = ErrorMeaning(
    errors.Unavailable,
    "this is not a Maestro gRPC endpoint; check MAESTRO_GRPC_URL (--grpc-server-address): it may be that of REST",
)

_MAYBE_TLS = ErrorMeaning(
    errors.Unavailable, "check that the server runs; if it uses TLS, write https:// in the address, not http://"
)

_GIVE_CERTIFICATE = (
    "give client_cert_file and client_key_file "
    "(MAESTRO_GRPC_CLIENT_CERT_FILE and …_KEY_FILE, or --grpc-client-cert-file and --grpc-client-key-file)"
)
_CLOSED = re.compile(
    r"socket closed|connection reset|closed the connection|disconnected without|broken pipe", re.IGNORECASE
)
"""How a server ends a connection after the handshake if it says nothing about the client certificate that it misses."""
_CERTIFICATE_REQUIRED = re.compile(r"certificate.required", re.IGNORECASE)
_UNKNOWN_AUTHORITY = re.compile(r"alert.unknown.ca\b", re.IGNORECASE)
_CERTIFICATE_REJECTED = re.compile(
    r"alert.(bad.certificate|unsupported.certificate|certificate.(unknown|expired|revoked)|handshake.failure)",
    re.IGNORECASE,
)
"""Alerts about the certificate of a client; with TLS 1.2 a client without one may get them too."""

_TEXTS: tuple[tuple[re.Pattern[str], ErrorMeaning], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), meaning)
    for pattern, meaning in (
        (r"wrong_version_number", _NO_TLS),
        # h11 reads the first HTTP/2 frame of a gRPC server; gRPC reads an HTTP/1 response.
        (r"illegal request line|illegal status line", _NOT_REST),
        (r"expected settings frame as the first frame", _NOT_GRPC),
        (r"certificate_verify_failed|handshake failed|ssl_error|\[ssl", _TLS),
        (r"the resource version is not the latest", ErrorMeaning(errors.Conflict)),
        (r"is under deletion", ErrorMeaning(errors.Conflict, "wait until it is gone: delete(name, wait=True)")),
        (
            r'insert or update on table "resources".*fk_resources_consumers',
            ErrorMeaning(errors.ConsumerNotFound, reason="the consumer does not exist"),
        ),
        (
            r"fk_resources_consumers",
            ErrorMeaning(errors.Conflict, "delete the works of this consumer first", reason="it still has works"),
        ),
        (
            r"^maestro-6: This Consumer already exists",
            ErrorMeaning(errors.AlreadyExists, "use ensure() to create it only if it is missing"),
        ),
        (r"^(failed to \w+ resource: )?maestro-6: .*already exist", ErrorMeaning(errors.AlreadyExists)),
        (r"(^|: )maestro-6:", ErrorMeaning(errors.Conflict)),
        (r"(^|: )maestro-7:", ErrorMeaning(errors.NotFound)),
        (r"(^|: )maestro-(8|17|21|23):", ErrorMeaning(errors.Invalid)),
        (r"maestro-9: .*(: Invalid value: |SQLSTATE 42)", ErrorMeaning(errors.Invalid)),
        (r"maestro-15:|token not authenticated|invalid token", ErrorMeaning(errors.Unauthorized)),
        (r"unauthorized to (publish|subscribe)|(^|: )maestro-(1|4|11):", ErrorMeaning(errors.Forbidden)),
        (r"^failed to authorize the request", ErrorMeaning(errors.Unavailable)),
        (r"^failed to (decode cloudevent|convert to cloudevent|parse cloud event type)", ErrorMeaning(errors.Invalid)),
        (r"^unsupported (action|cloudevents)", ErrorMeaning(errors.Invalid)),
        (
            r"the database is read-only",
            ErrorMeaning(errors.Unavailable, "the server runs, but its database takes no writes: ask its operator"),
        ),
        (r"larger than max", ErrorMeaning(errors.Invalid, "make the work smaller: split it into several")),
    )
)

_SQL_ERROR = re.compile(r"(?:pq: |ERROR: )([^()]*?) \(SQLSTATE [0-9A-Z]{5}\)")
"""The error of PostgreSQL that a Go server quotes; only its sentence is for users."""

_OVERLOADED = ErrorMeaning(errors.Unavailable, "the server is overloaded; send fewer requests")

_CODES: Mapping[StatusCode, ErrorMeaning] = {
    StatusCode.UNAVAILABLE: ErrorMeaning(errors.Unavailable),
    StatusCode.CANCELLED: ErrorMeaning(errors.Unavailable),
    StatusCode.RESOURCE_EXHAUSTED: _OVERLOADED,
    StatusCode.DEADLINE_EXCEEDED: ErrorMeaning(errors.Timeout, "retry, or allow more time"),
    StatusCode.UNAUTHENTICATED: ErrorMeaning(errors.Unauthorized),
    StatusCode.PERMISSION_DENIED: ErrorMeaning(errors.Forbidden),
    StatusCode.INVALID_ARGUMENT: ErrorMeaning(errors.Invalid),
    StatusCode.OUT_OF_RANGE: ErrorMeaning(errors.Invalid),
    StatusCode.NOT_FOUND: ErrorMeaning(errors.NotFound),
    StatusCode.ALREADY_EXISTS: ErrorMeaning(errors.AlreadyExists),
    StatusCode.ABORTED: ErrorMeaning(errors.Conflict),
    StatusCode.FAILED_PRECONDITION: ErrorMeaning(errors.Conflict),
    StatusCode.UNIMPLEMENTED: ErrorMeaning(
        errors.ServerError, "this is not a Maestro gRPC endpoint; check MAESTRO_GRPC_URL"
    ),
}

_STATUSES: Mapping[int, ErrorMeaning] = {
    400: ErrorMeaning(errors.Invalid),
    401: ErrorMeaning(errors.Unauthorized),
    403: ErrorMeaning(errors.Forbidden),
    404: ErrorMeaning(errors.NotFound),
    405: ErrorMeaning(errors.ServerError, "this is not a Maestro REST endpoint; check MAESTRO_API_URL"),
    408: ErrorMeaning(errors.Timeout),
    409: ErrorMeaning(errors.Conflict),
    413: ErrorMeaning(errors.Invalid),
    422: ErrorMeaning(errors.Invalid),
    429: _OVERLOADED,
    502: ErrorMeaning(errors.Unavailable),
    503: ErrorMeaning(errors.Unavailable),
    504: ErrorMeaning(errors.Timeout, "retry, or allow more time"),
}

_NOT_MAESTRO = ErrorMeaning(errors.ServerError, "check that the address leads to Maestro's REST API")
"""A 404 without Maestro's error code comes from another server: it does not say that an object is gone."""
_NO_SUCH_PATH = "The requested resource '"
"""How a server answers for a path that it does not know; what does not exist under a known path reads differently."""
_REST_TOKEN = ErrorMeaning(errors.Unauthorized, "check the token file (--token-file, MAESTRO_TOKEN_FILE)")
_NEEDS_ROLE = ErrorMeaning(errors.Forbidden, "use a token of that role: --jwt-role-* of the server say which have it")
_FAILED = ErrorMeaning(errors.ServerError)
_FAILED_TRANSIENT = ErrorMeaning(errors.ServerError, is_retryable=True)


class UnknownPath(errors.ServerError):
    """The server does not know the path: a Go server or one of an earlier version, or the address is not Maestro's."""

    default_advice = "check that the address leads to Maestro's REST API, and has no path of its own"


def from_grpc(
    code: StatusCode, text: str, *, request: Operation, credentials: Credentials = NO_CREDENTIALS
) -> MaestroError:
    """Return the error for a rejected gRPC call."""
    about_certificate = _about_certificate(text, credentials) if code is StatusCode.UNAVAILABLE else None
    meaning = about_certificate or _by_text(text) or _CODES.get(code, _FAILED)
    return _error(meaning, text or code.name, request=request)


def from_http(status: int, *, code: str, reason: str, request: Operation) -> MaestroError:
    """Return the error for an HTTP response; `code` is Maestro's own (`maestro-7`), empty if the body has none."""
    if status == 404 and code and reason.startswith(_NO_SUCH_PATH):
        return UnknownPath(reason, doing=request.doing, operation_id=request.operation_id)
    text = f"{code}: {reason}" if code else reason
    needs_role = _NEEDS_ROLE if "it needs the role" in reason else None
    rejected_token = _REST_TOKEN if status == 401 else None
    not_maestro = _NOT_MAESTRO if status == 404 and not code else None
    meaning = (
        needs_role
        or rejected_token
        or _by_text(text)
        or not_maestro
        or _STATUSES.get(status)
        or (_FAILED_TRANSIENT if status >= 500 else _FAILED)
    )
    return _error(meaning, reason or f"HTTP {status}", request=request)


def from_no_response(
    text: str, *, request: Operation, was_sent: bool, in_time: bool, credentials: Credentials = NO_CREDENTIALS
) -> MaestroError:
    """Return the error for a missing response: a timeout or a lost connection."""
    timed_out = ErrorMeaning(errors.Timeout, "retry, or allow more time")
    by_text = _about_certificate(text, credentials) or _by_text(text)
    without_tls = _MAYBE_TLS if "http://" in text and _CLOSED.search(text) else None
    meaning = by_text or (without_tls or ErrorMeaning(errors.Unavailable) if in_time else timed_out)
    error = _error(meaning, text, request=request)
    error.was_sent = was_sent
    return error


def _about_certificate(text: str, credentials: Credentials) -> ErrorMeaning | None:
    """Return the meaning of a connection that the server ended because of the client certificate, as far as it says."""
    if not credentials.uses_tls:
        return None
    file = credentials.client_cert_file
    is_untrusted = _UNKNOWN_AUTHORITY.search(text) is not None
    is_rejected = is_untrusted or _CERTIFICATE_REJECTED.search(text) is not None
    if _CERTIFICATE_REQUIRED.search(text):
        advice = f"the server asks for a client certificate: {_GIVE_CERTIFICATE}"
        return ErrorMeaning(errors.Unavailable, advice, is_retryable=False)
    if not is_rejected and not _CLOSED.search(text):
        return None
    if not file:
        advice = f"the server may ask for a client certificate: {_GIVE_CERTIFICATE}"
    elif is_untrusted:
        advice = (
            f"the server does not trust the issuer of the client certificate {file}: "
            "set client_cert_file to a certificate of a CA that it trusts, or let it trust this CA"
        )
    elif is_rejected:
        advice = f"the server rejects the client certificate {file} (client_cert_file): check its issuer and its dates"
    else:
        advice = f"check that the server runs, and that it trusts the issuer of the client certificate {file}"
    return ErrorMeaning(errors.Unavailable, advice, is_retryable=not is_rejected)


def _by_text(text: str) -> ErrorMeaning | None:
    return next((meaning for pattern, meaning in _TEXTS if pattern.search(text)), None)


def _error(meaning: ErrorMeaning, text: str, *, request: Operation) -> MaestroError:
    reason = meaning.reason or _SQL_ERROR.sub(r"\1", text)
    error = meaning.kind(reason, doing=request.doing, advice=meaning.advice, operation_id=request.operation_id)
    if reason != text:
        # A traceback shows it.
        error.add_note(f"the server said: {text}")
    if meaning.is_retryable is not None:
        error.is_retryable = meaning.is_retryable
    return error
