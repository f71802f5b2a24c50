"""Works that do not exist yet are found with one request for a hundred, also by many tasks at once."""

import asyncio
from collections.abc import Sequence

from maestropy.sdk._operations.absence import AbsentWorks


async def test_one_request_answers_for_a_hundred_works() -> None:
    requests: list[int] = []

    async def existing(ids: Sequence[str]) -> set[str]:
        requests.append(len(ids))
        await asyncio.sleep(0)
        return {id_ for id_ in ids if int(id_) % 2}

    ids = [str(number) for number in range(250)]
    absent = AbsentWorks(ids, existing)
    answers = await asyncio.gather(*map(absent.is_absent, ids))
    assert answers == [number % 2 == 0 for number in range(250)]
    assert sorted(requests) == [50, 100, 100]


async def test_work_that_is_given_twice_is_not_known_to_be_absent() -> None:
    async def none(ids: Sequence[str]) -> set[str]:
        assert ids == ["one"]
        return set()

    absent = AbsentWorks(["twice", "one", "twice"], none)
    assert not await absent.is_absent("twice")
    assert await absent.is_absent("one")
    assert not await absent.is_absent("another")
