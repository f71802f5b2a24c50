"""Long lists wait for a slot of their client's share, and not for ever."""

import asyncio

import pytest

from maestropy.server.api.rest.stream_slots import NoSlot, StreamSlots


@pytest.mark.parametrize("others", [["a"], ["b", "c", "d", "e"]], ids=["own-share", "all"])
def test_list_that_finds_no_slot_in_time_is_refused_and_leaves_none_taken(others: list[str]) -> None:
    async def scenario() -> None:
        slots, done = StreamSlots(4, wait_seconds=0.02), asyncio.Event()

        async def hold(client: str) -> None:
            async with slots.held(client):
                await done.wait()

        async with asyncio.TaskGroup() as tasks:
            for client in others:
                tasks.create_task(hold(client))
            await asyncio.sleep(0)
            for _ in range(5):
                with pytest.raises(NoSlot):
                    async with slots.held("a"):
                        pytest.fail("there is no slot")
            assert not slots.is_free("a")
            done.set()
        for client in ("a", "b", "c", "d", "e"):
            async with slots.held(client):
                assert slots.is_free("other")

    asyncio.run(scenario())
