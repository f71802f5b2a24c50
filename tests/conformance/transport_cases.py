"""Cases that every transport between an agent and its server must pass.

A case runs with a rig: the transport under test, and its server side, controlled by the test. The same cases run over
memory, gRPC, MQTT and a real Mosquitto; a transport that passes them can be given to the agent.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Protocol

import pytest

from maestropy.transport import port
from maestropy.wire import resync, timestamps
from maestropy.wire.events import event

CONSUMER = "cluster1"
SECONDS = 15.0


class Rig(Protocol):
    """A transport and its server side."""

    @property
    def transport(self) -> port.Transport: ...

    @property
    def received(self) -> list[event.CloudEvent]:
        """Events that the server side has received."""

    @property
    def keeps_order(self) -> bool:
        """Whether events arrive in the order in which they were sent."""

    async def send(self, sent: event.CloudEvent) -> None:
        """Send an event to every connected agent."""

    async def break_connections(self) -> None:
        """Break all open connections."""

    async def stop(self) -> None:
        """Stop the server side."""

    async def start(self) -> None:
        """Start the server side again, at the same address."""

    def rejected_update(self) -> event.CloudEvent:
        """Return a status update that the server side rejects."""


Case = Callable[[Rig], Awaitable[None]]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def spec(name: str, *, data: bytes = b'{"manifests":[]}', **more: event.Attribute) -> event.CloudEvent:
    return event.CloudEvent(
        id=f"id-{name}",
        source="maestro",
        type=event.SPEC_CREATE,
        time=timestamps.Timestamp(1_700_000_000, 123456789),
        extensions={
            event.RESOURCE_ID: name,
            event.RESOURCE_VERSION: 1,
            event.CLUSTER_NAME: CONSUMER,
            event.ORIGINAL_SOURCE: "",
            **more,
        },
        data=data,
    )


def status_update(name: str, *, data: bytes = b'{"conditions":[]}') -> event.CloudEvent:
    return event.CloudEvent(
        id=f"id-{name}",
        source=f"{CONSUMER}-work-agent",
        type=event.STATUS_UPDATE,
        time=timestamps.Timestamp(1_700_000_000, 5),
        extensions={
            event.RESOURCE_ID: name,
            event.RESOURCE_VERSION: 1,
            event.CLUSTER_NAME: CONSUMER,
            event.ORIGINAL_SOURCE: "maestro",
            event.SEQUENCE_ID: "1",
        },
        data=data,
    )


def spec_resync_request(**versions: int) -> event.CloudEvent:
    return event.CloudEvent(
        id="spec_resync_request",
        source=f"{CONSUMER}-work-agent",
        type=event.SPEC_RESYNC_REQUEST,
        extensions={event.CLUSTER_NAME: CONSUMER, event.ORIGINAL_SOURCE: ""},
        data=resync.encode_versions(versions),
    )


def is_same_event(one: event.CloudEvent, other: event.CloudEvent) -> bool:
    """Return whether two events are equal; some transports carry every attribute as text."""
    return _plain(one) == _plain(other)


def _plain(passing: event.CloudEvent) -> object:
    extensions = {
        name: value.rfc3339() if isinstance(value, timestamps.Timestamp) else str(value)
        for name, value in passing.extensions.items()
    }
    return (passing.id, passing.source, passing.type, passing.time, passing.content_type, extensions, passing.data)


async def next_events(connection: port.AgentConnection, count: int) -> list[event.CloudEvent]:
    """Return the next events of a connection."""
    events = []
    async with asyncio.timeout(SECONDS):
        async for received in connection.events():
            events.append(received)
            if len(events) == count:
                break
    return events


async def received_events(rig: Rig, count: int) -> list[event.CloudEvent]:
    """Wait until the server side has received so many events; behind a broker that takes a moment."""
    async with asyncio.timeout(SECONDS):
        while len(rig.received) < count:
            await asyncio.sleep(0.005)
    return rig.received


def ordered(rig: Rig, events: list[event.CloudEvent]) -> list[event.CloudEvent]:
    """Return events as they arrived, or by their IDs if the transport keeps no order."""
    return events if rig.keeps_order else sorted(events, key=lambda arrived_event: arrived_event.id)


async def drain(connection: port.AgentConnection) -> None:
    async with asyncio.timeout(SECONDS):
        async for _ in connection.events():
            pass


@case
async def sent_events_arrive_unchanged_and_in_order(rig: Rig) -> None:
    text = json.dumps({"name": "ü \\" + chr(0x1F600), "big": 2**70})
    when = timestamps.Timestamp(1_700_000_001, 0)
    sent = [spec(f"w{number}", metadata=text) for number in range(50)]
    sent.append(spec("going", deletiontimestamp=when))
    async with rig.transport.connect() as connection:
        for outgoing in sent:
            await rig.send(outgoing)
        received = await next_events(connection, len(sent))
    assert [e.id for e in ordered(rig, received)] == [e.id for e in ordered(rig, sent)]
    assert all(is_same_event(*pair) for pair in zip(ordered(rig, sent), ordered(rig, received), strict=True))
    by_id = {arrived_event.id: arrived_event for arrived_event in received}
    assert by_id["id-w0"].integer(event.RESOURCE_VERSION) == 1
    assert by_id["id-going"].timestamp(event.DELETION_TIMESTAMP) == when


@case
async def published_events_arrive_unchanged_and_in_order(rig: Rig) -> None:
    sent = [status_update(f"w{number}") for number in range(20)]
    async with rig.transport.connect() as connection:
        for outgoing in sent:
            await connection.publish(outgoing)
    arrived = await received_events(rig, len(sent))
    assert all(is_same_event(*pair) for pair in zip(ordered(rig, sent), ordered(rig, arrived), strict=True))


@case
async def concurrent_publishes_all_arrive(rig: Rig) -> None:
    async with rig.transport.connect() as connection:
        await asyncio.gather(*(connection.publish(status_update(f"w{number}")) for number in range(500)))
    assert {arrived_event.id for arrived_event in await received_events(rig, 500)} == {
        f"id-w{number}" for number in range(500)
    }


@case
async def large_event_passes_both_ways(rig: Rig) -> None:
    data = json.dumps({"manifests": [{"data": "x" * 400_000}]}).encode()
    async with rig.transport.connect() as connection:
        await rig.send(spec("large", data=data))
        (received,) = await next_events(connection, 1)
        assert received.data == data
        await connection.publish(status_update("large", data=data))
        assert (await received_events(rig, 1))[0].data == data


@case
async def spec_resync_request_arrives(rig: Rig) -> None:
    async with rig.transport.connect() as connection:
        await connection.publish(spec_resync_request(w1=3))
    (request,) = await received_events(rig, 1)
    assert request.type == event.SPEC_RESYNC_REQUEST
    # A transport may add an ID of its own, to recognise the answer.
    assert resync.decode_versions(request.data).items() >= {"w1": 3}.items()


@case
async def spec_resync_is_answered(rig: Rig) -> None:
    async with rig.transport.connect() as connection:
        await connection.publish(spec_resync_request(w1=3))
        (request,) = await received_events(rig, 1)
        markers = sorted(resync.decode_versions(request.data).keys() - {"w1"})
        assert markers in ([], [resync.decode_request(request.data).marker])
        for marker in markers:
            await rig.send(spec(marker, deletiontimestamp=timestamps.Timestamp(1_700_000_001, 0)))
        await rig.send(spec("w2"))
        # The end of the answer is passed on: it tells which database answered.
        arrived = [e.id for e in await next_events(connection, len(markers) + 1)]
        expected = [*(f"id-{marker}" for marker in markers), "id-w2"]
        assert arrived == expected if rig.keeps_order else set(arrived) == set(expected)
        assert await connection.is_resync_answered(within=SECONDS)


@case
async def broken_connection_ends_events(rig: Rig) -> None:
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(rig.transport.connect())
        await rig.break_connections()
        with pytest.raises(port.Disconnected):
            await drain(connection)
        # A transport may still have a working connection; it must not report the update as rejected.
        with suppress(port.Disconnected):
            await connection.publish(status_update("w1"))
            await received_events(rig, 1)


@case
async def new_connection_after_break_works(rig: Rig) -> None:
    async with rig.transport.connect() as connection:
        await rig.break_connections()
        with pytest.raises(port.Disconnected):
            await drain(connection)
    async with rig.transport.connect() as connection:
        await rig.send(spec("w1"))
        assert [arrived_event.id for arrived_event in await next_events(connection, 1)] == ["id-w1"]
        await connection.publish(status_update("w1"))
    assert [arrived_event.id for arrived_event in await received_events(rig, 1)] == ["id-w1"]


@case
async def connecting_to_stopped_server_fails_and_later_succeeds(rig: Rig) -> None:
    await rig.stop()
    with pytest.raises(port.Disconnected):
        async with asyncio.timeout(SECONDS), rig.transport.connect() as connection:
            await connection.publish(status_update("lost"))
    await rig.start()
    async with rig.transport.connect() as connection:
        await connection.publish(status_update("w1"))
    assert [arrived_event.id for arrived_event in await received_events(rig, 1)] == ["id-w1"]


@case
async def rejected_event_keeps_connection(rig: Rig) -> None:
    async with rig.transport.connect() as connection:
        with pytest.raises(port.PublishRejected):
            await connection.publish(rig.rejected_update())
        await connection.publish(status_update("w1"))
    assert [arrived_event.id for arrived_event in await received_events(rig, 1)] == ["id-w1"]


@case
async def closed_connections_release_everything(rig: Rig) -> None:
    for _ in range(3):
        async with rig.transport.connect():
            pass
    async with rig.transport.connect() as connection:
        await connection.publish(status_update("w1"))
    assert [arrived_event.id for arrived_event in await received_events(rig, 1)] == ["id-w1"]


@case
async def address_is_as_configured(rig: Rig) -> None:
    assert ":" in rig.transport.address
