"""What every medium between an agent and its server must do, whatever carries the events.

A case is played with a rig: the medium under test, and the other end of it in the hands of the test. The same cases
run over memory, gRPC and a real Mosquitto; a medium that passes them can be given to the agent.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Protocol

import pytest

from maestropy.transport import base
from maestropy.wire import event, instant, resync

CONSUMER = "cluster1"
SECONDS = 15.0


class Rig(Protocol):
    """A medium, and its other end."""

    @property
    def medium(self) -> base.Medium: ...

    @property
    def heard(self) -> list[event.Event]:
        """What the other end has got."""

    async def send(self, sent: event.Event) -> None:
        """Say something to whoever is connected."""

    async def hang_up(self) -> None:
        """Break the connections that are open."""

    async def vanish(self) -> None:
        """Be away from now on."""

    async def come_back(self) -> None:
        """Be there again, at the same address."""

    def unacceptable(self) -> event.Event:
        """Return a report that the other end will never take."""


Case = Callable[[Rig], Awaitable[None]]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def spec(name: str, *, data: bytes = b'{"manifests":[]}', **more: event.Attribute) -> event.Event:
    return event.Event(
        id=f"id-{name}",
        source="maestro",
        type=event.SPEC_CREATE,
        time=instant.Timestamp(1_700_000_000, 123456789),
        extensions={
            event.RESOURCE_ID: name,
            event.RESOURCE_VERSION: 1,
            event.CLUSTER_NAME: CONSUMER,
            event.ORIGINAL_SOURCE: "",
            **more,
        },
        data=data,
    )


def report(name: str, *, data: bytes = b'{"conditions":[]}') -> event.Event:
    return event.Event(
        id=f"id-{name}",
        source=f"{CONSUMER}-work-agent",
        type=event.STATUS_UPDATE,
        time=instant.Timestamp(1_700_000_000, 5),
        extensions={
            event.RESOURCE_ID: name,
            event.RESOURCE_VERSION: 1,
            event.CLUSTER_NAME: CONSUMER,
            event.ORIGINAL_SOURCE: "maestro",
            event.SEQUENCE_ID: "1",
        },
        data=data,
    )


def greeting(**versions: int) -> event.Event:
    return event.Event(
        id="greeting",
        source=f"{CONSUMER}-work-agent",
        type=event.SPEC_RESYNC_REQUEST,
        extensions={event.CLUSTER_NAME: CONSUMER, event.ORIGINAL_SOURCE: ""},
        data=resync.encode_versions(versions),
    )


def same(one: event.Event, other: event.Event) -> bool:
    """Compare two events; some media carry every attribute as text."""
    return _plain(one) == _plain(other)


def _plain(told: event.Event) -> object:
    extensions = {
        name: value.rfc3339() if isinstance(value, instant.Timestamp) else str(value)
        for name, value in told.extensions.items()
    }
    return (told.id, told.source, told.type, told.time, told.content_type, extensions, told.data)


async def next_of(connection: base.Connection, count: int) -> list[event.Event]:
    """Take the next events."""
    found = []
    async with asyncio.timeout(SECONDS):
        async for received in connection.events():
            found.append(received)
            if len(found) == count:
                break
    return found


async def heard(rig: Rig, count: int) -> list[event.Event]:
    """Wait until the other end has got so many; behind a broker that takes a moment."""
    async with asyncio.timeout(SECONDS):
        while len(rig.heard) < count:
            await asyncio.sleep(0.005)
    return rig.heard


async def drain(connection: base.Connection) -> None:
    async with asyncio.timeout(SECONDS):
        async for _ in connection.events():
            pass


@case
async def what_is_sent_after_connecting_arrives_unchanged_and_in_order(rig: Rig) -> None:
    text = json.dumps({"name": "ü \\" + chr(0x1F600), "big": 2**70})
    when = instant.Timestamp(1_700_000_001, 0)
    sent = [spec(f"w{number}", metadata=text) for number in range(50)]
    sent.append(spec("going", deletiontimestamp=when))
    async with rig.medium.connect() as connection:
        for each in sent:
            await rig.send(each)
        received = await next_of(connection, len(sent))
    assert [each.id for each in received] == [each.id for each in sent]
    assert all(same(one, other) for one, other in zip(sent, received, strict=True))
    assert received[0].integer(event.RESOURCE_VERSION) == 1
    assert received[-1].timestamp(event.DELETION_TIMESTAMP) == when


@case
async def what_is_published_arrives_unchanged_and_in_order(rig: Rig) -> None:
    sent = [report(f"w{number}") for number in range(20)]
    async with rig.medium.connect() as connection:
        for each in sent:
            await connection.publish(each)
    got = await heard(rig, len(sent))
    assert all(same(one, other) for one, other in zip(sent, got, strict=True))


@case
async def many_are_published_at_once(rig: Rig) -> None:
    async with rig.medium.connect() as connection:
        await asyncio.gather(*(connection.publish(report(f"w{number}")) for number in range(500)))
    assert {each.id for each in await heard(rig, 500)} == {f"id-w{number}" for number in range(500)}


@case
async def a_large_event_passes_both_ways(rig: Rig) -> None:
    data = json.dumps({"manifests": [{"data": "x" * 400_000}]}).encode()
    async with rig.medium.connect() as connection:
        await rig.send(spec("large", data=data))
        (received,) = await next_of(connection, 1)
        assert received.data == data
        await connection.publish(report("large", data=data))
        assert (await heard(rig, 1))[0].data == data


@case
async def a_resync_request_arrives(rig: Rig) -> None:
    async with rig.medium.connect() as connection:
        await connection.publish(greeting(w1=3))
    (asked,) = await heard(rig, 1)
    assert asked.type == event.SPEC_RESYNC_REQUEST
    # A medium may add a name of its own, to know the answer by.
    assert resync.decode_versions(asked.data).items() >= {"w1": 3}.items()


@case
async def a_resync_request_is_answered(rig: Rig) -> None:
    async with rig.medium.connect() as connection:
        await connection.publish(greeting(w1=3))
        (asked,) = await heard(rig, 1)
        for each in sorted(resync.decode_versions(asked.data).keys() - {"w1"}):
            assert not await connection.is_answered(within=0.05)
            await rig.send(spec(each, deletiontimestamp=instant.Timestamp(1_700_000_001, 0)))
        await rig.send(spec("w2"))
        # What only answers is nobody's work.
        assert [each.id for each in await next_of(connection, 1)] == ["id-w2"]
        assert await connection.is_answered(within=SECONDS)


@case
async def a_broken_connection_ends_its_events(rig: Rig) -> None:
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(rig.medium.connect())
        await rig.hang_up()
        with pytest.raises(base.Disconnected):
            await drain(connection)
        # A medium may have a way back nevertheless; it must not claim that nobody will ever take the report.
        with suppress(base.Disconnected):
            await connection.publish(report("w1"))
            await heard(rig, 1)


@case
async def a_new_connection_after_a_break_works(rig: Rig) -> None:
    async with rig.medium.connect() as connection:
        await rig.hang_up()
        with pytest.raises(base.Disconnected):
            await drain(connection)
    async with rig.medium.connect() as connection:
        await rig.send(spec("w1"))
        assert [each.id for each in await next_of(connection, 1)] == ["id-w1"]
        await connection.publish(report("w1"))
    assert [each.id for each in await heard(rig, 1)] == ["id-w1"]


@case
async def connecting_to_nobody_fails_and_later_succeeds(rig: Rig) -> None:
    await rig.vanish()
    with pytest.raises(base.Disconnected):
        async with asyncio.timeout(SECONDS), rig.medium.connect() as connection:
            await connection.publish(report("lost"))
    await rig.come_back()
    async with rig.medium.connect() as connection:
        await connection.publish(report("w1"))
    assert [each.id for each in await heard(rig, 1)] == ["id-w1"]


@case
async def what_will_never_be_taken_is_rejected_and_the_connection_goes_on(rig: Rig) -> None:
    async with rig.medium.connect() as connection:
        with pytest.raises(base.Rejected):
            await connection.publish(rig.unacceptable())
        await connection.publish(report("w1"))
    assert [each.id for each in await heard(rig, 1)] == ["id-w1"]


@case
async def nothing_is_left_behind_when_a_connection_is_closed(rig: Rig) -> None:
    for _ in range(3):
        async with rig.medium.connect():
            pass
    async with rig.medium.connect() as connection:
        await connection.publish(report("w1"))
    assert [each.id for each in await heard(rig, 1)] == ["id-w1"]


@case
async def the_address_is_the_one_that_was_configured(rig: Rig) -> None:
    assert ":" in rig.medium.address
