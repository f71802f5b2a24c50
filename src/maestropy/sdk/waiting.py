"""Wait for a state of one work, by its watch: a condition, or its end. Time that runs out says what is missing."""

import asyncio
from collections.abc import Callable

from maestropy.sdk import telling
from maestropy.sdk.errors import NotFound, Timeout
from maestropy.sdk.observed import EventType
from maestropy.sdk.watch import Watch
from maestropy.sdk.work import Work

Condition = str | Callable[[Work], bool]
"""The type of a condition that must be true, or a question about the work."""


async def until_true(watch: Watch, condition: Condition, *, doing: str, seconds: float | None) -> Work:
    """Return the work as soon as the condition holds; raises NotFound if it is not there, or goes."""
    last: Work | None = None
    try:
        async with asyncio.timeout(seconds), watch as events:
            async for told in events:
                if told.type is EventType.DELETED or (told.type is EventType.SYNCED and last is None):
                    raise NotFound("there is no such work", doing=doing)
                if told.type is not EventType.SYNCED:
                    last = told.work
                    if last.is_true(condition) if isinstance(condition, str) else condition(last):
                        return last
    except TimeoutError as error:
        raise Timeout(f"not within {seconds:g} seconds: {_missing(last, condition)}", doing=doing) from error
    raise Timeout("the watch ended", doing=doing)


async def until_gone(watch: Watch, *, doing: str, seconds: float | None) -> None:
    """Return as soon as the work is gone, or if it is not there."""
    is_there = False
    try:
        async with asyncio.timeout(seconds), watch as events:
            async for told in events:
                if told.type is EventType.DELETED or (told.type is EventType.SYNCED and not is_there):
                    return
                is_there = True
    except TimeoutError as error:
        advice = "the agent removes its objects; see that it runs and that no finalizer holds them"
        raise Timeout(f"it is still there after {seconds:g} seconds", doing=doing, advice=advice) from error


def _missing(last: Work | None, condition: Condition) -> str:
    if last is None or isinstance(condition, str):
        return telling.missing(last, str(condition))
    return f"the question was not answered with yes; {telling.sentence(last)}"
