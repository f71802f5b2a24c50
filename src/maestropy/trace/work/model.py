"""Values of a work trace: what the database and the clusters returned, and what could not be read.

Pure values. "Not found" and "could not be read" are different results: `AccessStatus` keeps the difference, because
they lead to opposite advice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from maestropy.trace.work.query import WorkQuery
from maestropy.wire.works.status import DATA_SAFETY_HOLD

Json = Mapping[str, Any]
WORK_GROUP = "work.open-cluster-management.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessStatus:
    """Whether a database or a cluster could be read."""

    description: str
    """Its name in reports: `database (DSN)`, `cluster mgmt-1`."""
    is_readable: bool
    problem: str = ""
    """Why it could not be seen, with the remedy."""
    consumer: str = ""
    """For a cluster: its consumer, if given or found."""
    kubectl: str = ""
    """For a cluster: the flags that lead kubectl there, ready to paste."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCoverage:
    """How much of the database a search has read, and how many works match."""

    matches: int
    """Works that match; at least so many if `is_counted` is false."""
    is_counted: bool = True
    searched: int | None = None
    """Works that were searched until the time was up; None if all were."""
    total: int = 0
    """Works in the database, estimated."""
    is_newest_first: bool = False
    since: datetime | None = None
    """The creation time of the first work that was not searched, if the newest were searched first."""
    by_computed_ids: bool = False
    """Whether works were found by the IDs of a work client, and those of other clients were not searched."""

    @property
    def is_complete(self) -> bool:
        return self.searched is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCondition:
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
        kind = self.kind or self.plural
        return f"{kind}/{self.namespace}/{self.name}" if self.namespace else f"{kind}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Kind:
    """A kind as a cluster serves it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    versions: tuple[str, ...] = ()
    """All versions that the cluster serves, if they were asked for."""

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestReport:
    """What the agent reported about one manifest."""

    key: ObjectKey
    conditions: tuple[ReportedCondition, ...] = ()
    feedback: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The newest report in the database."""

    version: int
    sequence: str
    time: datetime | None
    conditions: tuple[ReportedCondition, ...]
    manifests: tuple[ManifestReport, ...]

    def condition(self, kind: str) -> ReportedCondition | None:
        return next((condition for condition in self.conditions if condition.type == kind), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecEvent:
    """One row of the table of spec events."""

    id: str
    type: str
    created: datetime | None
    reconciled: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedResource:
    """One resource as the database has it."""

    id: str
    source: str
    """Empty if read from the REST API, which does not return it."""
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
    """The status event of a confirmed deletion or of a release, until the table is purged."""

    resource_id: str
    source: str
    work_name: str
    consumer: str
    created: datetime | None
    """When it was stored."""
    manifests: tuple[Json, ...] = ()
    released: str = ""
    """What the server said of the release, if an operator released the work: then no agent confirmed a deletion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPause:
    """An operator has paused the delivery to a consumer."""

    consumer: str
    by: str
    since: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkHold:
    """A data-safety hold: works that the agent of a consumer keeps as they are, although the database does not ask."""

    consumer: str
    reason: str
    message: str = ""
    work_count: int = 0
    works: frozenset[str] = frozenset()
    """The IDs of the works, at most 2,000; empty where they could not be read."""
    since: str = ""

    def covers(self, work_id: str) -> bool:
        """Say whether it keeps a work; without the list of its works, it keeps all of its consumer."""
        return work_id in self.works or not self.works


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedResourceEntry:
    """One line of an applied work's status."""

    group: str
    version: str
    plural: str
    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> ObjectKey:
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
    origin: str = ""
    """The database that the applied spec came from, as our agent records it; a Go agent does not."""
    finalizers: tuple[str, ...] = ()
    resources: tuple[AppliedResourceEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One entry of an object's ownerReferences."""

    group: str
    kind: str
    name: str
    uid: str


LiveState = Literal["present", "absent", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveObject:
    """One object as a cluster has it now."""

    cluster: str
    key: ObjectKey
    state: LiveState
    problem: str = ""
    uid: str = ""
    deleting: datetime | None = None
    finalizers: tuple[str, ...] = ()
    owners: tuple[Owner, ...] = ()
    content: Json = field(default_factory=dict)
    """The whole object, if requested."""

    @property
    def applied_owners(self) -> tuple[Owner, ...]:
        return tuple(owner for owner in self.owners if owner.kind == "AppliedManifestWork")


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedWork:
    """A ManifestWork that is a manifest of another work, with its data from the same cluster."""

    depth: int
    cluster: str
    namespace: str
    name: str
    manifests: tuple[Json, ...]
    status: Status | None
    applied: tuple[AppliedWork, ...]
    live_objects: tuple[LiveObject, ...]
    nested: tuple["NestedWork", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkData:
    """All that is known about one work."""

    row: TracedResource | None
    tombstones: tuple[Tombstone, ...] = ()
    applied: tuple[AppliedWork, ...] = ()
    live_objects: tuple[LiveObject, ...] = ()
    nested: tuple[NestedWork, ...] = ()
    plurals: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Plural by (group, kind), as the clusters serve them; others are guessed by English grammar."""
    versions: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Served versions by (group, kind), as far as a cluster was asked."""
    requested: str = ""
    """The requested identifier, if no row has it."""
    database: AccessStatus
    clusters: tuple[AccessStatus, ...] = ()
    has_read_objects: bool = True
    hold: WorkHold | None = None
    """The data-safety hold that keeps it, if the server lists one."""
    pause: ConsumerPause | None = None
    """The pause of the delivery to its consumer; read only if the work waits."""
    coverage: SearchCoverage | None = None
    """For a work without a row: how much of the database was searched for it."""

    @property
    def reported_hold(self) -> ReportedCondition | None:
        """The condition by which the agent reports that it holds the work."""
        condition = self.row.status.condition(DATA_SAFETY_HOLD) if self.row and self.row.status else None
        return condition if condition is not None and condition.status == "True" else None

    @property
    def is_waiting(self) -> bool:
        """Whether the agent has not confirmed the version, or the deletion, that the database has."""
        row = self.row
        return row is not None and (row.deleted is not None or row.status is None or row.status.version < row.version)

    @property
    def is_held(self) -> bool:
        return self.hold is not None or self.reported_hold is not None

    @property
    def released(self) -> Tombstone | None:
        """How an operator released it, if that is how it ended."""
        last = self.tombstones[0] if self.row is None and self.tombstones else None
        return last if last is not None and last.released else None

    @property
    def is_searched(self) -> bool:
        """Whether the whole database was searched, so that no row means that there is none."""
        return self.coverage is None or self.coverage.is_complete


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkQueryResult:
    """The result of a query."""

    query: WorkQuery
    works: tuple[WorkData, ...] = ()
    candidates: tuple[TracedResource, ...] = ()
    """Several works that match a query for one; they were not traced."""
    starts: tuple[LiveObject, ...] = ()
    """The objects that match a query for a manifest."""
    steps: tuple[str, ...] = ()
    database: AccessStatus
    clusters: tuple[AccessStatus, ...] = ()
    coverage: SearchCoverage | None = None
    """How much of the database was searched; None if all of it, or by ID."""
