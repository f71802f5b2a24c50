"""Receive spec events and status resync requests from the server.

A spec that cannot be decoded is reported as not applied; the server does not wait for a status for ever.
"""

import functools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from maestropy.agent.state.work_cache import CachedWork, EventAttributes, WorkCache
from maestropy.agent.telemetry import log_fields
from maestropy.agent.telemetry.work_spans import WorkSpans
from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import AgentPhrase, BrokerPhrase
from maestropy.wire import codec, errors, resync
from maestropy.wire.events import event
from maestropy.wire.works import work

_REQUESTS_REMEMBERED = 64


class InboxCallbacks(NamedTuple):
    """What the inbox calls."""

    reconcile: Callable[[CachedWork], None]
    """The spec or the deletion of a work changed."""
    report_again: Callable[[CachedWork, Callable[[], None]], None]
    """The server requests the status of a work; call back when the server has it."""
    note_stored: Callable[[Iterable[str], int], None]
    """The server says which sequence IDs it has stored, and the time of its database in milliseconds."""
    withdraw: Callable[[str], None]
    """Drop the pending status update of a work."""
    on_orphan: Callable[[], None]
    """The server deletes a work that it does not have."""
    on_status_resynced: Callable[[str, float], None]
    """A status resync of this source was answered, in so many seconds."""
    resync: Callable[[], None]
    """Request a spec resync: an event may be late, or the database was restored."""


class ServerInbox:
    """Handles events in the order of arrival."""

    def __init__(
        self,
        works: WorkCache,
        *,
        consumer: str,
        journal: Journal,
        callbacks: InboxCallbacks,
        clock: clocks.Clock,
        spans: WorkSpans,
    ) -> None:
        self._works = works
        self._consumer = consumer
        self._journal = journal
        self._callbacks = callbacks
        self._clock = clock
        self._monotonic = clock.monotonic
        self._spans = spans
        self._requests: dict[str, int] = {}
        """The numbers of the last spec resync requests, by their IDs."""
        self._request_count = 0

    def note_resync(self, request_id: str) -> None:
        """Note that a spec resync is requested: its answer is newer than all that was received before."""
        self._request_count += 1
        self._requests[request_id] = self._request_count
        for oldest in list(self._requests)[:-_REQUESTS_REMEMBERED]:
            del self._requests[oldest]

    def note_resynced(self, received: event.CloudEvent) -> None:
        """Note the end of an answer to a spec resync: the agent has received all works of this database time."""
        try:
            if not received.is_set(event.UNKNOWN_CONSUMER):
                self._works.complete_at = received.timestamp(event.DATABASE_TIME)
        except errors.WireError as error:
            self._journal.error(AgentPhrase.DECODE_FAILED, {LogKey.EVENT_TYPE: received.type[:256]}, err=error)

    def receive(self, received: event.CloudEvent) -> None:
        """Handle one event; no event can stop the agent."""
        try:
            self._log_received(received)
            kind = event.parse_type(received.type)
            if kind.data_type != event.MANIFEST_BUNDLES:
                self._journal.warning(BrokerPhrase.UNSUPPORTED_DATA_TYPE, {LogKey.EVENT_TYPE: received.type[:256]})
            elif received.text(event.CLUSTER_NAME) != self._consumer:
                self._journal.info(BrokerPhrase.OTHER_CLUSTER, {LogKey.EVENT_TYPE: received.type}, v=4)
            elif kind.subresource == event.Subresource.SPEC and kind.action != event.EventAction.RESYNC_REQUEST:
                self._receive_spec(received)
            elif kind.action == event.EventAction.RESYNC_REQUEST and kind.subresource == event.Subresource.STATUS:
                self._report_requested(received)
            else:
                self._journal.info(BrokerPhrase.UNSUPPORTED_EVENT_TYPE, {LogKey.EVENT_TYPE: received.type[:256]})
        except Exception as error:  # noqa: BLE001 - events are untrusted input
            self._journal.error(AgentPhrase.DECODE_FAILED, {LogKey.EVENT_TYPE: received.type[:256]}, err=error)

    def _receive_spec(self, received: event.CloudEvent) -> None:
        if _is_orphan_deletion(received):
            self._receive_orphan(received)
            return
        started = self._clock.epoch() if self._spans.is_on else 0.0
        try:
            incoming, problem = codec.work_from_spec_event(received), ""
        except errors.WireError as error:
            self._journal.error(
                AgentPhrase.DECODE_FAILED, {LogKey.RESOURCE_ID: received.optional_text(event.RESOURCE_ID)}, err=error
            )
            incoming, problem = _without_spec(received), str(error)
        previous = self._works.get(incoming.uid)
        attributes = EventAttributes(
            id=received.id,
            time=received.time.rfc3339() if received.time else "",
            database=received.optional_text(event.DATABASE_ID),
            created=received.optional_text(event.CREATED_AT),
            requests=self._request_count,
            answers=self._answered_request(received),
        )
        if self._works.is_late(incoming, attributes):
            fields = {LogKey.RESOURCE_ID: incoming.uid, LogKey.EVENT_TYPE: received.type}
            self._journal.info(AgentPhrase.LATE_EVENT, fields)
            self._callbacks.resync()
            return
        cached = self._works.put(incoming, problem=problem, event=attributes)
        if cached is None:
            return
        if previous is not None and previous is not cached:
            # A status of the previous incarnation would confirm the deletion of the new one.
            self._callbacks.withdraw(cached.id)
        if self._spans.is_on:
            self._spans.received(received, start=started, now=self._clock.epoch())
        self._callbacks.reconcile(cached)

    def _answered_request(self, received: event.CloudEvent) -> int:
        """Return the number of the spec resync request that an event answers; 0 if it answers none."""
        if received.type != event.SPEC_RESYNC_RESPONSE:
            return 0
        request_id = received.optional_text(event.RESYNC_ID)
        # A server that does not say it is taken to answer the last request.
        return self._requests.get(request_id, 0) if request_id else self._request_count

    def _receive_orphan(self, received: event.CloudEvent) -> None:
        """Forget a work that the server does not have; its AppliedManifestWork is evicted after the grace period."""
        self._callbacks.on_orphan()
        cached = self._works.get(received.text(event.RESOURCE_ID))
        database = received.optional_text(event.DATABASE_ID)
        if cached is None or (cached.is_deleting and (not database or cached.database in ("", database))):
            # A deletion that was requested goes on; one that another database requested does not count here.
            return
        fields = {LogKey.RESOURCE_ID: cached.id, LogKey.MANIFEST_WORK_NAME: cached.name}
        self._journal.warning(AgentPhrase.ORPHANED, fields)
        self._callbacks.withdraw(cached.id)
        self._works.drop(cached)
        self._callbacks.reconcile(cached)

    def _report_requested(self, received: event.CloudEvent) -> None:
        """Report the statuses whose hashes differ from those in the request."""
        marks = resync.decode_status_marks(received.data)
        database_time = received.timestamp(event.DATABASE_TIME)
        if database_time is not None:
            # Before the statuses are sent: the server would not accept them under an older sequence ID.
            self._callbacks.note_stored([mark.sequence_id for mark in marks], database_time.milliseconds)
        source_hashes = {mark.id: mark.hash for mark in marks}
        # A request comes in parts of a thousand works: each part looks at its own works, not at all.
        named = filter(None, (self._works.get(mark.id) for mark in marks)) if marks else self._works
        current = [(cached.id, cached.status.hash()) for cached in named]
        changed = [self._works.get(work_id) for work_id in resync.status_resync_response(current, source_hashes)]
        works = [cached for cached in changed if cached is not None and cached.status.body]
        started, unreported = self._monotonic(), {cached.id for cached in works}

        def reported(work_id: str) -> None:
            unreported.discard(work_id)
            if not unreported:
                self._callbacks.on_status_resynced(received.source, self._monotonic() - started)

        for cached in works:
            self._callbacks.report_again(cached, functools.partial(reported, cached.id))

    def _log_received(self, received: event.CloudEvent) -> None:
        if self._journal.is_enabled(2):
            self._journal.info(AgentPhrase.RECEIVED, log_fields.event_fields(received), v=2)


def _is_orphan_deletion(received: event.CloudEvent) -> bool:
    """Whether the server deletes a work that it does not have, and no source requested that.

    Our servers say so. The answer of a Go server to a spec resync is recognised by what it lacks: a resource that is
    being deleted is sent with its metadata or its manifests.
    """
    if received.is_set(event.ORPHAN):
        return True
    is_bare = not received.data and event.METADATA not in received.extensions
    is_deletion = received.extensions.get(event.DELETION_TIMESTAMP) is not None
    return received.type == event.SPEC_RESYNC_RESPONSE and is_deletion and is_bare


def _without_spec(received: event.CloudEvent) -> work.ManifestWork:
    """Return as much of the work as a status report needs; raises if not even that can be decoded."""
    manifest_work = work.ManifestWork({"metadata": {"name": received.text(event.RESOURCE_ID)}})
    return manifest_work.with_metadata(
        uid=received.text(event.RESOURCE_ID),
        generation=received.integer(event.RESOURCE_VERSION),
        namespace=received.text(event.CLUSTER_NAME),
    ).with_labels({work.ORIGINAL_SOURCE_LABEL: received.source})
