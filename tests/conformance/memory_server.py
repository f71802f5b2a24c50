"""Run a Maestro server in memory for one agent: it sends spec events, answers resyncs and stores statuses.

It is the agent's transport, and a server for the test. It can be unreachable, disconnect, delay acknowledgements, and
send events twice and out of order, as brokers do.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from maestropy.aio import clock as clocks
from maestropy.transport import port
from maestropy.wire import codec, ordering, resync, timestamps
from maestropy.wire.events import event
from maestropy.wire.works import work

SOURCE = "maestro"


def now() -> timestamps.Timestamp:
    return timestamps.from_datetime(clocks.Clock().now())


class MemoryServer:
    """One server with one consumer."""

    subscribed_records: Sequence[port.LogRecord] = (("subscribed to a server in memory", {}),)

    def __init__(self, address: str, *, consumer: str) -> None:
        self.address = address
        self.consumer = consumer
        self.works: dict[str, work.ManifestWork] = {}
        self.event_ids: dict[str, str] = {}
        self.times: dict[str, timestamps.Timestamp] = {}
        """The ID and time of the source's event that published each work."""
        self.statuses: dict[str, list[work.ManifestWork]] = {}
        self.resync_requests: list[dict[str, int]] = []
        """The versions in the spec resync request of each connection."""
        self.database = ""
        """The identity of the database; empty for a server that sends none, such as a Go server."""
        self.is_consumer_known = True
        self.holds: list[resync.ReportedHold | None] = []
        """The hold in each spec resync request."""
        self.adopted_hold = ""
        self.is_unreachable = False
        self.accepts_resyncs = True
        self.answers_resync = asyncio.Event()
        """While cleared, resync requests are accepted, as by a broker, and not answered."""
        self.answers_resync.set()
        self.acknowledging = asyncio.Event()
        """While cleared, no published event is acknowledged."""
        self.acknowledging.set()
        self.rejections_left = 0
        """How many of the next status updates are rejected."""
        self.postponements_left: dict[str, int] = {}
        """How many of the next status updates of a work the server is too busy for."""
        self.changed = asyncio.Condition()
        self._connection: _Connection | None = None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[port.AgentConnection]:
        if self.is_unreachable:
            raise port.Disconnected("unreachable")
        self._connection = connection = _Connection(self)
        try:
            yield connection
        finally:
            connection.close()
            if self._connection is connection:
                self._connection = None

    def put(self, manifest_work: work.ManifestWork) -> work.ManifestWork:
        """Store a work under the next version and send it."""
        previous = self.works.get(manifest_work.uid)
        stored = manifest_work.with_metadata(generation=(previous.generation if previous else 0) + 1)
        self.works[stored.uid] = stored
        self.event_ids[stored.uid], self.times[stored.uid] = clocks.new_id(), now()
        self.resend(stored.uid)
        return stored

    def delete(self, uid: str, *, has_version: bool = True) -> None:
        """Mark a work as deleting and send the deletion."""
        deleting_work = self.works[uid].with_metadata(deletionTimestamp=now().rfc3339_seconds())
        self.works[uid] = deleting_work
        self.send(deletion_event(deleting_work, has_version=has_version))

    def send(self, sent: event.CloudEvent) -> None:
        """Send an event to the agent, if it is connected."""
        if self.database:
            sent = replace(sent, extensions={**sent.extensions, event.DATABASE_ID: self.database})
        if self._connection is not None:
            self._connection.queue.put_nowait(sent)

    def request_statuses(self, hashes: dict[str, str]) -> None:
        request = event.CloudEvent(
            id=clocks.new_id(),
            source=SOURCE,
            type=event.STATUS_RESYNC_REQUEST,
            time=now(),
            extensions={event.CLUSTER_NAME: self.consumer},
            data=resync.encode_hashes(hashes),
        )
        self.send(request)

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()

    async def receive(self, received: event.CloudEvent) -> None:
        """Receive what the agent publishes; return when it is acknowledged."""
        await self.acknowledging.wait()
        if received.type == event.SPEC_RESYNC_REQUEST:
            self._answer_resync(received)
        else:
            if self.rejections_left:
                self.rejections_left -= 1
                raise port.PublishRejected("the test rejects it")
            if self.postponements_left.get(received.text(event.RESOURCE_ID), 0) > 0:
                self.postponements_left[received.text(event.RESOURCE_ID)] -= 1
                raise port.Busy("not now")
            self._store_status(codec.work_from_status_event(received), received)
        async with self.changed:
            self.changed.notify_all()

    def _answer_resync(self, received: event.CloudEvent) -> None:
        request = resync.decode_request(received.data)
        self.resync_requests.append(dict(request.versions))
        self.holds.append(request.hold)
        if not self.accepts_resyncs:
            raise port.Disconnected("no response")
        if not self.answers_resync.is_set():
            return
        rows = [
            resync.StoredVersion(
                work_row.uid,
                work_row.generation,
                bool(work_row.deletion_timestamp),
                self.event_ids.get(work_row.uid, ""),
            )
            for work_row in self.works.values()
        ]
        event_ids = request.event_ids if self.database else None
        response = resync.spec_resync_response(rows, request.versions, event_ids=event_ids)
        for uid in response.send:
            self.resend(uid, answers=received.id)
        for uid in response.orphans if self.is_consumer_known else ():
            self.send(self._orphan_deletion(uid))
        if self.database:
            self.send(self._end_of_resync(received.id))

    def resend(self, uid: str, *, answers: str = "") -> None:
        """Send a work as it is stored; `answers` is the ID of the resync request that it answers."""
        manifest_work = self.works[uid]
        if manifest_work.deletion_timestamp:
            sent = deletion_event(manifest_work)
        else:
            event_id, time = self.event_ids.setdefault(uid, clocks.new_id()), self.times.setdefault(uid, now())
            sent = spec_event(manifest_work, id=event_id, time=time)
        if answers and self.database:
            extensions = {**sent.extensions, event.RESYNC_ID: answers}
            sent = replace(sent, type=event.SPEC_RESYNC_RESPONSE, extensions=extensions)
        self.send(sent)

    def _orphan_deletion(self, uid: str) -> event.CloudEvent:
        sent = deletion_event(unknown_work(uid, consumer=self.consumer), has_version=False)
        sent = replace(sent, type=event.SPEC_RESYNC_RESPONSE)
        if not self.database:
            return sent
        return replace(sent, extensions={**sent.extensions, event.ORPHAN: True, event.RESOURCE_VERSION: 0})

    def _end_of_resync(self, request_id: str) -> event.CloudEvent:
        sent = self._orphan_deletion(request_id)
        extensions: dict[str, event.Attribute] = {**sent.extensions, event.ADOPTED_HOLD: self.adopted_hold}
        if not self.is_consumer_known:
            extensions[event.UNKNOWN_CONSUMER] = True
        return replace(sent, extensions=extensions)

    def _store_status(self, reported: work.ManifestWork, received: event.CloudEvent) -> None:
        statuses = self.statuses.setdefault(reported.uid, [])
        sequence = received.text(event.SEQUENCE_ID)
        if statuses:
            previous_sequence = statuses[-1].annotations[work.SEQUENCE_ID_ANNOTATION]
            assert ordering.is_newer(sequence, previous_sequence), "a server would reject this sequence ID"
        statuses.append(reported)
        manifest_work = self.works.get(reported.uid)
        if reported.status.is_deleted and manifest_work is not None:
            assert manifest_work.deletion_timestamp, (
                "the agent reports a work as deleted whose deletion was not requested"
            )
            del self.works[reported.uid]


class _Connection:
    def __init__(self, server: MemoryServer) -> None:
        self.queue: asyncio.Queue[event.CloudEvent | None] = asyncio.Queue()
        self._server = server
        self._is_broken = False

    def close(self) -> None:
        self._is_broken = True
        self.queue.put_nowait(None)

    async def events(self) -> AsyncIterator[event.CloudEvent]:
        while (received := await self.queue.get()) is not None:
            yield received
        raise port.Disconnected("disconnected")

    async def publish(self, sent: event.CloudEvent) -> None:
        if self._is_broken:
            raise port.Disconnected("disconnected")
        await self._server.receive(sent)
        if self._is_broken:
            raise port.Disconnected("disconnected before the acknowledgement")

    async def is_resync_answered(self, *, within: float) -> bool:
        try:
            async with asyncio.timeout(within):
                await self._server.answers_resync.wait()
        except TimeoutError:
            return False
        return True


def unknown_work(uid: str, *, consumer: str) -> work.ManifestWork:
    """A work of which only the id is previous, as it is in a resync."""
    manifest_work = work.new(uid, namespace=consumer)
    return manifest_work.with_metadata(uid=uid, deletionTimestamp=now().rfc3339_seconds())


def spec_event(manifest_work: work.ManifestWork, **replaced: Any) -> event.CloudEvent:
    attributes = codec.ContextAttributes(id=clocks.new_id(), source=SOURCE, time=now())
    return replace(
        codec.spec_event(manifest_work, action=event.EventAction.CREATE_REQUEST, attributes=attributes), **replaced
    )


def deletion_event(deleting_work: work.ManifestWork, *, has_version: bool = True) -> event.CloudEvent:
    attributes = codec.ContextAttributes(id=clocks.new_id(), source=SOURCE, time=now())
    sent = codec.spec_event(deleting_work, action=event.EventAction.DELETE_REQUEST, attributes=attributes)
    if has_version:
        return sent
    # As the Go server's gRPC broker deletes works that it does not have.
    dropped = (event.RESOURCE_VERSION, event.METADATA)
    return replace(sent, extensions={name: value for name, value in sent.extensions.items() if name not in dropped})
