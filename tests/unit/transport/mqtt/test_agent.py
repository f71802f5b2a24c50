"""What an agent logs when it has subscribed: operators and `maestro trace` search for the records of the Go agent."""

import io

import pytest

from maestropy.journal import emit
from maestropy.transport.mqtt.agent import MqttTransport
from maestropy.transport.mqtt.endpoint import MqttEndpoint
from maestropy.wire.events.mqtt_topics import Topics


def test_subscribed_records_are_those_of_the_go_agent() -> None:
    topics = Topics(
        source_events="sources/maestro/consumers/+/sourceevents",
        agent_events="sources/maestro/consumers/+/agentevents",
        source_broadcast="sources/+/sourcebroadcast",
    )
    endpoint = MqttEndpoint(broker_host="mq:1883", topics=topics)
    transport = MqttTransport(endpoint, consumer="c1", client_id="a", on_problem=pytest.fail)
    log = io.BytesIO()
    journal = emit.Journal(log, clock=lambda: 0.0, verbosity=0)
    for phrase, fields in transport.subscribed_records:
        journal.info(phrase, fields)
    journal.flush()
    assert [line.partition("] ")[2] for line in log.getvalue().decode().splitlines()] == [
        '"mqtt is connected" brokerHost="mq:1883"',
        '"subscribed to mqtt broker" topic="sources/maestro/consumers/c1/sourceevents" QoS=1',
        '"subscribed to mqtt broker" topic="sources/+/sourcebroadcast" QoS=1',
    ]
