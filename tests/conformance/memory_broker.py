"""Run a small MQTT 5 broker on loopback that can delay, reject and drop messages.

It keeps nothing for disconnected clients and has neither retained messages nor QoS 2; tests/peers uses Mosquitto.
"""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from maestropy.wire import mqtt_packets as packets

TOPICS = (
    "topics: {sourceEvents: sources/maestro/consumers/+/sourceevents, "
    "agentEvents: sources/maestro/consumers/+/agentevents}"
)


@dataclass(eq=False)
class Session:
    """One connected client."""

    name: str
    writer: asyncio.StreamWriter
    filters: list[str] = field(default_factory=list)
    unacknowledged: set[int] = field(default_factory=set)
    last: int = 0

    def deliver(self, message: packets.PublishPacket) -> None:
        self.last = self.last % 65535 + 1
        self.unacknowledged.add(self.last)
        self.writer.write(packets.publish(replace(message, packet_id=self.last)))


class MemoryBroker:
    """The broker."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.published: list[packets.PublishPacket] = []
        self.reasons: dict[str, int] = {}
        """Reason codes for messages on these topics."""
        self.is_silent = False
        """Accept messages, and neither forward nor acknowledge them."""
        self.limit = packets.MAX_REMAINING_LENGTH
        """The maximum packet size, which it announces to clients."""
        self.unannounced_limit = packets.MAX_REMAINING_LENGTH
        """The largest message that it takes; clients learn it from a rejection only, as from Mosquitto."""
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def config(self, folder: Path) -> Path:
        path = folder / "broker.yaml"
        path.write_text(f"brokerHost: {self.address}\n{TOPICS}\n")
        return path

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """Abort every connection."""
        for session in self.sessions.values():
            session.writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session: Session | None = None
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                first, body = await _packet(reader)
                if first & 0xF0 == 0x10:
                    session = self.sessions[_name(body)] = Session(_name(body), writer)
                    writer.write(struct.pack("!BBBBBBI", 0x20, 8, 0, 0, 5, 0x27, self.limit))
                elif session is not None and not self._handle(session, first, body):
                    break
        if session is not None and self.sessions.get(session.name) is session:
            del self.sessions[session.name]
        writer.close()

    def _handle(self, session: Session, first: int, body: bytes) -> bool:
        match first & 0xF0:
            case 0x30:
                self._publish(session, first, body)
            case 0x40:
                session.unacknowledged.discard(struct.unpack_from("!H", body)[0])
            case 0x80:
                session.filters += _filters(body)
                session.writer.write(bytes((0x90, 4)) + body[:2] + b"\x00\x01")
            case 0xC0:
                session.writer.write(b"\xd0\x00")
        return first & 0xF0 != 0xE0

    def is_subscribed(self, session: Session, topic: str) -> bool:
        return any(_matches(topic_filter.split("/"), topic.split("/")) for topic_filter in session.filters)

    def _publish(self, session: Session, first: int, body: bytes) -> None:
        message = packets._decode_publish(first, body)
        self.published.append(message)
        if self.is_silent:
            return
        is_too_large = len(body) > self.unannounced_limit
        reason = packets.PACKET_TOO_LARGE if is_too_large else self.reasons.get(message.topic, 0)
        if not reason:
            subscribers = [
                candidate for candidate in self.sessions.values() if self.is_subscribed(candidate, message.topic)
            ]
            for subscriber in subscribers:
                subscriber.deliver(message)
            reason = 0 if subscribers else packets.NO_SUBSCRIBERS
        if message.packet_id is not None:
            session.writer.write(struct.pack("!BBHB", 0x40, 3, message.packet_id, reason))


def _matches(topic_filter: list[str], topic: list[str]) -> bool:
    return len(topic_filter) == len(topic) and all(
        one in ("+", other) for one, other in zip(topic_filter, topic, strict=True)
    )


async def _packet(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first = (await reader.readexactly(1))[0]
    length = shift = 0
    while True:
        byte = (await reader.readexactly(1))[0]
        length |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return first, await reader.readexactly(length)


def _name(body: bytes) -> str:
    properties = body[10]
    start = 11 + properties
    (size,) = struct.unpack_from("!H", body, start)
    return body[start + 2 : start + 2 + size].decode()


def _filters(body: bytes) -> list[str]:
    topic_filters, position = [], 3
    while position < len(body):
        (size,) = struct.unpack_from("!H", body, position)
        topic_filters.append(body[position + 2 : position + 2 + size].decode())
        position += 3 + size
    return topic_filters


@asynccontextmanager
async def memory_broker(**settings: Any) -> AsyncIterator[MemoryBroker]:
    """Run a broker in this event loop."""
    broker = MemoryBroker()
    vars(broker).update(settings)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()
