"""Map rejected gRPC calls and failed HTTP responses of Maestro to client errors.

A Go server rejects nearly every call with the gRPC code Unknown and a message, so the message is matched first; codes
decide only if no message matches. The first matching row of a table counts. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from maestropy.sdk import errors
from maestropy.sdk.errors import MaestroError
from maestropy.transport.grpc.status import StatusCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The operation that an error names, and its operation ID."""

    doing: str
    operation_id: str = ""


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

_NOT_MAESTRO = ErrorMeaning(errors.NotFound, "check that the address leads to Maestro's REST API")
"""A 404 without Maestro's error code may come from another server."""
_REST_TOKEN = ErrorMeaning(errors.Unauthorized, "check the token file (--token-file, MAESTRO_TOKEN_FILE)")
_NEEDS_ROLE = ErrorMeaning(errors.Forbidden, "use a token of that role: --jwt-role-* of the server say which have it")
_FAILED = ErrorMeaning(errors.ServerError)
_FAILED_TRANSIENT = ErrorMeaning(errors.ServerError, is_retryable=True)


def from_grpc(code: StatusCode, text: str, *, request: Operation) -> MaestroError:
    """Return the error for a rejected gRPC call."""
    meaning = _by_text(text) or _CODES.get(code, _FAILED)
    return _error(meaning, text or code.name, request=request)


def from_http(status: int, *, code: str, reason: str, request: Operation) -> MaestroError:
    """Return the error for an HTTP response; `code` is Maestro's own (`maestro-7`), empty without a body."""
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


def from_no_response(text: str, *, request: Operation, was_sent: bool, in_time: bool) -> MaestroError:
    """Return the error for a missing response: a timeout or a lost connection."""
    timed_out = ErrorMeaning(errors.Timeout, "retry, or allow more time")
    meaning = _by_text(text) or (ErrorMeaning(errors.Unavailable) if in_time else timed_out)
    error = _error(meaning, text, request=request)
    error.was_sent = was_sent
    return error


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
