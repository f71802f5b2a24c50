"""A wake-up remembers what it was for, and forgets nothing when it is too much to remember."""

import asyncio

from maestropy.aio import signals


def test_ids_pile_up_until_somebody_looks() -> None:
    async def scenario() -> None:
        tickets = signals.Tickets()
        for ticket in ("a", "b", "a"):
            tickets.add(ticket)
        assert len(tickets) == 2
        assert await tickets.take(at_most=10) == (["a", "b"], False)
        assert len(tickets) == 0

    asyncio.run(scenario())


def test_what_is_left_needs_no_new_wake_up() -> None:
    async def scenario() -> None:
        tickets = signals.Tickets()
        for number in range(5):
            tickets.add(str(number))
        found = [await asyncio.wait_for(tickets.take(at_most=2), 1) for _ in range(3)]
        assert found == [(["0", "1"], False), (["2", "3"], False), (["4"], False)]

    asyncio.run(scenario())


def test_the_sleeper_sleeps_until_there_is_something() -> None:
    async def scenario() -> None:
        tickets = signals.Tickets()
        tickets.add("a")
        await tickets.take(at_most=1)
        sleeper = asyncio.ensure_future(tickets.take(at_most=1))
        await asyncio.sleep(0)
        assert not sleeper.done()
        tickets.add_everything()
        assert await sleeper == ([], True)

    asyncio.run(scenario())


def test_too_many_ids_become_a_look_at_everything() -> None:
    async def scenario() -> None:
        tickets = signals.Tickets(limit=2)
        for ticket in ("a", "b", "c", "d"):
            tickets.add(ticket)
        assert len(tickets) == 2
        assert await tickets.take(at_most=10) == (["a", "b"], True)
        tickets.add("e")
        assert await tickets.take(at_most=10) == (["e"], False)

    asyncio.run(scenario())
