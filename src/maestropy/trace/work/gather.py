"""Gather everything that the database and the clusters know about the works of a query.

One database query and one list per cluster, for any number of works. If the database or a cluster cannot be read, this
is recorded as its access status, and the rest is still gathered.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from maestropy.trace.errors import NoAccess
from maestropy.trace.work import owner_chain, parse
from maestropy.trace.work.live_objects import LookupDepth, ReadObjects, read_live_objects
from maestropy.trace.work.model import (
    AccessStatus,
    AppliedWork,
    LiveObject,
    SearchCoverage,
    Tombstone,
    TracedResource,
    WorkData,
    WorkHold,
    WorkQueryResult,
)
from maestropy.trace.work.owner_chain import OwnerChain
from maestropy.trace.work.query import MANY, WorkQuery
from maestropy.trace.work.readers import ClusterReader, DatabaseReader, FoundResources
from maestropy.wire.works import resource_id

_HASH = 64
_AT_ONCE = 16
"""Works that are read in parallel; the client limits the requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """The database and clusters to read, and those that could not be reached."""

    database: DatabaseReader | None
    database_problem: str = ""
    clusters: Sequence[ClusterReader] = ()
    unreachable_clusters: Sequence[AccessStatus] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """One work to be traced: its row, or the names of one that has none."""

    row: TracedResource | None = None
    names: tuple[str, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    coverage: SearchCoverage | None = None


@dataclass(slots=True)
class _AccessStatuses:
    database: AccessStatus
    clusters: dict[str, AccessStatus] = field(default_factory=dict)


async def gather(query: WorkQuery, readers: Readers, *, depth: LookupDepth) -> WorkQueryResult:
    """Gather all data about the works of a query."""
    statuses = _AccessStatuses(_database_access(readers))
    for cluster in readers.clusters:
        statuses.clusters[cluster.label] = AccessStatus(
            description=f"cluster {cluster.label}", is_readable=True, consumer=cluster.consumer, kubectl=cluster.kubectl
        )
    chains = await _owner_chains(query, readers, statuses=statuses)
    resources = await _find(_database_query(query, chains), readers, statuses=statuses)
    rows = _fitting(resources.rows, chains, query=query, statuses=statuses)
    starts = tuple(start for chain in chains for start in chain.starts)
    steps = tuple(step for chain in chains for step in chain.steps)
    candidates: tuple[TracedResource, ...] = ()
    works: tuple[WorkData, ...] = ()
    if _is_ambiguous(query, rows, chains):
        candidates = rows
    else:
        works = tuple(
            await _trace(query, replace(resources, rows=rows), readers, chains=chains, statuses=statuses, depth=depth)
        )
        works = await _with_holds(works, readers, statuses=statuses)
        works = await _with_pauses(works, readers, statuses=statuses)
    if (
        query.entry == "work-name"
        and not rows
        and not any(work.applied or work.tombstones or work.hold for work in works)
    ):
        candidates = await _works_of_consumer(query, readers, statuses=statuses)
        works = () if candidates else works
    return WorkQueryResult(
        query=query,
        works=works,
        candidates=candidates,
        starts=starts,
        steps=steps,
        database=statuses.database,
        clusters=(*statuses.clusters.values(), *readers.unreachable_clusters),
        coverage=resources.coverage,
    )


async def _with_holds(
    works: tuple[WorkData, ...], readers: Readers, *, statuses: _AccessStatuses
) -> tuple[WorkData, ...]:
    """Add the data-safety hold of each work; it is read only if the database lacks a work, or a status reports one."""
    may_be_held = any(work.row is None or work.reported_hold is not None for work in works)
    if readers.database is None or not statuses.database.is_readable or not may_be_held:
        return works
    try:
        holds = await readers.database.holds()
    except NoAccess as error:
        statuses.database = replace(statuses.database, problem=str(error))
        return works
    return tuple(replace(work, hold=_hold_of(work, holds)) for work in works)


async def _with_pauses(
    works: tuple[WorkData, ...], readers: Readers, *, statuses: _AccessStatuses
) -> tuple[WorkData, ...]:
    """Add the pause of the consumer of each work; it is read only if a work waits."""
    if readers.database is None or not statuses.database.is_readable or not any(work.is_waiting for work in works):
        return works
    try:
        pauses = {pause.consumer: pause for pause in await readers.database.pauses()}
    except NoAccess as error:
        statuses.database = replace(statuses.database, problem=str(error))
        return works
    return tuple(replace(work, pause=pauses.get(work.row.consumer) if work.row else None) for work in works)


def _hold_of(work: WorkData, holds: Sequence[WorkHold]) -> WorkHold | None:
    clusters = {record.cluster for record in work.applied}
    consumers = {status.consumer for status in work.clusters if status.description.removeprefix("cluster ") in clusters}
    consumers |= {work.row.consumer} if work.row else set()
    ended = (left.resource_id for left in work.tombstones)
    ids = {work.row.id} if work.row else {work.requested, *ended, *(record.work_name for record in work.applied)}
    for hold in holds:
        is_listed = bool(ids & hold.works)
        if is_listed or (hold.consumer in consumers and any(map(hold.covers, ids))):
            return hold
    return None


def _database_access(readers: Readers) -> AccessStatus:
    if readers.database is None:
        return AccessStatus(
            description="database", is_readable=False, problem=readers.database_problem or "not read (--db none)"
        )
    return AccessStatus(description=readers.database.description, is_readable=True)


async def _owner_chains(query: WorkQuery, readers: Readers, *, statuses: _AccessStatuses) -> Sequence[OwnerChain]:
    """Go from an object or an applied work up to works, on every cluster."""
    chains = []
    for cluster in readers.clusters:
        try:
            if query.manifest is not None:
                chains.append(await owner_chain.from_manifest(cluster, query.manifest))
            elif query.entry == "applied-work":
                chains.append(await owner_chain.from_applied_work(cluster, query.values[0]))
        except NoAccess as error:
            _mark_unreadable(statuses, cluster, error)
    return chains


def _database_query(query: WorkQuery, chains: Sequence[OwnerChain]) -> WorkQuery:
    names = tuple(dict.fromkeys(name for chain in chains for name in chain.work_names))
    if query.manifest is not None:
        return replace(query, entry="applied-work", values=names, manifest=None) if names else query
    if query.entry == "applied-work":
        # Its name ends with the work's: good enough when no cluster can show the object.
        return replace(query, values=names or (query.values[0][_HASH + 1 :] or query.values[0],))
    return query


async def _find(query: WorkQuery, readers: Readers, *, statuses: _AccessStatuses) -> FoundResources:
    if readers.database is None:
        return FoundResources()
    try:
        return await readers.database.find(query)
    except NoAccess as error:
        statuses.database = replace(statuses.database, is_readable=False, problem=str(error))
        return FoundResources()


async def _works_of_consumer(
    query: WorkQuery, readers: Readers, *, statuses: _AccessStatuses
) -> tuple[TracedResource, ...]:
    """Return the newest works of the consumer of this name: it is often given where a work is asked for."""
    if query.consumer or not statuses.database.is_readable:
        return ()
    of_consumer = WorkQuery(entry="name-like", values=("",), consumer=query.values[0])
    return (await _find(of_consumer, readers, statuses=statuses)).rows


def _fitting(
    rows: tuple[TracedResource, ...], chains: Sequence[OwnerChain], *, query: WorkQuery, statuses: _AccessStatuses
) -> tuple[TracedResource, ...]:
    """Remove rows that only share the work name with an applied work on the cluster of another consumer."""
    consumers = {statuses.clusters[chain.cluster].consumer for chain in chains if chain.applied}
    if query.entry not in {"manifest", "applied-work"} or "" in consumers or not consumers:
        return rows
    ids = {name for chain in chains for name in chain.work_names}
    return tuple(row for row in rows if row.id in ids or row.consumer in consumers)


def _is_ambiguous(query: WorkQuery, rows: Sequence[TracedResource], chains: Sequence[OwnerChain]) -> bool:
    if query.entry in MANY or len(rows) < 2:
        return False
    # Several owners of one object are not an ambiguity but the finding itself.
    ids = {name for chain in chains for name in chain.work_names}
    return not all(row.id in ids for row in rows)


async def _trace(
    query: WorkQuery,
    resources: FoundResources,
    readers: Readers,
    *,
    chains: Sequence[OwnerChain],
    statuses: _AccessStatuses,
    depth: LookupDepth,
) -> Sequence[WorkData]:
    lost = _missing_names(query, resources, chains)
    names = {name for row in resources.rows for name in (row.id, row.work_name) if name}
    names |= {name for group in lost for name in group}
    records: dict[str, Sequence[AppliedWork]] = {}
    for cluster in readers.clusters:
        records[cluster.label] = await _records(cluster, names, chains=chains, statuses=statuses)
    subjects = [_Subject(row=row, tombstones=_tombstones(resources, {row.id})) for row in resources.rows]
    subjects += [
        _Subject(names=group, tombstones=_tombstones(resources, set(group)), coverage=resources.coverage)
        for group in lost
    ]
    works: list[WorkData] = []
    for start in range(0, len(subjects), _AT_ONCE):
        several = subjects[start : start + _AT_ONCE]
        works += await asyncio.gather(
            *(_work(subject, readers, records=records, statuses=statuses, depth=depth) for subject in several)
        )
    return works


def _missing_names(
    query: WorkQuery, resources: FoundResources, chains: Sequence[OwnerChain]
) -> Sequence[tuple[str, ...]]:
    """Return the requested works without a row, each by the names it may have on a cluster."""
    known = {row.id for row in resources.rows} | {row.work_name for row in resources.rows}
    if query.entry in {"resource-id", "file"}:
        return [(value,) for value in query.values if value not in known]
    if resources.rows:
        return []
    if query.entry == "work-name":
        return [(value, *_computed(query, value), *_ended_ids(resources, value)) for value in query.values]
    names = dict.fromkeys(name for chain in chains for name in chain.work_names)
    # Of nested works only the outermost can have a row.
    return [(name,) for name in list(names)[-1:]]


def _ended_ids(resources: FoundResources, name: str) -> Sequence[str]:
    """Return the IDs of ended works of a name: their agents may have them still, by these."""
    return [left.resource_id for left in resources.tombstones if left.work_name == name]


def _computed(query: WorkQuery, name: str) -> tuple[str, ...]:
    if not (query.source and query.consumer):
        return ()
    return (resource_id.resource_id(query.source, namespace=query.consumer, name=name),)


async def _records(
    cluster: ClusterReader, names: Iterable[str], *, chains: Sequence[OwnerChain], statuses: _AccessStatuses
) -> Sequence[AppliedWork]:
    applied_works = {
        name: work for chain in chains if chain.cluster == cluster.label for name, work in chain.applied.items()
    }
    if not statuses.clusters[cluster.label].is_readable or not names:
        return list(applied_works.values())
    try:
        for document in await cluster.applied_works(set(names)):
            record = parse.applied_work(document, cluster=cluster.label)
            applied_works[record.name] = record
        if not cluster.consumer:
            consumer = await cluster.agent_consumer()
            statuses.clusters[cluster.label] = replace(statuses.clusters[cluster.label], consumer=consumer)
    except NoAccess as error:
        _mark_unreadable(statuses, cluster, error)
    return list(applied_works.values())


async def _work(
    subject: _Subject,
    readers: Readers,
    *,
    records: Mapping[str, Sequence[AppliedWork]],
    statuses: _AccessStatuses,
    depth: LookupDepth,
) -> WorkData:
    row = subject.row
    found = {label: _belonging(applied_works, row, subject.names) for label, applied_works in records.items()}
    consumers = {label: access.consumer for label, access in statuses.clusters.items()}
    applied = _once(found, consumers, consumer=row.consumer if row else "")
    live_objects: list[LiveObject] = []
    read_objects: dict[str, ReadObjects] = {}
    for cluster in readers.clusters:
        access = statuses.clusters[cluster.label]
        is_its = row is None or access.consumer in {"", row.consumer} or bool(applied[cluster.label])
        if access.is_readable and is_its and (row or applied[cluster.label]):
            try:
                read_objects[cluster.label] = await read_live_objects(
                    cluster,
                    row.manifests if row else (),
                    applied=applied[cluster.label],
                    status=row.status if row else None,
                    depth=depth,
                )
            except NoAccess as error:
                _mark_unreadable(statuses, cluster, error)
    plurals: dict[tuple[str, str], str] = defaultdict(str)
    versions: dict[tuple[str, str], tuple[str, ...]] = {}
    for objects in read_objects.values():
        live_objects += objects.live_objects
        plurals |= objects.plurals
        versions |= objects.versions
    return WorkData(
        row=row,
        tombstones=subject.tombstones,
        requested=next(iter(subject.names), ""),
        applied=tuple(work for works in applied.values() for work in works),
        live_objects=tuple(live_objects),
        nested=tuple(nested for objects in read_objects.values() for nested in objects.nested),
        plurals=dict(plurals),
        versions=versions,
        database=statuses.database,
        clusters=(*statuses.clusters.values(), *readers.unreachable_clusters),
        has_read_objects=depth.objects,
        coverage=subject.coverage,
    )


def _once(
    found: Mapping[str, Sequence[AppliedWork]], consumers: Mapping[str, str], *, consumer: str
) -> Mapping[str, Sequence[AppliedWork]]:
    """Return each applied work once: a cluster may be given twice, for two consumers. That of its consumer counts."""
    seen: set[tuple[str, str]] = set()
    once: dict[str, Sequence[AppliedWork]] = dict.fromkeys(found, ())
    for label in sorted(found, key=lambda label: consumers.get(label) != consumer):
        kept = [record for record in found[label] if not record.uid or (record.uid, record.name) not in seen]
        seen |= {(record.uid, record.name) for record in kept}
        once[label] = kept
    return once


def _belonging(
    records: Sequence[AppliedWork], row: TracedResource | None, names: Sequence[str]
) -> Sequence[AppliedWork]:
    """Return the applied works of one work: by id, or by the user's work name as before January 2026."""
    if row is None:
        return [record for record in records if record.work_name in names]
    by_id = [record for record in records if record.work_name == row.id]
    if by_id or not row.work_name:
        return by_id
    # The name alone may be another's, such as a nested work's: some object must be the same, if any is listed.
    keys = {(key.namespace, key.name) for key in map(parse.manifest_key, row.manifests)}
    return [
        record
        for record in records
        if record.work_name == row.work_name
        and (not record.resources or any((line.namespace, line.name) in keys for line in record.resources))
    ]


def _tombstones(resources: FoundResources, names: set[str]) -> tuple[Tombstone, ...]:
    own = [left for left in resources.tombstones if {left.resource_id, left.work_name} & names]
    return tuple(sorted(own, key=lambda left: left.created.timestamp() if left.created else 0.0, reverse=True))


def _mark_unreadable(statuses: _AccessStatuses, cluster: ClusterReader, error: NoAccess) -> None:
    statuses.clusters[cluster.label] = replace(statuses.clusters[cluster.label], is_readable=False, problem=str(error))
