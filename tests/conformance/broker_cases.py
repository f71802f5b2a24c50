"""What every backend of `server.brokers.port` must do, whatever carries the events.

A case is played with a rig: a broker with its agents in the hands of the test. The same cases run over gRPC streams and
over MQTT; a backend that passes them can be given to the controllers.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from maestropy.server.brokers import port
from maestropy.server.brokers.port import Outcome
from maestropy.wire import resync
from maestropy.wire.events import event, stored_event
from tests import waiting

SECONDS = 15.0


class BrokerRig(Protocol):
    """A broker and its agents."""

    @property
    def broker(self) -> port.Broker: ...

    def agent(self, consumer: str) -> AbstractAsyncContextManager[list[event.CloudEvent]]:
        """Subscribe as the agent of `consumer`; the list grows with the events it receives."""

    def unsendable(self) -> event.CloudEvent:
        """Return an event that this broker cannot encode."""


Case = Callable[[BrokerRig], Awaitable[None]]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def spec(resource_id: str, *, consumer: str = "cluster1", **more: event.Attribute) -> event.CloudEvent:
    return event.CloudEvent(
        id=f"event-{resource_id}",
        source="maestro",
        type=event.SPEC_CREATE,
        content_type="application/json",
        extensions={event.RESOURCE_ID: resource_id, event.CLUSTER_NAME: consumer, **more},
        data=b"{}",
    )


def address(resource_id: str, *, consumer: str = "cluster1") -> port.Address:
    return port.Address(consumer=consumer, key=resource_id)


def ids(received: list[event.CloudEvent]) -> list[str]:
    return [each.text(event.RESOURCE_ID) for each in received]


@case
async def event_reaches_the_agents_of_its_consumer_only(rig: BrokerRig) -> None:
    async with rig.agent("cluster1") as one, rig.agent("cluster2") as other:
        assert (await rig.broker.send(spec("w1"), address("w1"))).outcome is Outcome.SENT
        second = spec("w2", consumer="cluster2")
        assert (await rig.broker.send(second, address("w2", consumer="cluster2"))).outcome is Outcome.SENT
        await waiting.until(lambda: (ids(one), ids(other)) == (["w1"], ["w2"]), what="one event each")


@case
async def events_arrive_in_the_order_in_which_they_were_sent(rig: BrokerRig) -> None:
    names = [f"w{number}" for number in range(50)]
    async with rig.agent("cluster1") as received:
        for name in names:
            assert (await rig.broker.send(spec(name), address(name))).outcome is Outcome.SENT
        await waiting.until(lambda: len(received) == len(names), what="all events")
        assert ids(received) == names


@case
async def event_without_a_listening_agent_is_not_sent(rig: BrokerRig) -> None:
    async with rig.agent("other"):
        result = await rig.broker.send(spec("w1"), address("w1"))
    expected = Outcome.NO_SUBSCRIBER if rig.broker.capabilities.reaches_every_consumer else Outcome.OFFLINE
    assert result.outcome is expected


@case
async def event_that_cannot_be_encoded_is_never_sent_and_the_next_one_is(rig: BrokerRig) -> None:
    async with rig.agent("cluster1") as received:
        result = await rig.broker.send(rig.unsendable(), address("bad"))
        assert result.outcome is Outcome.NEVER
        assert result.reason
        assert (await rig.broker.send(spec("w1"), address("w1"))).outcome is Outcome.SENT
        await waiting.until(lambda: ids(received) == ["w1"], what="the other event")


@case
async def events_up_to_the_largest_size_are_sent(rig: BrokerRig) -> None:
    assert rig.broker.max_event_bytes <= resync.EVENT_MAX_BYTES
    hashes = {f"w{number}": "h" * 60 for number in range(12_000)}
    max_bytes = rig.broker.max_event_bytes - resync.ENVELOPE_BYTES
    first = next(iter(resync.status_hash_batches(hashes.items(), max_items=len(hashes), max_bytes=max_bytes)))
    async with rig.agent("cluster1") as received:
        large = event.CloudEvent(id="e", source="maestro", type=event.STATUS_RESYNC_REQUEST, data=first)
        assert (await rig.broker.send(large, address("r"))).outcome is Outcome.SENT
        await waiting.until(lambda: [each.data for each in received] == [first], what="the large event")


@case
async def agent_that_reads_has_room(rig: BrokerRig) -> None:
    async with rig.agent("cluster1"):
        assert rig.broker.is_online
        assert rig.broker.reaches("cluster1")
        assert rig.broker.has_room("cluster1")
        async with asyncio.timeout(SECONDS):
            await rig.broker.wait_online()
            await rig.broker.wait_for_room("cluster1")


@case
async def reachable_consumers_agree_with_the_capabilities(rig: BrokerRig) -> None:
    reaches_all = rig.broker.capabilities.reaches_every_consumer
    async with rig.agent("cluster1"):
        consumers = rig.broker.consumers()
        assert (consumers is None) == reaches_all
        assert reaches_all or list(consumers or ()) == ["cluster1"]
        assert rig.broker.reaches("cluster2") == reaches_all


@case
async def waiting_for_room_ends_when_the_consumer_is_gone(rig: BrokerRig) -> None:
    async with asyncio.timeout(SECONDS):
        await rig.broker.wait_for_room("unknown")


@case
async def small_resource_has_no_problem(rig: BrokerRig) -> None:
    assert rig.broker.problem_with(stored_event.StoredParts(envelope=b"{}", metadata=b"{}", data=b"{}")) == ""
