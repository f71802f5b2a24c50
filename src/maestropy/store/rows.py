"""Row values that the store returns and accepts.

Pure: `decide` modules may import this module of the store and no other.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import msgspec

from maestropy.wire.events import stored_event


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """Who sent a request, and from where."""

    user: str = ""
    """The authenticated user; empty without authentication, and for what a message broker delivers."""
    address: str = ""


UNKNOWN_REQUESTER = Requester()


@dataclass(frozen=True, slots=True)
class Record:
    """What the history keeps of a change beside the changed row: who asked for it, and what it changed."""

    requester: Requester
    operation_id: str
    detail: str
    """JSON of a bounded size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """A row of the history that belongs to no change of a resource."""

    kind: str
    at: datetime
    subject_id: str = ""
    """The ID of a work or of a consumer."""
    consumer: str = ""
    source: str = ""
    version: int = 0
    requester: Requester = UNKNOWN_REQUESTER
    operation_id: str = ""
    result: str = ""
    detail: str = "{}"


@dataclass(frozen=True, slots=True)
class Period:
    """The time of a partition of the history: from `start` until before `end`."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSpec:
    """A spec to write: the fields that a source sets, and the ID of the spec event."""

    id: str
    source: str
    consumer: str
    version: int
    parts: stored_event.StoredParts
    event_id: str
    created_by: str = ""
    """The ID of the source's event, for a new resource."""
    history: Record | None = None
    """None: the change is not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSpec:
    """The stored spec of a resource, to decide on a spec request."""

    id: str
    version: int
    source: str
    consumer: str
    is_deleting: bool
    parts: stored_event.StoredParts
    is_held_back: bool = False
    """Whether the agent keeps a newer version, which this database has lost, until the source publishes again."""


class ResourceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A resource with its spec, to dispatch it to the agent; a resync makes one of every work of a cluster."""

    id: str
    version: int
    source: str
    consumer: str
    created_at: datetime
    updated_at: datetime
    """When the spec or the status last changed; a delete request changes neither."""
    deleted_at: datetime | None
    parts: stored_event.StoredParts
    database_id: str = ""
    """The identity of the database."""
    is_paused: bool = False
    """Whether an operator has paused the delivery to its consumer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStatus:
    """The stored status of a resource, to decide on a status update."""

    id: str
    version: int
    source: str
    consumer: str
    created_at: datetime
    deleted_at: datetime | None
    sequence_id: str
    status_hash: str
    observed_version: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStatus:
    """A status to write: the stored form of the agent's event, and the ID of the status event."""

    id: str
    source: str
    document: str
    event_id: str
    history: Record | None = None
    """None: the change is not recorded."""


@dataclass(frozen=True, slots=True)
class StatusEvent:
    """A row of `status_events`: a status to dispatch to the subscribers of a source."""

    id: str
    resource_id: str
    source: str
    is_final: bool
    created_at: datetime
    consumer: str
    """Empty if the resource has been removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceStatus:
    """A status with the spec it belongs to, to dispatch it to the source."""

    id: str
    source: str
    status: str
    data: bytes
    created_at: datetime | None = None
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """A row of `events`: a changed resource and its consumer; None if the resource has been removed."""

    id: str
    resource_id: str
    event_type: str
    consumer: str | None
    is_reconciled: bool = False
    is_repeated: bool = False
    """Whether it repeats a delete request that the agent has not confirmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnconfirmedDeletion:
    """A resource that is being deleted and whose agent has not confirmed the deletion."""

    id: str
    consumer: str
    source: str
    deleted_at: datetime
    delay_ns: int | None
    """The delay before its last redelivery, in nanoseconds as Go servers store it; None without a schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """When a deletion is sent again, and the delay from which the next one is computed, in nanoseconds."""

    at: datetime
    delay_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionBacklog:
    """How many deletions, consumers and delete events wait, and the ages of the oldest in seconds."""

    unscheduled: int
    due: int
    delayed: int
    oldest_unscheduled: float
    oldest_due: float
    oldest_delayed: float
    due_consumers: int
    scheduled_consumers: int
    pending_events: int
    oldest_pending_event: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCounts:
    """What data-safety holds keep, and what agents evict after the grace period."""

    works: int
    consumers: int
    pending_evictions: int
    next_eviction: float
    """When the first of them is evicted, in seconds since 1970; 0 if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerCounts:
    """How many consumers have resources, and of how many of them the agents are connected to one instance."""

    with_works: int
    connected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepublishedResource:
    """A resource that was queued again because it never got a status."""

    id: str
    consumer: str
    source: str
    created_at: datetime


class Pause(NamedTuple):
    """The delivery of specs to a consumer is paused: since when, by whom, and why."""

    consumer: str
    paused_at: datetime
    paused_by: str
    reason: str


class ConsumerFacts(NamedTuple):
    """What decides about an action on a consumer."""

    id: str
    name: str
    pause: Pause | None
    seen_at: datetime | None
    """When a maestropy server last saw an agent of it; None: never."""
    works: int
    deleting: int
    """How many of the works are being deleted."""
    waiting: int
    """How many of the works wait for delivery."""
    has_go_servers: bool
    """Whether a Go server runs on this database; it knows no pauses, and does not say which agents it serves."""
    servers_since: datetime | None
    """Since when the maestropy server that runs the longest has been running."""


class NamedWork(NamedTuple):
    """A work, as an action names it."""

    id: str
    version: int
    is_deleting: bool
    name: str
    consumer: str
    source: str


class Orphan(NamedTuple):
    """A row that belongs to nothing: its class, what identifies it, and since when it is there."""

    kind: str
    subject: str
    since: datetime
    seen_at: datetime | None = None
    """When an agent of this consumer was seen last; None: never, or it is about no agent."""


class AgentSide(NamedTuple):
    """Works that the agent of a consumer keeps, or will evict, because the database does not ask for them."""

    consumer: str
    reason: str
    held: int
    pending: int


class WorkVersion(NamedTuple):
    """A work and its version."""

    id: str
    version: int
    is_deleting: bool
