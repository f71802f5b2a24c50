"""The network between the actors: every way takes time, and while it is rough, messages are late, lost and doubled.

Chance is drawn per link from the seed, so that leaving one step out of a schedule changes as little as possible of the
rest. `Wire` is what `transport.grpc_client` is in production: unary calls that can be lost before or after they were
carried out, or carried out twice, and a stream that keeps its order until it breaks with everything that is under way.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from maestropy.transport.grpc.client import StreamTimeout
from maestropy.transport.grpc.status import CallRejected, StatusCode
from maestropy.transport.peer_identity import Peer
from maestropy.wire.events import event, grpc_binding

HEARTBEAT_TIMEOUT_SECONDS = 20.0
_CALM_SECONDS = 0.001


class Service(Protocol):
    """One port of a server."""

    async def publish(self, received: event.CloudEvent, peer: Peer) -> object: ...

    def subscribe(self, wanted: grpc_binding.Subscription, peer: Peer) -> Any: ...


class Host(Protocol):
    """A server as its clients see it."""

    name: str

    def service(self, port: str) -> Service: ...

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]: ...


@dataclass(eq=False)
class Network:
    """Who can reach whom."""

    seed: int
    is_rough: bool = True
    loses: float = 0.03
    """How often a unary call is lost on its way, and how often its answer is."""
    doubles: float = 0.03
    breaks: float = 0.005
    """How often a stream ends with a message."""
    hosts: dict[str, Host] = field(default_factory=dict)
    """The servers that can be reached."""
    routes: dict[str, frozenset[str]] = field(default_factory=dict)
    """The hosts that a client is led to; all of them without a route."""
    cut_off: set[str] = field(default_factory=set)
    """Who reaches nobody."""
    wires: "list[Wire]" = field(default_factory=list)
    log_line: Callable[[str], None] = lambda _: None
    broken: Callable[[str], None] = lambda _: None
    """Called with the owner whose connections are broken."""
    _chances: dict[str, random.Random] = field(default_factory=dict)

    def chance(self, link: str) -> random.Random:
        """Return the dice of one link."""
        found = self._chances.get(link)
        if found is None:
            found = self._chances[link] = random.Random(f"{self.seed}/{link}")
        return found

    async def hop(self, link: str) -> None:
        """Take as long as the way takes."""
        await asyncio.sleep(self.delay(link))

    def delay(self, link: str) -> float:
        """Return how long the way takes this time."""
        if not self.is_rough:
            return _CALM_SECONDS
        dice = self._chances.get(link) or self.chance(link)
        drawn = dice.random()
        if drawn < 0.9:
            return 0.0002 + 0.01 * drawn
        if drawn < 0.995:
            return dice.uniform(0.05, 0.6)
        return dice.uniform(1.0, 6.0)

    def happens(self, link: str, share: float) -> bool:
        """Decide whether something bad happens."""
        return self.is_rough and self.chance(link).random() < share

    def break_wires(self, name: str) -> None:
        """End every connection from or to `name`."""
        for wire in list(self.wires):
            if name in (wire.owner, wire.peer):
                wire.break_off()
        self.broken(name)


class Wire:
    """One client's connection to one server; a broken one stays broken."""

    def __init__(self, network: Network, *, owner: str, port: str) -> None:
        self.owner = owner
        self._network = network
        self._port = port
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._host = self._choose()
        self.peer = self._host.name
        self._link = f"{owner}/{port}"
        network.wires.append(self)

    def _choose(self) -> Host:
        route = self._network.routes.get(self.owner)
        names = [name for name in sorted(self._network.hosts) if route is None or name in route]
        hosts = [self._network.hosts[name] for name in names]
        reachable = [host for host in hosts if host.name not in self._network.cut_off]
        if not reachable or self.owner in self._network.cut_off:
            raise CallRejected(StatusCode.UNAVAILABLE, "failed to connect to all addresses")
        return self._network.chance(f"{self.owner}/balancer").choice(reachable)

    def break_off(self) -> None:
        """End the connection, whoever wanted that."""
        if not self._broken.done():
            self._broken.set_result(None)
        if self in self._network.wires:
            self._network.wires.remove(self)

    async def publish(self, sent: event.CloudEvent, *, timeout_seconds: float = 30.0) -> None:
        """Make one unary call."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._publish(grpc_binding.encode_publish(sent))
        except TimeoutError:
            raise CallRejected(StatusCode.DEADLINE_EXCEEDED, "deadline exceeded") from None

    async def _publish(self, request: bytes) -> None:
        network, link = self._network, self._link
        await self._way(f"{link}/up")
        if network.happens(f"{link}/loss", network.loses):
            self.break_off()
        self._check()
        if network.happens(f"{link}/double", network.doubles):
            network.log_line(f"{self.owner} -> {self.peer}: a call is carried out twice")
            self._host.spawn(self._late(request))
        calling = self._host.spawn(self._call(request))
        await asyncio.wait([calling, self._broken], return_when=asyncio.FIRST_COMPLETED)
        if calling.done() and not calling.cancelled() and network.happens(f"{link}/loss", network.loses):
            network.log_line(f"{self.owner} <- {self.peer}: the answer is lost")
            self.break_off()
        if not calling.done() or calling.cancelled() or self._broken.done():
            raise CallRejected(StatusCode.UNAVAILABLE, "connection reset")
        await self._way(f"{link}/down")
        rejected = calling.result()
        if rejected is not None:
            raise rejected

    async def _call(self, request: bytes) -> CallRejected | None:
        try:
            await self._host.service(self._port).publish(grpc_binding.decode_publish(request), Peer())
        except CallRejected as rejected:
            return rejected
        return None

    async def _late(self, request: bytes) -> None:
        await asyncio.sleep(self._network.chance(f"{self._link}/late").uniform(0.0, 2.0))
        await self._call(request)

    @asynccontextmanager
    async def subscribe(self, wanted: grpc_binding.Subscription) -> AsyncIterator[AsyncIterator[event.CloudEvent]]:
        """Open a stream; when the context is entered, the server has registered it."""
        queue: asyncio.Queue[bytes | CallRejected] = asyncio.Queue()
        opened = asyncio.get_running_loop().create_future()
        await self._way(f"{self._link}/up")
        serving = self._host.spawn(self._serve(wanted, queue, opened))
        try:
            await asyncio.wait([opened, serving, self._broken], return_when=asyncio.FIRST_COMPLETED)
            self._check()
            if not opened.done():
                answer = None if queue.empty() else queue.get_nowait()
                raise (
                    answer
                    if isinstance(answer, CallRejected)
                    else CallRejected(StatusCode.UNAVAILABLE, "connection reset")
                )
            await self._way(f"{self._link}/down")
            yield self._events(queue, serving)
        finally:
            serving.cancel()
            self.break_off()

    async def _serve(
        self,
        wanted: grpc_binding.Subscription,
        queue: "asyncio.Queue[bytes | CallRejected]",
        opened: "asyncio.Future[None]",
    ) -> None:
        try:
            async with self._host.service(self._port).subscribe(wanted, Peer()) as stream:
                opened.set_result(None)
                async for messages in stream.messages:
                    for message in messages:
                        await self._network.hop(f"{self._link}/stream")
                        if self._broken.done():
                            return
                        queue.put_nowait(message)
            queue.put_nowait(CallRejected(StatusCode.UNAVAILABLE, "the server ended the stream"))
        except CallRejected as rejected:
            queue.put_nowait(rejected)

    async def _events(
        self, queue: "asyncio.Queue[bytes | CallRejected]", serving: "asyncio.Task[Any]"
    ) -> AsyncIterator[event.CloudEvent]:
        network = self._network
        while True:
            reading = asyncio.ensure_future(queue.get())
            try:
                # A server that was killed takes the connection along; a machine that was leaves silence.
                silent = network.happens(f"{self._link}/silence", 0.3)
                ends: list[asyncio.Future[Any]] = [reading] if silent else [reading, self._broken, serving]
                await asyncio.wait(ends, timeout=HEARTBEAT_TIMEOUT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    self._check()
                    if serving.done():
                        raise CallRejected(StatusCode.UNAVAILABLE, "connection reset")
                    raise StreamTimeout("stream timeout: no heartbeat received")
                message = reading.result()
            finally:
                reading.cancel()
            if isinstance(message, CallRejected):
                raise message
            if network.happens(f"{self._link}/break", network.breaks):
                self.break_off()
            self._check()
            received = grpc_binding.decode_event(message)
            if received.type != event.HEARTBEAT:
                yield received

    async def _way(self, link: str) -> None:
        await self._network.hop(link)
        self._check()

    def _check(self) -> None:
        if self._broken.done():
            raise CallRejected(StatusCode.UNAVAILABLE, "connection reset")
