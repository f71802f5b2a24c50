"""Many works: the bound, the order of the results, the progress, and failures of one work or of all."""

import asyncio

import pytest

from maestropy.sdk import errors
from maestropy.sdk._operations.apply_many import Applied, AppliedMany, Progress, apply_many
from maestropy.sdk.work import Work

WORKS = [Work(f"w{number}") for number in range(2000)]


async def test_works_are_applied_in_bounded_numbers_and_returned_in_order() -> None:
    running = most = 0
    seen: list[Progress] = []

    async def apply(work: Work) -> Applied:
        nonlocal running, most
        running += 1
        most = max(most, running)
        # Later works end first.
        for _ in range(len(WORKS) - int(work.name[1:]) & 7):
            await asyncio.sleep(0)
        running -= 1
        return Applied("created", work)

    result = await apply_many(WORKS, apply, concurrency=16, on_progress=seen.append)
    assert most == 16
    assert [item.work for item in result.applied] == WORKS
    assert result.is_complete
    assert [progress.done for progress in seen] == list(range(1, 2001))
    assert {(progress.total, progress.failed) for progress in seen} == {(2000, 0)}


async def _with_failures(error: errors.MaestroError, *, numbers: set[int]) -> AppliedMany:
    async def apply(work: Work) -> Applied:
        if int(work.name[1:]) in numbers:
            raise error
        return Applied("created", work)

    return await apply_many(WORKS[:100], apply, concurrency=4, on_progress=None)


async def test_rejected_work_does_not_end_the_others() -> None:
    result = await _with_failures(errors.Invalid("bad", doing="create work"), numbers={3, 50})
    assert [failed.work.name for failed in result.failed] == ["w3", "w50"]
    assert len(result.applied) == 98
    assert result.not_begun == ()
    assert not result.is_complete
    with pytest.raises(errors.Invalid, match=r"^2 of 100 works were not applied; the first is -/w3: bad"):
        result.raise_for_failures()


async def test_failure_that_all_works_would_have_ends_the_call() -> None:
    result = await _with_failures(errors.Unavailable("no connection"), numbers=set(range(10, 100)))
    assert len(result.applied) == 10
    assert [failed.work.name for failed in result.failed] == ["w10"]
    assert len(result.not_begun) == 89
    with pytest.raises(errors.Unavailable, match="1 of 100 works were not applied, 89 were not tried"):
        result.raise_for_failures()


async def test_no_work_is_complete_and_no_concurrency_is_invalid() -> None:
    async def apply(work: Work) -> Applied:
        raise AssertionError(work)

    assert (await apply_many([], apply, concurrency=1, on_progress=None)).is_complete
    with pytest.raises(errors.Invalid, match="concurrency is 0"):
        await apply_many(WORKS, apply, concurrency=0, on_progress=None)


async def test_an_exception_of_the_progress_callback_is_raised_as_it_is() -> None:
    class Stopped(Exception):
        pass

    def stop(_: Progress) -> None:
        raise Stopped("enough")

    async def apply(work: Work) -> Applied:
        return Applied("created", work)

    with pytest.raises(Stopped, match="enough"):
        await apply_many(WORKS, apply, concurrency=16, on_progress=stop)
