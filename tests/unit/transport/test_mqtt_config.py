import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from maestropy.flags import SettingsError
from maestropy.transport import mqtt_config
from maestropy.transport.mqtt_endpoint import Endpoint
from maestropy.wire.topics import Topics

TOPICS = {
    "sourceEvents": "sources/maestro/consumers/+/sourceevents",
    "agentEvents": "$share/g/sources/maestro/consumers/+/agentevents",
}
PATTERNS = Topics(source_events=TOPICS["sourceEvents"], agent_events=TOPICS["agentEvents"])
LEAST = {"brokerHost": "mq:1883", "topics": TOPICS}


def parse(content: str | dict[str, Any]) -> mqtt_config.Broker:
    text = content if isinstance(content, str) else json.dumps(content)
    return mqtt_config.parse(text.encode(), origin="mqtt.yaml")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(LEAST, Endpoint(broker_host="mq:1883", topics=PATTERNS), id="least"),
        pytest.param(
            LEAST
            | {"username": "u", "keepAlive": 5, "dialTimeout": "1m", "pubQoS": 0, "subQoS": 0}
            | {"caFile": "/ca", "clientCertFile": "/c", "clientKeyFile": "/k"},
            Endpoint(
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
            id="everything-by-files",
        ),
        pytest.param(
            LEAST | {"caData": encoded("A"), "clientCertData": encoded("C"), "clientKeyData": encoded("K")},
            Endpoint(broker_host="mq:1883", topics=PATTERNS, ca_data=b"A", client_cert_data=b"C", client_key_data=b"K"),
            id="certificates-in-the-file",
        ),
    ],
)
def test_reads(content: dict[str, Any], expected: Endpoint) -> None:
    broker = parse(content)
    assert broker.endpoint == expected
    assert broker.notes == ()


def test_reads_yaml_as_the_charts_write_it() -> None:
    text = """
brokerHost: maestro-mqtt:1883
username: maestro
topics:
  sourceEvents: sources/maestro/consumers/+/sourceevents
  agentEvents: $share/g/sources/maestro/consumers/+/agentevents
"""
    assert parse(text).endpoint == Endpoint(broker_host="maestro-mqtt:1883", topics=PATTERNS, username="maestro")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param({"topics": TOPICS}, "brokerHost is required; write", id="no-broker"),
        pytest.param(LEAST | {"brokerHost": "mq"}, "brokerHost must be host:port", id="no-port"),
        pytest.param(LEAST | {"brokerHost": "tcp://mq:1883"}, "brokerHost must be host:port", id="scheme"),
        pytest.param({"brokerHost": "mq:1883"}, "the topics must be set; write", id="no-topics"),
        pytest.param(
            LEAST | {"topics": {**TOPICS, "agentEvents": ""}}, "topics.agentEvents is required", id="one-topic"
        ),
        pytest.param(LEAST | {"topics": {**TOPICS, "agentEvents": "a/b"}}, "is invalid; write it", id="odd-topic"),
        pytest.param(
            LEAST | {"clientCertFile": "/c"},
            "either both or none of clientCertFile and clientKeyFile must be set",
            id="certificate-without-key",
        ),
        pytest.param(LEAST | {"pubQoS": 2}, "pubQoS cannot be used; write a number from 0 to 1", id="qos-2"),
        pytest.param(LEAST | {"keepAlive": "60s"}, "keepAlive cannot be used; write a number", id="keep-alive"),
        pytest.param("brokerHost: [", "neither YAML nor JSON", id="no-yaml"),
    ],
)
def test_refuses_with_the_remedy(content: str | dict[str, Any], complaint: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(complaint)):
        parse(content)


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        pytest.param({"caFile": "/ca"}, "means TLS here", id="authority-alone"),
        pytest.param({"username": "u", "password": "p"}, "travels in plain text", id="password-in-plain-text"),
        pytest.param({"clientID": "x"}, "clientID is not a setting of the MQTT driver", id="unknown-key"),
    ],
)
def test_tells_what_an_operator_should_know(changes: dict[str, Any], note: str) -> None:
    (found,) = parse(LEAST | changes).notes
    assert note in found


def test_secrets_are_in_no_text() -> None:
    secret = "hunter2-hunter2"
    broker = parse(LEAST | {"password": secret, "clientCertData": encoded(secret), "clientKeyData": encoded(secret)})
    assert secret not in repr(broker)
    assert broker.endpoint.password == secret
