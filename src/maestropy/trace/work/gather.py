"""The stage: a question in, everything that databases and clusters say about it out.

One question to the database and one list per cluster, however many works are asked for. A side that cannot be asked
makes the answer smaller, never wrong: it is marked, and what the other side knows is still gathered.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from maestropy.trace.errors import NoAccess
from maestropy.trace.work import climbing, reading
from maestropy.trace.work.climbing import Climb
from maestropy.trace.work.looking import Depth, Seen, look
from maestropy.trace.work.model import AppliedWork, Gathered, Live, Row, Sight, Tombstone
from maestropy.trace.work.question import MANY, Question
from maestropy.trace.work.sides import ClusterSide, DatabaseSide, Found
from maestropy.wire import identity

_HASH = 64
_AT_ONCE = 16
"""Works looked at side by side; the client limits the requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Who can be asked, and who could not even be reached."""

    database: DatabaseSide | None
    database_trouble: str = ""
    clusters: Sequence[ClusterSide] = ()
    lost_clusters: Sequence[Sight] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What there is to say about a question."""

    question: Question
    works: tuple[Gathered, ...] = ()
    candidates: tuple[Row, ...] = ()
    """Several works that fit a question about one; nothing was traced then."""
    starts: tuple[Live, ...] = ()
    """The objects a question about a manifest means."""
    steps: tuple[str, ...] = ()
    database: Sight
    clusters: tuple[Sight, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """One work to be traced: its row, or the names of one that has none."""

    row: Row | None = None
    names: tuple[str, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()


@dataclass(slots=True)
class _Sights:
    database: Sight
    clusters: dict[str, Sight] = field(default_factory=dict)


async def gather(question: Question, sides: Sides, *, depth: Depth) -> Answer:
    """Gather all about a question."""
    sights = _Sights(_sight(sides))
    for cluster in sides.clusters:
        sights.clusters[cluster.label] = Sight(
            place=f"cluster {cluster.label}", is_clear=True, consumer=cluster.consumer, kubectl=cluster.kubectl
        )
    climbs = await _climb(question, sides, sights=sights)
    found = await _find(_database_question(question, climbs), sides, sights=sights)
    rows = _fitting(found.rows, climbs, question=question, sights=sights)
    starts = tuple(start for climb in climbs for start in climb.starts)
    steps = tuple(step for climb in climbs for step in climb.steps)
    candidates: tuple[Row, ...] = ()
    works: tuple[Gathered, ...] = ()
    if _is_ambiguous(question, rows, climbs):
        candidates = rows
    else:
        works = tuple(
            await _trace(question, replace(found, rows=rows), sides, climbs=climbs, sights=sights, depth=depth)
        )
    return Answer(
        question=question,
        works=works,
        candidates=candidates,
        starts=starts,
        steps=steps,
        database=sights.database,
        clusters=(*sights.clusters.values(), *sides.lost_clusters),
    )


def _sight(sides: Sides) -> Sight:
    if sides.database is None:
        return Sight(place="database", is_clear=False, trouble=sides.database_trouble or "nobody was asked (--db none)")
    return Sight(place=sides.database.place, is_clear=True)


async def _climb(question: Question, sides: Sides, *, sights: _Sights) -> Sequence[Climb]:
    """Go from an object or an applied work up to works, on every cluster."""
    climbs = []
    for cluster in sides.clusters:
        try:
            if question.manifest is not None:
                climbs.append(await climbing.from_manifest(cluster, question.manifest))
            elif question.entry == "applied-work":
                climbs.append(await climbing.from_applied_work(cluster, question.values[0]))
        except NoAccess as error:
            _darken(sights, cluster, error)
    return climbs


def _database_question(question: Question, climbs: Sequence[Climb]) -> Question:
    names = tuple(dict.fromkeys(name for climb in climbs for name in climb.work_names))
    if question.manifest is not None:
        return replace(question, entry="applied-work", values=names, manifest=None) if names else question
    if question.entry == "applied-work":
        # Its name ends with the work's: good enough when no cluster can show the object.
        return replace(question, values=names or (question.values[0][_HASH + 1 :] or question.values[0],))
    return question


async def _find(question: Question, sides: Sides, *, sights: _Sights) -> Found:
    if sides.database is None:
        return Found()
    try:
        return await sides.database.find(question)
    except NoAccess as error:
        sights.database = replace(sights.database, is_clear=False, trouble=str(error))
        return Found()


def _fitting(rows: tuple[Row, ...], climbs: Sequence[Climb], *, question: Question, sights: _Sights) -> tuple[Row, ...]:
    """Leave out rows that only share a work's name with an applied work of another consumer's cluster."""
    consumers = {sights.clusters[climb.cluster].consumer for climb in climbs if climb.applied}
    if question.entry not in {"manifest", "applied-work"} or "" in consumers or not consumers:
        return rows
    ids = {name for climb in climbs for name in climb.work_names}
    return tuple(row for row in rows if row.id in ids or row.consumer in consumers)


def _is_ambiguous(question: Question, rows: Sequence[Row], climbs: Sequence[Climb]) -> bool:
    if question.entry in MANY or len(rows) < 2:
        return False
    # Several owners of one object are not an ambiguity but the finding itself.
    ids = {name for climb in climbs for name in climb.work_names}
    return not all(row.id in ids for row in rows)


async def _trace(
    question: Question,
    found: Found,
    sides: Sides,
    *,
    climbs: Sequence[Climb],
    sights: _Sights,
    depth: Depth,
) -> Sequence[Gathered]:
    lost = _lost_names(question, found, climbs)
    names = {name for row in found.rows for name in (row.id, row.work_name) if name}
    names |= {name for each in lost for name in each}
    records: dict[str, Sequence[AppliedWork]] = {}
    for cluster in sides.clusters:
        records[cluster.label] = await _records(cluster, names, climbs=climbs, sights=sights)
    subjects = [_Subject(row=row, tombstones=_tombs(found, {row.id})) for row in found.rows]
    subjects += [_Subject(names=each, tombstones=_tombs(found, set(each))) for each in lost]
    works: list[Gathered] = []
    for start in range(0, len(subjects), _AT_ONCE):
        several = subjects[start : start + _AT_ONCE]
        works += await asyncio.gather(
            *(_work(each, sides, records=records, sights=sights, depth=depth) for each in several)
        )
    return works


def _lost_names(question: Question, found: Found, climbs: Sequence[Climb]) -> Sequence[tuple[str, ...]]:
    """Return the works that were asked for and have no row, each by the names it may have on a cluster."""
    known = {row.id for row in found.rows} | {row.work_name for row in found.rows}
    if question.entry in {"resource-id", "file"}:
        return [(each,) for each in question.values if each not in known]
    if found.rows:
        return []
    if question.entry == "work-name":
        return [(each, *_computed(question, each)) for each in question.values]
    names = dict.fromkeys(name for climb in climbs for name in climb.work_names)
    # Of works within works only the outermost can be somebody's row.
    return [(name,) for name in list(names)[-1:]]


def _computed(question: Question, name: str) -> tuple[str, ...]:
    if not (question.source and question.consumer):
        return ()
    return (identity.resource_id(question.source, namespace=question.consumer, name=name),)


async def _records(
    cluster: ClusterSide, names: Iterable[str], *, climbs: Sequence[Climb], sights: _Sights
) -> Sequence[AppliedWork]:
    found = {name: work for climb in climbs if climb.cluster == cluster.label for name, work in climb.applied.items()}
    if not sights.clusters[cluster.label].is_clear or not names:
        return list(found.values())
    try:
        for document in await cluster.applied_works(set(names)):
            record = reading.applied_work(document, cluster=cluster.label)
            found[record.name] = record
        if not cluster.consumer:
            consumer = await cluster.agent_consumer()
            sights.clusters[cluster.label] = replace(sights.clusters[cluster.label], consumer=consumer)
    except NoAccess as error:
        _darken(sights, cluster, error)
    return list(found.values())


async def _work(
    subject: _Subject,
    sides: Sides,
    *,
    records: Mapping[str, Sequence[AppliedWork]],
    sights: _Sights,
    depth: Depth,
) -> Gathered:
    row = subject.row
    mine = {label: _belonging(found, row, subject.names) for label, found in records.items()}
    lives: list[Live] = []
    seen: dict[str, Seen] = {}
    for cluster in sides.clusters:
        sight = sights.clusters[cluster.label]
        is_its = row is None or sight.consumer in {"", row.consumer} or bool(mine[cluster.label])
        if sight.is_clear and is_its and (row or mine[cluster.label]):
            try:
                seen[cluster.label] = await look(
                    cluster,
                    row.manifests if row else (),
                    applied=mine[cluster.label],
                    status=row.status if row else None,
                    depth=depth,
                )
            except NoAccess as error:
                _darken(sights, cluster, error)
    plurals: dict[tuple[str, str], str] = defaultdict(str)
    for each in seen.values():
        lives += each.lives
        plurals |= each.plurals
    return Gathered(
        row=row,
        tombstones=subject.tombstones,
        asked=next(iter(subject.names), ""),
        applied=tuple(work for works in mine.values() for work in works),
        lives=tuple(lives),
        nested=tuple(nested for each in seen.values() for nested in each.nested),
        plurals=dict(plurals),
        database=sights.database,
        clusters=(*sights.clusters.values(), *sides.lost_clusters),
        looked_at_objects=depth.objects,
    )


def _belonging(records: Sequence[AppliedWork], row: Row | None, names: Sequence[str]) -> Sequence[AppliedWork]:
    """Return the applied works of one work: by id, or by the user's work name as before January 2026."""
    if row is None:
        return [each for each in records if each.work_name in names]
    by_id = [each for each in records if each.work_name == row.id]
    if by_id or not row.work_name:
        return by_id
    # The name alone may be another's, such as a nested work's: some object must be the same, if any is listed.
    wanted = {(key.namespace, key.name) for key in map(reading.manifest_key, row.manifests)}
    return [
        each
        for each in records
        if each.work_name == row.work_name
        and (not each.resources or any((line.namespace, line.name) in wanted for line in each.resources))
    ]


def _tombs(found: Found, names: set[str]) -> tuple[Tombstone, ...]:
    return tuple(each for each in found.tombstones if {each.resource_id, each.work_name} & names)


def _darken(sights: _Sights, cluster: ClusterSide, error: NoAccess) -> None:
    sights.clusters[cluster.label] = replace(sights.clusters[cluster.label], is_clear=False, trouble=str(error))
