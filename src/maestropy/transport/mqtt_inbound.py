"""What has arrived from a broker and is not acknowledged yet.

Acknowledgements go out in the order in which the messages came in, as MQTT demands, whenever they are ready. Too many
bytes that nobody has handled mean that nothing more should be read; too many messages mean that the broker may have
begun to throw some away, and that is told when it is over. Nothing here touches the connection.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from maestropy.wire import mqtt
from maestropy.wire import mqttpackets as packets

HELD_BYTES = 64 * 2**20
"""How much may wait to be handled before we stop reading; this bounds our memory."""
_QOS_0_WAITING = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message that arrived; the broker keeps it until `acknowledge` is called."""

    topic: str
    message: mqtt.Message
    acknowledge: Callable[[], None]


@dataclass(slots=True)
class _Debt:
    """A message that the broker keeps until we acknowledge it."""

    number: int
    size: int
    is_due: bool = False


class Inbound:
    """Messages on their way to whoever handles them."""

    def __init__(
        self, *, receive_maximum: int, acknowledge: Callable[[int], None], relieved: Callable[[], None]
    ) -> None:
        self._most_owed = receive_maximum
        self._acknowledge = acknowledge
        self._relieved = relieved
        self._queue: asyncio.Queue[Incoming | None] = asyncio.Queue()
        self._owed: deque[_Debt] = deque()
        self._was_full = False
        self._held_bytes = 0
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
        """Wait for the next message; None when there will be no more."""
        return await self._queue.get()

    def close(self) -> None:
        """There will be no more."""
        self._room.set()
        self._queue.put_nowait(None)

    def put(self, packet: packets.Publish) -> None:
        """Take a message that arrived."""
        message = mqtt.Message(content_type=packet.content_type, properties=packet.properties, payload=packet.payload)
        if packet.number is not None:
            acknowledge = self._owe(_Debt(packet.number, len(packet.payload)))
        elif self._queue.qsize() < _QOS_0_WAITING:
            acknowledge = _nothing
        else:
            return  # nobody is told when such a message is lost, so nobody may rely on it either
        self._queue.put_nowait(Incoming(topic=packet.topic, message=message, acknowledge=acknowledge))

    def _owe(self, debt: _Debt) -> Callable[[], None]:
        self._owed.append(debt)
        self._was_full = self._was_full or len(self._owed) >= self._most_owed
        self._held_bytes += debt.size
        if self._held_bytes > HELD_BYTES:
            self._room.clear()

        def acknowledge() -> None:
            if not debt.is_due:
                debt.is_due = True
                self._held_bytes -= debt.size
                self._settle()

        return acknowledge

    def _settle(self) -> None:
        if 2 * self._held_bytes <= HELD_BYTES:
            self._room.set()
        while self._owed and self._owed[0].is_due:
            self._acknowledge(self._owed.popleft().number)
        if self._was_full and 2 * len(self._owed) <= self._most_owed:
            self._was_full = False
            self._relieved()


def _nothing() -> None:
    """There is nothing to acknowledge."""
