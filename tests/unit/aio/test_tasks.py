"""Every task ends with its owner, and a loop outlives a bad turn."""

import asyncio

import pytest

from maestropy.aio import tasks


async def for_ever() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise ValueError("broken")


async def end() -> None:
    pass


def test_a_crew_raises_what_one_of_its_tasks_raised_and_takes_the_others_along() -> None:
    async def scenario() -> None:
        crew = tasks.Crew()
        running = crew.start("one that runs", for_ever())
        assert running.get_name() == "one that runs"
        crew.start("one that fails", fail())
        with pytest.raises(ValueError, match="broken"):
            await crew.wait()
        await crew.stop()
        assert running.cancelled()

    asyncio.run(scenario())


def test_a_crew_notices_a_task_that_ends() -> None:
    async def scenario() -> None:
        crew = tasks.Crew()
        crew.start("one that runs", for_ever())
        crew.start("one that ends", end())
        await asyncio.wait_for(crew.wait(), 1)
        await crew.stop()

    asyncio.run(scenario())


def test_stopping_waits_for_those_that_clean_up() -> None:
    async def scenario() -> None:
        cleaned: list[str] = []

        async def tidy() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                cleaned.append("tidy")

        crew = tasks.Crew()
        crew.start("tidy", tidy())
        await asyncio.sleep(0)
        await crew.stop()
        assert cleaned == ["tidy"]

    asyncio.run(scenario())


def test_a_bad_turn_is_reported_and_the_next_one_comes() -> None:
    async def scenario() -> None:
        failed: list[Exception] = []
        count = 0
        enough = asyncio.Event()

        async def turn() -> None:
            nonlocal count
            count += 1
            if count == 4:
                enough.set()
            if count % 2:
                raise ValueError(count)

        crew = tasks.Crew()
        crew.start("turns", tasks.every(0, turn, on_error=failed.append))
        await asyncio.wait_for(enough.wait(), 1)
        await crew.stop()
        assert [error.args for error in failed][:2] == [(1,), (3,)]

    asyncio.run(scenario())


def test_an_attempt_says_whether_it_went_well() -> None:
    async def scenario() -> None:
        failed: list[Exception] = []
        assert await tasks.attempt(end, on_error=failed.append)
        assert not await tasks.attempt(fail, on_error=failed.append)
        assert len(failed) == 1
        attempt = asyncio.ensure_future(tasks.attempt(for_ever, on_error=failed.append))
        await asyncio.sleep(0)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert len(failed) == 1

    asyncio.run(scenario())


def test_the_first_to_end_ends_the_others() -> None:
    async def scenario() -> None:
        before = asyncio.all_tasks()
        await asyncio.wait_for(tasks.first([for_ever(), end(), for_ever()]), 1)
        waiting = asyncio.ensure_future(tasks.first([for_ever()]))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert asyncio.all_tasks() == before

    asyncio.run(scenario())


def test_a_failure_at_the_moment_of_a_cancellation_does_not_hide_it() -> None:
    async def scenario() -> None:
        tries = 0

        async def fail_in_a_group(broken: asyncio.Event) -> None:
            async def fail() -> None:
                await broken.wait()
                raise OSError

            async with asyncio.TaskGroup() as group:
                group.create_task(fail())

        async def try_for_ever() -> None:
            nonlocal tries
            while True:
                tries += 1
                try:
                    await tasks.apart(fail_in_a_group(broken))
                except* OSError:
                    await asyncio.sleep(0)

        broken = asyncio.Event()
        trying = asyncio.ensure_future(try_for_ever())
        for _ in range(5):
            await asyncio.sleep(0)
        broken.set()
        trying.cancel()
        done, _ = await asyncio.wait([trying], timeout=10)
        assert done
        assert trying.cancelled()
        assert tries == 1

    asyncio.run(scenario())


def test_what_runs_apart_may_fail() -> None:
    async def fail() -> None:
        raise OSError

    with pytest.raises(OSError):
        asyncio.run(tasks.apart(fail()))
