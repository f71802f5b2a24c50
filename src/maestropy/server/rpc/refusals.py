"""How the stages' refusals and failures look to a gRPC caller: one table for both services."""

from maestropy.aio import batches
from maestropy.server.auth.denied import Denied
from maestropy.server.decide import refusal
from maestropy.store import errors as store_errors
from maestropy.transport.status import Code, Refused

_DENIED = {3: Code.INVALID_ARGUMENT, 7: Code.PERMISSION_DENIED, 14: Code.UNAVAILABLE, 16: Code.UNAUTHENTICATED}


class Judged(Refused):
    """A wish that a stage refused, and has told of in the journal."""


def from_refusal(refused: refusal.Refusal) -> Refused:
    """Maestro answers every refusal with code Unknown and lets the text speak; clients parse that text.

    Only what Maestro never refuses, touching another source's bundle, gets a code of its own.
    """
    code = Code.PERMISSION_DENIED if refused.code == refusal.FORBIDDEN else Code.UNKNOWN
    return Judged(code, str(refused))


def from_denied(denied: Denied) -> Refused:
    """Say who may not."""
    return Refused(_DENIED[denied.code], denied.text)


def from_failure(error: Exception, *, doing: str) -> Refused:
    """Say that it is our fault and may be tried again."""
    match error:
        case store_errors.Locked():
            # Not Unavailable, for which agents would give up their whole connection.
            text = f"failed to {doing}: another instance is at the resource and does not finish; try again later"
            return Refused(Code.RESOURCE_EXHAUSTED, text)
        case store_errors.Unavailable():
            return Refused(Code.UNAVAILABLE, f"failed to {doing}: the database is not available; try again")
        case batches.Overloaded():
            return Refused(Code.RESOURCE_EXHAUSTED, f"failed to {doing}: the server is overloaded; try again later")
        case batches.Stopped():
            return Refused(Code.UNAVAILABLE, f"failed to {doing}: the server is shutting down; try again")
        case _:
            return Refused(Code.INTERNAL, f"failed to {doing}: internal error; the server's log has the details")


FAILURES = (store_errors.StoreError, batches.Overloaded, batches.Stopped)
