"""Wake-ups collect IDs; too many IDs become one rescan."""

import asyncio

from maestropy.aio import wake_ups as signals


async def test_ids_are_collected_once_until_taken() -> None:
    wake_ups = signals.WakeUps()
    for event_id in ("a", "b", "a"):
        wake_ups.add(event_id)
    assert len(wake_ups) == 2
    assert await wake_ups.take(at_most=10) == (["a", "b"], False)
    assert len(wake_ups) == 0


async def test_remaining_ids_need_no_new_wake_up() -> None:
    wake_ups = signals.WakeUps()
    for number in range(5):
        wake_ups.add(str(number))
    taken = [await asyncio.wait_for(wake_ups.take(at_most=2), 1) for _ in range(3)]
    assert taken == [(["0", "1"], False), (["2", "3"], False), (["4"], False)]


async def test_take_waits_for_the_next_wake_up() -> None:
    wake_ups = signals.WakeUps()
    wake_ups.add("a")
    await wake_ups.take(at_most=1)
    waiting = asyncio.ensure_future(wake_ups.take(at_most=1))
    await asyncio.sleep(0)
    assert not waiting.done()
    wake_ups.request_rescan()
    assert await waiting == ([], True)


async def test_ids_beyond_the_limit_become_a_rescan() -> None:
    wake_ups = signals.WakeUps(limit=2)
    for event_id in ("a", "b", "c", "d"):
        wake_ups.add(event_id)
    assert len(wake_ups) == 2
    assert await wake_ups.take(at_most=10) == (["a", "b"], True)
    wake_ups.add("e")
    assert await wake_ups.take(at_most=10) == (["e"], False)
