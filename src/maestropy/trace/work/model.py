"""The values a trace of works is made of: what the database says, what clusters say, and what nobody could say.

Pure values. A side that could not be seen is never an empty one: `Sight` keeps the difference, because "not found"
and "not allowed to look" lead to opposite advice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Json = Mapping[str, Any]
WORK_GROUP = "work.open-cluster-management.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Whether somebody could be asked."""

    place: str
    """Who was asked, in words: `database (DSN)`, `cluster mgmt-1`."""
    is_clear: bool
    trouble: str = ""
    """Why it could not be seen, with the remedy."""
    consumer: str = ""
    """For a cluster: whose it is, if we were told or found out."""
    kubectl: str = ""
    """For a cluster: the flags that lead kubectl there, ready to paste."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition, of a work or of a manifest."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    generation: int | None = None

    def __str__(self) -> str:
        return f"{self.type}={self.status}"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ObjectKey:
    """Which object. Databases know the kind, applied works the plural; either may be empty."""

    group: str
    kind: str = ""
    plural: str = ""
    namespace: str = ""
    name: str

    def __str__(self) -> str:
        what = self.kind or self.plural
        return f"{what}/{self.namespace}/{self.name}" if self.namespace else f"{what}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Kind:
    """A kind as a cluster serves it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestReport:
    """What the agent said about one manifest."""

    key: ObjectKey
    conditions: tuple[Condition, ...] = ()
    feedback: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The newest report in the database."""

    version: int
    sequence: str
    time: datetime | None
    conditions: tuple[Condition, ...]
    manifests: tuple[ManifestReport, ...]

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of that type."""
        return next((each for each in self.conditions if each.type == kind), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecEvent:
    """One row of the table of spec events."""

    id: str
    type: str
    created: datetime | None
    reconciled: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One resource as the database has it."""

    id: str
    source: str
    """Empty where the REST API is asked: it does not tell."""
    consumer: str
    version: int
    work_name: str
    labels: Mapping[str, str]
    created: datetime | None
    updated: datetime | None
    deleted: datetime | None
    manifests: tuple[Json, ...]
    configs: tuple[Json, ...] = ()
    status: Status | None = None
    operation_id: str = ""
    events: tuple[SpecEvent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """What is left of a resource whose deletion was confirmed, until the table is purged."""

    resource_id: str
    source: str
    work_name: str
    consumer: str
    created: datetime | None
    """When the confirmation was stored."""
    manifests: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedResource:
    """One line of an applied work's status."""

    group: str
    version: str
    plural: str
    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> ObjectKey:
        """Which object it means."""
        return ObjectKey(group=self.group, plural=self.plural, namespace=self.namespace, name=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedWork:
    """An AppliedManifestWork on a cluster."""

    cluster: str
    name: str
    uid: str
    hub_hash: str
    agent_id: str
    work_name: str
    """`spec.manifestWorkName`: the resource id, or the user's work name before January 2026."""
    created: datetime | None = None
    deleting: datetime | None = None
    evicting: datetime | None = None
    finalizers: tuple[str, ...] = ()
    resources: tuple[AppliedResource, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One entry of an object's ownerReferences."""

    group: str
    kind: str
    name: str
    uid: str


LiveState = Literal["present", "absent", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """One object as a cluster has it now."""

    cluster: str
    key: ObjectKey
    state: LiveState
    trouble: str = ""
    uid: str = ""
    deleting: datetime | None = None
    finalizers: tuple[str, ...] = ()
    owners: tuple[Owner, ...] = ()
    content: Json = field(default_factory=dict)
    """The whole object, where it was asked for."""

    @property
    def applied_owners(self) -> tuple[Owner, ...]:
        """The applied works that own it."""
        return tuple(each for each in self.owners if each.kind == "AppliedManifestWork")


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedWork:
    """A ManifestWork that is itself a manifest of a work, with what became of it on the same cluster."""

    depth: int
    cluster: str
    namespace: str
    name: str
    manifests: tuple[Json, ...]
    status: Status | None
    applied: tuple[AppliedWork, ...]
    lives: tuple[Live, ...]
    nested: tuple["NestedWork", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """All that is known about one work."""

    row: Row | None
    tombstones: tuple[Tombstone, ...] = ()
    applied: tuple[AppliedWork, ...] = ()
    lives: tuple[Live, ...] = ()
    nested: tuple[NestedWork, ...] = ()
    plurals: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Plural by (group, kind), as the clusters told; what is missing is guessed by English grammar."""
    asked: str = ""
    """The identifier somebody gave, where no row answers to it."""
    database: Sight
    clusters: tuple[Sight, ...] = ()
    looked_at_objects: bool = True
