"""Cache the works of this agent in memory: their desired state and the status last reported.

Everything runs on the event loop without a pause, so each work has one writer. A work that is being deleted is never
revived by a late update.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from maestropy.agent.decide import late_events
from maestropy.agent.decide.data_safety import SpecOrigin
from maestropy.wire import errors, packed_json, timestamps
from maestropy.wire.works import work
from maestropy.wire.works.status import WorkStatus


class EventAttributes(NamedTuple):
    """What the cache keeps of the event that carried a work; empty texts are unknown."""

    id: str = ""
    time: str = ""
    database: str = ""
    created: str = ""
    """The exact creation time of the resource; a Go server sends none."""
    requests: int = 0
    """How many spec resyncs were requested before the event was received."""
    answers: int = 0
    """The number of the spec resync request that the event answers; 0 if it answers none."""


class StatusKey(NamedTuple):
    """What tells a status from another one.

    A status may have the hash of one that was reported for another version: after a restored backup the versions of a
    resource are used again.
    """

    created: str
    version: int
    hash: str


_UNKNOWN_EVENT = EventAttributes()
_DELETED_REMEMBERED = 4096


@dataclass(slots=True)
class CachedWork:
    """One work."""

    manifest_work: work.ManifestWork
    """The work without its spec; every spec event replaces it."""
    spec: bytes = b""
    """The packed spec. Empty if no spec could be decoded yet."""
    database: str = ""
    """The identity of the database that the newest event came from; empty if the server sends none."""
    created: str = ""
    """The exact creation time of the resource; empty if the server sends none."""
    event_id: str = ""
    """The ID of the event that published the spec."""
    published: str = ""
    """When the source published the spec."""
    known_since: int = 0
    """How many spec resyncs were requested before this state was received: later answers are newer."""
    is_held: bool = False
    """Whether nothing of the newest event is carried out, for data safety."""
    problem: str = ""
    """Why the newest spec cannot be applied; the last valid spec stays applied."""
    status: WorkStatus = field(default_factory=WorkStatus)
    reported: "StatusKey | None" = None
    """The status that the server has."""
    pending: "StatusKey | None" = None
    """The status on its way to the server."""
    reconciled: work.ManifestWork | None = None
    """The work as of the last full reconcile, and until when (monotonic) only changes need to be reconciled."""
    reconciled_until: float = 0.0

    def with_spec(self) -> work.ManifestWork:
        """Return the work with its spec."""
        if not self.spec:
            return self.manifest_work
        return work.ManifestWork({**self.manifest_work.body, "spec": packed_json.unpack(self.spec)})

    @property
    def origin(self) -> SpecOrigin:
        """Where the spec, or the deletion, comes from."""
        event = EventAttributes(time=self.published, database=self.database, created=self.created)
        return _origin(self.manifest_work, event)

    @property
    def status_key(self) -> StatusKey:
        """What the status is reported as."""
        return StatusKey(self.created, self.manifest_work.generation, self.status.hash())

    @property
    def id(self) -> str:
        """The resource ID."""
        return self.manifest_work.uid

    @property
    def name(self) -> str:
        """The name of the work, which its AppliedManifestWork is named after."""
        return self.manifest_work.name

    @property
    def is_deleting(self) -> bool:
        """Whether its deletion was requested."""
        return bool(self.manifest_work.deletion_timestamp)

    @property
    def is_deleted(self) -> bool:
        """Whether all its objects are gone; the server may not know yet."""
        return self.is_deleting and self.status.is_deleted

    def with_status(self) -> work.ManifestWork:
        """Return the work with its status, as it is reported to the server."""
        reported = self.manifest_work.with_status(self.status)
        # A deleted work has no finalizers, as the Go agent reports it.
        return reported.with_metadata(finalizers=None) if self.status.is_deleted else reported


class WorkCache:
    """All works, by resource ID and by name."""

    def __init__(self) -> None:
        self._by_id: dict[str, CachedWork] = {}
        self._by_name: dict[str, CachedWork] = {}
        self._deleted: dict[str, CachedWork] = {}
        """The works that were deleted last, without spec and status, by resource ID."""
        self.complete_at: timestamps.Timestamp | None = None
        """Database time of the last answer to a spec resync that was received completely; None if there is none."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[CachedWork]:
        return iter(list(self._by_id.values()))

    def get(self, work_id: str) -> CachedWork | None:
        """Return a work by its resource ID."""
        return self._by_id.get(work_id)

    def by_name(self, name: str) -> CachedWork | None:
        """Return a work by its name."""
        return self._by_name.get(name)

    def is_late(self, incoming: work.ManifestWork, event: EventAttributes) -> bool:
        """Return whether an event seems to be older than what the agent has, or has deleted.

        A server that sends no identity is not asked about it, and a lower version is not taken: see `_is_change`.
        """
        cached = self._by_id.get(incoming.uid)
        known = cached or self._deleted.get(incoming.uid)
        if not event.database or event.answers > (known.known_since if known else 0):
            return False
        origin = _origin(incoming, event)
        was_absent = late_events.was_absent(event.created, complete_at=self.complete_at)
        if known is None:
            return was_absent and not incoming.deletion_timestamp
        if incoming.deletion_timestamp:
            return cached is not None and late_events.is_late_deletion(known.origin, origin)
        if cached is not None and cached.is_deleting and not cached.is_deleted:
            # The server says whether it uses the database of the deletion or that of this event.
            return _is_deletion_of_other_database(cached, event)
        if cached is None or cached.is_deleted:
            return was_absent or late_events.is_deleted_before(known.origin, origin)
        return late_events.is_late_spec(known.origin, origin)

    def put(
        self, incoming: work.ManifestWork, *, problem: str = "", event: EventAttributes = _UNKNOWN_EVENT
    ) -> CachedWork | None:
        """Store what the server sent; return the work if that changed anything."""
        cached = self._by_id.get(incoming.uid)
        if (
            cached is not None
            and cached.is_deleted
            and (not incoming.deletion_timestamp or _is_successor(cached, incoming))
        ):
            # The server already removed it and a source created a new incarnation, before the server's acknowledgement
            # arrived.
            self.drop(cached)
            cached = None
        if cached is not None and not incoming.deletion_timestamp and _is_deletion_of_other_database(cached, event):
            # The database that this event comes from has the work; another one had it deleted.
            self._forget(cached)
            cached = None
        if cached is None and incoming.deletion_timestamp and incoming.name in self._by_name:
            # The ID is unknown, and the AppliedManifestWork of that name belongs to another work.
            return None
        if cached is None:
            cached = CachedWork(manifest_work=_without_spec(incoming), spec=_pack_spec(incoming), problem=problem)
            _note_event(cached, event, is_deletion=bool(incoming.deletion_timestamp))
            self._by_id[cached.id] = self._by_name[cached.name] = cached
            return cached
        if not _is_change(cached, incoming, event):
            return None
        cached.is_held = False
        _note_event(cached, event, is_deletion=bool(incoming.deletion_timestamp))
        if cached.name != incoming.name:
            self._by_name.pop(cached.name, None)
        if problem or incoming.deletion_timestamp:
            cached.manifest_work = _with_metadata_of(cached, _without_spec(incoming))
        else:
            cached.manifest_work, cached.spec = _without_spec(incoming), _pack_spec(incoming)
        cached.problem = problem
        self._by_name[cached.name] = cached
        return cached

    def drop(self, cached: CachedWork) -> None:
        """Remove a work that is gone; a later incarnation with the same ID stays."""
        if cached.is_deleted:
            self._deleted.pop(cached.id, None)
            self._deleted[cached.id] = CachedWork(
                manifest_work=work.ManifestWork({"metadata": {"creationTimestamp": cached.origin.created}}),
                published=cached.published,
                known_since=cached.known_since,
            )
            for oldest in list(self._deleted)[:-_DELETED_REMEMBERED]:
                del self._deleted[oldest]
        self._forget(cached)

    def _forget(self, cached: CachedWork) -> None:
        if self._by_id.get(cached.id) is cached:
            del self._by_id[cached.id]
        if self._by_name.get(cached.name) is cached:
            del self._by_name[cached.name]

    def versions(self) -> dict[str, int]:
        """Return the versions for a spec resync request.

        A work that is being deleted has none: the server may use another database by now, which has the work.
        """
        return {cached.id: 0 if cached.is_deleting else cached.manifest_work.generation for cached in self}

    def event_ids(self) -> dict[str, str]:
        """Return the IDs of the events that published the specs, for a spec resync request."""
        return {cached.id: cached.event_id for cached in self if cached.event_id and not cached.is_deleting}


def _origin(manifest_work: work.ManifestWork, event: EventAttributes) -> SpecOrigin:
    return SpecOrigin(
        database=event.database,
        created=event.created or manifest_work.creation_timestamp,
        version=manifest_work.generation,
        published=event.time,
    )


def _note_event(cached: CachedWork, event: EventAttributes, *, is_deletion: bool) -> None:
    cached.database, cached.created, cached.known_since = event.database, event.created, event.requests
    if not is_deletion:
        cached.event_id, cached.published = event.id, event.time


def _is_change(cached: CachedWork, incoming: work.ManifestWork, event: EventAttributes) -> bool:
    if incoming.deletion_timestamp:
        is_new = _is_successor(cached, incoming) or _is_deletion_of_other_database(cached, event)
        return not cached.is_deleting or is_new
    if cached.is_deleting:
        # A held deletion has not begun: it was of a wrong database, and the server may have the right one again.
        return cached.is_held
    if incoming.generation == 0 or incoming.generation >= cached.manifest_work.generation:
        return True
    # A lower version is late, or the database was restored. With an identity of the database the inbox has asked the
    # server which it is (`is_late`); otherwise the publication time says which spec is newer.
    return bool(event.database) or _is_later(event.time, than=cached.published)


def _is_deletion_of_other_database(cached: CachedWork, event: EventAttributes) -> bool:
    """Whether a work is being deleted, and another database than that of an event requested it."""
    is_other = bool(cached.database and event.database and cached.database != event.database)
    return cached.is_deleting and is_other


def _is_later(time: str, *, than: str) -> bool:
    try:
        return timestamps.parse(time) > timestamps.parse(than)
    except errors.WireError:
        return False


def _is_successor(cached: CachedWork, incoming: work.ManifestWork) -> bool:
    """Whether the event is about a later incarnation of the same ID, whose deletion the server waits for."""
    # Both timestamps are UTC in whole seconds, so text comparison is correct.
    return incoming.creation_timestamp > cached.manifest_work.creation_timestamp


def _with_metadata_of(cached: CachedWork, incoming: work.ManifestWork) -> work.ManifestWork:
    """Return the metadata after a deletion or an invalid spec; the last valid spec and its name stay."""
    known = cached.manifest_work
    changed = known.with_annotations(incoming.tracing).with_metadata(
        generation=incoming.generation or known.generation,
        creationTimestamp=incoming.creation_timestamp or known.creation_timestamp or None,
        deletionTimestamp=incoming.deletion_timestamp or None,
    )
    # Without any valid spec there is nothing to keep but the newest event.
    return changed if cached.spec else incoming.with_metadata(generation=changed.generation)


def _without_spec(manifest_work: work.ManifestWork) -> work.ManifestWork:
    return work.ManifestWork({name: value for name, value in manifest_work.body.items() if name != "spec"})


def _pack_spec(manifest_work: work.ManifestWork) -> bytes:
    return packed_json.pack(manifest_work.spec) if manifest_work.spec else b""
