"""Batcher: items that wait form a batch, each caller gets its own outcome, and no accepted item is lost."""

import asyncio
from collections.abc import Sequence

import pytest

from maestropy.aio import batches


class RecordedBatcher:
    """A batcher whose handler can be blocked and records its batches."""

    def __init__(self, *, limits: batches.BatchLimits | None = None) -> None:
        self.batches_seen: list[list[str]] = []
        self.unblocked = asyncio.Event()
        self.unblocked.set()
        self.batcher: batches.Batcher[str, str] = batches.Batcher(self.handle, limits=limits)

    async def handle(self, items: Sequence[str]) -> Sequence[str | BaseException]:
        self.batches_seen.append(list(items))
        await self.unblocked.wait()
        if "fail all" in items:
            raise OSError("the whole batch failed")
        return [ValueError(item) if item.startswith("bad") else item.upper() for item in items]

    def submit(self, item: str, *, key: str | None = None, size: int = 1) -> asyncio.Task[str]:
        return asyncio.ensure_future(self.batcher.submit(item, key=key or item, size=size))

    async def __aenter__(self) -> "RecordedBatcher":
        self.running = asyncio.ensure_future(self.batcher.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.unblocked.set()
        self.batcher.stop()
        await asyncio.wait_for(self.running, 5)


async def run_loop(count: int = 20) -> None:
    """Let other tasks run."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_idle_batcher_handles_an_item_at_once() -> None:
    async with RecordedBatcher() as recorded:
        assert await recorded.submit("a") == "A"
        assert await recorded.submit("b") == "B"
    assert recorded.batches_seen == [["a"], ["b"]]


async def test_requests_that_are_being_delivered_join_the_batch() -> None:
    async def arrive(item: str, *, after: int) -> str:
        await run_loop(after)
        return await recorded.submit(item)

    async with RecordedBatcher() as recorded:
        await asyncio.gather(*(arrive(item, after=number) for number, item in enumerate("abcdefgh")))
    assert recorded.batches_seen == [list("abcdefgh")]


async def test_lingering_batcher_joins_items_that_follow_a_batch_of_several() -> None:
    async with RecordedBatcher(limits=batches.BatchLimits(batch_items=2, linger_seconds=60)) as recorded:
        assert await recorded.submit("alone") == "ALONE"
        await asyncio.gather(recorded.submit("a"), recorded.submit("b"))
        first = recorded.submit("c")
        await run_loop()  # longer than a batcher that does not linger waits
        await asyncio.gather(first, recorded.submit("d"))
    assert recorded.batches_seen == [["alone"], ["a", "b"], ["c", "d"]]


async def test_items_that_arrive_while_a_batch_is_handled_form_the_next_batch() -> None:
    async with RecordedBatcher() as recorded:
        recorded.unblocked.clear()
        first = recorded.submit("a")
        await run_loop()
        rest = [recorded.submit(item) for item in "bcd"]
        await run_loop()
        assert recorded.batcher.depth == 3
        recorded.unblocked.set()
        assert await asyncio.gather(first, *rest) == ["A", "B", "C", "D"]
    assert recorded.batches_seen == [["a"], ["b", "c", "d"]]


async def test_batch_never_holds_a_key_twice_and_keeps_the_order_of_a_key() -> None:
    async with RecordedBatcher() as recorded:
        recorded.unblocked.clear()
        tasks = [recorded.submit("first")]
        await run_loop()
        tasks += [recorded.submit(f"{key}{number}", key=key) for number in range(3) for key in ("x", "y")]
        await run_loop()
        recorded.unblocked.set()
        await asyncio.gather(*tasks)
    assert recorded.batches_seen == [["first"], ["x0", "y0"], ["x1", "y1"], ["x2", "y2"]]


async def test_error_outcome_is_raised_to_its_caller_only() -> None:
    async with RecordedBatcher() as recorded:
        recorded.unblocked.clear()
        tasks = [recorded.submit("first")]
        await run_loop()
        tasks += [recorded.submit(item) for item in ("a", "bad", "b")]
        await run_loop()
        recorded.unblocked.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert outcomes[1] == "A"
    assert isinstance(outcomes[2], ValueError)
    assert outcomes[3] == "B"


async def test_handler_error_is_raised_to_every_caller_and_the_next_batch_is_handled() -> None:
    async with RecordedBatcher() as recorded:
        recorded.unblocked.clear()
        tasks = [recorded.submit("first")]
        await run_loop()
        tasks += [recorded.submit(item) for item in ("a", "fail all")]
        await run_loop()
        recorded.unblocked.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [str, OSError, OSError]
        assert await recorded.submit("again") == "AGAIN"


async def test_cancelled_item_is_not_handled_and_frees_its_space() -> None:
    async with RecordedBatcher(limits=batches.BatchLimits(waiting_bytes=100)) as recorded:
        recorded.unblocked.clear()
        first = recorded.submit("first")
        await run_loop()
        cancelled = recorded.submit("cancelled", size=90)
        await run_loop()
        cancelled.cancel()
        await run_loop()
        # The space is free while the previous batch is still being handled.
        large = recorded.submit("large", size=90)
        await run_loop()
        recorded.unblocked.set()
        await first
        assert await large == "LARGE"
    assert ["cancelled"] not in recorded.batches_seen


@pytest.mark.parametrize(
    ("limits", "sizes", "batches_seen"),
    [
        pytest.param(batches.BatchLimits(batch_items=2), [1, 1, 1, 1, 1], [2, 2, 1], id="by-items"),
        pytest.param(batches.BatchLimits(batch_bytes=10), [6, 6, 6, 6], [2, 2], id="by-bytes"),
        pytest.param(batches.BatchLimits(batch_bytes=10), [50, 1, 1], [1, 2], id="single-item-larger-than-a-batch"),
    ],
)
async def test_batches_are_bounded(limits: batches.BatchLimits, sizes: list[int], batches_seen: list[int]) -> None:
    async with RecordedBatcher(limits=limits) as recorded:
        recorded.unblocked.clear()
        tasks = [recorded.submit("first")]
        await run_loop()
        tasks += [recorded.submit(f"item {number}", size=size) for number, size in enumerate(sizes)]
        await run_loop()
        recorded.unblocked.set()
        await asyncio.gather(*tasks)
    assert [len(batch) for batch in recorded.batches_seen[1:]] == batches_seen


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(batches.BatchLimits(waiting_items=2), id="too-many-items"),
        pytest.param(batches.BatchLimits(waiting_bytes=25), id="too-many-bytes"),
    ],
)
async def test_item_beyond_the_waiting_limits_is_rejected_at_once(limits: batches.BatchLimits) -> None:
    async with RecordedBatcher(limits=limits) as recorded:
        recorded.unblocked.clear()
        tasks = [recorded.submit("first")]
        await run_loop()
        tasks += [recorded.submit("a", size=10), recorded.submit("b", size=10)]
        await run_loop()
        with pytest.raises(batches.Overloaded):
            await recorded.batcher.submit("c", key="c", size=10)
        recorded.unblocked.set()
        await asyncio.gather(*tasks)
        assert await recorded.submit("c", size=10) == "C"


async def test_stop_finishes_waiting_items_and_rejects_new_ones() -> None:
    async with RecordedBatcher() as recorded:
        recorded.unblocked.clear()
        tasks = [recorded.submit("first")]
        await run_loop()
        tasks += [recorded.submit("x1", key="x"), recorded.submit("x2", key="x")]
        await run_loop()
        recorded.batcher.stop()
        with pytest.raises(batches.Stopped):
            await recorded.batcher.submit("late", key="late", size=1)
        recorded.unblocked.set()
        assert await asyncio.gather(*tasks) == ["FIRST", "X1", "X2"]
        await asyncio.wait_for(recorded.running, 5)


async def test_lingering_batcher_stops_at_once() -> None:
    async with RecordedBatcher(limits=batches.BatchLimits(batch_items=3, linger_seconds=60)) as recorded:
        await asyncio.gather(recorded.submit("a"), recorded.submit("b"))
        last = recorded.submit("c")
        await run_loop()
        recorded.batcher.stop()
        assert await last == "C"
    assert recorded.batches_seen == [["a", "b"], ["c"]]
