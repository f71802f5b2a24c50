"""Stay connected to a message broker, and hand over the messages of agents: what MQTT and Pub/Sub have in common.

The connection is kept for as long as the server runs. A message of an agent is acknowledged when the receiver has
stored it. Messages that were not acknowledged when the connection broke are delivered again, or found by the resync
that follows every connection. A backend connects, subscribes, decodes and sends.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Generic, Protocol, TypeVar

from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import BrokerPhrase, LifecyclePhrase
from maestropy.server.brokers import port
from maestropy.server.context import Context
from maestropy.store import errors as store_errors
from maestropy.transport import port as transport
from maestropy.wire import errors
from maestropy.wire.events import event

CAPABILITIES = port.Capabilities(
    reaches_every_consumer=True,
    reports_subscriptions=False,
    needs_claims=True,
    waits_for_acknowledgement=True,
    agents_get_errors=False,
)
# Enough to fill the transactions that store status updates; a message that waits beyond that costs only its bytes.
_HANDLERS = 1024
# Long enough for the restart of a broker, short compared with the time in which a dead instance is noticed.
_OFFLINE_GRACE_SECONDS = 10.0


class Incoming(Protocol):
    """A received message; the broker delivers it again unless `acknowledge` is called."""

    @property
    def topic(self) -> str:
        """Where it came from, for the log."""

    @property
    def acknowledge(self) -> Callable[[], None]:
        """Tell the broker that the message is handled."""


_Message = TypeVar("_Message", bound=Incoming)
_Client = TypeVar("_Client")


class ConnectedBroker(ABC, Generic[_Client, _Message]):
    """A broker outside of this process; each instance has one connection to it."""

    capabilities = CAPABILITIES
    kind: str
    """The value of `--message-broker-type`."""

    def __init__(
        self, context: Context, *, address: str, client_id: str, delays: Callable[[], Iterator[float]]
    ) -> None:
        self._context = context
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._address = address
        self._client_id = client_id
        self._delays = delays
        self._waits = delays()
        self._client: _Client | None = None
        self._online = asyncio.Event()
        self._slots = asyncio.Semaphore(_HANDLERS)
        self._stopping = asyncio.Event()
        self._offline_since: float | None = context.clock.monotonic()
        self.problem = ""
        """What an operator has to change before all messages can be exchanged; empty if nothing is known."""
        self.last_error = ""
        """Why the last connection failed or ended; empty while connected."""
        self._note_connected(is_connected=False)

    def _note_connected(self, *, is_connected: bool) -> None:
        self._context.metrics.dependencies.broker_connected(self.kind, is_connected=is_connected)

    @abstractmethod
    def _connect(self, on_lost: Callable[[object], None]) -> AbstractAsyncContextManager[_Client]:
        """Open a connection; `on_lost` is called when the broker may have dropped messages."""

    @abstractmethod
    async def _subscribe(self, client: _Client) -> None:
        """Subscribe to the messages of agents, and log that."""

    @abstractmethod
    def _messages(self, client: _Client) -> AsyncIterator[_Message]:
        """Yield messages until the connection ends; raise `Disconnected` then."""

    @abstractmethod
    def _decode(self, incoming: _Message) -> event.CloudEvent | None:
        """Return the event of a message; None if it is for another server. Raises `WireError`."""

    @property
    def is_online(self) -> bool:
        """Whether the connection stands."""
        return self._client is not None

    @property
    def is_within_grace(self) -> bool:
        """Whether status updates arrive here, or will after a short interruption."""
        since = self._offline_since
        return since is None or self._context.clock.monotonic() - since < _OFFLINE_GRACE_SECONDS

    async def wait_online(self) -> None:
        """Wait for the connection."""
        await self._online.wait()

    def consumers(self) -> None:
        """Return None: every consumer can be reached."""

    def reaches(self, consumer: str) -> bool:
        """Return True: the broker takes events to every consumer."""
        del consumer
        return True

    def has_room(self, consumer: str) -> bool:
        """Return True: the broker has one limit for all consumers, and the connection makes senders wait."""
        del consumer
        return True

    async def wait_for_room(self, consumer: str) -> None:
        """Return at once: the connection makes senders wait."""

    async def run(self, receiver: port.Receiver) -> None:
        """Stay connected until `stop`; then finish the messages that have been received."""
        self._journal.info(LifecyclePhrase.MESSAGE_QUEUE_STARTING, {LogKey.BROKER_HOST: self._address})
        # The handlers outlive the connection: a status update is worth storing even when it cannot be acknowledged.
        async with asyncio.TaskGroup() as handlers:
            connecting = handlers.create_task(self._stay_connected(receiver, handlers), name="broker connection")
            await self._stopping.wait()
            connecting.cancel()

    def stop(self) -> None:
        """Receive no more messages."""
        self._stopping.set()

    async def _stay_connected(self, receiver: port.Receiver, handlers: asyncio.TaskGroup) -> None:
        def on_lost(_: object) -> None:
            self._journal.warning(BrokerPhrase.MESSAGES_LOST)
            handlers.create_task(receiver.on_messages_lost(), name="messages lost")

        while True:
            try:
                async with self._connect(on_lost) as client:
                    await self._serve(client, receiver, handlers)
            except transport.Disconnected as error:
                self.problem = str(error) if isinstance(error, transport.Misconfigured) else ""
                self.last_error = str(error)
                self._journal.error(BrokerPhrase.DISCONNECTED, {LogKey.BROKER_HOST: self._address}, err=error)
            except store_errors.StoreError as error:
                self._journal.error(BrokerPhrase.SUBSCRIBE_FAILED, err=error)
            await asyncio.sleep(next(self._waits))
            self._context.metrics.broker_reconnected(self._client_id)
            self._journal.info(BrokerPhrase.RECONNECTING, v=2)

    async def _serve(self, client: _Client, receiver: port.Receiver, handlers: asyncio.TaskGroup) -> None:
        """Subscribe, let the controllers send, and hand over messages until the connection ends."""
        await self._subscribe(client)
        self._waits = self._delays()
        self._client = client
        self.problem = self.last_error = ""
        self._note_connected(is_connected=True)
        self._offline_since = None
        self._online.set()
        try:
            await receiver.on_online()
            async for incoming in self._messages(client):
                await self._slots.acquire()
                handlers.create_task(self._handle(incoming, receiver), name="message")
        finally:
            self._client = None
            self._online.clear()
            self._note_connected(is_connected=False)
            self._offline_since = self._context.clock.monotonic()

    async def _handle(self, incoming: _Message, receiver: port.Receiver) -> None:
        try:
            await self._receive(incoming, receiver)
        except Exception as error:  # noqa: BLE001 - a bug that one message triggers must not end the server
            self._journal.error(BrokerPhrase.MESSAGE_FAILED, {LogKey.TOPIC: incoming.topic[:256]}, err=error)
            incoming.acknowledge()
        finally:
            self._slots.release()

    async def _receive(self, incoming: _Message, receiver: port.Receiver) -> None:
        try:
            received = self._decode(incoming)
            if received is None:
                incoming.acknowledge()
            else:
                await receiver.receive(received, incoming.acknowledge)
        except errors.WireError as error:
            # Every client that may write to the topic may write this; a second delivery would not make it valid.
            fields = {LogKey.TOPIC: incoming.topic[:256], LogKey.REASON: str(error)}
            self._journal.warning(BrokerPhrase.INVALID_EVENT, fields)
            incoming.acknowledge()
