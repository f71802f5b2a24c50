"""Groups form from what waits, each caller gets its own outcome, and nothing that was taken is forgotten."""

import asyncio
from collections.abc import Sequence

import pytest

from maestropy.aio import batches


class Kitchen:
    """A handler that can be held up, and remembers the groups it was given."""

    def __init__(self, *, limits: batches.Limits | None = None) -> None:
        self.groups: list[list[str]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.batcher: batches.Batcher[str, str] = batches.Batcher(self.cook, limits=limits)

    async def cook(self, items: Sequence[str]) -> Sequence[str | BaseException]:
        self.groups.append(list(items))
        await self.open.wait()
        if "all wrong" in items:
            raise OSError("the whole group failed")
        return [ValueError(item) if item.startswith("bad") else item.upper() for item in items]

    def order(self, item: str, *, key: str | None = None, size: int = 1) -> asyncio.Task[str]:
        return asyncio.ensure_future(self.batcher.submit(item, key=key or item, size=size))

    async def __aenter__(self) -> "Kitchen":
        self.running = asyncio.ensure_future(self.batcher.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.open.set()
        self.batcher.stop()
        await asyncio.wait_for(self.running, 5)


async def turns(count: int = 20) -> None:
    """Let other tasks run."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_an_idle_batcher_waits_for_nobody() -> None:
    async def scenario() -> None:
        async with Kitchen() as kitchen:
            assert await kitchen.order("a") == "A"
            assert await kitchen.order("b") == "B"
        assert kitchen.groups == [["a"], ["b"]]

    asyncio.run(scenario())


def test_requests_on_their_way_through_the_loop_join_the_group() -> None:
    async def scenario() -> None:
        async def arrive(item: str, *, after: int) -> str:
            await turns(after)
            return await kitchen.order(item)

        async with Kitchen() as kitchen:
            await asyncio.gather(*(arrive(item, after=number) for number, item in enumerate("abcdefgh")))
        assert kitchen.groups == [list("abcdefgh")]

    asyncio.run(scenario())


def test_what_arrives_meanwhile_is_the_next_group() -> None:
    async def scenario() -> None:
        async with Kitchen() as kitchen:
            kitchen.open.clear()
            first = kitchen.order("a")
            await turns()
            rest = [kitchen.order(item) for item in "bcd"]
            await turns()
            assert kitchen.batcher.depth == 3
            kitchen.open.set()
            assert await asyncio.gather(first, *rest) == ["A", "B", "C", "D"]
        assert kitchen.groups == [["a"], ["b", "c", "d"]]

    asyncio.run(scenario())


def test_one_key_is_never_twice_in_a_group_and_keeps_its_order() -> None:
    async def scenario() -> None:
        async with Kitchen() as kitchen:
            kitchen.open.clear()
            tasks = [kitchen.order("first")]
            await turns()
            tasks += [kitchen.order(f"{key}{number}", key=key) for number in range(3) for key in ("x", "y")]
            await turns()
            kitchen.open.set()
            await asyncio.gather(*tasks)
        assert kitchen.groups == [["first"], ["x0", "y0"], ["x1", "y1"], ["x2", "y2"]]

    asyncio.run(scenario())


def test_a_failure_among_the_outcomes_is_raised_to_its_caller_alone() -> None:
    async def scenario() -> None:
        async with Kitchen() as kitchen:
            kitchen.open.clear()
            tasks = [kitchen.order("first")]
            await turns()
            tasks += [kitchen.order(item) for item in ("a", "bad", "b")]
            await turns()
            kitchen.open.set()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert outcomes[1] == "A"
        assert isinstance(outcomes[2], ValueError)
        assert outcomes[3] == "B"

    asyncio.run(scenario())


def test_when_the_handler_fails_every_caller_hears_of_it_and_the_next_group_is_handled() -> None:
    async def scenario() -> None:
        async with Kitchen() as kitchen:
            kitchen.open.clear()
            tasks = [kitchen.order("first")]
            await turns()
            tasks += [kitchen.order(item) for item in ("a", "all wrong")]
            await turns()
            kitchen.open.set()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(each) for each in outcomes] == [str, OSError, OSError]
            assert await kitchen.order("again") == "AGAIN"

    asyncio.run(scenario())


def test_a_caller_that_gave_up_gets_nothing_done_and_takes_no_room() -> None:
    async def scenario() -> None:
        async with Kitchen(limits=batches.Limits(waiting_bytes=100)) as kitchen:
            kitchen.open.clear()
            first = kitchen.order("first")
            await turns()
            given_up = kitchen.order("given up", size=90)
            await turns()
            given_up.cancel()
            await turns()
            # Already now, while the group before it still takes its time.
            large = kitchen.order("large", size=90)
            await turns()
            kitchen.open.set()
            await first
            assert await large == "LARGE"
        assert ["given up"] not in kitchen.groups

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("limits", "sizes", "groups"),
    [
        pytest.param(batches.Limits(group_items=2), [1, 1, 1, 1, 1], [2, 2, 1], id="by-number"),
        pytest.param(batches.Limits(group_bytes=10), [6, 6, 6, 6], [2, 2], id="by-size"),
        pytest.param(batches.Limits(group_bytes=10), [50, 1, 1], [1, 2], id="one-may-be-larger-than-a-group"),
    ],
)
def test_groups_are_bounded(limits: batches.Limits, sizes: list[int], groups: list[int]) -> None:
    async def scenario() -> None:
        async with Kitchen(limits=limits) as kitchen:
            kitchen.open.clear()
            tasks = [kitchen.order("first")]
            await turns()
            tasks += [kitchen.order(f"item {number}", size=size) for number, size in enumerate(sizes)]
            await turns()
            kitchen.open.set()
            await asyncio.gather(*tasks)
        assert [len(group) for group in kitchen.groups[1:]] == groups

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(batches.Limits(waiting_items=2), id="too-many"),
        pytest.param(batches.Limits(waiting_bytes=25), id="too-much"),
    ],
)
def test_more_than_may_wait_is_refused_at_once(limits: batches.Limits) -> None:
    async def scenario() -> None:
        async with Kitchen(limits=limits) as kitchen:
            kitchen.open.clear()
            tasks = [kitchen.order("first")]
            await turns()
            tasks += [kitchen.order("a", size=10), kitchen.order("b", size=10)]
            await turns()
            with pytest.raises(batches.Overloaded):
                await kitchen.batcher.submit("c", key="c", size=10)
            kitchen.open.set()
            await asyncio.gather(*tasks)
            assert await kitchen.order("c", size=10) == "C"

    asyncio.run(scenario())


def test_stopping_finishes_what_was_taken_and_takes_nothing_new() -> None:
    async def scenario() -> None:
        async with Kitchen() as kitchen:
            kitchen.open.clear()
            tasks = [kitchen.order("first")]
            await turns()
            tasks += [kitchen.order("x1", key="x"), kitchen.order("x2", key="x")]
            await turns()
            kitchen.batcher.stop()
            with pytest.raises(batches.Stopped):
                await kitchen.batcher.submit("late", key="late", size=1)
            kitchen.open.set()
            assert await asyncio.gather(*tasks) == ["FIRST", "X1", "X2"]
            await asyncio.wait_for(kitchen.running, 5)

    asyncio.run(scenario())
