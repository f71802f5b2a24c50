"""gRPC errors for rejections and failures of the controllers, for both services."""

from maestropy.aio import batches
from maestropy.server.auth.denied import Denied
from maestropy.server.brokers import port
from maestropy.server.decide import rejection
from maestropy.store import errors as store_errors
from maestropy.transport.grpc import requests
from maestropy.transport.grpc.status import CallRejected, StatusCode
from maestropy.wire import errors

_DENIED = {
    3: StatusCode.INVALID_ARGUMENT,
    7: StatusCode.PERMISSION_DENIED,
    8: StatusCode.RESOURCE_EXHAUSTED,
    14: StatusCode.UNAVAILABLE,
    16: StatusCode.UNAUTHENTICATED,
}


class LoggedRejection(CallRejected):
    """A rejection that a writer has already logged."""

    def __init__(self, code: StatusCode, text: str, *, rejected: rejection.Rejection) -> None:
        super().__init__(code, text)
        self.rejected = rejected


def from_rejection(rejected: rejection.Rejection) -> CallRejected:
    """Return the error for a rejection: code Unknown as in Go Maestro, because clients parse the text.

    Only a request for a resource of another source, which Go Maestro accepts, has its own code.
    """
    code = StatusCode.PERMISSION_DENIED if rejected.code == rejection.FORBIDDEN else StatusCode.UNKNOWN
    return LoggedRejection(code, str(rejected), rejected=rejected)


def from_denied(denied: Denied) -> CallRejected:
    """Return the error for a denied call."""
    return CallRejected(_DENIED[denied.code], denied.text)


def malformed_code(problem: errors.WireError, *, default: StatusCode) -> StatusCode:
    """Return the status code for a message that cannot be read."""
    match problem:
        case requests.RequestTooLarge() | requests.RequestMissing():
            return StatusCode.RESOURCE_EXHAUSTED
        case requests.RequestTimeout():
            return StatusCode.DEADLINE_EXCEEDED
        case _:
            return default


def from_failure(error: Exception, *, doing: str) -> CallRejected:
    """Return the error for a failure of the server; the client may try again."""
    match error:
        case store_errors.RowLocked():
            # Not Unavailable: agents would close their connection.
            text = f"failed to {doing}: the resource is locked by another instance; try again later"
            return CallRejected(StatusCode.RESOURCE_EXHAUSTED, text)
        case store_errors.DatabaseReadOnly():
            text = f"failed to {doing}: the database is read-only at the moment; try again later"
            return CallRejected(StatusCode.UNAVAILABLE, text)
        case store_errors.DatabaseUnavailable():
            return CallRejected(StatusCode.UNAVAILABLE, f"failed to {doing}: the database is not available; try again")
        case batches.Overloaded():
            return CallRejected(
                StatusCode.RESOURCE_EXHAUSTED, f"failed to {doing}: the server is overloaded; try again later"
            )
        case batches.Stopped():
            return CallRejected(StatusCode.UNAVAILABLE, f"failed to {doing}: the server is shutting down; try again")
        case port.NotDelivered():
            return CallRejected(StatusCode.UNAVAILABLE, f"failed to {doing}: {error}; try again")
        case _:
            return CallRejected(
                StatusCode.INTERNAL, f"failed to {doing}: internal error; the server's log has the details"
            )


FAILURES = (store_errors.StoreError, batches.Overloaded, batches.Stopped, port.NotDelivered)
