"""Ask an MQTT broker what it knows, as a client of its own: its $SYS topics, and which topics it allows.

Nothing is published unless `probes` name topics. A shared subscription would take messages from running servers, so
topics are subscribed to without the share, for a moment and with QoS 0: every other client gets what it would get
anyway, and what arrives here is dropped unread.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from maestropy.transport import port
from maestropy.transport.mqtt import connection
from maestropy.transport.mqtt.endpoint import MqttEndpoint
from maestropy.wire.events import mqtt_topics
from maestropy.wire.events.mqtt_binding import MqttMessage

_SYSTEM: Final = "$SYS/broker/"
_NAMES: Final = (
    "version",
    "uptime",
    "clients/connected",
    "clients/disconnected",
    "subscriptions/count",
    "shared_subscriptions/count",
    "messages/stored",
    "retained messages/count",
    "publish/messages/dropped",
)
"""Topics of Mosquitto; other brokers have others, or none."""
_SYSTEM_SECONDS: Final = 2.0
_LONGEST: Final = 200
_EMPTY: Final = MqttMessage(content_type="", properties=(), payload=b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttState:
    """What a broker told."""

    system: Mapping[str, str] = field(default_factory=dict)
    """By the part of the topic behind `$SYS/broker/`; empty if the broker shows none."""
    rejected: Mapping[str, str] = field(default_factory=dict)
    """Topics that may not be subscribed to, and why."""
    heard: Mapping[str, bool] = field(default_factory=dict)
    """Topics that were published to, and whether the broker knows a subscriber."""
    unpublished: Mapping[str, str] = field(default_factory=dict)
    """Topics that may not be published to, and why."""

    def number(self, name: str) -> int | None:
        """Return a count of the broker; None if it tells none."""
        text = self.system.get(name, "")
        return int(text[:18]) if text.isascii() and text.isdecimal() else None


async def read(
    endpoint: MqttEndpoint, *, client_id: str, topics: Sequence[str], probes: Sequence[str] = ()
) -> MqttState:
    """Connect, ask and disconnect; raises `Disconnected`. An empty message is published to each of `probes`."""
    async with connection.connect(endpoint, client_id=client_id, on_messages_lost=lambda _client: None) as client:
        system = await _system(client)
        rejected: dict[str, str] = {}
        for topic in topics:
            plain = mqtt_topics.without_share_prefix(topic)
            try:
                await client.subscribe([plain], qos=0)
            except connection.SubscriptionRejected as error:
                rejected[plain] = str(error)
    heard: dict[str, bool] = {}
    unpublished: dict[str, str] = {}
    if probes:
        # On a connection without subscriptions: otherwise this client itself may be the subscriber.
        name = f"{client_id}-probe"
        async with connection.connect(endpoint, client_id=name, on_messages_lost=lambda _client: None) as client:
            for topic in probes:
                try:
                    heard[topic] = await client.publish(topic, _EMPTY)
                except port.PublishRejected as error:
                    unpublished[topic] = str(error)
    return MqttState(system=system, rejected=rejected, heard=heard, unpublished=unpublished)


async def _system(client: connection.MqttClient) -> dict[str, str]:
    """Return the retained values of the broker about itself, as far as they come at once."""
    found: dict[str, str] = {}
    try:
        await client.subscribe([f"{_SYSTEM}{name}" for name in _NAMES], qos=0)
    except connection.SubscriptionRejected:
        return found
    with suppress(TimeoutError):
        async with asyncio.timeout(_SYSTEM_SECONDS):
            async for incoming in client.messages():
                incoming.acknowledge()
                name = incoming.topic.removeprefix(_SYSTEM)
                if name in _NAMES:
                    found[name] = incoming.message.payload[:_LONGEST].decode("utf-8", "replace")
                if len(found) == len(_NAMES):
                    break
    return found
