"""HyperFleet's broker file is read with the environment over it; an inbox ends without losing an event."""

import asyncio
from typing import Any

import pytest

from maestropy.adapter.service import EventDone, Settlement
from maestropy.adapter.transports import broker_config
from maestropy.adapter.transports.broker_config import PubsubConfig, RabbitmqConfig
from maestropy.adapter.transports.broker_inbox import BrokerInbox
from maestropy.sdk.errors import ConfigError

URL = "amqp://127.0.0.1/"


def parsed(broker: dict[str, Any], *, topic: str = "clusters", subscription: str = "me", **environ: str) -> Any:
    return broker_config.parse({"broker": broker}, environ, topic=topic, subscription=subscription)


def test_a_queue_is_named_after_topic_and_subscription() -> None:
    assert parsed({"type": "rabbitmq", "rabbitmq": {"url": URL}}) == RabbitmqConfig(
        url=URL, queue="clusters-me", exchange="clusters", exchange_type="fanout"
    )
    named = {"url": URL, "queue": "q", "exchange": "x", "exchange_type": "topic", "prefetch_count": 3}
    assert parsed({"type": "rabbitmq", "rabbitmq": named}, topic="") == RabbitmqConfig(
        url=URL, queue="q-me", exchange="x", exchange_type="topic", prefetch_count=3
    )


def test_variables_come_before_the_file() -> None:
    environ = {
        "BROKER_TYPE": "rabbitmq",
        "BROKER_RABBITMQ_URL": "amqps://other/",
        "BROKER_RABBITMQ_PREFETCH_COUNT": "7",
    }
    config = parsed({"type": "googlepubsub", "rabbitmq": {"url": URL}}, **environ)
    assert (config.url, config.prefetch_count) == ("amqps://other/", 7)


def test_a_subscription_of_pubsub_has_its_full_name() -> None:
    config = parsed({"type": "googlepubsub", "googlepubsub": {"project_id": "p", "ack_deadline_seconds": 30}})
    assert config == PubsubConfig(project="p", subscription="me", ack_deadline_seconds=30)
    assert config.name == "projects/p/subscriptions/me"


@pytest.mark.parametrize(
    ("broker", "message"),
    [
        ({}, "unsupported broker type: none"),
        ({"type": "kafka"}, "unsupported broker type: kafka"),
        ({"type": "rabbitmq"}, "rabbitmq.url is required"),
        ({"type": "rabbitmq", "rabbitmq": {"url": "http://x"}}, "must start with 'amqp://' or 'amqps://'"),
        (
            {"type": "rabbitmq", "rabbitmq": {"url": URL, "exchange_type": "x"}},
            "rabbitmq.exchange_type must be one of: direct, fanout, topic, headers",
        ),
        ({"type": "rabbitmq", "rabbitmq": {"url": URL, "prefetch_count": -1}}, "prefetch_count must be non-negative"),
        ({"type": "googlepubsub"}, "googlepubsub.project_id is required"),
        (
            {"type": "googlepubsub", "googlepubsub": {"project_id": "p", "ack_deadline_seconds": 5}},
            "ack_deadline_seconds is 5; give 10 to 600",
        ),
    ],
)
def test_a_mistake_in_the_broker_file_names_the_field(broker: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(broker)
    assert message in str(caught.value)


def test_topic_and_subscription_are_required() -> None:
    with pytest.raises(ConfigError, match="--subscription"):
        parsed({"type": "rabbitmq", "rabbitmq": {"url": URL}}, subscription="")
    with pytest.raises(ConfigError, match="--topic"):
        parsed({"type": "rabbitmq", "rabbitmq": {"url": URL}}, topic="")


def test_close_waits_for_events_in_progress_and_begins_no_other() -> None:
    async def scenario() -> None:
        inbox = BrokerInbox()
        settled: list[Settlement] = []

        async def settle(settlement: Settlement) -> None:
            settled.append(settlement)

        inbox.put(b"one", headers={}, settle=settle)
        inbox.put(b"two", headers={}, settle=settle)
        first = await inbox.next()
        closing = asyncio.create_task(inbox.close(seconds=30), name="close")
        second = asyncio.create_task(inbox.next(), name="next")
        await asyncio.sleep(0)
        assert not closing.done()
        await first.settle(EventDone())
        await closing
        assert settled == [EventDone()]
        assert not second.done()
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)

    asyncio.run(scenario())
