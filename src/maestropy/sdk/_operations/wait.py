"""Wait for a condition or the deletion of one work, with a watch; a timeout names what is missing."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

from maestropy.sdk._operations import summary
from maestropy.sdk.errors import MaestroError, NotFound, Timeout
from maestropy.sdk.watch import WorkWatch
from maestropy.sdk.watch_events import EventType
from maestropy.sdk.work import Work
from maestropy.wire.works import status

WaitCondition = str | Callable[[Work], bool | Awaitable[bool]]
"""The type of a condition that must be True, or a predicate, which may be asynchronous."""


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
                    if await _holds(condition, last):
                        return last
    except TimeoutError as error:
        if watch.disconnection is not None:
            raise _out_of_reach(watch.disconnection, doing=doing, seconds=seconds) from error
        raise _timed_out(last, condition, doing=doing, within=f"within {seconds:g} seconds") from error
    raise Timeout("the watch ended", doing=doing)


async def true_now(work: Work, condition: WaitCondition, *, doing: str) -> Work:
    """Return the work if the condition holds; raises Timeout, as a wait of no seconds does."""
    if await _holds(condition, work):
        return work
    raise _timed_out(work, condition, doing=doing, within="now")


async def _holds(condition: WaitCondition, work: Work) -> bool:
    if isinstance(condition, str):
        return work.is_true(condition)
    answer = condition(work)
    # A coroutine that is not awaited counts as true.
    return bool(await answer if inspect.isawaitable(answer) else answer)


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
        raise still_exists(last, doing=doing, after=f"after {seconds:g} seconds") from error


def still_exists(last: Work | None, *, doing: str, after: str) -> Timeout:
    """Return the timeout of a deletion, with what the agent says about it."""
    reason, advice = f"it still exists {after}", "check that its agent runs"
    if last is not None and last.condition(status.DATA_SAFETY_HOLD) is not None:
        advice = f"{summary.sentence(last)}; see docs/data-safety.md"
    elif last is not None and (progress := summary.deletion_progress(last)):
        reason, advice = f"{reason}: {progress}", "the agent goes on as soon as nothing blocks the objects"
    return Timeout(reason, doing=doing, advice=advice)


def _timed_out(last: Work | None, condition: WaitCondition, *, doing: str, within: str) -> Timeout:
    applied = last.condition(status.APPLIED) if last is not None and not last.is_stale else None
    if last is not None and applied is not None and applied.status == status.FALSE:
        # Waiting longer does not help: the agent repeats the same attempt until the work or the cluster changes.
        reason = summary.missing(last, status.APPLIED)
        advice = "correct the work, or on the cluster what this names; the agent tries again by itself"
        return Timeout(f"not {within}: {reason}", doing=doing, advice=advice)
    return Timeout(f"not {within}: {_missing(last, condition)}", doing=doing)


def _out_of_reach(cause: MaestroError, *, doing: str, seconds: float | None) -> Timeout:
    """Return the timeout of a wait that could not see the work at its end."""
    reason = f"not within {seconds:g} seconds, and the server is out of reach: {cause.reason}"
    return Timeout(reason, doing=doing, advice=cause.advice)


def _missing(last: Work | None, condition: WaitCondition) -> str:
    if last is None or isinstance(condition, str):
        return summary.missing(last, str(condition))
    return f"the predicate was never true; {summary.sentence(last)}"
