"""Use the system while it fails: sources, subscribers and agents.

Each reconnects as a careful program would, and writes what it was told into the ledger. The light agent keeps its
objects in memory, so that thousands fit into a test; its connection is the real agent's.
"""

import asyncio
import contextlib
import io
import json
import random
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

import grpc

from maestropy.agent.controllers.connection import ServerConnection, StatusMessage
from maestropy.aio import backoff
from maestropy.journal.emit import Journal
from maestropy.transport import port
from maestropy.wire import errors, ordering, resync
from maestropy.wire.events import event, grpc_binding
from tests.faults.fault_ledger import GONE, Fate, Ledger, Text
from tests.stack import clients

_PAUSE_SECONDS = 0.05
_CREATE, _UPDATE, _DELETE = event.SPEC_CREATE, event.SPEC_UPDATE, event.SPEC_DELETE


def bundle_data(bundle: str, text: str) -> bytes:
    """Return a bundle with one ConfigMap that is named like it and holds `text`."""
    metadata = {"name": bundle, "namespace": "default"}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": text}}
    return json.dumps({"manifests": [manifest]}).encode()


def text_of(data: bytes) -> str:
    """Return the text of a bundle."""
    return str(json.loads(data)["manifests"][0]["data"]["k"])


def fate_of(error: grpc.aio.AioRpcError) -> Fate:
    """Say whether a spec request that was not acknowledged can have come true all the same."""
    refusal = "maestro-" in (error.details() or "") or "overloaded" in (error.details() or "")
    return "refused" if refusal else "unknown"


class SourceClient:
    """A source that changes resources, each by one spec request at a time, on whatever server answers."""

    def __init__(self, addresses: Sequence[str], *, ledger: Ledger, source_id: str = "source-a") -> None:
        self._addresses, self._source_id = addresses, source_id
        self._sources = [clients.Source(address=address, id=source_id) for address in addresses]
        self._retired: list[clients.Source] = []
        self._ledger = ledger
        self._turn = 0
        self._versions: dict[str, int] = {}
        self.timeout_seconds = 5.0
        self.refusals: list[str] = []
        """What clients were told when a spec request was not taken."""
        self.latencies: list[float] = []
        """Seconds until each acknowledged creation."""

    async def close(self) -> None:
        for source in (*self._sources, *self._retired):
            await source.channel.close()

    def _event(self, bundle: str, consumer: str, text: Text) -> event.CloudEvent:
        source = self._sources[0]
        if text is GONE:
            return source.spec(_DELETE, bundle, consumer)
        known = self._versions.get(bundle, 0)
        kind = _UPDATE if known else _CREATE
        return source.spec(kind, bundle, consumer, data=bundle_data(bundle, text), version=known)

    async def request(self, bundle: str, consumer: str, text: Text) -> Fate:
        """Ask once, and return what became of it."""
        return await self._ask(self._event(bundle, consumer, text), bundle, consumer, text)

    async def insist(self, bundle: str, consumer: str, text: Text, *, seconds: float = 60) -> None:
        """Ask until it is acknowledged; every repetition is the same event, as a careful client sends it."""
        asked = self._event(bundle, consumer, text)
        deadline = time.monotonic() + seconds
        while await self._ask(asked, bundle, consumer, text) != "taken":
            assert time.monotonic() < deadline, f"{bundle} was not taken in {seconds} s: {self.refusals[-1]}"
            await asyncio.sleep(_PAUSE_SECONDS)

    async def knock(self, bundle: str, consumer: str) -> str:
        """Ask for a change that can only be refused (its version is from the future), and return the refusal."""
        source = self._sources[0]
        asked = source.spec(_UPDATE, bundle, consumer, data=bundle_data(bundle, "never"), version=2**30)
        return await source.answer(asked)

    async def _ask(self, asked: event.CloudEvent, bundle: str, consumer: str, text: Text) -> Fate:
        self._turn += 1
        place = self._turn % len(self._sources)
        source = self._sources[place]
        publish = source.channel.unary_unary(grpc_binding.PUBLISH_METHOD)
        began = time.monotonic()
        fate: Fate = "taken"
        try:
            await publish(grpc_binding.encode_publish(asked), timeout=self.timeout_seconds)
        except grpc.aio.AioRpcError as error:
            fate = fate_of(error)
            if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED and source is self._sources[place]:
                # No answer at all: the connection may be dead without knowing it.
                # It is closed later: other spec requests still wait on it.
                self._sources[place] = clients.Source(address=self._addresses[place], id=self._source_id)
                self._retired.append(source)
            self.refusals.append(f"{error.code().name}: {error.details()}")
        except asyncio.CancelledError:
            self._ledger.requested(bundle, consumer, text, "unknown")
            raise
        if fate == "taken" and text is not GONE:
            if asked.type == _CREATE:
                self.latencies.append(time.monotonic() - began)
            self._versions[bundle] = self._versions.get(bundle, 0) + 1
        self._ledger.requested(bundle, consumer, text, fate)
        return fate


@contextlib.asynccontextmanager
async def source_client(*addresses: str, ledger: Ledger, source_id: str = "source-a") -> AsyncIterator[SourceClient]:
    """Connect a client that knows several addresses."""
    client = SourceClient(addresses, ledger=ledger, source_id=source_id)
    try:
        yield client
    finally:
        await client.close()


@dataclass
class Listener:
    """A subscriber that comes back after every loss and asks for what it missed."""

    addresses: Sequence[str]
    ledger: Ledger
    source_id: str = "source-a"
    heartbeat_timeout_seconds: float = 3.0
    sequences: dict[str, str] = field(default_factory=dict)
    """The newest status of each bundle, by its sequence id."""
    hashes: dict[str, str] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    """Bundles whose end was heard."""
    lives: int = 0
    """How many connections it has had."""
    is_listening: bool = False

    async def run(self) -> None:
        """Listen for ever."""
        while True:
            source = clients.Source(address=self.addresses[self.lives % len(self.addresses)], id=self.source_id)
            self.lives += 1
            try:
                await self._listen(source)
            except (grpc.aio.AioRpcError, TimeoutError, errors.WireError):
                pass  # lost, silent or damaged: another connection
            finally:
                self.is_listening = False
                await source.channel.close()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _listen(self, source: clients.Source) -> None:
        wanted = grpc_binding.Subscription(source=self.source_id, data_type=event.MANIFEST_BUNDLES)
        call = source.channel.unary_stream(grpc_binding.SUBSCRIBE_METHOD)(grpc_binding.encode_subscription(wanted))
        name = f"subscriber {self.source_id}/{id(self)}/{self.lives}"
        try:
            async with asyncio.timeout(self.heartbeat_timeout_seconds):
                await call.initial_metadata()
            # Statuses begin to flow before the resync is answered, or a long answer would fill the queue.
            asking = asyncio.ensure_future(self._resync(source))
            try:
                while True:
                    async with asyncio.timeout(self.heartbeat_timeout_seconds):
                        message = await call.read()
                    if message is grpc.aio.EOF:  # type: ignore[attr-defined]  # the stubs miss it
                        return
                    self._hear(name, grpc_binding.decode_event(message))
            finally:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
        finally:
            call.cancel()

    async def _resync(self, source: clients.Source) -> None:
        await source.resync(self.hashes)
        if self.hashes:
            # What is not named in a resync is not answered: bundles that are new to us are asked for by nothing.
            await source.resync({})
        self.is_listening = True

    def _hear(self, name: str, received: event.CloudEvent) -> None:
        if received.type == event.HEARTBEAT:
            return
        bundle = received.text(event.RESOURCE_ID)
        if b'"Deleted"' in received.data:
            self.ended.add(bundle)
            self.sequences.pop(bundle, None)
            self.hashes.pop(bundle, None)
            return
        sequence = received.text(event.SEQUENCE_ID)
        self.ledger.heard(name, bundle, version=received.integer(event.RESOURCE_VERSION), sequence=int(sequence))
        self.sequences[bundle] = sequence
        self.hashes[bundle] = received.optional_text(event.STATUS_HASH)


@dataclass(slots=True)
class _Held:
    version: int
    text: str


_GONE = 2**31


class LightAgent:
    """An agent whose cluster is a dictionary.

    A server never sends an older state of a bundle after a newer one, and a broker does not promise that: what a
    publisher had sent before its connection broke may arrive behind what another one sent since. So behind a broker
    (`in_order=False`) a late state is counted, and passed over as every agent must.
    """

    def __init__(
        self,
        transport: port.Transport,
        *,
        consumer: str,
        ledger: Ledger,
        seed: int = 0,
        in_order: bool = True,
    ) -> None:
        self.consumer = consumer
        self.objects: dict[str, str] = {}
        self.received = 0
        self.lives = 0
        self.log = io.BytesIO()
        self._ledger = ledger
        self._held: dict[str, _Held] = {}
        self._leaving: set[str] = set()
        self._in_order = in_order
        self._pen = clients.Agent.__new__(clients.Agent)
        self._pen.consumer, self._pen.last_sequence = consumer, 0
        jitter = random.Random(seed)

        def delays() -> Iterator[float]:
            return backoff.delays(base=0.1, factor=2, cap=2.0, jitter=jitter.random)

        self.link = ServerConnection(
            transport,
            journal=Journal(self.log, clock=time.time, verbosity=0),
            on_event=self._take,
            resync_request=self._greet,
            delays=delays,
            on_resynced=lambda: None,
        )

    async def run(self) -> None:
        """Obey for ever."""
        await self.link.run()

    def forget(self) -> None:
        """Lose everything, as an agent does that was killed; its cluster keeps the objects."""
        self._held.clear()
        self._leaving.clear()

    def _greet(self) -> event.CloudEvent:
        self.lives += 1
        versions = {bundle: held.version for bundle, held in self._held.items() if bundle not in self._leaving}
        return event.CloudEvent(
            id=clients.new_id(),
            source=f"{self.consumer}-work-agent",
            type=event.SPEC_RESYNC_REQUEST,
            time=clients.now(),
            extensions={event.CLUSTER_NAME: self.consumer, event.ORIGINAL_SOURCE: ""},
            data=resync.encode_versions(versions),
        )

    def _take(self, received: event.CloudEvent) -> None:
        if received.type == event.STATUS_RESYNC_REQUEST:
            known = resync.decode_hashes(received.data)
            mine = [(bundle, self._hash(bundle)) for bundle in self._held]
            for bundle in resync.status_resync_response(mine, known):
                self._report(bundle)
            return
        self.received += 1
        bundle, version = received.text(event.RESOURCE_ID), received.integer(event.RESOURCE_VERSION)
        if self._in_order:
            # Nothing is newer than the end; a deletion that is told once more may name an older version.
            state = _GONE if event.DELETION_TIMESTAMP in received.extensions else version
            self._ledger.heard(f"agent {self.consumer}/{self.lives}", bundle, version=state)
        elif bundle in self._held and version < self._held[bundle].version:
            self._ledger.counts["late states passed over"] += 1
        if event.DELETION_TIMESTAMP in received.extensions:
            self._leave(bundle, version)
        elif bundle not in self._held or version > self._held[bundle].version:
            text = text_of(received.data)
            if bundle not in self.objects:
                self._ledger.appeared(self.consumer, bundle)
            self._held[bundle] = _Held(version, text)
            self.objects[bundle] = text
            self._report(bundle)

    def _leave(self, bundle: str, version: int) -> None:
        self._held.setdefault(bundle, _Held(version, ""))
        self._leaving.add(bundle)
        self.objects.pop(bundle, None)
        self._report(bundle)

    def _hash(self, bundle: str) -> str:
        held = self._held[bundle]
        return f"{held.version}-{'deleted' if bundle in self._leaving else held.text}"

    def _report(self, bundle: str) -> None:
        is_over = bundle in self._leaving and bundle not in self.objects
        kinds = ("Deleted",) if is_over else ("Applied", "Available")

        def write() -> event.CloudEvent:
            self._pen.last_sequence = ordering.next_id(self._pen.last_sequence, now_ms=time.time_ns() // 10**6)
            held = self._held.get(bundle) or _Held(1, "")
            hash_ = self._hash(bundle) if bundle in self._held else ""
            sequence = str(self._pen.last_sequence)
            return self._pen.report(bundle, held.version, *kinds, sequence=sequence, hash=hash_)

        def sent(_: event.CloudEvent) -> None:
            if is_over:
                self._held.pop(bundle, None)
                self._leaving.discard(bundle)
                self._ledger.ended(self.consumer, bundle)

        self.link.enqueue(bundle, StatusMessage(encode=write, encode_without_feedback=lambda: None, on_sent=sent))


@contextlib.asynccontextmanager
async def running(*runs: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run parties until the block ends; one that fails fails the test, also where it fails because of that."""
    tasks = [asyncio.ensure_future(run()) for run in runs]
    try:
        yield
    finally:
        ended = [task for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in ended:
            error = task.exception()
            lines = traceback.format_exception(error) if error else ["without an error"]
            raise AssertionError(f"a party has ended: {''.join(lines)}")
