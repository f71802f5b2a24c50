"""Rows as values: what the store hands out and takes in.

Pure: of the whole store, deciding code may know this module and nothing else.
"""

from dataclasses import dataclass
from datetime import datetime

from maestropy.wire import record


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSpec:
    """A spec to be written: all of a bundle that a source may set, and the id of the event that announces it."""

    id: str
    source: str
    consumer: str
    version: int
    parts: record.Parts
    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A bundle as the store holds it, for deciding on a change."""

    id: str
    version: int
    source: str
    consumer: str
    deleting: bool
    parts: record.Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A bundle as deliveries send it."""

    id: str
    version: int
    source: str
    consumer: str
    created_at: datetime
    updated_at: datetime
    """When its spec or its status last changed; a deletion changes neither."""
    deleted_at: datetime | None
    parts: record.Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A bundle as the store holds it, for judging a report about it."""

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
    """A status to be written: the stored form of the agent's event, and the id of the event that announces it."""

    id: str
    source: str
    document: str
    event_id: str


@dataclass(frozen=True, slots=True)
class StatusEvent:
    """Something to tell the subscribers of a source."""

    id: str
    resource_id: str
    source: str
    final: bool
    created_at: datetime
    consumer: str
    """Empty when the bundle is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A bundle's status with the spec it belongs to, as its source gets to see it."""

    id: str
    source: str
    status: str
    data: bytes
    created_at: datetime | None = None
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """A bundle that changed and the consumer that should hear of it; no consumer: the bundle is gone."""

    id: str
    resource_id: str
    event_type: str
    consumer: str | None
    reconciled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unconfirmed:
    """A bundle whose agent was told to delete it and has not said that it is gone."""

    id: str
    consumer: str
    source: str
    deleted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Republished:
    """A bundle that was queued again because no agent ever answered."""

    id: str
    consumer: str
    source: str
    created_at: datetime
