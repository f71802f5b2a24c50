"""Flow control of an MQTT connection: lost messages, order of acknowledgements, timeouts."""

import asyncio
from pathlib import Path

import pytest

from maestropy.transport import port
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt import connection, inbound
from maestropy.transport.mqtt.endpoint import MqttEndpoint
from maestropy.wire.events import mqtt_binding as binding
from tests.conformance.memory_broker import MemoryBroker, memory_broker

TOPIC = "sources/maestro/consumers/c1/agentevents"
SECONDS = 10.0


def message(text: bytes = b"x") -> binding.MqttMessage:
    return binding.MqttMessage(content_type="", properties=(("ce-id", "1"),), payload=text)


def endpoint(broker: MemoryBroker, folder: Path) -> MqttEndpoint:
    return mqtt_config.read(broker.config(folder), flag="--x").endpoint


async def take(client: connection.MqttClient, count: int) -> list[connection.Incoming]:
    received: list[connection.Incoming] = []
    async with asyncio.timeout(SECONDS):
        async for incoming in client.messages():
            received.append(incoming)
            if len(received) == count:
                break
    return received


@pytest.mark.parametrize(
    ("waiting", "notifications"),
    [pytest.param(9, 0, id="below-receive-maximum"), pytest.param(10, 1, id="at-receive-maximum")],
)
async def test_lost_messages_are_reported_after_the_receive_maximum_was_reached(
    waiting: int, notifications: int, tmp_path: Path
) -> None:
    lost: list[connection.MqttClient] = []
    async with memory_broker() as broker:
        address = endpoint(broker, tmp_path)
        async with (
            connection.connect(address, client_id="one", on_messages_lost=lost.append, receive_maximum=10) as client,
            connection.connect(address, client_id="two", on_messages_lost=lost.append) as publisher,
        ):
            await client.subscribe([TOPIC])
            for _ in range(waiting):
                await publisher.publish(TOPIC, message())
            received = await take(client, waiting)
            assert lost == []
            for incoming in received:
                incoming.acknowledge()
                incoming.acknowledge()  # a second call has no effect
            assert lost == [client] * notifications


async def test_acknowledgements_are_sent_in_the_order_of_arrival(tmp_path: Path) -> None:
    async with memory_broker() as broker:
        address = endpoint(broker, tmp_path)
        async with (
            connection.connect(
                address, client_id="one", on_messages_lost=lambda _: pytest.fail("messages were lost")
            ) as client,
            connection.connect(
                address, client_id="two", on_messages_lost=lambda _: pytest.fail("messages were lost")
            ) as publisher,
        ):
            await client.subscribe([TOPIC])
            for _ in range(3):
                await publisher.publish(TOPIC, message())
            first, second, third = await take(client, 3)
            unacknowledged = broker.sessions["one"].unacknowledged
            third.acknowledge()
            second.acknowledge()
            await publisher.publish("elsewhere", message())  # its PUBACK shows that all before it was read
            assert unacknowledged == {1, 2, 3}
            first.acknowledge()
            async with asyncio.timeout(SECONDS):
                while unacknowledged:
                    await asyncio.sleep(0.005)


async def test_reading_stops_at_the_byte_limit_without_timeouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbound, "MAX_UNHANDLED_BYTES", 1000)
    monkeypatch.setattr(connection, "PACKET_SECONDS", 1.0)

    async with memory_broker() as broker:
        address = endpoint(broker, tmp_path)
        async with (
            connection.connect(
                address, client_id="one", on_messages_lost=lambda _: pytest.fail("messages were lost")
            ) as client,
            connection.connect(
                address, client_id="two", on_messages_lost=lambda _: pytest.fail("messages were lost")
            ) as publisher,
        ):
            await client.subscribe([TOPIC])
            await publisher.publish(TOPIC, message(b"x" * 1001))
            (unhandled,) = await take(client, 1)
            # The response waits behind bytes that are not read, so this is no timeout of the broker.
            publishing = asyncio.ensure_future(client.publish("elsewhere", message()))
            await asyncio.wait([publishing], timeout=1.3)
            assert not publishing.done()
            unhandled.acknowledge()
            await asyncio.wait_for(publishing, SECONDS)


async def test_broker_that_does_not_answer_is_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PACKET_SECONDS", 0.1)

    async with memory_broker(is_silent=True) as broker:
        async with connection.connect(
            endpoint(broker, tmp_path), client_id="one", on_messages_lost=lambda _: pytest.fail("messages were lost")
        ) as client:
            publishing = (client.publish(TOPIC, message()) for _ in range(300))
            outcomes = await asyncio.gather(*publishing, return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} == {port.Disconnected}


async def test_server_that_is_no_mqtt_broker_is_reported(tmp_path: Path) -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with memory_broker() as broker, server:
        broker._port = server.sockets[0].getsockname()[1]
        with pytest.raises(port.Disconnected, match=r"not an MQTT 5 broker|instead of answering"):
            async with connection.connect(
                endpoint(broker, tmp_path),
                client_id="one",
                on_messages_lost=lambda _: pytest.fail("messages were lost"),
            ):
                pass
