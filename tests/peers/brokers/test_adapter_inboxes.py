"""Events of HyperFleet's Sentinel reach an adapter through real brokers: RabbitMQ, and Google's Pub/Sub emulator."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from maestropy.adapter.decide.failure import Failure
from maestropy.adapter.decide.pipeline import EventOutcome
from maestropy.adapter.event import Event
from maestropy.adapter.service import AdapterService
from maestropy.adapter.transports import broker_config, broker_inbox, pubsub_inbox, rabbitmq_inbox
from maestropy.adapter.transports.broker_inbox import BrokerInbox
from maestropy.sdk.errors import ConfigError, Unavailable
from maestropy.testing import FakeHyperFleet, RunningFleet
from maestropy.testing.fixtures import fleet, hyperfleet
from tests.adapter.runs import EXAMPLES, started
from tests.peers.peer_processes import end
from tests.peers.pubsub_emulator import PROJECT, emulator, subscription, topic
from tests.peers.rabbitmq import Rabbitmq, rabbitmq
from tests.waiting import until, wait_for

__all__ = ["fleet", "hyperfleet"]

pytestmark = pytest.mark.peers

AWAY = Failure(reason="Unavailable", message="the API is away", is_transient=True)


@dataclass(frozen=True, kw_only=True)
class Broker:
    """A running broker, seen as the Sentinel and as an adapter."""

    document: dict[str, Any]
    """The broker file."""
    environ: dict[str, str]
    publish: Callable[[bytes], None]
    opened: Callable[[int], AbstractAsyncContextManager[BrokerInbox]]
    add_subscription: Callable[[], None]


@pytest.fixture(scope="module")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rabbitmq]:
    with rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as running:
        yield running


def publish_to_rabbitmq(url: str, exchange: str, body: bytes) -> None:
    """Publish as HyperFleet's broker library does: structured CloudEvents, an empty routing key."""
    import aio_pika

    async def publish() -> None:
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            target = await channel.declare_exchange(exchange, "fanout", durable=True)
            await target.publish(aio_pika.Message(body), routing_key="")

    asyncio.run(publish())


@pytest.fixture(params=["rabbitmq", "pubsub"])
def broker(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    name = "inbox-" + tmp_path.name.replace("_", "-")[-30:].strip("-")
    if request.param == "rabbitmq":
        running: Rabbitmq = request.getfixturevalue("rabbit")
        document = {"broker": {"type": "rabbitmq", "rabbitmq": {"url": running.url}}}
        config = broker_config.parse(document, {}, topic=name, subscription="me")
        assert isinstance(config, broker_config.RabbitmqConfig)
        yield Broker(
            document=document,
            environ={"HYPERFLEET_BROKER_TOPIC": name, "HYPERFLEET_BROKER_SUBSCRIPTION_ID": "me"},
            publish=lambda body: publish_to_rabbitmq(running.url, name, body),
            opened=lambda workers: rabbitmq_inbox.opened(config, workers=workers),
            add_subscription=lambda: None,
        )
        return
    with emulator(tmp_path / "pubsub") as google:
        monkeypatch.setenv("PUBSUB_EMULATOR_HOST", google.host)
        google.call("Publisher/CreateTopic", name=topic(name))

        def subscribe() -> None:
            google.call(
                "Subscriber/CreateSubscription", name=subscription("me"), topic=topic(name), ack_deadline_seconds=10
            )

        document = {
            "broker": {"type": "googlepubsub", "googlepubsub": {"project_id": PROJECT, "ack_deadline_seconds": 10}}
        }
        settings = broker_config.parse(document, {}, topic=name, subscription="me")
        assert isinstance(settings, broker_config.PubsubConfig)
        yield Broker(
            document=document,
            environ={"PUBSUB_EMULATOR_HOST": google.host, "HYPERFLEET_BROKER_SUBSCRIPTION_ID": "me"},
            publish=lambda body: google.publish(name, {}, body),
            opened=lambda workers: pubsub_inbox.opened(settings, workers=workers, client_id="test"),
            add_subscription=subscribe,
        )


def cloud_event(resource_id: str) -> bytes:
    data = {"id": resource_id, "kind": "Cluster", "generation": 1, "href": f"/api/hyperfleet/v1/clusters/{resource_id}"}
    kind = "com.redhat.hyperfleet.cluster.reconcile"
    envelope = {"specversion": "1.0", "type": kind, "source": "hyperfleet-sentinel", "id": "1", "data": data}
    return json.dumps(envelope).encode()


class Handler:
    """Handles events, and fails as often as it is told to."""

    def __init__(self) -> None:
        self.handled: list[str] = []
        self.failures = 0

    async def handle(self, event: Event) -> EventOutcome:
        self.handled.append(event.resource_id)
        if self.failures > 0:
            self.failures -= 1
            return EventOutcome(status=None, failure=AWAY)
        return EventOutcome(status=None)


@asynccontextmanager
async def serving(broker: Broker, handler: Handler) -> AsyncIterator[BrokerInbox]:
    async with broker.opened(2) as inbox, asyncio.TaskGroup() as group:
        service = group.create_task(AdapterService(inbox, handler.handle, workers=2).run(), name="service")
        yield inbox
        await inbox.close(seconds=30)
        service.cancel()


async def published(broker: Broker, *bodies: bytes) -> None:
    for body in bodies:
        await asyncio.to_thread(broker.publish, body)


def test_events_are_handled_delivered_again_and_dropped(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_inbox, "RETRY_SECONDS", 0.2)
    broker.add_subscription()

    async def scenario() -> None:
        handler = Handler()
        handler.failures = 1
        async with serving(broker, handler):
            await published(broker, cloud_event("a"))
            await until(lambda: handler.handled == ["a", "a"], what="the event to be delivered again")
            await published(broker, cloud_event("b"), b"not an event", cloud_event("c"))
            await until(lambda: {"b", "c"} <= set(handler.handled), what="the events after the malformed one")
        again = Handler()
        async with serving(broker, again):
            await published(broker, cloud_event("d"))
            await until(lambda: "d" in again.handled, what="the event of the second service")
        assert again.handled == ["d"], "settled events are not delivered again"

    asyncio.run(scenario())


def test_events_that_nobody_handled_wait_for_the_next_service(broker: Broker) -> None:
    broker.add_subscription()

    async def scenario() -> None:
        async with broker.opened(1) as inbox:
            await published(broker, cloud_event("a"), cloud_event("b"))
            delivery = await inbox.next()
            assert delivery.body
        handler = Handler()
        async with serving(broker, handler):
            await until(lambda: set(handler.handled) == {"a", "b"}, what="both events")

    asyncio.run(scenario())


def test_the_command_handles_an_event_and_ends_cleanly(
    broker: Broker, tmp_path: Path, fleet: RunningFleet, hyperfleet: FakeHyperFleet
) -> None:
    broker.add_subscription()
    path = tmp_path / "broker.yaml"
    path.write_text(json.dumps(broker.document))
    hyperfleet.put("Cluster", "abc", spec={"name": "blue", "region": "us-east-1"})
    process = started(
        "consume",
        str(EXAMPLES / "validation_job.py"),
        "--broker",
        str(path),
        "--health-port=0",
        "--metrics-port=0",
        HYPERFLEET_API_URL=hyperfleet.url,
        MAESTRO_API_URL=fleet.api_url,
        MAESTRO_GRPC_URL=fleet.grpc_url,
        MANAGEMENT_CLUSTER_CONSUMER="cluster1",
        **broker.environ,
    )
    assert process.stdout
    try:
        lines = [process.stdout.readline()]
        while " consumes " not in lines[-1] and lines[-1]:
            lines.append(process.stdout.readline())
        assert " consumes " in lines[-1], "".join(lines)
        found = re.search(r"health on port (\d+), metrics on port (\d+)", "".join(lines))
        assert found, "".join(lines)
        health, metrics = (f"http://127.0.0.1:{port}" for port in found.groups())
        assert httpx.get(f"{health}/healthz").status_code == 200
        ready = httpx.get(f"{health}/readyz")
        assert (ready.status_code, ready.json()) == (200, {"status": "ok", "checks": {"config": "ok", "broker": "ok"}})
        broker.publish(cloud_event("abc"))
        wait_for(lambda: hyperfleet.statuses.get("abc"), what="the status")
        counted = r'^hyperfleet_adapter_events_processed_total{adapter_name="validation",.*status="success".*} 1$'
        wait_for(
            lambda: re.search(counted, httpx.get(f"{metrics}/metrics").text, re.MULTILINE),
            what="the event to be counted",
        )
        process.terminate()
        assert process.wait(30) == 0
    finally:
        end(process)
        process.stdout.close()


# aiormq drops the writer of a broken connection without closing it; the interpreter closes it, and warns.
@pytest.mark.filterwarnings("ignore:.*StreamWriter:pytest.PytestUnraisableExceptionWarning")
def test_an_outage_of_rabbitmq_ends_with_a_new_connection(rabbit: Rabbitmq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_inbox, "RETRY_SECONDS", 0.2)
    document = {"broker": {"type": "rabbitmq", "rabbitmq": {"url": rabbit.url}}}
    config = broker_config.parse(document, {}, topic="outage", subscription="me")
    assert isinstance(config, broker_config.RabbitmqConfig)

    async def scenario() -> None:
        handler = Handler()
        async with rabbitmq_inbox.opened(config, workers=1) as inbox, asyncio.TaskGroup() as group:
            service = group.create_task(AdapterService(inbox, handler.handle, workers=1).run(), name="service")
            await asyncio.to_thread(rabbit.stop)
            await asyncio.to_thread(rabbit.start)
            await asyncio.to_thread(publish_to_rabbitmq, rabbit.url, "outage", cloud_event("a"))
            await until(lambda: handler.handled == ["a"], what="the event after the outage")
            service.cancel()

    asyncio.run(scenario())


def test_a_broker_that_cannot_be_used_is_said(broker: Broker, rabbit: Rabbitmq) -> None:
    async def scenario() -> None:
        if "googlepubsub" in json.dumps(broker.document):
            with pytest.raises(ConfigError, match="does not exist"):
                async with broker.opened(1):
                    pass
            return
        wrong = rabbit.url.replace("guest:guest", "guest:wrong")
        settings = broker_config.RabbitmqConfig(url=wrong, queue="q", exchange="x")
        with pytest.raises(Unavailable) as caught:
            async with rabbitmq_inbox.opened(settings, workers=1):
                pass
        assert "wrong" not in str(caught.value)

    asyncio.run(scenario())
