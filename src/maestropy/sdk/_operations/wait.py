"""Wait for a condition or the deletion of one work, with a watch; a timeout names what is missing."""

import asyncio
from collections.abc import Callable

from maestropy.sdk._operations import summary
from maestropy.sdk.errors import NotFound, Timeout
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
        raise Timeout(f"not within {seconds:g} seconds: {_missing(last, condition)}", doing=doing) from error
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
        advice = "the agent deletes its objects; check that it runs and that no finalizer blocks them"
        if last is not None and last.condition(status.DATA_SAFETY_HOLD) is not None:
            advice = f"{summary.sentence(last)}; see docs/data-safety.md"
        raise Timeout(f"it still exists after {seconds:g} seconds", doing=doing, advice=advice) from error


def _missing(last: Work | None, condition: WaitCondition) -> str:
    if last is None or isinstance(condition, str):
        return summary.missing(last, str(condition))
    return f"the predicate was never true; {summary.sentence(last)}"
