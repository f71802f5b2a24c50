import asyncio

import pytest

from maestropy.adapter.decide.effects import Apply, Await, Effect, EffectResult, Query
from maestropy.adapter.errors import Interrupted
from maestropy.adapter.transports.interruptible import InterruptiblePerformer
from tests.unit.adapter.samples import work

AWAIT = Await(labels={}, until=lambda _: False, seconds=60)


class Endless:
    """A performer whose waits never end by themselves."""

    def __init__(self) -> None:
        self.began = asyncio.Event()

    async def perform(self, effect: Effect) -> EffectResult:
        self.began.set()
        if isinstance(effect, Await):
            await asyncio.Event().wait()
        return []


async def test_stop_ends_a_wait_and_begins_nothing_new() -> None:
    inner = Endless()
    performer = InterruptiblePerformer(inner)

    async def stop() -> None:
        await inner.began.wait()
        performer.stop()

    async with asyncio.TaskGroup() as group:
        group.create_task(stop())
        with pytest.raises(Interrupted, match="stopped before it finished"):
            await performer.perform(AWAIT)
    assert await performer.perform(Query()) == []
    with pytest.raises(Interrupted):
        await performer.perform(Apply(work=work(), consumer="c1"))


async def test_timeout_of_an_effect_is_not_an_interruption() -> None:
    class Late:
        async def perform(self, effect: Effect) -> EffectResult:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        await InterruptiblePerformer(Late()).perform(Query())
