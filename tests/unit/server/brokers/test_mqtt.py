"""The connection to an MQTT broker: what is sent while it fails, and when received messages are acknowledged."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from maestropy.server.brokers.port import DELIVERED, Address, Outcome
from maestropy.store import errors as store_errors
from maestropy.transport.mqtt import connection
from maestropy.wire import errors
from maestropy.wire.events import event, mqtt_binding, stored_event
from tests import waiting
from tests.conformance.broker_cases import address, spec
from tests.conformance.broker_rigs import MqttRig
from tests.conformance.memory_broker import MemoryBroker, memory_broker

SPECS = "sources/maestro/consumers/cluster1/sourceevents"
STATUSES = "sources/maestro/consumers/cluster1/agentevents"


class ConnectedRig(MqttRig):
    """A rig whose broker can be made to fail."""

    def __init__(self, memory: MemoryBroker, folder: Path) -> None:
        super().__init__(memory.config(folder))
        self.memory = memory


@asynccontextmanager
async def connected(folder: Path, **settings: object) -> AsyncIterator[ConnectedRig]:
    async with memory_broker(**settings) as memory, ConnectedRig(memory, folder).running() as rig:
        assert isinstance(rig, ConnectedRig)
        yield rig


def status(consumer: str = "cluster1") -> mqtt_binding.MqttMessage:
    return mqtt_binding.encode(
        event.CloudEvent(
            id="e", source="agent", type=event.STATUS_UPDATE, extensions={event.CLUSTER_NAME: consumer}, data=b"{}"
        )
    )


async def test_topic_that_the_broker_rejects(tmp_path: Path) -> None:
    async with connected(tmp_path, reasons={SPECS: 0x87}) as rig:
        result = await rig.broker.send(spec("w1"), address("w1"))
    assert result.outcome is Outcome.REJECTED
    assert "not authorized (0x87)" in result.reason


async def test_event_larger_than_the_broker_takes_is_never_sent(tmp_path: Path) -> None:
    async with connected(tmp_path, limit=2000) as rig:
        assert rig.broker.max_event_bytes == 2000
        large = stored_event.StoredParts(envelope=b"{}", metadata=b"{}", data=b"x" * 2000)
        assert "the message broker takes at most 2000" in rig.broker.problem_with(large)
        result = await rig.broker.send(spec("w1", text="x" * 2000), address("w1"))
    assert result.outcome is Outcome.NEVER


async def test_event_that_the_broker_rejects_as_too_large_is_not_sent_again(tmp_path: Path) -> None:
    async with connected(tmp_path, unannounced_limit=2000) as rig:
        large = await rig.broker.send(spec("w1", text="x" * 2000), address("w1"))
        small = await rig.broker.send(spec("w2"), address("w2"))
    assert large.outcome is Outcome.NEVER
    assert "packet too large (0x95); make it smaller or raise the broker's maximum message size" in large.reason
    assert small.outcome in DELIVERED


@pytest.mark.parametrize("consumer", ["", "a/b", "+", "new\nline"])
async def test_consumer_that_cannot_have_a_topic_fails_alone(tmp_path: Path, consumer: str) -> None:
    async with connected(tmp_path) as rig:
        failed = await rig.broker.send(spec("w1"), Address(consumer=consumer, key="w1"))
        sent = await rig.broker.send(spec("w2"), address("w2"))
    assert failed.outcome is Outcome.NEVER
    assert "cannot stand in a topic: it must not be empty or hold / + # or control characters" in failed.reason
    assert sent.outcome in DELIVERED


async def test_nothing_is_sent_before_the_first_connection(tmp_path: Path) -> None:
    async with memory_broker() as memory:
        rig = ConnectedRig(memory, tmp_path)
        assert not rig.broker.is_online
        assert (await rig.broker.send(spec("w1"), address("w1"))).outcome is Outcome.OFFLINE


async def test_lost_connection_is_opened_again(tmp_path: Path) -> None:
    async with connected(tmp_path) as rig:
        rig.memory.cut()
        await waiting.until(lambda: rig.messages.times_online == 2, what="the next connection")
        assert rig.broker.is_within_grace
        await rig.broker.wait_online()
        assert (await rig.broker.send(spec("w1"), address("w1"))).outcome is Outcome.NO_SUBSCRIBER


async def test_message_that_waits_for_an_acknowledgement_fails_with_the_connection(tmp_path: Path) -> None:
    async with connected(tmp_path, is_silent=True) as rig:
        sending = asyncio.create_task(rig.broker.send(spec("w1"), address("w1")), name="send")
        await waiting.until(lambda: bool(rig.memory.published), what="the message")
        rig.memory.cut()
        assert (await sending).outcome is Outcome.OFFLINE
        await waiting.until(lambda: rig.messages.times_online == 2, what="the next connection")


async def test_instance_that_cannot_start_to_work_connects_again(tmp_path: Path) -> None:
    async with memory_broker() as memory:
        rig = ConnectedRig(memory, tmp_path)
        rig.messages.fail_online = [store_errors.DatabaseUnavailable("away")]
        async with rig.running():
            await waiting.until(lambda: rig.messages.times_online == 2, what="the second attempt")
    assert b"failed to subscribe after connection" in rig.log.getvalue()


async def test_message_is_acknowledged_when_the_receiver_says_so(tmp_path: Path) -> None:
    stored = asyncio.Event()

    async def store(_: event.CloudEvent, acknowledge: Callable[[], None]) -> None:
        await stored.wait()
        acknowledge()

    async with connected(tmp_path) as rig, rig.client("agent") as agent:
        rig.messages.handle = store
        await agent.publish(STATUSES, status())
        await waiting.until(lambda: bool(rig.messages.received), what="the message")
        assert len(rig.memory.sessions["maestro"].unacknowledged) == 1
        stored.set()
        await waiting.until(lambda: not rig.memory.sessions["maestro"].unacknowledged, what="the acknowledgement")


async def test_messages_that_were_received_are_finished_before_the_end(tmp_path: Path) -> None:
    stored: list[str] = []

    async def store(received: event.CloudEvent, acknowledge: Callable[[], None]) -> None:
        await asyncio.sleep(0.05)
        stored.append(received.id)
        acknowledge()

    async with connected(tmp_path) as rig, rig.client("agent") as agent:
        rig.messages.handle = store
        await agent.publish(STATUSES, status())
        await waiting.until(lambda: bool(rig.messages.received), what="the message")
    assert stored == ["e"]


async def raise_wire_error(_: event.CloudEvent, __: Callable[[], None]) -> None:
    raise errors.UnsupportedEvent("agents send statuses")


async def raise_bug(_: event.CloudEvent, __: Callable[[], None]) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("topic", "message", "handle", "line"),
    [
        pytest.param(STATUSES, status(), raise_wire_error, b"agents send statuses", id="wrong-event"),
        pytest.param(STATUSES, status(), raise_bug, b"a message of an agent failed unexpectedly", id="bug"),
        pytest.param(STATUSES, status("cluster2"), None, b"must not arrive on this topic", id="other-consumer"),
        pytest.param(
            STATUSES,
            mqtt_binding.MqttMessage(content_type="", properties=(), payload=b"rubbish"),
            None,
            b"invalid event",
            id="not-a-cloudevent",
        ),
    ],
)
async def test_message_that_cannot_be_handled_is_logged_and_acknowledged(
    tmp_path: Path, topic: str, message: mqtt_binding.MqttMessage, handle: object, line: bytes
) -> None:
    async with connected(tmp_path) as rig, rig.client("agent") as agent:
        if handle is not None:
            rig.messages.handle = handle  # type: ignore[assignment]
        await agent.publish(topic, message)
        await waiting.until(lambda: line in rig.log.getvalue(), what="the log record")
        await waiting.until(lambda: not rig.memory.sessions["maestro"].unacknowledged, what="the acknowledgement")


async def test_instance_is_within_grace_for_seconds_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PACKET_SECONDS", 0.1)
    async with memory_broker() as memory:
        rig = ConnectedRig(memory, tmp_path)
        assert rig.broker.is_within_grace
        monkeypatch.setattr("maestropy.server.brokers.connected._OFFLINE_GRACE_SECONDS", 0.0)
        assert not rig.broker.is_within_grace
