"""A Maestro in memory, as one agent sees it: it sends wishes, answers resyncs and collects reports.

It is a medium for the agent, and a server for the test. It can go away, hang up, hold its acknowledgements back, send
things twice and in the wrong order, as brokers do.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from maestropy.aio import clock as clocks
from maestropy.transport import base
from maestropy.wire import codec, event, instant, order, resync, work

SOURCE = "maestro"


def now() -> instant.Timestamp:
    return instant.from_datetime(clocks.Clock().now())


class MemoryServer:
    """One server with one consumer."""

    subscribed = "subscribed to a server in memory"

    def __init__(self, address: str, *, consumer: str) -> None:
        self.address = address
        self.consumer = consumer
        self.wishes: dict[str, work.ManifestWork] = {}
        self.reports: dict[str, list[work.ManifestWork]] = {}
        self.greetings: list[dict[str, int]] = []
        """What the agent said it had, at each of its connections."""
        self.is_away = False
        self.answers_resyncs = True
        self.has_answered = asyncio.Event()
        """While cleared, resync requests are taken, as by a broker, and nobody answers."""
        self.has_answered.set()
        self.open_hand = asyncio.Event()
        """While cleared, nothing that is published comes to an end."""
        self.open_hand.set()
        self.refuses = 0
        """So many of the next reports are rejected for good."""
        self.too_busy_for: dict[str, int] = {}
        """So many of the next reports about a work are not taken this time."""
        self.changed = asyncio.Condition()
        self._connection: _Connection | None = None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[base.Connection]:
        if self.is_away:
            raise base.Disconnected("nobody there")
        self._connection = connection = _Connection(self)
        try:
            yield connection
        finally:
            connection.break_off()
            if self._connection is connection:
                self._connection = None

    def put(self, wanted: work.ManifestWork) -> work.ManifestWork:
        """Store a wish under the next version and send it."""
        known = self.wishes.get(wanted.uid)
        stored = wanted.with_metadata(generation=(known.generation if known else 0) + 1)
        self.wishes[stored.uid] = stored
        self.send(spec_event(stored))
        return stored

    def delete(self, uid: str, *, has_version: bool = True) -> None:
        """Mark a wish as to go and send that."""
        leaving = self.wishes[uid].with_metadata(deletionTimestamp=now().rfc3339_seconds())
        self.wishes[uid] = leaving
        self.send(deletion_event(leaving, has_version=has_version))

    def send(self, sent: event.Event) -> None:
        """Send anything to the agent, if it listens."""
        if self._connection is not None:
            self._connection.queue.put_nowait(sent)

    def ask_for_statuses(self, hashes: dict[str, str]) -> None:
        asked = event.Event(
            id=clocks.new_id(),
            source=SOURCE,
            type=event.STATUS_RESYNC_REQUEST,
            time=now(),
            extensions={event.CLUSTER_NAME: self.consumer},
            data=resync.encode_hashes(hashes),
        )
        self.send(asked)

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.break_off()

    async def take(self, received: event.Event) -> None:
        """Receive what the agent publishes; return when it is acknowledged."""
        await self.open_hand.wait()
        if received.type == event.SPEC_RESYNC_REQUEST:
            self._answer(resync.decode_versions(received.data))
        else:
            if self.refuses:
                self.refuses -= 1
                raise base.Rejected("told to refuse it")
            if self.too_busy_for.get(received.text(event.RESOURCE_ID), 0) > 0:
                self.too_busy_for[received.text(event.RESOURCE_ID)] -= 1
                raise base.Busy("not now")
            self._note(codec.work_from_status_event(received), received)
        async with self.changed:
            self.changed.notify_all()

    def _answer(self, versions: dict[str, int]) -> None:
        self.greetings.append(versions)
        if not self.answers_resyncs:
            raise base.Disconnected("no answer")
        if not self.has_answered.is_set():
            return
        rows = [
            resync.Row(each.uid, each.generation, is_deleting=bool(each.deletion_timestamp))
            for each in self.wishes.values()
        ]
        answer = resync.spec_answer(rows, versions)
        for uid in answer.send:
            wanted = self.wishes[uid]
            self.send(deletion_event(wanted) if wanted.deletion_timestamp else spec_event(wanted))
        for uid in answer.orphans:
            self.send(deletion_event(stranger(uid, consumer=self.consumer), has_version=False))

    def _note(self, report: work.ManifestWork, received: event.Event) -> None:
        told = self.reports.setdefault(report.uid, [])
        sequence = received.text(event.SEQUENCE_ID)
        if told:
            before = told[-1].annotations[work.SEQUENCE_ID_ANNOTATION]
            assert order.is_newer(sequence, before), "a report came with a sequence id that a server would not take"
        told.append(report)
        wanted = self.wishes.get(report.uid)
        if report.status.is_deleted and wanted is not None:
            assert wanted.deletion_timestamp, "the agent says that a work is gone which nobody asked to go"
            del self.wishes[report.uid]


class _Connection:
    def __init__(self, server: MemoryServer) -> None:
        self.queue: asyncio.Queue[event.Event | None] = asyncio.Queue()
        self._server = server
        self._is_broken = False

    def break_off(self) -> None:
        self._is_broken = True
        self.queue.put_nowait(None)

    async def events(self) -> AsyncIterator[event.Event]:
        while (received := await self.queue.get()) is not None:
            yield received
        raise base.Disconnected("hung up")

    async def publish(self, sent: event.Event) -> None:
        if self._is_broken:
            raise base.Disconnected("hung up")
        await self._server.take(sent)
        if self._is_broken:
            raise base.Disconnected("hung up before the acknowledgement")

    async def is_answered(self, *, within: float) -> bool:
        try:
            async with asyncio.timeout(within):
                await self._server.has_answered.wait()
        except TimeoutError:
            return False
        return True


def stranger(uid: str, *, consumer: str) -> work.ManifestWork:
    """A work of which only the id is known, as it is in a resync."""
    found = work.new(uid, namespace=consumer)
    return found.with_metadata(uid=uid, deletionTimestamp=now().rfc3339_seconds())


def spec_event(wanted: work.ManifestWork, **replaced: Any) -> event.Event:
    stamp = codec.Stamp(id=clocks.new_id(), source=SOURCE, time=now())
    return replace(codec.spec_event(wanted, action=event.Action.CREATE_REQUEST, stamp=stamp), **replaced)


def deletion_event(leaving: work.ManifestWork, *, has_version: bool = True) -> event.Event:
    stamp = codec.Stamp(id=clocks.new_id(), source=SOURCE, time=now())
    sent = codec.spec_event(leaving, action=event.Action.DELETE_REQUEST, stamp=stamp)
    if has_version:
        return sent
    # So the Go server's gRPC broker tells an agent of works it does not have.
    dropped = (event.RESOURCE_VERSION, event.METADATA)
    return replace(sent, extensions={name: value for name, value in sent.extensions.items() if name not in dropped})
