"""One connection to an MQTT 5 broker: subscribe, publish with an answer, receive and acknowledge when it is stored.

A client is one connection. It does not reconnect by itself: whatever breaks ends it with `Disconnected`, and its owner
decides when to try again, because only the owner knows what to resync then. Nothing is kept for us at the broker while
we are away, as in the Go Maestro; what is missed then is found by the resync.

Neither side can flood the other: the broker says how much we may send before it has acknowledged, and we stop reading
while too much waits to be handled. A broker throws messages away when more wait for us than it keeps, and tells nobody;
that can only happen while as many are unacknowledged as the protocol allows, so then `on_relief` is called.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from maestropy.aio import tasks
from maestropy.transport.base import Disconnected, Rejected
from maestropy.transport.mqtt_endpoint import Endpoint, Stamps, split_host, stamps, tls_context
from maestropy.transport.mqtt_inbound import Inbound
from maestropy.transport.mqtt_inbound import Incoming as Incoming
from maestropy.wire import errors, mqtt
from maestropy.wire import mqttpackets as packets

PACKET_SECONDS = 10.0
"""How long the broker may take to answer a packet."""
_GONE = (OSError, RuntimeError)
"""What writing to a connection raises that is over; the second is uvloop's, when it has closed the socket already."""
RECEIVE_MAXIMUM = 65535
"""How many messages may wait for our acknowledgement: as many as possible, because brokers keep few beyond these
(Mosquitto a thousand) and drop the others."""
UNLIMITED_BYTES = packets.LONGEST + 5
"""The packet size of a broker that sets no limit."""
_WINDOW = 128
_CHUNK_BYTES = 256 * 1024
_TRANSIENT = frozenset((0x80, 0x83, 0x91, 0x97))


class TooLarge(Rejected):
    """The broker would not take a message of this size, so it was not sent."""


@asynccontextmanager
async def connect(
    endpoint: Endpoint,
    *,
    client_id: str,
    on_relief: Callable[["Client"], None],
    receive_maximum: int = RECEIVE_MAXIMUM,
) -> AsyncIterator["Client"]:
    """Open a connection; raises `Disconnected` with the reason when the broker is not there or refuses us.

    `on_relief` is called when a time is over in which the broker may have thrown messages for us away.
    """
    files = stamps(endpoint)  # before they are read: what changes meanwhile looks new
    client = await _open(endpoint, client_id=client_id, receive_maximum=receive_maximum)
    client.on_relief = on_relief
    crew = tasks.Crew()
    try:
        crew.start("mqtt read", client.read())
        crew.start("mqtt ping", client.keep_alive())
        if endpoint.is_secure:
            crew.start("mqtt certificates", client.watch_files(endpoint, before=files))
        yield client
    finally:
        client.fail(Disconnected("the connection was closed"))
        await crew.stop()
        await client.close()


class Client:
    """An open connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        parser: packets.Reader,
        *,
        limits: packets.Connected,
        receive_maximum: int,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._parser = parser
        self._keep_alive = float(limits.keep_alive_seconds or 0)
        self.maximum_packet_bytes = limits.maximum_packet_bytes
        self._window = asyncio.Semaphore(min(_WINDOW, limits.receive_maximum))
        self._waiting: dict[int, asyncio.Future[packets.Acknowledged | packets.Subscribed]] = {}
        self._last_number = 0
        self._inbound = Inbound(
            receive_maximum=receive_maximum, acknowledge=self._acknowledge, relieved=lambda: self.on_relief(self)
        )
        self.on_relief: Callable[[Client], None] = _nothing
        self._broken: Disconnected | None = None
        self._confirm = _confirmation(writer)
        self._heard_at = asyncio.get_running_loop().time()

    async def subscribe(self, wanted: Sequence[str], *, qos: int = 1) -> None:
        """Ask for the messages of some topics; returns when the broker sends them."""
        number = self._number()
        answer = await self._exchange(number, packets.subscribe(number, wanted, qos=qos))
        assert isinstance(answer, packets.Subscribed)
        for topic, reason in zip(wanted, answer.reasons, strict=False):
            if packets.is_refusal(reason):
                why = packets.explain(reason, answer.explanation)
                raise Disconnected(f"the broker refuses the subscription to {topic}: {why}")

    async def publish(self, topic: str, message: mqtt.Message, *, qos: int = 1) -> bool:
        """Send a message; returns when the broker has it, and whether it knew anybody to give it to."""
        await self._window.acquire()
        number: int | None = None
        try:
            self._raise_if_broken()
            number = self._number() if qos else None
            packet = self._packet(topic, message, number=number)
        except BaseException:
            self._window.release()
            raise
        if number is None:
            self._window.release()
            await self._write(packet)
            return True
        answer = await self._exchange(number, packet)
        assert isinstance(answer, packets.Acknowledged)
        if packets.is_refusal(answer.reason):
            refusal = f"the broker refuses a message to {topic}: {packets.explain(answer.reason, answer.explanation)}"
            raise Disconnected(refusal) if answer.reason in _TRANSIENT else Rejected(refusal)
        return answer.reason != packets.NO_SUBSCRIBERS

    def size(self, topic: str, message: mqtt.Message) -> int:
        """Return how many bytes a message takes on the wire."""
        return len(_encoded(topic, message, number=1))

    async def messages(self) -> AsyncIterator[Incoming]:
        """Yield what arrives; raises `Disconnected` when the connection ends."""
        while (incoming := await self._inbound.get()) is not None:
            yield incoming
        assert self._broken is not None
        raise self._broken

    def fail(self, reason: Disconnected) -> None:
        """End the connection for everybody who waits; the first reason counts."""
        if self._broken is not None:
            return
        self._broken = reason
        for waiter in self._waiting.values():
            if not waiter.done():
                waiter.set_exception(Disconnected(str(reason)))
                waiter.exception()  # whoever waited may have gone: then nobody else looks at it
        self._waiting.clear()
        self._inbound.close()
        self._window.release()  # wakes the first who waits to send; each that gives up wakes the next

    async def close(self) -> None:
        """Say goodbye and close the socket."""
        with suppress(*_GONE, TimeoutError):
            self._writer.write(packets.GOODBYE)
            self._writer.close()
            async with asyncio.timeout(2.0):
                await self._writer.wait_closed()

    async def read(self) -> None:
        """Take packets until the connection breaks."""
        try:
            while chunk := await self._next_chunk():
                self._heard_at = asyncio.get_running_loop().time()
                for packet in self._parser.feed(chunk):
                    self._take(packet)
            self.fail(Disconnected("the broker closed the connection"))
        except _GONE as error:
            self.fail(_disconnected("the connection to the broker broke", error))
        except errors.WireError as error:
            self.fail(Disconnected(str(error)))

    async def _next_chunk(self) -> bytes:
        await self._inbound.wait_for_room()
        chunk = await self._reader.read(_CHUNK_BYTES)
        self._confirm()
        return chunk

    async def keep_alive(self) -> None:
        """Show the broker that we live, and notice when it does not."""
        if not self._keep_alive:
            return
        loop = asyncio.get_running_loop()
        while self._broken is None:
            await asyncio.sleep(self._keep_alive / 2)
            silence = loop.time() - self._heard_at
            if self._inbound.has_room and silence > 1.5 * self._keep_alive:
                self.fail(Disconnected(f"the broker has been silent for {silence:.0f} s"))
                return
            with suppress(Disconnected):
                await self._write(packets.PING)

    async def watch_files(self, endpoint: Endpoint, *, before: Stamps) -> None:
        """End the connection when a certificate file has changed."""
        while self._broken is None:
            await asyncio.sleep(endpoint.reload_seconds)
            if stamps(endpoint) != before:
                self.fail(Disconnected("certificate rotation detected; the next connection uses the new files"))

    def _packet(self, topic: str, message: mqtt.Message, *, number: int | None) -> bytes:
        packet = _encoded(topic, message, number=number)
        if len(packet) > self.maximum_packet_bytes:
            raise TooLarge(
                f"a message to {topic} has {len(packet)} bytes and the broker takes at most "
                f"{self.maximum_packet_bytes}; make it smaller or raise the broker's maximum packet size"
            )
        return packet

    async def _exchange(self, number: int, packet: bytes) -> packets.Acknowledged | packets.Subscribed:
        self._raise_if_broken()
        waiter: asyncio.Future[packets.Acknowledged | packets.Subscribed]
        waiter = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(PACKET_SECONDS):
                await self._write(packet)
        except TimeoutError as error:
            raise self._too_late() from error
        while not waiter.done():
            await asyncio.wait([waiter], timeout=PACKET_SECONDS)
            # The answer may be among what we do not read at the moment: then it is us who are late.
            if not waiter.done() and self._inbound.has_room:
                raise self._too_late()
        return waiter.result()

    def _too_late(self) -> Disconnected:
        late = Disconnected(f"the broker did not answer within {PACKET_SECONDS:g} s")
        self.fail(late)
        return late

    async def _write(self, packet: bytes) -> None:
        try:
            self._writer.write(packet)
            await self._writer.drain()
        except _GONE as error:
            broken = _disconnected("the connection to the broker broke", error)
            self.fail(broken)
            raise broken from error

    def _number(self) -> int:
        while True:
            self._last_number = self._last_number % 65535 + 1
            if self._last_number not in self._waiting:
                return self._last_number

    def _take(self, packet: packets.Received) -> None:
        match packet:
            case packets.Publish():
                self._inbound.put(packet)
            case packets.Acknowledged(number=number):
                if number in self._waiting:
                    self._window.release()
                self._answer(number, packet)
            case packets.Subscribed(number=number):
                self._answer(number, packet)
            case packets.Disconnect(reason=reason, explanation=explanation):
                why = packets.explain(reason, explanation)
                self.fail(Disconnected(f"the broker ended the connection: {why}"))
            case packets.Connected() | packets.Pong():
                pass

    def _answer(self, number: int, packet: packets.Acknowledged | packets.Subscribed) -> None:
        waiter = self._waiting.pop(number, None)
        if waiter is not None and not waiter.done():
            waiter.set_result(packet)

    def _acknowledge(self, number: int) -> None:
        if self._broken is None:
            with suppress(*_GONE):  # the reader will tell
                self._writer.write(packets.acknowledge(number))

    def _raise_if_broken(self) -> None:
        if self._broken is not None:
            raise Disconnected(str(self._broken))


def _confirmation(writer: asyncio.StreamWriter) -> Callable[[], None]:
    """Return what confirms received bytes to the network at once.

    Mosquitto holds a small packet back until the one before it is confirmed, and networks confirm late when they have
    nothing else to send: together that makes every second message 40 ms late.
    """
    quick: int | None = getattr(socket, "TCP_QUICKACK", None)  # Linux forgets it now and then, so it is said again
    connection = writer.get_extra_info("socket")
    if quick is None or connection is None:
        return lambda: None

    def confirm() -> None:
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, quick, 1)

    return confirm


def _nothing(_: Client) -> None:
    """Nobody wants to know."""


def _encoded(topic: str, message: mqtt.Message, *, number: int | None) -> bytes:
    try:
        return packets.publish(
            packets.Publish(
                topic=topic,
                payload=message.payload,
                content_type=message.content_type,
                properties=message.properties,
                number=number,
            )
        )
    except errors.Invalid as error:
        raise TooLarge(str(error)) from error


async def _open(endpoint: Endpoint, *, client_id: str, receive_maximum: int) -> Client:
    host, port = split_host(endpoint.broker_host)
    try:
        async with asyncio.timeout(endpoint.dial_seconds):
            context = tls_context(endpoint) if endpoint.is_secure else None
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
    except (OSError, UnicodeError) as error:
        raise _disconnected(f"cannot reach the broker at {endpoint.broker_host}", error) from error
    greeting = packets.Connect(
        client_id=client_id,
        keep_alive_seconds=endpoint.keep_alive_seconds,
        receive_maximum=receive_maximum,
        username=endpoint.username,
        password=endpoint.password,
    )
    parser = packets.Reader()
    try:
        writer.write(packets.connect(greeting))
        limits = await _accepted(reader, parser)
    except BaseException:
        writer.transport.abort()
        raise
    if limits.keep_alive_seconds is None:
        limits = replace(limits, keep_alive_seconds=endpoint.keep_alive_seconds)
    return Client(reader, writer, parser, limits=limits, receive_maximum=receive_maximum)


async def _accepted(reader: asyncio.StreamReader, parser: packets.Reader) -> packets.Connected:
    """Wait for the broker's answer; what comes behind it stays in `parser`."""
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
        raise Disconnected(f"this is no MQTT 5 broker: {error}") from error
    raise Disconnected("the broker closed the connection instead of answering")


def _checked(packet: packets.Received) -> packets.Connected:
    if not isinstance(packet, packets.Connected):
        raise Disconnected("this is no MQTT 5 broker: it did not answer the connection")
    if packet.reason:
        raise Disconnected(f"the broker refuses the connection: {packets.explain(packet.reason, packet.explanation)}")
    return packet


def _disconnected(doing: str, error: Exception) -> Disconnected:
    words = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error) or type(error).__name__
    place = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
    return Disconnected(f"{doing}: {words}{place}")
