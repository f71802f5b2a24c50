"""Work that is only worth doing while something lasts."""

import asyncio

import pytest

from maestropy.aio import tasks


async def test_result_of_the_work_is_returned_and_the_watch_ends() -> None:
    ended = asyncio.Event()

    async def watch() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert await tasks.run_while(work(), ending=watch()) == 7
    assert ended.is_set()


async def test_error_of_the_work_is_raised() -> None:
    async def work() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        await tasks.run_while(work(), ending=asyncio.sleep(60))


async def test_work_is_cancelled_at_the_end() -> None:
    cancelled = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(tasks.Abandoned):
        await tasks.run_while(work(), ending=asyncio.sleep(0))
    assert cancelled.is_set()
