"""Queue received MQTT messages until they are handled and acknowledged.

Acknowledgements are sent in the order in which the messages were received, as MQTT requires. While too many bytes are
unhandled, the connection should read nothing more. When the number of unacknowledged messages has reached the receive
maximum, the broker may have dropped messages, and `on_messages_lost` is called afterwards. No I/O happens here.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from maestropy.wire import mqtt_packets as packets
from maestropy.wire.events import mqtt_binding

MAX_UNHANDLED_BYTES = 64 * 2**20
"""How many unhandled bytes may wait before reading stops; this bounds the memory."""
_QOS_0_WAITING = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A received message; the broker keeps it until `acknowledge` is called."""

    topic: str
    message: mqtt_binding.MqttMessage
    acknowledge: Callable[[], None]


@dataclass(slots=True)
class _Unacknowledged:
    """A message that the broker keeps until it is acknowledged."""

    packet_id: int
    size: int
    is_handled: bool = False


class Inbound:
    """The queue of received messages."""

    def __init__(
        self, *, receive_maximum: int, acknowledge: Callable[[int], None], on_messages_lost: Callable[[], None]
    ) -> None:
        self._receive_maximum = receive_maximum
        self._acknowledge = acknowledge
        self._on_messages_lost = on_messages_lost
        self._queue: asyncio.Queue[Incoming | None] = asyncio.Queue()
        self._unacknowledged: deque[_Unacknowledged] = deque()
        self._was_full = False
        self._unhandled_bytes = 0
        self._room = asyncio.Event()
        self._room.set()

    @property
    def has_room(self) -> bool:
        """Whether more should be read."""
        return self._room.is_set()

    async def wait_for_room(self) -> None:
        """Wait until more should be read."""
        await self._room.wait()

    async def get(self) -> Incoming | None:
        """Wait for the next message; return None after `close`."""
        return await self._queue.get()

    def close(self) -> None:
        """End the queue."""
        self._room.set()
        self._queue.put_nowait(None)

    def put(self, packet: packets.PublishPacket) -> None:
        """Queue a received message."""
        message = mqtt_binding.MqttMessage(
            content_type=packet.content_type, properties=packet.properties, payload=packet.payload
        )
        if packet.packet_id is not None:
            acknowledge = self._track(_Unacknowledged(packet.packet_id, len(packet.payload)))
        elif self._queue.qsize() < _QOS_0_WAITING:
            acknowledge = _no_acknowledgement
        else:
            return  # QoS 0 gives no guarantee, so the message may be dropped
        self._queue.put_nowait(Incoming(topic=packet.topic, message=message, acknowledge=acknowledge))

    def _track(self, message: _Unacknowledged) -> Callable[[], None]:
        self._unacknowledged.append(message)
        self._was_full = self._was_full or len(self._unacknowledged) >= self._receive_maximum
        self._unhandled_bytes += message.size
        if self._unhandled_bytes > MAX_UNHANDLED_BYTES:
            self._room.clear()

        def acknowledge() -> None:
            if not message.is_handled:
                message.is_handled = True
                self._unhandled_bytes -= message.size
                self._send_acknowledgements()

        return acknowledge

    def _send_acknowledgements(self) -> None:
        if 2 * self._unhandled_bytes <= MAX_UNHANDLED_BYTES:
            self._room.set()
        while self._unacknowledged and self._unacknowledged[0].is_handled:
            self._acknowledge(self._unacknowledged.popleft().packet_id)
        if self._was_full and 2 * len(self._unacknowledged) <= self._receive_maximum:
            self._was_full = False
            self._on_messages_lost()


def _no_acknowledgement() -> None:
    """Do nothing: a message with QoS 0 is not acknowledged."""
