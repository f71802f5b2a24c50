"""Wait for a condition or the deletion of one work, with a watch; a timeout names what is missing."""

import asyncio
from collections.abc import Callable

from maestropy.sdk._operations import summary
from maestropy.sdk.errors import MaestroError, NotFound, Timeout
from maestropy.sdk.watch import WorkWatch
from maestropy.sdk.watch_events import EventType
from maestropy.sdk.work import Work
from maestropy.wire.works import status

WaitCondition = str | Callable[[Work], bool]
"""The type of a condition that must be True, or a predicate."""


async def until_true(watch: WorkWatch, condition: WaitCondition, *, doing: str, seconds: float | None) -> Work:
    """Return the work as soon as the condition holds; raises NotFound if it does not exist or is deleted."""
    last: Work | None = None
    try:
        async with asyncio.timeout(seconds), watch as events:
            async for event in events:
                if event.type is EventType.DELETED or (event.type is EventType.SYNCED and last is None):
                    raise NotFound("there is no such work", doing=doing)
                if event.type is not EventType.SYNCED:
                    last = event.work
                    if last.is_true(condition) if isinstance(condition, str) else condition(last):
                        return last
    except TimeoutError as error:
        raise _timed_out(watch, last, condition, doing=doing, seconds=seconds) from error
    raise Timeout("the watch ended", doing=doing)


async def until_gone(watch: WorkWatch, *, doing: str, seconds: float | None) -> None:
    """Return as soon as the work does not exist."""
    last: Work | None = None
    try:
        async with asyncio.timeout(seconds), watch as events:
            async for event in events:
                if event.type is EventType.DELETED or (event.type is EventType.SYNCED and last is None):
                    return
                if event.type is not EventType.SYNCED:
                    last = event.work
    except TimeoutError as error:
        if watch.disconnection is not None:
            raise _out_of_reach(watch.disconnection, doing=doing, seconds=seconds) from error
        advice = "the agent deletes its objects; check that it runs and that no finalizer blocks them"
        if last is not None and last.condition(status.DATA_SAFETY_HOLD) is not None:
            advice = f"{summary.sentence(last)}; see docs/data-safety.md"
        raise Timeout(f"it still exists after {seconds:g} seconds", doing=doing, advice=advice) from error


def _timed_out(
    watch: WorkWatch, last: Work | None, condition: WaitCondition, *, doing: str, seconds: float | None
) -> Timeout:
    if watch.disconnection is not None:
        return _out_of_reach(watch.disconnection, doing=doing, seconds=seconds)
    applied = last.condition(status.APPLIED) if last is not None and not last.is_stale else None
    if last is not None and applied is not None and applied.status == status.FALSE:
        # Waiting longer does not help: the agent repeats the same attempt until the work or the cluster changes.
        reason = summary.missing(last, status.APPLIED)
        advice = "correct the work, or on the cluster what this names; the agent tries again by itself"
        return Timeout(f"not within {seconds:g} seconds: {reason}", doing=doing, advice=advice)
    return Timeout(f"not within {seconds:g} seconds: {_missing(last, condition)}", doing=doing)


def _out_of_reach(cause: MaestroError, *, doing: str, seconds: float | None) -> Timeout:
    """Return the timeout of a wait that could not see the work at its end."""
    reason = f"not within {seconds:g} seconds, and the server is out of reach: {cause.reason}"
    return Timeout(reason, doing=doing, advice=cause.advice)


def _missing(last: Work | None, condition: WaitCondition) -> str:
    if last is None or isinstance(condition, str):
        return summary.missing(last, str(condition))
    return f"the predicate was never true; {summary.sentence(last)}"
