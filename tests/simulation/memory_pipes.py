"""TCP in memory: what one end writes, the other end reads in the same order, later, or never if the connection breaks.

`asyncio.open_connection` works on a `VirtualLoop` whose `dial` is set: the real MQTT client speaks through it to a
broker that is played (`conformance.memory_broker`).
"""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

from maestropy.wire import mqtt_packets as packets
from tests.conformance.memory_broker import MemoryBroker, Session
from tests.simulation.network import Network


class End(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, delay: Callable[[], float]) -> None:
        super().__init__()
        self._delay = delay
        self._loop = asyncio.get_running_loop()
        self._protocol: Any = None
        self._is_closed = False
        self._arrives_at = 0.0
        self.other: End

    def attach(self, protocol: Any) -> None:
        self._protocol = protocol
        protocol.connection_made(self)

    def write(self, data: Any) -> None:
        self._later(self.other._receive, bytes(data))

    def close(self) -> None:
        if not self._is_closed:
            self._later(self.other.abort)
            self._lose()

    def abort(self) -> None:
        if not self._is_closed:
            self._lose()
            self.other.abort()

    def is_closing(self) -> bool:
        return self._is_closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def _later(self, do: Callable[..., None], *arguments: Any) -> None:
        # Never before what was written earlier.
        self._arrives_at = max(self._arrives_at, self._loop.time() + self._delay())
        self._loop.call_at(self._arrives_at, do, *arguments)

    def _receive(self, data: bytes) -> None:
        if not self._is_closed:
            self._protocol.data_received(data)

    def _lose(self) -> None:
        self._is_closed = True
        self._loop.call_soon(self._protocol.connection_lost, None)


class Broker(MemoryBroker):
    """A broker that may give a message twice, and can be away."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = network
        self.is_away = False
        self._ends: dict[End, str] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def dial(self, protocol: Any, owner: str) -> End:
        """Connect `owner`."""
        await self._network.hop(f"{owner}/broker/dial")
        if self.is_away or owner in self._network.cut_off:
            raise ConnectionRefusedError(111, "Connection refused")
        near, far = (
            End(functools.partial(lambda way: self._network.delay(f"{owner}/broker/{way}"), way))
            for way in ("up", "down")
        )
        near.other, far.other = far, near
        reader = asyncio.StreamReader()
        far_protocol = asyncio.StreamReaderProtocol(reader)
        far.attach(far_protocol)
        near.attach(protocol)
        self._ends[near] = owner
        writer = asyncio.StreamWriter(far, far_protocol, reader, asyncio.get_running_loop())
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer), name="broker session")
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return near

    def hang_up(self, owner: str) -> None:
        """Break every connection of one client."""
        for end in [each for each, who in self._ends.items() if who == owner]:
            del self._ends[end]
            end.abort()

    def go_away(self) -> None:
        """Be gone, with everything that was under way."""
        self.is_away = True
        for end in list(self._ends):
            end.abort()
            end.other.abort()
        self._ends.clear()

    def _publish(self, session: Session, first: int, body: bytes) -> None:
        self.published.clear()
        if self._network.happens(f"{session.name}/broker/double", self._network.doubles):
            message = packets._decode_publish(first, body)
            for each in self.sessions.values():
                if self.is_subscribed(each, message.topic):
                    each.deliver(message)
        super()._publish(session, first, body)
