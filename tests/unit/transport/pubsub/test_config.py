"""The configuration file of Pub/Sub: keys, defaults and error texts of the Go programs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from maestropy.flags import SettingsError
from maestropy.transport.pubsub import config as pubsub_config
from maestropy.transport.pubsub.endpoint import Keepalive, Names, PubsubEndpoint, ReceiveLimits

TOPICS = "projects/my-project/topics"
SUBSCRIPTIONS = "projects/my-project/subscriptions"
SERVER: dict[str, Any] = {
    "projectID": "my-project",
    "topics": {"sourceEvents": f"{TOPICS}/sourceevents", "sourceBroadcast": f"{TOPICS}/sourcebroadcast"},
    "subscriptions": {
        "agentEvents": f"{SUBSCRIPTIONS}/agentevents-maestro",
        "agentBroadcast": f"{SUBSCRIPTIONS}/agentbroadcast-maestro",
    },
}
AGENT: dict[str, Any] = {
    "projectID": "my-project",
    "topics": {"agentEvents": f"{TOPICS}/agentevents", "agentBroadcast": f"{TOPICS}/agentbroadcast"},
    "subscriptions": {
        "sourceEvents": f"{SUBSCRIPTIONS}/sourceevents-cluster1",
        "sourceBroadcast": f"{SUBSCRIPTIONS}/sourcebroadcast-cluster1",
    },
}


def parse(
    content: dict[str, Any], *, role: pubsub_config.Role = "source", emulator: str = ""
) -> pubsub_config.PubsubConfig:
    environ = {"PUBSUB_EMULATOR_HOST": emulator} if emulator else {}
    return pubsub_config.parse(json.dumps(content).encode(), origin="pubsub.yaml", role=role, environ=environ)


def test_defaults_of_a_server() -> None:
    config = parse(SERVER)
    assert config.endpoint == PubsubEndpoint(
        project="my-project",
        topics=Names(events=f"{TOPICS}/sourceevents", broadcast=f"{TOPICS}/sourcebroadcast"),
        subscriptions=Names(
            events=f"{SUBSCRIPTIONS}/agentevents-maestro", broadcast=f"{SUBSCRIPTIONS}/agentbroadcast-maestro"
        ),
        target="pubsub.googleapis.com:443",
        is_secure=True,
        credentials_file=None,
        keepalive=Keepalive(seconds=300, timeout_seconds=20, without_calls=False),
        receive=ReceiveLimits(max_messages=1000, streams=1, lease_seconds=60, max_lease_seconds=3600),
    )
    assert config.notes == ()


def test_topics_and_subscriptions_of_an_agent() -> None:
    endpoint = parse(AGENT, role="agent").endpoint
    assert endpoint.topics == Names(events=f"{TOPICS}/agentevents", broadcast=f"{TOPICS}/agentbroadcast")
    assert endpoint.subscriptions == Names(
        events=f"{SUBSCRIPTIONS}/sourceevents-cluster1", broadcast=f"{SUBSCRIPTIONS}/sourcebroadcast-cluster1"
    )


def test_all_settings() -> None:
    endpoint = parse(
        SERVER
        | {
            "endpoint": "https://us-west1-pubsub.googleapis.com",
            "credentialsFile": "/secrets/pubsub/credentials.json",
            "keepaliveSettings": {"time": "1m", "timeout": "5s", "permitWithoutStream": True},
            "receiveSettings": {
                "maxExtension": "10m",
                "minDurationPerAckExtension": "90s",
                "maxDurationPerAckExtension": "2m",
                "maxOutstandingMessages": 50,
                "maxOutstandingBytes": 1000000,
                "numGoroutines": 3,
            },
        }
    ).endpoint
    assert endpoint.target == "us-west1-pubsub.googleapis.com:443"
    assert endpoint.credentials_file == Path("/secrets/pubsub/credentials.json")
    assert endpoint.keepalive == Keepalive(seconds=60, timeout_seconds=5, without_calls=True)
    assert endpoint.receive == ReceiveLimits(
        max_messages=50, max_bytes=1000000, streams=3, lease_seconds=90, max_lease_seconds=600
    )


def test_keepalive_block_replaces_all_defaults() -> None:
    endpoint = parse(SERVER | {"keepaliveSettings": {"permitWithoutStream": True}}).endpoint
    assert endpoint.keepalive == Keepalive(seconds=0, timeout_seconds=20, without_calls=True)


@pytest.mark.parametrize(
    ("changes", "emulator", "target", "is_secure"),
    [
        pytest.param({}, "localhost:8085", "localhost:8085", False, id="emulator"),
        pytest.param({"insecure": True}, "localhost:8085", "localhost:8085", False, id="makefile-of-maestro"),
        pytest.param({"endpoint": "a:1", "disableTLS": True}, "", "a:1", False, id="file"),
        pytest.param({"endpoint": "a:1", "disableTLS": True}, "b:2", "a:1", False, id="file-and-emulator"),
        pytest.param({"endpoint": "http://a:1/", "disableTLS": True}, "", "a:1", False, id="http-without-tls"),
        pytest.param({"endpoint": "[::1]:8085", "disableTLS": True}, "", "[::1]:8085", False, id="ipv6"),
        pytest.param({"endpoint": "a:1"}, "", "a:1", True, id="secure-endpoint"),
        pytest.param({"endpoint": "a"}, "", "a:443", True, id="port-of-tls"),
    ],
)
def test_address(changes: dict[str, Any], emulator: str, target: str, is_secure: bool) -> None:
    endpoint = parse(SERVER | changes, emulator=emulator).endpoint
    assert (endpoint.target, endpoint.is_secure) == (target, is_secure)


@pytest.mark.parametrize(
    "changes",
    [
        {"endpoint": "http://a:1"},
        {"endpoint": "https://a:1", "disableTLS": True},
        {"endpoint": "grpc://a:1"},
        {"endpoint": "a", "disableTLS": True},
        {"endpoint": "a:", "disableTLS": True},
        {"endpoint": "a:0"},
        {"endpoint": "a:65536"},
        {"endpoint": "a:http"},
        {"endpoint": "a:1/v1"},
        {"endpoint": "::1"},
        {"endpoint": "https://"},
    ],
    ids=lambda changes: changes["endpoint"],
)
def test_endpoint_that_is_no_address_is_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="yaml: endpoint cannot be used; write host:port, without a scheme"):
        parse(SERVER | changes)


def test_emulator_without_a_port_is_rejected() -> None:
    with pytest.raises(SettingsError, match="PUBSUB_EMULATOR_HOST cannot be used; write host:port"):
        parse(SERVER, emulator="localhost")


@pytest.mark.parametrize("name", ["maxOutstandingMessages", "maxOutstandingBytes"])
def test_no_limit_is_our_own_limit(name: str) -> None:
    assert parse(SERVER | {"receiveSettings": {name: -1}}).endpoint.receive == ReceiveLimits()


def test_notes() -> None:
    notes = parse(SERVER | {"insecure": True, "receiveSettings": {"maxMessages": 1}}, emulator="e:1").notes
    assert [note.removeprefix("pubsub.yaml: ") for note in notes] == [
        "insecure is not a setting of the Pub/Sub driver and is ignored",
        "receiveSettings.maxMessages is not known and is ignored",
        "e:1 is used without TLS and without credentials, as for an emulator",
    ]


COMBINATION = "invalid topic/subscription combination: for source, required topics: 'sourceEvents', 'sourceBroadcast'"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param({}, "projectID is required", id="no-project"),
        pytest.param({"projectID": "short"}, "projectID must be 6-30 characters long, got 5 characters", id="short"),
        pytest.param(
            {"projectID": "My-Project"},
            'projectID "My-Project" is invalid: must start with a lowercase letter, contain only lowercase letters, '
            "numbers, and hyphens, and cannot end with a hyphen",
            id="project",
        ),
        pytest.param(
            {"projectID": "my-project", "disableTLS": True},
            "endpoint must be specified when tls is disabled",
            id="no-endpoint",
        ),
        pytest.param({"projectID": "my-project"}, "the topics must be set", id="no-topics"),
        pytest.param(
            {"projectID": "my-project", "topics": SERVER["topics"]},
            "the subscriptions must be set",
            id="no-subscriptions",
        ),
        pytest.param(AGENT, COMBINATION, id="file-of-an-agent"),
        pytest.param(
            SERVER | {"topics": SERVER["topics"] | {"sourceEvents": "projects/other1/topics/sourceevents"}},
            'invalid source events topic "projects/other1/topics/sourceevents", it should match '
            "`^projects/my-project/topics/(sourceevents|agentevents|sourcebroadcast|agentbroadcast)$`",
            id="topic-of-another-project",
        ),
        pytest.param(
            SERVER | {"subscriptions": {"agentEvents": f"{SUBSCRIPTIONS}/agentevents"}},
            f"[{COMBINATION}; required subscriptions: 'agentEvents', 'agentBroadcast'; for agent, required topics: "
            "'agentEvents', 'agentBroadcast'; required subscriptions: 'sourceEvents', 'sourceBroadcast', "
            f'invalid agent events subscription "{SUBSCRIPTIONS}/agentevents", it should match `^projects/',
            id="two-problems",
        ),
        pytest.param(
            SERVER | {"topics": {"sourceEvents": f"{TOPICS}/sourceevents"}},
            "'sourceEvents', 'sourceBroadcast'; set topics.sourceBroadcast",
            id="one-topic-missing",
        ),
        pytest.param(
            AGENT, "; set topics.sourceEvents and topics.sourceBroadcast and subscriptions.a", id="all-missing"
        ),
        pytest.param(SERVER | {"receiveSettings": {"numGoroutines": -1}}, "numGoroutines", id="negative"),
        pytest.param(
            SERVER | {"keepaliveSettings": {"time": 5}}, "time cannot be used; write a duration", id="no-unit"
        ),
        pytest.param(SERVER | {"topics": "sourceevents"}, "topics cannot be used; write keys of its own", id="text"),
    ],
)
def test_wrong_file(content: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(complaint)) as raised:
        parse(content)
    assert str(raised.value).startswith("pubsub.yaml")
