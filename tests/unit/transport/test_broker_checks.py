"""What the answers of message brokers mean: rules by table, without a broker."""

from typing import Any

import pytest

from maestropy.aio.checks import Outcome
from maestropy.transport.mqtt import topic_checks
from maestropy.transport.mqtt.broker_state import MqttState
from maestropy.transport.mqtt.endpoint import MqttEndpoint
from maestropy.wire.events.mqtt_topics import Topics

TOPICS = Topics(
    source_events="sources/maestro/consumers/+/sourceevents",
    agent_events="$share/servers/sources/maestro/consumers/+/agentevents",
)
ENDPOINT = MqttEndpoint(broker_host="broker:1883", topics=TOPICS, username="maestro")
STATUSES = "sources/maestro/consumers/maestro-check-1/agentevents"
SPECS = "sources/maestro/consumers/maestro-check-1/sourceevents"


@pytest.mark.parametrize(
    ("state", "name", "outcome"),
    [
        ({}, "broker-topics", Outcome.OK),
        ({"rejected": {"t": "the broker rejects the subscription to t"}}, "broker-topics", Outcome.FAILED),
        ({}, "broker-state", Outcome.NOT_SEEN),
        ({"system": {"version": "mosquitto version 2.0.11"}}, "broker-state", Outcome.OK),
        ({"system": {"clients/connected": "0", "uptime": "900 seconds"}}, "broker-clients", Outcome.WARNING),
        ({"system": {"clients/connected": "0", "uptime": "3 seconds"}}, "broker-clients", None),
        ({"system": {"clients/connected": "1", "uptime": "900 seconds"}}, "broker-clients", None),
        ({"system": {"clients/connected": "x", "uptime": "long"}}, "broker-clients", None),
        ({"system": {"publish/messages/dropped": "7"}}, "broker-dropped", Outcome.WARNING),
        ({"system": {"publish/messages/dropped": "0"}}, "broker-dropped", None),
        ({"heard": {STATUSES: True}}, "broker-subscribers", Outcome.OK),
        ({"heard": {STATUSES: False}}, "broker-subscribers", Outcome.FAILED),
        ({"heard": {SPECS: False}}, "broker-reports-absence", Outcome.OK),
        ({"heard": {SPECS: True}}, "broker-reports-absence", Outcome.WARNING),
        ({"unpublished": {SPECS: "not authorized"}}, "broker-publish", Outcome.FAILED),
        ({}, "broker-agent", Outcome.NOT_SEEN),
    ],
)
def test_answers_of_an_mqtt_broker(state: dict[str, Any], name: str, outcome: Outcome | None) -> None:
    asked = topic_checks.Asked(source="maestro", consumer="cluster1")
    found = {check.name: check for check in topic_checks.judge(MqttState(**state), ENDPOINT, asked)}
    assert (found[name].outcome if name in found else None) is outcome
    if outcome in (Outcome.FAILED, Outcome.WARNING):
        assert found[name].remedy


pubsub = pytest.importorskip("maestropy.transport.pubsub.inspection", reason="needs the extra pubsub")


def subscription(**fields: Any) -> Any:
    own = {"name": "projects/p/subscriptions/agentevents-maestro", "topic": "projects/p/topics/agentevents"}
    return pubsub.Subscription(**{**own, **fields})


@pytest.mark.parametrize(
    ("fields", "outcome", "says"),
    [
        ({}, Outcome.OK, "on agentevents, filter none"),
        ({"problem": "it does not exist", "is_absent": True}, Outcome.FAILED, "does not exist"),
        ({"problem": "access is denied"}, Outcome.NOT_SEEN, "denied"),
        ({"topic": "_deleted-topic_"}, Outcome.FAILED, "its topic was deleted"),
        ({"topic": "projects/p/topics/other"}, Outcome.FAILED, "not on projects/p/topics/agentevents"),
        ({"is_detached": True}, Outcome.FAILED, "detached"),
        ({"is_push": True}, Outcome.FAILED, "pushes"),
        ({"expires_seconds": 31 * 86400}, Outcome.WARNING, "deleted after 31 days without a server"),
    ],
)
def test_subscription_of_pubsub(fields: dict[str, Any], outcome: Outcome, says: str) -> None:
    check = pubsub._subscription(subscription(**fields), expected="projects/p/topics/agentevents")
    assert check.outcome is outcome
    assert says in check.detail


def test_subscription_serves_by_filter_or_by_name() -> None:
    named = subscription(name="projects/p/subscriptions/sourceevents-cluster1")
    assert pubsub.serves(named, "cluster1")
    assert not pubsub.serves(named, "cluster10")
    assert not pubsub.serves(subscription(filter='attributes."ce-clustername"="cluster10"'), "cluster1")
