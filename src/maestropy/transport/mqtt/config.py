"""Read the configuration file of the MQTT connection: `--message-broker-config-file`, `--workload-source-config`.

YAML or JSON with the keys of the Go Maestro, the same for server and agent. Certificate files are not opened here:
every new connection reads them, so that a rotated certificate needs no restart. Settings that the Go programs ignore
silently are ignored here, too, but reported in `notes`. No error quotes a value: any value may be a secret.

| case | result |
|---|---|
| unknown key | a note |
| only a certificate authority | TLS and a note: the Go programs connect without TLS then |
| user name without TLS | a note: the password is sent in plain text |
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from maestropy.flags import SettingsError, document
from maestropy.transport.mqtt.endpoint import MqttEndpoint, split_host
from maestropy.transport.tls import config_keys
from maestropy.wire import errors
from maestropy.wire.events import mqtt_topics

_EXAMPLE = "brokerHost: host:port"
_KEYS = frozenset(
    {
        "brokerHost",
        "username",
        "password",
        "keepAlive",
        "dialTimeout",
        "pubQoS",
        "subQoS",
        "topics",
        *config_keys.KEYS,
    }
)
_TOPIC_KEYS = frozenset({"sourceEvents", "agentEvents", "sourceBroadcast", "agentBroadcast"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttConfig:
    """The endpoint of the broker, and notes for the log."""

    endpoint: MqttEndpoint
    notes: tuple[str, ...] = ()
    """Warnings for the operator, one sentence each."""


def read(path: Path, *, flag: str) -> MqttConfig:
    """Read the file; `flag` set its path."""
    return _config(document.read(path, flag=flag, example=_EXAMPLE))


def read_for_agent(path: Path, *, flag: str, consumer: str) -> MqttConfig:
    """Read the file, and check that its topics serve `consumer`."""
    config = read(path, flag=flag)
    origin = f"{flag}={path}"
    try:
        notes = mqtt_topics.check_consumer(config.endpoint.topics, consumer)
    except errors.InvalidContent as error:
        raise SettingsError(f"{origin}: {error}, or change --consumer-name") from error
    return dataclasses.replace(config, notes=(*config.notes, *(f"{origin}: {note}" for note in notes)))


def parse(content: bytes, *, origin: str) -> MqttConfig:
    """Parse the content of a file; `origin` names the file in errors."""
    return _config(document.load(content, origin=origin, example=_EXAMPLE))


def _config(section: document.Section) -> MqttConfig:
    origin = section.origin
    names = section.section("topics")
    try:
        patterns = _topics(names, origin=origin)
    except errors.InvalidContent as error:
        raise SettingsError(f"{origin}: {error}") from error
    endpoint = _endpoint(section, patterns)
    _check(endpoint, origin=origin)
    notes = [f"{origin}: {name} is not a setting of the MQTT driver and is ignored" for name in section.unknown(_KEYS)]
    notes += [f"{origin}: topics.{name} is not known and is ignored" for name in names.unknown(_TOPIC_KEYS)]
    if endpoint.has_ca and not endpoint.has_client_cert:
        notes.append(
            f"{origin}: caFile without a client certificate means TLS here; leave it out for a broker in plain text"
        )
    if endpoint.password and not endpoint.is_secure:
        notes.append(f"{origin}: the password is sent in plain text; set caFile to use TLS")
    return MqttConfig(endpoint=endpoint, notes=tuple(notes))


def _topics(section: document.Section, *, origin: str) -> mqtt_topics.Topics:
    patterns = mqtt_topics.Topics(
        source_events=section.text("sourceEvents"),
        agent_events=section.text("agentEvents"),
        source_broadcast=section.text("sourceBroadcast"),
        agent_broadcast=section.text("agentBroadcast"),
    )
    if not (patterns.source_events or patterns.agent_events):
        raise SettingsError(
            f"{origin}: the topics must be set; write topics.sourceEvents and topics.agentEvents, "
            "such as sources/maestro/consumers/+/sourceevents"
        )
    return mqtt_topics.check_patterns(patterns)


def _endpoint(section: document.Section, patterns: mqtt_topics.Topics) -> MqttEndpoint:
    return MqttEndpoint(
        broker_host=section.text("brokerHost"),
        topics=patterns,
        username=section.text("username"),
        password=section.text("password"),
        **config_keys.read(section),
        keep_alive_seconds=section.integer("keepAlive", default=60, most=65535),
        dial_seconds=section.seconds("dialTimeout", default=60.0),
        publish_qos=section.integer("pubQoS", default=1, most=1),
        subscribe_qos=section.integer("subQoS", default=1, most=1),
    )


def _check(endpoint: MqttEndpoint, *, origin: str) -> None:
    # The text before each semicolon is that of the Go programs: operators search for it.
    if not endpoint.broker_host:
        raise SettingsError(f"{origin}: brokerHost is required; write host:port of the broker")
    try:
        split_host(endpoint.broker_host)
    except ValueError:
        raise SettingsError(f"{origin}: brokerHost must be host:port, without a scheme and without blanks") from None
    config_keys.check(endpoint, origin=origin)
