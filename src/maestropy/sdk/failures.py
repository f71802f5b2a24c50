"""What a refused call means: one table for the gRPC texts and the HTTP answers of Maestro.

A Go server refuses nearly everything with the gRPC code Unknown and lets the text speak, so the text is looked at
first; codes decide only where the text says nothing. The first line of a table that fits counts. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from maestropy.sdk import errors
from maestropy.sdk.errors import MaestroError
from maestropy.transport.status import Code


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was attempted: all that an error tells beside the answer."""

    doing: str
    operation_id: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """One line of a table."""

    kind: type[MaestroError]
    advice: str = ""
    is_retryable: bool | None = None
    """None: as the kind has it."""


_TLS = Meaning(errors.Unavailable, "check the CA file, the certificate's names and its dates", is_retryable=False)

_NO_TLS = Meaning(errors.Unavailable, "no TLS is spoken there: use http://, or no CA file", is_retryable=False)

_TEXTS: tuple[tuple[re.Pattern[str], Meaning], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), meaning)
    for pattern, meaning in (
        (r"wrong_version_number", _NO_TLS),
        (r"certificate_verify_failed|handshake failed|ssl_error|\[ssl", _TLS),
        (r"the resource version is not the latest", Meaning(errors.Conflict)),
        (r"is under deletion", Meaning(errors.Conflict, "wait until it is gone: delete(name, wait=True)")),
        (r'insert or update on table "resources".*fk_resources_consumers', Meaning(errors.ConsumerNotFound)),
        (r"fk_resources_consumers", Meaning(errors.Conflict, "delete the works of this consumer first")),
        (r"^maestro-6: This Consumer already exists", Meaning(errors.AlreadyExists, "use ensure() to have it anyway")),
        (r"^(failed to \w+ resource: )?maestro-6: .*already exist", Meaning(errors.AlreadyExists)),
        (r"(^|: )maestro-6:", Meaning(errors.Conflict)),
        (r"(^|: )maestro-7:", Meaning(errors.NotFound)),
        (r"(^|: )maestro-(8|17|21|23):", Meaning(errors.Invalid)),
        (r"maestro-9: .*(: Invalid value: |SQLSTATE 42)", Meaning(errors.Invalid)),
        (r"maestro-15:|token not authenticated|invalid token", Meaning(errors.Unauthorized)),
        (r"unauthorized to (publish|subscribe)|(^|: )maestro-(1|4|11):", Meaning(errors.Forbidden)),
        (r"^failed to authorize the request", Meaning(errors.Unavailable)),
        (r"^failed to (decode cloudevent|convert to cloudevent|parse cloud event type)", Meaning(errors.Invalid)),
        (r"^unsupported (action|cloudevents)", Meaning(errors.Invalid)),
        (r"larger than max", Meaning(errors.Invalid, "make the work smaller: split it into several")),
    )
)

_BUSY = Meaning(errors.Unavailable, "the server has too much to do; ask less often")

_CODES: Mapping[Code, Meaning] = {
    Code.UNAVAILABLE: Meaning(errors.Unavailable),
    Code.CANCELLED: Meaning(errors.Unavailable),
    Code.RESOURCE_EXHAUSTED: _BUSY,
    Code.DEADLINE_EXCEEDED: Meaning(errors.Timeout, "try again, or allow more time"),
    Code.UNAUTHENTICATED: Meaning(errors.Unauthorized),
    Code.PERMISSION_DENIED: Meaning(errors.Forbidden),
    Code.INVALID_ARGUMENT: Meaning(errors.Invalid),
    Code.OUT_OF_RANGE: Meaning(errors.Invalid),
    Code.NOT_FOUND: Meaning(errors.NotFound),
    Code.ALREADY_EXISTS: Meaning(errors.AlreadyExists),
    Code.ABORTED: Meaning(errors.Conflict),
    Code.FAILED_PRECONDITION: Meaning(errors.Conflict),
    Code.UNIMPLEMENTED: Meaning(errors.ServerError, "this is no Maestro gRPC endpoint; check MAESTRO_GRPC_URL"),
}

_STATUSES: Mapping[int, Meaning] = {
    400: Meaning(errors.Invalid),
    401: Meaning(errors.Unauthorized),
    403: Meaning(errors.Forbidden),
    404: Meaning(errors.NotFound),
    405: Meaning(errors.ServerError, "this is no Maestro REST endpoint; check MAESTRO_API_URL"),
    408: Meaning(errors.Timeout),
    409: Meaning(errors.Conflict),
    413: Meaning(errors.Invalid),
    422: Meaning(errors.Invalid),
    429: _BUSY,
    502: Meaning(errors.Unavailable),
    503: Meaning(errors.Unavailable),
    504: Meaning(errors.Timeout, "try again, or allow more time"),
}

_FOREIGN = Meaning(errors.NotFound, "check that the address leads to Maestro's REST API")
"""A 404 without Maestro's own code may come from anybody."""
_FAILED = Meaning(errors.ServerError)
_FAILED_FOR_NOW = Meaning(errors.ServerError, is_retryable=True)


def from_grpc(code: Code, text: str, *, request: Request) -> MaestroError:
    """Return the error that a refused gRPC call stands for."""
    found = _by_text(text) or _CODES.get(code, _FAILED)
    return _error(found, text or code.name, request=request)


def from_http(status: int, *, code: str, reason: str, request: Request) -> MaestroError:
    """Return the error that an HTTP answer stands for; `code` is Maestro's own (`maestro-7`), empty without a body."""
    text = f"{code}: {reason}" if code else reason
    foreign = _FOREIGN if status == 404 and not code else None
    found = _by_text(text) or foreign or _STATUSES.get(status) or (_FAILED_FOR_NOW if status >= 500 else _FAILED)
    return _error(found, reason or f"HTTP {status}", request=request)


def from_silence(text: str, *, request: Request, was_sent: bool, in_time: bool) -> MaestroError:
    """Return the error for a server that did not answer: not in time, or not at all."""
    late = Meaning(errors.Timeout, "try again, or allow more time")
    found = _by_text(text) or (Meaning(errors.Unavailable) if in_time else late)
    error = _error(found, text, request=request)
    error.was_sent = was_sent
    return error


def _by_text(text: str) -> Meaning | None:
    return next((meaning for pattern, meaning in _TEXTS if pattern.search(text)), None)


def _error(found: Meaning, reason: str, *, request: Request) -> MaestroError:
    error = found.kind(reason, doing=request.doing, advice=found.advice, operation_id=request.operation_id)
    if found.is_retryable is not None:
        error.is_retryable = found.is_retryable
    return error
