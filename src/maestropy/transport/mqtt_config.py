"""Read the file that says where the MQTT broker is: `--message-broker-config-file`, `--workload-source-config`.

YAML or JSON with the keys of the Go Maestro, the same for server and agent. Files that it names are not opened here:
the connection reads them, again whenever it is made anew, so that a rotated certificate needs no restart. What the Go
programs pass over in silence is passed over here too, but told in `notes`. No complaint quotes a value: any of them may
be a secret.

| case | verdict |
|---|---|
| a key nobody knows | a note |
| a certificate authority alone | TLS and a note: the Go programs speak plain text then |
| a user name without TLS | a note: the password travels in plain text |
"""

from dataclasses import dataclass
from pathlib import Path

from maestropy.flags import SettingsError, document
from maestropy.transport import certificate_keys
from maestropy.transport.mqtt_endpoint import Endpoint, split_host
from maestropy.wire import errors, topics

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
        *certificate_keys.KEYS,
    }
)
_TOPIC_KEYS = frozenset({"sourceEvents", "agentEvents", "sourceBroadcast", "agentBroadcast"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """The way to the broker."""

    endpoint: Endpoint
    notes: tuple[str, ...] = ()
    """What an operator should know, one sentence each; for the log."""


def read(path: Path, *, flag: str) -> Broker:
    """Return the way that the file describes; `flag` is what named it."""
    return _broker(document.read(path, flag=flag, example=_EXAMPLE))


def parse(content: bytes, *, origin: str) -> Broker:
    """Return the way that a file with this content describes; `origin` names the file in complaints."""
    return _broker(document.load(content, origin=origin, example=_EXAMPLE))


def _broker(section: document.Section) -> Broker:
    origin = section.origin
    names = section.section("topics")
    try:
        patterns = _topics(names, origin=origin)
    except errors.Invalid as error:
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
        notes.append(f"{origin}: the password travels in plain text; give caFile, and TLS is spoken")
    return Broker(endpoint=endpoint, notes=tuple(notes))


def _topics(section: document.Section, *, origin: str) -> topics.Topics:
    found = topics.Topics(
        source_events=section.text("sourceEvents"),
        agent_events=section.text("agentEvents"),
        source_broadcast=section.text("sourceBroadcast"),
        agent_broadcast=section.text("agentBroadcast"),
    )
    if not (found.source_events or found.agent_events):
        raise SettingsError(
            f"{origin}: the topics must be set; write topics.sourceEvents and topics.agentEvents, "
            "such as sources/maestro/consumers/+/sourceevents"
        )
    return topics.checked(found)


def _endpoint(section: document.Section, patterns: topics.Topics) -> Endpoint:
    return Endpoint(
        broker_host=section.text("brokerHost"),
        topics=patterns,
        username=section.text("username"),
        password=section.text("password"),
        **certificate_keys.read(section),
        keep_alive_seconds=section.integer("keepAlive", default=60, most=65535),
        dial_seconds=section.seconds("dialTimeout", default=60.0),
        publish_qos=section.integer("pubQoS", default=1, most=1),
        subscribe_qos=section.integer("subQoS", default=1, most=1),
    )


def _check(endpoint: Endpoint, *, origin: str) -> None:
    # The words before each semicolon are the Go programs': people search for them.
    if not endpoint.broker_host:
        raise SettingsError(f"{origin}: brokerHost is required; write host:port of the broker")
    try:
        split_host(endpoint.broker_host)
    except ValueError:
        raise SettingsError(f"{origin}: brokerHost must be host:port, without a scheme and without blanks") from None
    certificate_keys.check(endpoint, origin=origin)
