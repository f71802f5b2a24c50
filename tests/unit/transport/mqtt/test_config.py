import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from maestropy.flags import SettingsError
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt.endpoint import MqttEndpoint
from maestropy.wire.events.mqtt_topics import Topics

TOPICS = {
    "sourceEvents": "sources/maestro/consumers/+/sourceevents",
    "agentEvents": "$share/g/sources/maestro/consumers/+/agentevents",
}
PATTERNS = Topics(source_events=TOPICS["sourceEvents"], agent_events=TOPICS["agentEvents"])
MINIMAL = {"brokerHost": "mq:1883", "topics": TOPICS}


def parse(content: str | dict[str, Any]) -> mqtt_config.MqttConfig:
    text = content if isinstance(content, str) else json.dumps(content)
    return mqtt_config.parse(text.encode(), origin="mqtt.yaml")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(MINIMAL, MqttEndpoint(broker_host="mq:1883", topics=PATTERNS), id="minimal"),
        pytest.param(
            MINIMAL
            | {"username": "u", "keepAlive": 5, "dialTimeout": "1m", "pubQoS": 0, "subQoS": 0}
            | {"caFile": "/ca", "clientCertFile": "/c", "clientKeyFile": "/k"},
            MqttEndpoint(
                broker_host="mq:1883",
                topics=PATTERNS,
                username="u",
                keep_alive_seconds=5,
                publish_qos=0,
                subscribe_qos=0,
                ca_file=Path("/ca"),
                client_cert_file=Path("/c"),
                client_key_file=Path("/k"),
            ),
            id="all-settings",
        ),
        pytest.param(
            MINIMAL | {"caData": encoded("A"), "clientCertData": encoded("C"), "clientKeyData": encoded("K")},
            MqttEndpoint(
                broker_host="mq:1883", topics=PATTERNS, ca_data=b"A", client_cert_data=b"C", client_key_data=b"K"
            ),
            id="certificate-data",
        ),
    ],
)
def test_file_is_parsed_to_an_endpoint(content: dict[str, Any], expected: MqttEndpoint) -> None:
    broker = parse(content)
    assert broker.endpoint == expected
    assert broker.notes == ()


def test_yaml_of_the_helm_chart_is_parsed() -> None:
    text = """
brokerHost: maestro-mqtt:1883
username: maestro
topics:
  sourceEvents: sources/maestro/consumers/+/sourceevents
  agentEvents: $share/g/sources/maestro/consumers/+/agentevents
"""
    assert parse(text).endpoint == MqttEndpoint(broker_host="maestro-mqtt:1883", topics=PATTERNS, username="maestro")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param({"topics": TOPICS}, "brokerHost is required; write", id="no-broker"),
        pytest.param(MINIMAL | {"brokerHost": "mq"}, "brokerHost must be host:port", id="no-port"),
        pytest.param(MINIMAL | {"brokerHost": "tcp://mq:1883"}, "brokerHost must be host:port", id="scheme"),
        pytest.param({"brokerHost": "mq:1883"}, "the topics must be set; write", id="no-topics"),
        pytest.param(
            MINIMAL | {"topics": {**TOPICS, "agentEvents": ""}},
            "topics.agentEvents is required",
            id="missing-agent-topic",
        ),
        pytest.param(
            MINIMAL | {"topics": {**TOPICS, "agentEvents": "a/b"}}, "is invalid; write it", id="invalid-topic"
        ),
        pytest.param(
            MINIMAL | {"clientCertFile": "/c"},
            "either both or none of clientCertFile and clientKeyFile must be set",
            id="certificate-without-key",
        ),
        pytest.param(MINIMAL | {"pubQoS": 2}, "pubQoS cannot be used; write a number from 0 to 1", id="qos-2"),
        pytest.param(MINIMAL | {"keepAlive": "60s"}, "keepAlive cannot be used; write a number", id="keep-alive"),
        pytest.param("brokerHost: [", "neither YAML nor JSON", id="invalid-yaml"),
    ],
)
def test_error_names_the_key_and_the_remedy(content: str | dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        parse(content)


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        pytest.param({"caFile": "/ca"}, "means TLS here", id="ca-alone"),
        pytest.param({"username": "u", "password": "p"}, "is sent in plain text", id="password-in-plain-text"),
        pytest.param({"clientID": "x"}, "clientID is not a setting of the MQTT driver", id="unknown-key"),
    ],
)
def test_ignored_or_risky_setting_is_noted(changes: dict[str, Any], note: str) -> None:
    (warning,) = parse(MINIMAL | changes).notes
    assert note in warning


def test_repr_holds_no_secret() -> None:
    secret = "hunter2-hunter2"
    broker = parse(MINIMAL | {"password": secret, "clientCertData": encoded(secret), "clientKeyData": encoded(secret)})
    assert secret not in repr(broker)
    assert broker.endpoint.password == secret
