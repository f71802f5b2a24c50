"""Classify a failure: retry the event later, or report it as final.

| failure | retry? | reported as |
|---|---|---|
| server unreachable, overloaded or timed out | yes, after the client's retries | nothing, if the event is retried |
| version conflict, several times | yes | nothing, if the event is retried |
| not authenticated, or not authorized | no | Health=False, Unauthorized or Forbidden |
| the consumer does not exist | no | Health=False, ConsumerNotFound |
| the work or object has another owner | no | Applied=False, OwnedByAnother |
| the work is invalid | no | Health=False, Invalid |
| the works are of a newer generation | no | Applied=False, StaleGeneration |
| the adapter's own code failed, or did not return | no | Health=False, ExecutionFailed, with the file and the line |
| the process was asked to stop | yes | nothing: the event is handled again |

Applied is False only if a work was rejected. After any other failure it is Unknown, or what the works say.

"No" is not final for the resource: HyperFleet sends the next event by itself. Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, TracebackType
from typing import Literal, ParamSpec, TypeVar

from maestropy.adapter.errors import AdapterError, BadReport, DidNotReturn, Exited, Interrupted
from maestropy.sdk import errors

_MOST_CHARACTERS = 4000
_MOST_OF_AN_EXCEPTION = 700
"""With the file and the line, it fits into a condition of the API."""
_PACKAGE = Path(__file__).parents[2]
"""The folder of maestropy: frames of its modules are not the adapter's own code."""


Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

Phase = Literal["param_extraction", "preconditions", "resources", "post_actions"]
"""Where an event failed, in the words of the framework's metrics: the resource was read, works, the status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A classified failure."""

    reason: str
    message: str
    is_transient: bool
    error: BaseException | None = field(default=None, compare=False, repr=False)
    """The exception of the adapter's own code, for its traceback; None for other failures."""
    phase: Phase = "resources"


def call(function: Callable[Parameters, Returned], *arguments: Parameters.args, **named: Parameters.kwargs) -> Returned:
    """Call the adapter's own code; what would end the process, such as `sys.exit`, is raised as Exited.

    So is StopIteration, which ends the coroutines and generators that it passes. Ctrl-C is the user's, not the code's,
    and passes.
    """
    try:
        return function(*arguments, **named)
    except StopIteration as error:
        raise Exited("the adapter's own code raised StopIteration; return a value, or raise another error") from error
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise Exited("the adapter's own code tried to end the process; return a value, or raise an error") from error


def classify(error: Exception, *, doing: str = "") -> Failure:
    """Return the class of a failure; `doing` is what a timeout has ended."""
    if isinstance(error, Exited) and error.__cause__ is not None:
        cause = error.__cause__
        return Failure(reason="ExecutionFailed", message=describe(cause), is_transient=False, error=cause)
    maestro_error = errors.find(error, errors.MaestroError)
    if isinstance(error, TimeoutError):
        last = f"; the last error before that: {bounded(str(maestro_error))}" if maestro_error else ""
        during = f" while {bounded(doing)}" if doing else ""
        return Failure(reason="Timeout", message=f"the time for one event is over{during}{last}", is_transient=True)
    if maestro_error is not None:
        is_transient = maestro_error.is_retryable or isinstance(maestro_error, errors.Conflict)
        reason, message = type(maestro_error).__name__, bounded(str(maestro_error))
        return Failure(reason=reason, message=message, is_transient=is_transient)
    if isinstance(error, BadReport | DidNotReturn):
        return Failure(reason="ExecutionFailed", message=bounded(str(error)), is_transient=False)
    if isinstance(error, AdapterError):
        is_transient = isinstance(error, Interrupted)
        return Failure(reason=type(error).__name__, message=bounded(str(error)), is_transient=is_transient)
    return Failure(reason="ExecutionFailed", message=describe(error), is_transient=False, error=error)


def describe(error: BaseException) -> str:
    """Return an exception of the adapter's own code on one line, with the file and the line where it was raised."""
    if isinstance(error, Exited) and error.__cause__ is not None:
        error = error.__cause__
    code, line = origin(error)
    location = f" ({code.co_filename}, line {line}, in {code.co_name})" if code else ""
    return f"{named(error)}{location}"


def named(error: BaseException) -> str:
    """Return the class and the message of an exception on one line."""
    try:
        message = bounded(" ".join(str(error).split()), most=_MOST_OF_AN_EXCEPTION)
    except Exception:  # noqa: BLE001 - the author's class may fail to describe itself
        message = "its message cannot be read: __str__ raises"
    advice = "; a function of an adapter returns a value, it does not exit" if isinstance(error, SystemExit) else ""
    return f"{type(error).__name__}: {message}{advice}"


def bounded(text: str, *, most: int = _MOST_CHARACTERS) -> str:
    """Return a text that results, logs and a terminal can carry; the end says how much was cut."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"


def origin(error: BaseException) -> tuple[CodeType | None, int]:
    """Return the code and the line where the adapter's own folder raised; libraries that it called are deeper."""
    trace: TracebackType | None = error.__traceback__
    folder: Path | None = None
    innermost: tuple[CodeType | None, int] = (None, 0)
    while trace is not None:
        code = trace.tb_frame.f_code
        path = Path(code.co_filename)
        # The first frame outside of maestropy and of the import system belongs to the adapter.
        if folder is None and not path.is_relative_to(_PACKAGE) and not code.co_filename.startswith("<frozen "):
            folder = path.parent
        if path.parent == folder:
            innermost = (code, trace.tb_lineno)
        trace = trace.tb_next
    return innermost
