"""What a failure means for an event: bring it again later, or tell and be done with it.

| what happened | again? | reported as |
|---|---|---|
| nobody answers, too busy, too late | yes, after the client's own tries | nothing, if it can come again |
| somebody else was faster, several times | yes | nothing, if it can come again |
| not known, or not allowed | no | Health=False, Unauthorized or Forbidden |
| the cluster is not registered | no | Health=False, ConsumerNotFound |
| the work or object belongs to somebody else | no | Applied=False, OwnedByAnother |
| the work breaks a rule | no | Health=False, Invalid |
| the adapter's own code failed | no | Health=False, ExecutionFailed |

"No" is no verdict on the resource: HyperFleet asks again by itself, and the next event starts afresh. Pure.
"""

from dataclasses import dataclass

from maestropy.adapter.errors import AdapterError
from maestropy.sdk import errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failure, judged."""

    reason: str
    message: str
    is_transient: bool


def judge(error: Exception) -> Failure:
    """Say what a failure means."""
    found = errors.find(error, errors.MaestroError)
    if found is not None:
        is_transient = found.is_retryable or isinstance(found, errors.Conflict)
        return Failure(reason=type(found).__name__, message=str(found), is_transient=is_transient)
    if isinstance(error, TimeoutError):
        return Failure(reason="Timeout", message="the time for one event is over", is_transient=True)
    if isinstance(error, AdapterError):
        return Failure(reason=type(error).__name__, message=str(error), is_transient=False)
    words = " ".join(str(error).split())
    return Failure(reason="ExecutionFailed", message=f"{type(error).__name__}: {words}", is_transient=False)
