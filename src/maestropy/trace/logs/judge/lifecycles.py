"""Say whether an agent or a server stopped, restarted or hung while a request was on its way. Pure.

A process that shuts down says so. One that is killed does not: its log ends while other logs go on, or it starts again.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from maestropy.trace.logs.model import Confidence
from maestropy.trace.logs.read.log_writers import LogWriter, by_pod

_SILENT: Final = 10.0
_LONG_SILENT: Final = 30.0
_USUAL_PAUSES: Final = 20
_MOST_NAMED: Final = 5
_LAST_LINES: Final = 1.0
_GOES_ON: Final = 5.0
_HANGS_AFTER: Final = 10.0
_REGULAR: Final = 5


class Interruption(NamedTuple):
    """How a process left off."""

    text: str
    confidence: Confidence


def clock(at: float) -> str:
    """Return the time of day of a moment."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]


def are_from_start(logs: Sequence[LogWriter], *, at: float = 0.0) -> bool:
    """Say whether the logs of each pod show a start of it, or begin after `at`, so that they show all it had before."""
    return all(
        any(log.started for log in parts) or (at and min(log.first for log in parts) > at) for parts in by_pod(logs)
    )


def interruption(logs: Sequence[LogWriter], *, since: float, until: float, end: float) -> Interruption | None:
    """Return how the process behind `logs` left off between `since` and `until`; `end` is that of all logs."""
    if not logs:
        return None
    pod = logs[-1].pod
    stopped = [at for log in logs for at in log.stopped if since <= at <= until]
    started = [at for log in logs for at in log.started if since < at]
    if stopped:
        again = f" and {_restarts(started).replace('restarted', 'started again', 1)}" if started else ""
        return Interruption(f"{pod} shut down at {clock(stopped[0])}{again}", "certain")
    if started and min(started) <= until:
        return Interruption(f"{pod} {_restarts(started)}", "certain")
    if not any(log.covers(until, slack=0.0) for log in logs) and (last := _last_before(logs, until)):
        return _ended(logs, last, end=end)
    return None


def _restarts(started: Sequence[float]) -> str:
    """Return when a process started again, which one that crashes after every start does many times."""
    times = [clock(at) for at in sorted(set(started))]
    if len(times) == 1:
        return f"restarted at {times[0]}"
    named = ", ".join(times[:_MOST_NAMED]) + (f", … {times[-1]}" if len(times) > _MOST_NAMED else "")
    return f"restarted {len(times)} times: {named}"


def ends_with(logs: Sequence[LogWriter], moment: float, *, end: float) -> Interruption | None:
    """Return that the log of a process ends with a record of the request, and others go on; else None."""
    last = max(logs, key=lambda log: log.last, default=None)
    if last is None or last.last > moment + _LAST_LINES or end - last.last < _GOES_ON:
        return None
    text = f"the log of {last.pod} ends with this request at {clock(last.last)}, others go on until {clock(end)}"
    return Interruption(text, "possible")


def has_ended(logs: Sequence[LogWriter], *, moment: float, end: float) -> Interruption | None:
    """Return how the process behind `logs` ended before `moment`, if it did not start again; None if it may run."""
    if not logs or any(log.last >= moment for log in logs):
        return None
    log = max(logs, key=lambda log: log.last)
    stopped = max(log.stopped, default=0.0)
    if stopped > max(log.started, default=0.0):
        return Interruption(f"{log.pod} shut down at {clock(stopped)}", "certain")
    ended = _ended(logs, log.last, end=end)
    if ended is not None and moment - log.last > _expected_pause(log):
        return ended
    if moment - log.last > _SILENT and end - log.last > _LONG_SILENT:
        # An idle process writes as little; but this one had a request to write about.
        return Interruption(_end_of(log, end=end), "possible")
    return None


def _ended(logs: Sequence[LogWriter], last: float, *, end: float) -> Interruption | None:
    log = next(log for log in logs if log.last == last)
    if end - last <= max(_SILENT, _expected_pause(log)):
        return None
    return Interruption(_end_of(log, end=end), "likely")


def _end_of(log: LogWriter, *, end: float) -> str:
    return f"the log of {log.pod} ends at {clock(log.last)}, others go on until {clock(end)}"


def _last_before(logs: Sequence[LogWriter], until: float) -> float:
    return max((log.last for log in logs if log.last < until), default=0.0)


def _expected_pause(log: LogWriter) -> float:
    """Return how long a log may be silent although its process runs: idle processes write little."""
    return max(_SILENT, usual_pause(log) * _USUAL_PAUSES)


def usual_pause(log: LogWriter) -> float:
    """Return the mean time between two lines of a log."""
    lines = log.lines or log.record_count
    return (log.last - log.first) / lines if lines else 0.0


def hangs(logs: Sequence[LogWriter], *, since: float, until: float) -> str:
    """Return how an agent's controllers stopped working while its process went on; empty when they did not.

    Controllers reconcile works every few seconds. When all of them stop at once, they wait for the API server.
    """
    for log in logs:
        before = [at for at in log.progress if at <= since + _HANGS_AFTER]
        after = [at for at in log.progress if since + _HANGS_AFTER < at <= until]
        if len(before) >= _REGULAR and not after and log.last >= min(until, since + 2 * _HANGS_AFTER):
            return f"no controller of {log.pod} has reconciled a work since {clock(before[-1])}, but its process runs"
    return ""
