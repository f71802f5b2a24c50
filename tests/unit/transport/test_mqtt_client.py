"""One connection under pressure: who is told when the broker may have thrown messages away, and what is not read."""

import asyncio
from pathlib import Path

import pytest
from conformance.memory_broker import MemoryBroker, memory_broker

from maestropy.transport import base, mqtt, mqtt_config, mqtt_inbound
from maestropy.transport.mqtt_endpoint import Endpoint
from maestropy.wire import mqtt as binding

TOPIC = "sources/maestro/consumers/c1/agentevents"
SECONDS = 10.0


def message(text: bytes = b"x") -> binding.Message:
    return binding.Message(content_type="", properties=(("ce-id", "1"),), payload=text)


def endpoint(broker: MemoryBroker, folder: Path) -> Endpoint:
    return mqtt_config.read(broker.config(folder), flag="--x").endpoint


async def take(client: mqtt.Client, count: int) -> list[mqtt.Incoming]:
    found: list[mqtt.Incoming] = []
    async with asyncio.timeout(SECONDS):
        async for incoming in client.messages():
            found.append(incoming)
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize(
    ("waiting", "reliefs"),
    [pytest.param(9, 0, id="fewer-than-allowed"), pytest.param(10, 1, id="all-that-are-allowed")],
)
def test_a_full_window_is_told_when_it_is_over(waiting: int, reliefs: int, tmp_path: Path) -> None:
    async def scenario() -> None:
        told: list[mqtt.Client] = []
        async with memory_broker() as broker:
            way = endpoint(broker, tmp_path)
            async with (
                mqtt.connect(way, client_id="one", on_relief=told.append, receive_maximum=10) as client,
                mqtt.connect(way, client_id="two", on_relief=told.append) as other,
            ):
                await client.subscribe([TOPIC])
                for _ in range(waiting):
                    await other.publish(TOPIC, message())
                received = await take(client, waiting)
                assert told == []
                for incoming in received:
                    incoming.acknowledge()
                    incoming.acknowledge()  # twice is once
                assert told == [client] * reliefs

    asyncio.run(scenario())


def test_acknowledgements_go_out_in_the_order_of_arrival(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with memory_broker() as broker:
            way = endpoint(broker, tmp_path)
            async with (
                mqtt.connect(way, client_id="one", on_relief=pytest.fail) as client,
                mqtt.connect(way, client_id="two", on_relief=pytest.fail) as other,
            ):
                await client.subscribe([TOPIC])
                for _ in range(3):
                    await other.publish(TOPIC, message())
                first, second, third = await take(client, 3)
                owed = broker.sessions["one"].unacknowledged
                third.acknowledge()
                second.acknowledge()
                await other.publish("elsewhere", message())  # by its answer the broker has read what came before
                assert owed == {1, 2, 3}
                first.acknowledge()
                async with asyncio.timeout(SECONDS):
                    while owed:
                        await asyncio.sleep(0.005)

    asyncio.run(scenario())


def test_too_much_to_handle_is_not_read_and_answers_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_inbound, "HELD_BYTES", 1000)
    monkeypatch.setattr(mqtt, "PACKET_SECONDS", 1.0)

    async def scenario() -> None:
        async with memory_broker() as broker:
            way = endpoint(broker, tmp_path)
            async with (
                mqtt.connect(way, client_id="one", on_relief=pytest.fail) as client,
                mqtt.connect(way, client_id="two", on_relief=pytest.fail) as other,
            ):
                await client.subscribe([TOPIC])
                await other.publish(TOPIC, message(b"x" * 1001))
                (held,) = await take(client, 1)
                # Its answer waits behind what is not read: that is not the broker's fault.
                publishing = asyncio.ensure_future(client.publish("elsewhere", message()))
                await asyncio.wait([publishing], timeout=1.3)
                assert not publishing.done()
                held.acknowledge()
                await asyncio.wait_for(publishing, SECONDS)

    asyncio.run(scenario())


def test_a_broker_that_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt, "PACKET_SECONDS", 0.1)

    async def scenario() -> None:
        async with memory_broker(is_silent=True) as broker:
            async with mqtt.connect(endpoint(broker, tmp_path), client_id="one", on_relief=pytest.fail) as client:
                many = (client.publish(TOPIC, message()) for _ in range(300))
                outcomes = await asyncio.gather(*many, return_exceptions=True)
                assert {type(each) for each in outcomes} == {base.Disconnected}

    asyncio.run(scenario())


def test_something_else_at_the_address_is_named(tmp_path: Path) -> None:
    async def scenario() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with memory_broker() as broker, server:
            broker._port = server.sockets[0].getsockname()[1]
            with pytest.raises(base.Disconnected, match=r"no MQTT 5 broker|instead of answering"):
                async with mqtt.connect(endpoint(broker, tmp_path), client_id="one", on_relief=pytest.fail):
                    pass

    asyncio.run(scenario())
