"""Keep the connection to the server and send status updates over it.

Every connection begins with a spec resync: the agent lists its works and versions, the server sends what is newer. Of
each work only the newest status update is kept until it is sent, so an outage of the server costs nothing but time.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

from maestropy.agent.telemetry import log_fields
from maestropy.aio import tasks
from maestropy.journal.emit import Journal
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import AgentPhrase, BrokerPhrase
from maestropy.transport import port
from maestropy.wire.events import event

# Enough to send a burst in few groups, few enough not to overload the server when a thousand agents reconnect.
_MAX_IN_FLIGHT = 16
_BUSY_IN_FLIGHT = 8
_LARGE_BYTES = 64 * 1024
"""Encoding a status of this size takes so long that others may run before the next is encoded."""
_MAX_CAPACITY_WAIT_SECONDS = 0.25
_FIRST_BACKOFF_SECONDS = 0.1
_FIRST_RESYNC_TIMEOUT_SECONDS = 5.0
_LATER_RESYNC_TIMEOUT_SECONDS = 15.0
_FIRST_RESYNC_PAUSE_SECONDS = 0.25
_MAX_BACKOFF_SECONDS = 60.0
_SHORT_AFTER_ATTEMPTS = 3
"""So often the server has to leave a status update unaccepted before it also gets one without feedback values."""
_SHORT_ABOVE_BYTES = 256 * 1024
"""Only data larger than this may be unaccepted because of its size; a Go server answers the same to every failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusMessage:
    """One status update of one work.

    The event is encoded when it is sent, so that sequence IDs are sent in order.
    """

    encode: Callable[[], event.CloudEvent]
    encode_without_feedback: Callable[[], event.CloudEvent | None]
    """Encode the update without feedback values, for a server that rejects the full one, for instance as too large."""
    on_sent: Callable[[event.CloudEvent], None]
    """Called when the server has accepted the update."""


class ServerConnection:
    """Receives spec events and sends status updates in the order in which they were enqueued."""

    def __init__(
        self,
        transport: port.Transport,
        *,
        journal: Journal,
        on_event: Callable[[event.CloudEvent], None],
        resync_request: Callable[[], event.CloudEvent],
        delays: Callable[[], Iterator[float]],
        on_resynced: Callable[[], None],
    ) -> None:
        """Prepare the connection; `on_resynced` is called whenever the server has answered a spec resync."""
        self._transport = transport
        self._journal = journal
        self._on_event = on_event
        self._resync_request = resync_request
        self._delays = delays
        self._on_resynced = on_resynced
        self._messages: dict[str, StatusMessage] = {}
        self._waiting_since: dict[str, float] = {}
        """Since when the server lacks the status of a work, by the time of the event loop."""
        self._ready: OrderedDict[str, None] = OrderedDict()
        """The works whose messages may be sent now: they are neither in flight nor postponed."""
        self._in_flight: set[str] = set()
        self._postponements: dict[str, int] = {}
        """How often the server could not take the update of a work."""
        self._shortened: dict[str, StatusMessage] = {}
        """The messages of which the server has a version without feedback values."""
        self._backing_off: set[str] = set()
        self._encoding = asyncio.Lock()
        self._changed = asyncio.Event()
        self._message_done = asyncio.Event()
        self._resync_requested = asyncio.Event()
        self.is_connected = False
        self.problem = ""
        """What an operator has to change before the agent can connect; empty if nothing is known."""
        self.last_error = ""
        """Why the last connection failed or ended; empty while connected."""

    def enqueue(self, work_id: str, message: StatusMessage) -> None:
        """Keep `message` until it is sent; it replaces an older message of the same work."""
        self._messages[work_id] = message
        self._waiting_since.setdefault(work_id, asyncio.get_running_loop().time())
        self._backing_off.discard(work_id)
        self._offer(work_id)

    def withdraw(self, work_id: str) -> None:
        """Drop the message of a work."""
        self._messages.pop(work_id, None)
        self._waiting_since.pop(work_id, None)
        self._ready.pop(work_id, None)
        self._forget_attempts(work_id)

    def request_resync(self) -> None:
        """Send a spec resync request again while connected; every new connection sends one anyway."""
        self._resync_requested.set()

    async def wait_for_capacity(self) -> None:
        """Wait while many messages are in flight, but not for long: a slow server must not stop the agent."""
        if len(self._in_flight) <= _BUSY_IN_FLIGHT:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_MAX_CAPACITY_WAIT_SECONDS):
                while len(self._in_flight) > _BUSY_IN_FLIGHT:
                    self._message_done.clear()
                    await self._message_done.wait()

    @property
    def waiting(self) -> int:
        """How many messages wait to be sent."""
        return len(self._messages)

    @property
    def oldest_waiting_seconds(self) -> float:
        """For how long the server lacks a status; of a work whose statuses replaced each other, since the first."""
        if not self._waiting_since:
            return 0.0
        # In the order of insertion, and a replaced message keeps its place.
        return asyncio.get_running_loop().time() - next(iter(self._waiting_since.values()))

    async def run(self) -> None:
        """Stay connected until cancelled."""
        waits = self._delays()
        while True:
            try:
                await tasks.run_isolated(self._connect())
            except* (port.Disconnected, port.PublishRejected, port.Busy) as group:
                error = group.exceptions[0]
                self.problem = str(error) if isinstance(error, port.Misconfigured) else ""
                self.last_error = str(error)
                self._journal.error(BrokerPhrase.DISCONNECTED, {LogKey.BROKER_HOST: self._transport.address}, err=error)
            finally:
                # What only an operator can change is tried ever more rarely, although the agent could connect.
                waits = self._delays() if self.is_connected and not self.problem else waits
                self.is_connected = False
            await asyncio.sleep(next(waits))
            self._journal.info(BrokerPhrase.RECONNECTING, v=2)

    async def _connect(self) -> None:
        async with self._transport.connect() as connection:
            for phrase, fields in self._transport.subscribed_records:
                self._journal.info(phrase, fields)
            await self._run_connection(connection)

    async def _run_connection(self, connection: port.AgentConnection) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._receive(connection.events()), name="receive")
                self._resync_requested.clear()
                is_accepted = await self._request_resync(connection)
                self.is_connected = True
                self.last_error = ""
                group.create_task(self._await_resync(connection, is_accepted=is_accepted), name="await the spec resync")
                group.create_task(self._send(connection, group), name="send")
                group.create_task(self._resync_again(connection), name="resync again")
        finally:
            # A task that is cancelled before its first step does not run its own cleanup.
            self._in_flight.clear()
            self._ready = OrderedDict.fromkeys(key for key in self._messages if key not in self._backing_off)
            self._message_done.set()

    async def _request_resync(self, connection: port.AgentConnection) -> bool:
        """Send a spec resync request; return whether the server has accepted it."""
        try:
            await connection.publish(self._resync_request())
        except port.Busy as error:
            self._journal.error(AgentPhrase.RESYNC_POSTPONED, {LogKey.BROKER_HOST: self._transport.address}, err=error)
            return False
        return True

    async def _await_resync(self, connection: port.AgentConnection, *, is_accepted: bool) -> None:
        """Wait for the answer to the spec resync; repeat the request until it is accepted, and if it was lost."""
        pause = _FIRST_RESYNC_PAUSE_SECONDS
        while not is_accepted:
            await asyncio.sleep(pause)
            is_accepted = await self._request_resync(connection)
            pause = min(_MAX_BACKOFF_SECONDS, pause * 2)
        pause = _FIRST_RESYNC_TIMEOUT_SECONDS
        while not await connection.is_resync_answered(within=pause):
            await self._request_resync(connection)
            pause = min(_MAX_BACKOFF_SECONDS, pause * 2)
        self._on_resynced()

    async def _resync_again(self, connection: port.AgentConnection) -> None:
        """Send the requests for a spec resync; those that follow each other, ever more rarely.

        Each event of an answer may be doubted in turn, for example if the server is of an earlier version.
        """
        pause = _FIRST_RESYNC_PAUSE_SECONDS
        while True:
            await self._resync_requested.wait()
            self._resync_requested.clear()
            if not await self._request_resync(connection):
                self._resync_requested.set()
            elif await connection.is_resync_answered(within=_LATER_RESYNC_TIMEOUT_SECONDS):
                self._on_resynced()
            await asyncio.sleep(pause)
            is_calm = not self._resync_requested.is_set()
            pause = _FIRST_RESYNC_PAUSE_SECONDS if is_calm else min(_MAX_BACKOFF_SECONDS, pause * 2)

    async def _receive(self, events: AsyncIterator[event.CloudEvent]) -> None:
        async for received in events:
            self._on_event(received)

    async def _send(self, connection: port.AgentConnection, group: asyncio.TaskGroup) -> None:
        """Send messages in order, several at the same time, but never two of the same work."""
        while True:
            if not self._ready or len(self._in_flight) >= _MAX_IN_FLIGHT:
                self._changed.clear()
                await self._changed.wait()
                continue
            work_id, _ = self._ready.popitem(last=False)
            self._in_flight.add(work_id)
            group.create_task(self._send_latest(connection, work_id), name=f"send {work_id}")

    async def _send_latest(self, connection: port.AgentConnection, work_id: str) -> None:
        """Send the newest message of a work."""
        try:
            message = self._messages.get(work_id)
            if message is not None:
                await self._send_one(connection, work_id, message)
        finally:
            self._in_flight.discard(work_id)
            self._offer(work_id)
            self._message_done.set()

    def _offer(self, work_id: str) -> None:
        """Let the message of a work be sent, if it has one that is neither in flight nor postponed."""
        if work_id in self._messages and work_id not in self._in_flight and work_id not in self._backing_off:
            self._ready.setdefault(work_id)
        self._changed.set()

    async def _send_one(self, connection: port.AgentConnection, work_id: str, message: StatusMessage) -> None:
        async with self._encoding:
            outgoing = message.encode()
            if len(outgoing.data) > _LARGE_BYTES:
                await asyncio.sleep(0)
        self._log_sending(outgoing)
        try:
            await connection.publish(outgoing)
        except port.NotAccepted as error:
            attempts = self._postpone(work_id, error)
            may_be_too_large = attempts >= _SHORT_AFTER_ATTEMPTS and len(outgoing.data) > _SHORT_ABOVE_BYTES
            if may_be_too_large and self._shortened.get(work_id) is not message:
                # The conditions at least, should the server never accept the feedback values.
                await self._send_without_feedback(connection, work_id, message)
            return
        except port.Busy as error:
            self._postpone(work_id, error)
            return
        except port.PublishRejected as error:
            self._journal.error(AgentPhrase.STATUS_REJECTED, {LogKey.RESOURCE_ID: work_id}, err=error)
            await self._send_without_feedback(connection, work_id, message)
        self._forget_attempts(work_id)
        if self._messages.get(work_id) is message:
            del self._messages[work_id]
            self._waiting_since.pop(work_id, None)
        else:
            self._restart_wait(work_id)
        message.on_sent(outgoing)

    def _restart_wait(self, work_id: str) -> None:
        """The server has a status; a newer one replaced it meanwhile and waits since about now."""
        if self._waiting_since.pop(work_id, None) is not None:
            self._waiting_since[work_id] = asyncio.get_running_loop().time()

    async def _send_without_feedback(
        self, connection: port.AgentConnection, work_id: str, message: StatusMessage
    ) -> None:
        outgoing = message.encode_without_feedback()
        if outgoing is None:
            return
        self._log_sending(outgoing)
        try:
            await connection.publish(outgoing)
        except (port.PublishRejected, port.Busy) as error:
            # The next status change of the work is sent again in full.
            self._journal.error(AgentPhrase.SHORT_STATUS_REJECTED, {LogKey.RESOURCE_ID: work_id}, err=error)
        else:
            self._shortened[work_id] = message

    def _postpone(self, work_id: str, error: Exception) -> int:
        """Delay the message of a work so that others are sent first; return how often it was delayed."""
        attempts = self._postponements[work_id] = self._postponements.get(work_id, 0) + 1
        seconds = min(_MAX_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * 2 ** min(attempts, 16))
        fields = {LogKey.RESOURCE_ID: work_id, LogKey.COUNT: attempts, LogKey.PAUSE: f"{seconds:g}s"}
        self._journal.error(AgentPhrase.STATUS_POSTPONED, fields, err=error)
        self._backing_off.add(work_id)
        asyncio.get_running_loop().call_later(seconds, self._end_backoff, work_id)
        return attempts

    def _forget_attempts(self, work_id: str) -> None:
        self._postponements.pop(work_id, None)
        self._shortened.pop(work_id, None)

    def _end_backoff(self, work_id: str) -> None:
        self._backing_off.discard(work_id)
        self._offer(work_id)

    def _log_sending(self, outgoing: event.CloudEvent) -> None:
        if self._journal.is_enabled(2):
            self._journal.info(AgentPhrase.SENDING, log_fields.event_fields(outgoing), v=2)
