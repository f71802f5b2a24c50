"""One connection to an MQTT 5 broker: subscribe, publish, receive, and acknowledge messages after they are stored.

A client does not reconnect: any failure ends it with `Disconnected`, and its owner decides when to connect again,
because only the owner knows what to resync then. The broker keeps no session while the client is disconnected, as in
the Go Maestro; the resync after a reconnect finds what was missed.

Flow control works in both directions: the broker limits the unacknowledged messages of the client (receive maximum),
and the client stops reading while too many bytes wait to be handled. A broker drops messages without notice when its
queue for the client is full. That can only happen while the client has its full receive maximum of unacknowledged
messages; `on_messages_lost` is called when that is over.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from maestropy.aio import tasks
from maestropy.transport.mqtt.endpoint import FileStamps, MqttEndpoint, file_stamps, split_host, tls_context
from maestropy.transport.mqtt.inbound import Inbound
from maestropy.transport.mqtt.inbound import Incoming as Incoming
from maestropy.transport.port import Disconnected, PublishRejected
from maestropy.wire import errors
from maestropy.wire import mqtt_packets as packets
from maestropy.wire.events import mqtt_binding

PACKET_SECONDS = 10.0
"""Timeout of the broker's response to a packet."""
_CLOSED = (OSError, RuntimeError)
"""Errors of writing to a closed connection; uvloop raises RuntimeError when the socket is closed."""
RECEIVE_MAXIMUM = 65535
"""The maximum number of unacknowledged messages: as many as possible, because brokers queue few more (Mosquitto a
thousand) and drop the others."""
UNLIMITED_BYTES = packets.MAX_REMAINING_LENGTH + 5
"""The packet size of a broker that sets no limit."""
_WINDOW = 128
_CHUNK_BYTES = 256 * 1024
_TRANSIENT = frozenset((0x80, 0x83, 0x91, 0x97))


class MessageTooLarge(PublishRejected):
    """The message is larger than the broker takes; not sent if the broker has announced its maximum packet size."""


@asynccontextmanager
async def connect(
    endpoint: MqttEndpoint,
    *,
    client_id: str,
    on_messages_lost: Callable[["MqttClient"], None],
    receive_maximum: int = RECEIVE_MAXIMUM,
) -> AsyncIterator["MqttClient"]:
    """Open a connection; raise `Disconnected` with the reason when the broker is unreachable or rejects it.

    `on_messages_lost` is called after a period in which the broker may have dropped messages for this client.
    """
    files = file_stamps(endpoint)  # taken before the files are read, so that a change meanwhile is detected
    client = await _open(endpoint, client_id=client_id, receive_maximum=receive_maximum)
    client.on_messages_lost = on_messages_lost
    task_owner = tasks.TaskOwner()
    try:
        task_owner.start("mqtt read", client.read())
        task_owner.start("mqtt ping", client.keep_alive())
        if endpoint.is_secure:
            task_owner.start("mqtt certificates", client.watch_files(endpoint, before=files))
        yield client
    finally:
        client.fail(Disconnected("the connection was closed"))
        await task_owner.stop()
        await client.close()


class SubscriptionRejected(Disconnected):
    """The broker does not allow a topic; the connection itself stays."""


class MqttClient:
    """An open connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        parser: packets.PacketReader,
        *,
        limits: packets.ConnackPacket,
        receive_maximum: int,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._parser = parser
        self._keep_alive = float(limits.keep_alive_seconds or 0)
        self.maximum_packet_bytes = limits.maximum_packet_bytes
        self._window = asyncio.Semaphore(min(_WINDOW, limits.receive_maximum))
        self._waiting: dict[int, asyncio.Future[packets.PubackPacket | packets.SubackPacket]] = {}
        self._last_packet_id = 0
        self._inbound = Inbound(
            receive_maximum=receive_maximum,
            acknowledge=self._acknowledge,
            on_messages_lost=lambda: self.on_messages_lost(self),
        )
        self.on_messages_lost: Callable[[MqttClient], None] = _ignore
        self._broken: Disconnected | None = None
        self._quick_ack = _quick_ack(writer)
        self._received_at = asyncio.get_running_loop().time()

    async def subscribe(self, topics: Sequence[str], *, qos: int = 1) -> None:
        """Subscribe to topics; return when the broker has accepted all of them."""
        packet_id = self._next_packet_id()
        suback = await self._exchange(packet_id, packets.subscribe(packet_id, topics, qos=qos))
        assert isinstance(suback, packets.SubackPacket)
        for topic, reason in zip(topics, suback.reasons, strict=False):
            if packets.is_error(reason):
                why = packets.explain(reason, suback.reason_string)
                raise SubscriptionRejected(f"the broker rejects the subscription to {topic}: {why}")

    async def publish(self, topic: str, message: mqtt_binding.MqttMessage, *, qos: int = 1) -> bool:
        """Send a message; return, after the broker has accepted it, whether it has a subscriber."""
        await self._window.acquire()
        packet_id: int | None = None
        try:
            self._raise_if_broken()
            packet_id = self._next_packet_id() if qos else None
            packet = self._packet(topic, message, packet_id=packet_id)
        except BaseException:
            self._window.release()
            raise
        if packet_id is None:
            self._window.release()
            await self._write(packet)
            return True
        puback = await self._exchange(packet_id, packet)
        assert isinstance(puback, packets.PubackPacket)
        if packets.is_error(puback.reason):
            raise _rejection(puback, topic=topic, size=len(packet))
        return puback.reason != packets.NO_SUBSCRIBERS

    def size(self, topic: str, message: mqtt_binding.MqttMessage) -> int:
        """Return the packet size of a message in bytes."""
        return len(_encoded(topic, message, packet_id=1))

    async def messages(self) -> AsyncIterator[Incoming]:
        """Yield received messages; raise `Disconnected` when the connection ends."""
        while (incoming := await self._inbound.get()) is not None:
            yield incoming
        assert self._broken is not None
        raise self._broken

    def fail(self, reason: Disconnected) -> None:
        """End the connection for all waiting tasks; the first reason counts."""
        if self._broken is not None:
            return
        self._broken = reason
        for waiter in self._waiting.values():
            if not waiter.done():
                waiter.set_exception(Disconnected(str(reason)))
                waiter.exception()  # marks it as retrieved, because the waiting task may be cancelled
        self._waiting.clear()
        self._inbound.close()
        self._window.release()  # wakes the first waiting sender; each sender that fails wakes the next

    async def close(self) -> None:
        """Send DISCONNECT and close the socket."""
        with suppress(*_CLOSED, TimeoutError):
            self._writer.write(packets.DISCONNECT)
            self._writer.close()
            async with asyncio.timeout(2.0):
                await self._writer.wait_closed()

    async def read(self) -> None:
        """Receive packets until the connection breaks."""
        try:
            while chunk := await self._next_chunk():
                self._received_at = asyncio.get_running_loop().time()
                for packet in self._parser.feed(chunk):
                    self._handle(packet)
            self.fail(Disconnected("the broker closed the connection"))
        except _CLOSED as error:
            self.fail(_disconnected("the connection to the broker broke", error))
        except errors.WireError as error:
            self.fail(Disconnected(str(error)))

    async def _next_chunk(self) -> bytes:
        await self._inbound.wait_for_room()
        chunk = await self._reader.read(_CHUNK_BYTES)
        self._quick_ack()
        return chunk

    async def keep_alive(self) -> None:
        """Send keep-alive pings, and end the connection when the broker sends nothing for too long."""
        if not self._keep_alive:
            return
        loop = asyncio.get_running_loop()
        while self._broken is None:
            await asyncio.sleep(self._keep_alive / 2)
            silence = loop.time() - self._received_at
            if self._inbound.has_room and silence > 1.5 * self._keep_alive:
                self.fail(Disconnected(f"the broker has sent nothing for {silence:.0f} s"))
                return
            with suppress(Disconnected):
                await self._write(packets.PINGREQ)

    async def watch_files(self, endpoint: MqttEndpoint, *, before: FileStamps) -> None:
        """End the connection when a certificate file has changed."""
        while self._broken is None:
            await asyncio.sleep(endpoint.reload_seconds)
            if file_stamps(endpoint) != before:
                self.fail(Disconnected("certificate rotation detected; the next connection uses the new files"))

    def _packet(self, topic: str, message: mqtt_binding.MqttMessage, *, packet_id: int | None) -> bytes:
        packet = _encoded(topic, message, packet_id=packet_id)
        if len(packet) > self.maximum_packet_bytes:
            raise MessageTooLarge(
                f"a message to {topic} has {len(packet)} bytes and the broker accepts at most "
                f"{self.maximum_packet_bytes}; make it smaller or raise the broker's maximum packet size"
            )
        return packet

    async def _exchange(self, packet_id: int, packet: bytes) -> packets.PubackPacket | packets.SubackPacket:
        self._raise_if_broken()
        waiter: asyncio.Future[packets.PubackPacket | packets.SubackPacket]
        waiter = self._waiting[packet_id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(PACKET_SECONDS):
                await self._write(packet)
        except TimeoutError as error:
            raise self._timed_out() from error
        while not waiter.done():
            await asyncio.wait([waiter], timeout=PACKET_SECONDS)
            # While the client has stopped reading, the response may wait in the socket: that is no timeout.
            if not waiter.done() and self._inbound.has_room:
                raise self._timed_out()
        return waiter.result()

    def _timed_out(self) -> Disconnected:
        timeout = Disconnected(f"the broker did not answer within {PACKET_SECONDS:g} s")
        self.fail(timeout)
        return timeout

    async def _write(self, packet: bytes) -> None:
        try:
            self._writer.write(packet)
            await self._writer.drain()
        except _CLOSED as error:
            broken = _disconnected("the connection to the broker broke", error)
            self.fail(broken)
            raise broken from error

    def _next_packet_id(self) -> int:
        while True:
            self._last_packet_id = self._last_packet_id % 65535 + 1
            if self._last_packet_id not in self._waiting:
                return self._last_packet_id

    def _handle(self, packet: packets.ReceivedPacket) -> None:
        match packet:
            case packets.PublishPacket():
                self._inbound.put(packet)
            case packets.PubackPacket(packet_id=packet_id):
                if packet_id in self._waiting:
                    self._window.release()
                self._complete(packet_id, packet)
            case packets.SubackPacket(packet_id=packet_id):
                self._complete(packet_id, packet)
            case packets.DisconnectPacket(reason=reason, reason_string=reason_string):
                why = packets.explain(reason, reason_string)
                self.fail(Disconnected(f"the broker ended the connection: {why}"))
            case packets.ConnackPacket() | packets.PingrespPacket():
                pass

    def _complete(self, packet_id: int, packet: packets.PubackPacket | packets.SubackPacket) -> None:
        waiter = self._waiting.pop(packet_id, None)
        if waiter is not None and not waiter.done():
            waiter.set_result(packet)

    def _acknowledge(self, packet_id: int) -> None:
        if self._broken is None:
            with suppress(*_CLOSED):  # the task that reads reports the failure
                self._writer.write(packets.acknowledge(packet_id))

    def _raise_if_broken(self) -> None:
        if self._broken is not None:
            raise Disconnected(str(self._broken))


def _rejection(puback: packets.PubackPacket, *, topic: str, size: int) -> Disconnected | PublishRejected:
    why = packets.explain(puback.reason, puback.reason_string)
    if puback.reason == packets.PACKET_TOO_LARGE:
        # Mosquitto enforces message_size_limit without announcing it.
        return MessageTooLarge(
            f"the broker rejects a message of {size} bytes to {topic}: {why}; "
            "make it smaller or raise the broker's maximum message size"
        )
    problem = f"the broker rejects a message to {topic}: {why}"
    return Disconnected(problem) if puback.reason in _TRANSIENT else PublishRejected(problem)


def _quick_ack(writer: asyncio.StreamWriter) -> Callable[[], None]:
    """Return a function that makes the kernel send TCP acknowledgements at once.

    Mosquitto uses Nagle's algorithm: it holds a small packet back until the previous one is acknowledged. With delayed
    TCP acknowledgements every second message would be 40 ms late.
    """
    option: int | None = getattr(socket, "TCP_QUICKACK", None)  # Linux resets it, so it is set after every read
    connection = writer.get_extra_info("socket")
    if option is None or connection is None:
        return lambda: None

    def acknowledge_at_once() -> None:
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, option, 1)

    return acknowledge_at_once


def _ignore(_: MqttClient) -> None:
    """Ignore lost messages."""


def _encoded(topic: str, message: mqtt_binding.MqttMessage, *, packet_id: int | None) -> bytes:
    try:
        return packets.publish(
            packets.PublishPacket(
                topic=topic,
                payload=message.payload,
                content_type=message.content_type,
                properties=message.properties,
                packet_id=packet_id,
            )
        )
    except errors.InvalidContent as error:
        raise MessageTooLarge(str(error)) from error


async def _open(endpoint: MqttEndpoint, *, client_id: str, receive_maximum: int) -> MqttClient:
    host, port = split_host(endpoint.broker_host)
    try:
        async with asyncio.timeout(endpoint.dial_seconds):
            context = tls_context(endpoint) if endpoint.is_secure else None
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
    except (OSError, UnicodeError) as error:
        raise _disconnected(f"cannot reach the broker at {endpoint.broker_host}", error) from error
    connect_packet = packets.ConnectPacket(
        client_id=client_id,
        keep_alive_seconds=endpoint.keep_alive_seconds,
        receive_maximum=receive_maximum,
        username=endpoint.username,
        password=endpoint.password,
    )
    parser = packets.PacketReader()
    try:
        writer.write(packets.connect(connect_packet))
        limits = await _read_connack(reader, parser)
    except BaseException:
        writer.transport.abort()
        raise
    if limits.keep_alive_seconds is None:
        limits = replace(limits, keep_alive_seconds=endpoint.keep_alive_seconds)
    return MqttClient(reader, writer, parser, limits=limits, receive_maximum=receive_maximum)


async def _read_connack(reader: asyncio.StreamReader, parser: packets.PacketReader) -> packets.ConnackPacket:
    """Wait for CONNACK; bytes that follow it stay in `parser`."""
    try:
        async with asyncio.timeout(PACKET_SECONDS):
            while chunk := await reader.read(4096):
                for packet in parser.feed(chunk):
                    return _checked(packet)
    except TimeoutError as error:
        raise Disconnected(f"the broker did not answer within {PACKET_SECONDS:g} s") from error
    except OSError as error:
        raise _disconnected("the broker ended the handshake", error) from error
    except errors.WireError as error:
        raise Disconnected(f"this is not an MQTT 5 broker: {error}") from error
    raise Disconnected("the broker closed the connection instead of answering")


def _checked(packet: packets.ReceivedPacket) -> packets.ConnackPacket:
    if not isinstance(packet, packets.ConnackPacket):
        raise Disconnected("this is not an MQTT 5 broker: it did not send CONNACK")
    if packet.reason:
        raise Disconnected(f"the broker rejects the connection: {packets.explain(packet.reason, packet.reason_string)}")
    return packet


def _disconnected(doing: str, error: Exception) -> Disconnected:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error) or type(error).__name__
    file = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
    return Disconnected(f"{doing}: {reason}{file}")
