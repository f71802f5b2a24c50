"""Decide what a status update from an agent changes.

Updates arrive twice, late and out of order: the transport delivers at least once. Pure: no I/O, no clock.
`maestropy.server.controllers.status.status_writer` carries the verdict out.
"""

import contextlib
from dataclasses import dataclass, replace

import msgspec

from maestropy.server.decide import status_order
from maestropy.store import rows
from maestropy.wire import errors, json_types, ordering, timestamps
from maestropy.wire.events import event, stored_event

_DELETED = "Deleted"
_NOT_STORED = frozenset((event.CREATED_AT, event.TRACE_PARENT))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusUpdate:
    """One status event of an agent."""

    id: str
    consumer: str
    version: int
    sequence_id: str
    status_hash: str
    is_deleted: bool
    created_seconds: int | None
    """Creation time of the deleted resource as the agent received it, in seconds since 1970."""
    created_at: timestamps.Timestamp | None = None
    """The same exactly; None from a Go agent, or if a Go server has sent the resource."""
    operation_id: str
    received: event.CloudEvent
    envelope: bytes
    """The event in its stored form, without metadata and data."""
    requester: rows.Requester = rows.UNKNOWN_REQUESTER
    trace_parent: str = ""
    """The span of the agent that sent it; empty without tracing, and from Go agents."""
    arrival_span: int = 0
    """The ID of the span that receives it; 0 without tracing."""

    @property
    def size(self) -> int:
        """Approximate memory of the update, in bytes."""
        return len(self.received.data) + 1024

    @property
    def is_resync_response(self) -> bool:
        """Whether the agent answers a status resync request of the server."""
        return self.received.type == event.STATUS_RESYNC_RESPONSE


@dataclass(frozen=True, slots=True)
class Ignore:
    """The stored status stays."""

    reason: str
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """The resource gets this status."""

    sequence_id: str = ""
    """The sequence ID to store in place of the agent's; empty: the agent's."""


@dataclass(frozen=True, slots=True)
class Remove:
    """The agent has deleted everything; the row may be removed."""

    sequence_id: str = ""
    """The sequence ID to store in place of the agent's; empty: the agent's."""


@dataclass(frozen=True, slots=True)
class Redeliver:
    """The agent has deleted a work that was not to be deleted; the spec is sent again."""


@dataclass(frozen=True, slots=True)
class Reject:
    """The update does not fit the resource it names."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unordered:
    """The status is new, but its sequence ID cannot say whether it is newer; the agent is asked for its status."""

    problem: status_order.OrderProblem
    is_error: bool = True
    """Whether the agent gets an error. Not as the answer to a resync response: a Go agent that gets one does not send
    the other statuses that the server requested, and it is asked again anyway."""


Verdict = Ignore | Store | Remove | Redeliver | Reject | Unordered

_PREVIOUS_INCARNATION = Ignore("it is the status of a previous incarnation of this resource ID")


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _StatusData(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Metadata(msgspec.Struct):
    creation: str | None = msgspec.field(name="creationTimestamp", default=None)


_status_data = msgspec.json.Decoder(_StatusData)
_metadata = msgspec.json.Decoder(_Metadata)


def read_status_update(
    received: event.CloudEvent,
    *,
    source_id: str,
    operation_id: str,
    requester: rows.Requester = rows.UNKNOWN_REQUESTER,
) -> StatusUpdate:
    """Read a status event; raises `WireError` that names the wrong attribute."""
    deleted = _reports_deleted(received.data)
    created_at = _timestamp(received.optional_text(event.CREATED_AT)) if deleted else None
    trace_parent = received.optional_text(event.TRACE_PARENT)
    # Not to be stored: sources, and Go servers of the same database, get the attributes of a Go agent.
    received = replace(
        received, extensions={name: value for name, value in received.extensions.items() if name not in _NOT_STORED}
    )
    update = StatusUpdate(
        id=received.text(event.RESOURCE_ID),
        version=received.integer(event.RESOURCE_VERSION),
        consumer=received.text(event.CLUSTER_NAME),
        sequence_id=received.text(event.SEQUENCE_ID),
        status_hash=received.optional_text(event.STATUS_HASH),
        is_deleted=deleted,
        # Only a Deleted status is compared with previous incarnations; parsing all metadata would cost time.
        created_seconds=_created_seconds(received) if deleted else None,
        created_at=created_at,
        operation_id=operation_id,
        received=received,
        # Built here, where one update can be rejected, and not under the locks of a whole batch.
        # Without the agent's copy of the metadata: the source's metadata is stored instead.
        envelope=stored_event.envelope_of(received),
        requester=requester,
        trace_parent=trace_parent,
    )
    event.check_name(update.id, label="failed to get resourceid extension: it")
    original_source = received.text(event.ORIGINAL_SOURCE)
    if original_source != source_id:
        raise errors.MalformedMessage(
            f"unmatched original source id {original_source[:128]} for resource {update.id}: this server is {source_id}"
        )
    ordering.parse(update.sequence_id)
    return update


def needs_previous_sequence_id(stored: rows.StoredStatus | None, update: StatusUpdate) -> bool:
    """Return whether the last status of the previous incarnation is needed to decide on `update`.

    It is not needed once the agent has reported on this incarnation: all updates on earlier ones came before.
    """
    return stored is not None and update.is_deleted and not stored.sequence_id


def decide(
    stored: rows.StoredStatus | None,
    update: StatusUpdate,
    *,
    order: status_order.OrderFacts,
    previous_sequence_id: str = "",
) -> Verdict:
    """Return what `update` changes in `stored`.

    `previous_sequence_id` is that of the Deleted status of the previous incarnation of the resource ID.
    """
    if stored is None:
        return Ignore("there is no such resource")
    if stored.consumer != update.consumer:
        return Reject(f"unmatched consumer name {update.consumer} for resource {update.id}")
    if not update.is_deleted:
        if stored.version != update.version:
            return Ignore(f"it belongs to version {update.version}, the resource has {stored.version}", is_stale=True)
        if _is_same(stored, update):
            return Ignore("the status is unchanged")
    problem = status_order.problem_with(update.sequence_id, stored.sequence_id, now_ms=order.now_ms)
    if problem is not None and not _is_sent_again(update, order):
        if update.is_deleted and _is_of_another_incarnation(stored, update):
            return _PREVIOUS_INCARNATION
        return Unordered(problem, is_error=not (update.is_resync_response and order.can_ask))
    sequence_id = "" if problem is None else status_order.renumbered(stored.sequence_id, now_ms=order.now_ms)
    if update.is_deleted:
        return _decide_deleted(stored, update, order, previous_sequence_id, renumbered=sequence_id)
    return Store(sequence_id)


def status_document(stored: rows.StoredStatus, update: StatusUpdate, *, sequence_id: str = "") -> str:
    """Return the status column: the agent's event with the metadata of the source, and with `sequence_id` if given."""
    created, deleted = stored_event.event_times(stored.created_at, stored.deleted_at)
    metadata = "{}"
    # Damaged metadata must not lose the status, nor the other updates of the batch.
    with contextlib.suppress(errors.WireError):
        metadata = (
            stored_event.metadata_with(stored.metadata, stored_event.timestamp_members(created, deleted))
            if stored.metadata
            else "{}"
        )
    envelope = update.envelope
    if sequence_id:
        extensions = {**update.received.extensions, event.SEQUENCE_ID: sequence_id}
        envelope = stored_event.envelope_of(replace(update.received, extensions=extensions))
    parts = stored_event.StoredParts(envelope=envelope, metadata=metadata.encode(), data=update.received.data)
    return parts.document()


def _is_same(stored: rows.StoredStatus, update: StatusUpdate) -> bool:
    """Return whether the server has this status already, whatever its sequence ID."""
    if update.status_hash == "":
        return update.sequence_id == stored.sequence_id
    return update.status_hash == stored.status_hash and stored.observed_version == str(update.version)


def _is_sent_again(update: StatusUpdate, order: status_order.OrderFacts) -> bool:
    """Return whether the agent sends a new status after the server answered or asked because of an earlier one.

    Without an answer only a resync response follows from a question of the server, and a Deleted status from the delete
    request that is sent again; any other update may have waited at the message broker.
    """
    is_reaction = order.agents_get_errors or update.is_resync_response or update.is_deleted
    return is_reaction and status_order.is_after(update.sequence_id, order.unordered_sequence_id)


def _decide_deleted(
    stored: rows.StoredStatus,
    update: StatusUpdate,
    order: status_order.OrderFacts,
    previous_sequence_id: str,
    *,
    renumbered: str,
) -> Verdict:
    """Decide on a Deleted status: only a requested deletion of this incarnation removes the resource.

    A late status of a previous incarnation must not remove its successor, not even one that is being deleted: its
    objects still exist. The spec is sent again, so that the agent reconciles it.
    """
    # The creation time has full seconds only: two incarnations can share it, their sequence IDs differ.
    if _is_of_previous_incarnation(update.sequence_id, previous_sequence_id, now_ms=order.now_ms):
        return _PREVIOUS_INCARNATION
    # An agent that confirms this deletion repeats the creation time. One that does not may confirm the deletion of an
    # orphan, which had none; the final status of a previous incarnation is known for minutes only.
    is_unclear = update.created_seconds is None and bool(previous_sequence_id and stored.metadata)
    is_of_another = is_unclear or _is_of_another_incarnation(stored, update)
    return Redeliver() if stored.deleted_at is None or is_of_another else Remove(renumbered)


def _is_of_another_incarnation(stored: rows.StoredStatus, update: StatusUpdate) -> bool:
    created, _ = stored_event.event_times(stored.created_at, stored.deleted_at)
    if update.created_at is not None:
        return update.created_at != created
    return update.created_seconds not in (None, created.seconds)


def _is_of_previous_incarnation(sequence_id: str, previous_sequence_id: str, *, now_ms: int) -> bool:
    try:
        if not previous_sequence_id or ordering.is_ahead(previous_sequence_id, now_ms=now_ms):
            return False  # it proves nothing
        return not ordering.is_newer(sequence_id, previous_sequence_id)
    except errors.WireError:
        return False  # the stored sequence ID is damaged or of another agent: it proves nothing


def _created_seconds(received: event.CloudEvent) -> int | None:
    """Return the creation time in the metadata of a status event; None if it is absent or unreadable."""
    text = received.optional_text(event.METADATA)
    try:
        creation = _timestamp(_metadata.decode(text).creation or "") if text else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if creation is None else creation.seconds


def _timestamp(text: str) -> timestamps.Timestamp | None:
    """Return a time that an agent sent; None if it is none."""
    try:
        return timestamps.parse(text) if text else None
    except errors.WireError:
        return None


def _reports_deleted(data: bytes) -> bool:
    if not data:
        # It would erase the stored status, and no agent sends it: one without conditions sends an empty object.
        raise errors.MalformedMessage("the status update has no data; send the status of the work as a JSON object")
    try:
        status: _StatusData = _status_data.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.MalformedMessage(
            f"failed to unmarshal event data: {json_types.decode_problem(error, data)}"
        ) from error
    return any(condition.type == _DELETED and condition.status == "True" for condition in status.conditions or ())
