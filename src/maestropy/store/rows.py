"""Row values that the store returns and accepts.

Pure: `decide` modules may import this module of the store and no other.
"""

from dataclasses import dataclass
from datetime import datetime

from maestropy.wire.events import stored_event


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSpec:
    """A resource with its spec, to dispatch it to the agent."""

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
class RepublishedResource:
    """A resource that was queued again because it never got a status."""

    id: str
    consumer: str
    source: str
    created_at: datetime
