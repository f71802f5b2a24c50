"""Mailboxes of the agents that are connected to this instance."""

import asyncio

from maestropy.server.brokers import port
from maestropy.server.brokers.port import Outcome
from maestropy.wire.events import event, grpc_binding
from tests.conformance.broker_cases import address, spec
from tests.conformance.broker_rigs import GrpcRig


async def test_every_agent_of_a_consumer_gets_the_event() -> None:
    rig = GrpcRig()
    agents = [rig.subscribe("cluster1"), rig.subscribe("cluster1")]
    await rig.broker.send(spec("w1"), address("w1"))
    assert [len(agent.box) for agent in agents] == [1, 1]


async def test_event_for_one_subscription_reaches_only_that_one() -> None:
    rig = GrpcRig()
    one, other = rig.subscribe("cluster1"), rig.subscribe("cluster1")
    only = port.Address(consumer="cluster1", key="r", subscription_id=other.id)
    assert (await rig.broker.send(spec("w1"), only)).outcome is Outcome.SENT
    assert (len(one.box), len(other.box)) == (0, 1)
    rig.subscribers.close(other)
    assert (await rig.broker.send(spec("w1"), only)).outcome is Outcome.OFFLINE


async def test_newer_event_replaces_an_unread_one_of_the_same_resource() -> None:
    rig = GrpcRig()
    agent = rig.subscribe("cluster1")
    for version in (1, 2, 3):
        await rig.broker.send(spec("w1", resourceversion=version), address("w1"))
    (message,) = await agent.box.take()
    assert grpc_binding.decode_event(message).integer(event.RESOURCE_VERSION) == 3


async def test_agent_that_does_not_read_has_no_room_until_it_reads() -> None:
    rig = GrpcRig(max_items=4)
    agent = rig.subscribe("cluster1")
    for number in range(3):
        await rig.broker.send(spec(f"w{number}"), address(f"w{number}"))
    assert not rig.broker.has_room("cluster1")
    room = asyncio.create_task(rig.broker.wait_for_room("cluster1"), name="room")
    await asyncio.sleep(0)
    assert not room.done()
    await agent.box.take()
    await room
    assert rig.broker.has_room("cluster1")


async def test_agent_that_reads_gives_its_consumer_room_beside_one_that_does_not() -> None:
    rig = GrpcRig(max_items=2)
    rig.subscribe("cluster1")
    await rig.broker.send(spec("w1"), address("w1"))
    await rig.broker.send(spec("w2"), address("w2"))
    assert not rig.broker.has_room("cluster1")
    rig.subscribe("cluster1")
    assert rig.broker.has_room("cluster1")


async def test_agent_whose_mailbox_overflows_is_disconnected() -> None:
    rig = GrpcRig(max_items=2)
    disconnected: list[str] = []
    rig.subscribe("cluster1", disconnect=lambda: disconnected.append("cluster1"))
    for number in range(3):
        assert (await rig.broker.send(spec(f"w{number}"), address(f"w{number}"))).outcome is Outcome.SENT
    assert disconnected == ["cluster1"]


async def test_broker_is_online_while_an_agent_is_connected() -> None:
    rig = GrpcRig()
    assert not rig.broker.is_online
    agent = rig.subscribe("cluster1")
    assert rig.broker.is_online
    rig.subscribers.close(agent)
    assert not rig.broker.is_online
