"""Every task ends with its owner, and a periodic task survives a failed run."""

import asyncio

import pytest

from maestropy.aio import tasks


async def for_ever() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise ValueError("broken")


async def end() -> None:
    pass


async def test_owner_raises_the_error_of_a_task_and_stop_cancels_the_others() -> None:
    task_owner = tasks.TaskOwner()
    running = task_owner.start("running", for_ever())
    assert running.get_name() == "running"
    task_owner.start("failing", fail())
    with pytest.raises(ValueError, match="broken"):
        await task_owner.wait()
    await task_owner.stop()
    assert running.cancelled()


async def test_owner_wait_returns_when_a_task_ends() -> None:
    task_owner = tasks.TaskOwner()
    task_owner.start("running", for_ever())
    task_owner.start("ending", end())
    await asyncio.wait_for(task_owner.wait(), 1)
    await task_owner.stop()


async def test_stop_waits_for_the_cleanup_of_tasks() -> None:
    cleaned: list[str] = []

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("tidy")

    task_owner = tasks.TaskOwner()
    task_owner.start("tidy", tidy())
    await asyncio.sleep(0)
    await task_owner.stop()
    assert cleaned == ["tidy"]


async def test_periodic_task_continues_after_a_failed_run() -> None:
    failed: list[Exception] = []
    count = 0
    enough = asyncio.Event()

    async def run_once() -> None:
        nonlocal count
        count += 1
        if count == 4:
            enough.set()
        if count % 2:
            raise ValueError(count)

    task_owner = tasks.TaskOwner()
    task_owner.start("periodic", tasks.run_periodically(0, run_once, on_error=failed.append))
    await asyncio.wait_for(enough.wait(), 1)
    await task_owner.stop()
    assert [error.args for error in failed][:2] == [(1,), (3,)]


async def test_attempt_returns_whether_it_succeeded() -> None:
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


async def test_wait_for_first_cancels_the_others() -> None:
    before = asyncio.all_tasks()
    await asyncio.wait_for(tasks.wait_for_first([for_ever(), end(), for_ever()]), 1)
    waiting = asyncio.ensure_future(tasks.wait_for_first([for_ever()]))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert asyncio.all_tasks() == before


async def test_failure_at_the_moment_of_a_cancellation_does_not_hide_the_cancellation() -> None:
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
                await tasks.run_isolated(fail_in_a_group(broken))
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


async def test_isolated_task_raises_its_error() -> None:
    async def fail() -> None:
        raise OSError

    with pytest.raises(OSError):
        await tasks.run_isolated(fail())
