"""The agent's way to the server through an MQTT broker.

Two things differ from a server that one speaks to directly:

- The broker takes messages although nobody listens. Where it says so (reason 0x10), the agent is told that it is
  disconnected: it keeps what it had to say and comes back, and its resync request is never lost to a server that was
  just starting.
- A resync request has no answer of its own: the server sends what the agent lacks, and that may be nothing. So every
  request also names a work that nobody has, under the request's own id. The server tells the agent to drop it, after
  everything else: that is the answer, and it ends here. A Go server that has no bundle at all of this consumer does not
  even say that; from it an empty list of statuses counts, which it sends when it begins, and the answer to the first
  request after it got a bundle.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from maestropy.journal.fields import Broker
from maestropy.transport import base, mqtt
from maestropy.transport.mqtt_endpoint import Endpoint
from maestropy.wire import errors, event, resync, topics
from maestropy.wire import mqtt as binding


class MqttMedium:
    """Subscribes to one consumer's specs at one broker."""

    def __init__(self, endpoint: Endpoint, *, consumer: str, client_id: str, on_problem: Callable[[str], None]) -> None:
        self._endpoint = endpoint
        self._consumer = consumer
        self._client_id = client_id
        self._on_problem = on_problem

    @property
    def address(self) -> str:
        """The address as it was configured."""
        return self._endpoint.broker_host

    @property
    def subscribed(self) -> str:
        """The words of the Go agent."""
        return Broker.MQTT_SUBSCRIBED

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[base.Connection]:
        """Open a connection; certificates are read anew for each."""
        patterns = self._endpoint.topics
        wanted = [topics.agent_subscription(patterns, self._consumer)]
        if patterns.source_broadcast:
            wanted.append(patterns.source_broadcast)
        # The suffix is the Go agent's: access rules of brokers know it.
        name = f"{self._client_id}-client"
        async with mqtt.connect(self._endpoint, client_id=name, on_relief=_begin_anew) as client:
            await client.subscribe(wanted, qos=self._endpoint.subscribe_qos)
            yield _MqttConnection(client, self._endpoint, consumer=self._consumer, on_problem=self._on_problem)


def _begin_anew(client: mqtt.Client) -> None:
    client.fail(base.Disconnected("more messages waited than a broker keeps; a resync will tell which were lost"))


class _MqttConnection:
    def __init__(
        self, client: mqtt.Client, endpoint: Endpoint, *, consumer: str, on_problem: Callable[[str], None]
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._consumer = consumer
        self._on_problem = on_problem
        self._asked: set[str] = set()
        """What names the works that nobody has."""
        self._answered = asyncio.Event()

    async def events(self) -> AsyncIterator[event.Event]:
        async for incoming in self._client.messages():
            message = incoming.message
            try:
                received = binding.decode(message.content_type, properties=message.properties, payload=message.payload)
            except errors.WireError as error:
                self._on_problem(f"a message on {incoming.topic[:200]} was passed over: {error}")
            else:
                if self._is_about_nobody(received) or _has_nothing(received):
                    self._answered.set()
                if not self._is_about_nobody(received):
                    yield received
            incoming.acknowledge()

    async def publish(self, sent: event.Event) -> None:
        if sent.type == event.SPEC_RESYNC_REQUEST:
            await self._ask(sent)
        else:
            await self._send(sent)

    async def is_answered(self, *, within: float) -> bool:
        try:
            async with asyncio.timeout(within):
                await self._answered.wait()
        except TimeoutError:
            return False
        return True

    async def _ask(self, question: event.Event) -> None:
        known = resync.decode_versions(question.data)
        whole = _naming(question, {**known, question.id: 0})
        self._asked.add(question.id)
        try:
            await self._send(whole)
        except mqtt.TooLarge:
            for part in _parts(whole, most=self._client.maximum_packet_bytes - resync.ENVELOPE_BYTES):
                await self._send(part)

    def _is_about_nobody(self, received: event.Event) -> bool:
        return received.optional_text(event.RESOURCE_ID) in self._asked

    async def _send(self, sent: event.Event) -> None:
        try:
            topic = self._topic(sent)
            message = binding.encode(sent)
        except errors.WireError as error:
            raise base.Rejected(str(error)) from error
        if not await self._client.publish(topic, message, qos=self._endpoint.publish_qos):
            raise base.Disconnected(f"nobody listens to {topic}; is a server connected to the broker?")

    def _topic(self, sent: event.Event) -> str:
        patterns = self._endpoint.topics
        source = sent.optional_text(event.ORIGINAL_SOURCE)
        if source or sent.type != event.SPEC_RESYNC_REQUEST:
            return topics.agent_events(patterns, source=source, consumer=self._consumer)
        return topics.agent_broadcast(patterns, source=source, consumer=self._consumer)


def _naming(question: event.Event, versions: Mapping[str, int]) -> event.Event:
    return replace(question, data=resync.encode_versions(versions))


def _has_nothing(received: event.Event) -> bool:
    """Whether the server says that it has no bundle of this consumer."""
    try:
        return received.type == event.STATUS_RESYNC_REQUEST and not resync.decode_hashes(received.data)
    except errors.WireError:
        return False


def _parts(question: event.Event, *, most: int) -> Iterator[event.Event]:
    """Split a resync request that the broker would not take.

    Each part is a request of its own: the server sends again what a part does not name, which costs but is right.
    """
    known = list(resync.decode_versions(question.data).items())
    count = -(-len(question.data) // max(1, most))
    size = max(1, len(known) // count - 1)
    for start in range(0, len(known), size):
        part = replace(question, id=f"{question.id}-{start}")
        yield _naming(part, dict(known[start : start + size]))
