"""Look at the objects of a work on one cluster: are they there, whose are they, and what works are nested in them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from maestropy.trace.errors import NoAccess
from maestropy.trace.work import reading
from maestropy.trace.work.model import (
    WORK_GROUP,
    AppliedWork,
    Json,
    Kind,
    Live,
    NestedWork,
    ObjectKey,
    Status,
)
from maestropy.trace.work.sides import ClusterSide

DEEPEST = 2
"""Levels of works within works that are followed down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How closely to look."""

    objects: bool = True
    """Ask for every object: there, uid, deletion, finalizers, owners."""
    nested: bool = True
    whole: bool = False
    """Keep whole objects, to compare them with their manifests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What looking at one work brought."""

    lives: tuple[Live, ...] = ()
    nested: tuple[NestedWork, ...] = ()
    plurals: Mapping[tuple[str, str], str]


async def look(
    cluster: ClusterSide,
    manifests: Sequence[Json],
    *,
    applied: Sequence[AppliedWork],
    status: Status | None,
    depth: Depth,
) -> Seen:
    """Look at all objects of a work: those it wants, and those that its applied works list."""
    kinds = await _kinds(cluster, manifests, applied=applied, status=status, may_ask=depth.objects)
    plurals = {(group, kind): found.plural for (group, kind), found in kinds.items()}
    if not depth.objects:
        return Seen(plurals=plurals)
    keys = wanted_keys(manifests, applied=applied, kinds=kinds)
    lives = await asyncio.gather(*(_look_at(cluster, key, kind, depth=depth) for key, kind in keys.items()))
    nested = await _nested(cluster, manifests, lives=lives, depth=depth, level=1) if depth.nested else ()
    return Seen(lives=tuple(lives), nested=tuple(nested), plurals=plurals)


def wanted_keys(
    manifests: Sequence[Json], *, applied: Sequence[AppliedWork], kinds: Mapping[tuple[str, str], Kind]
) -> Mapping[ObjectKey, Kind | None]:
    """Return every object to look at, once; kinds that nobody serves have None."""
    found: dict[tuple[str, str, str, str], tuple[ObjectKey, Kind | None]] = {}
    for manifest in manifests:
        key = reading.manifest_key(manifest)
        kind = kinds.get((key.group, key.kind))
        plural = kind.plural if kind else reading.plural_of(key.kind)
        # Manifests carry a namespace often enough where it means nothing.
        namespace = key.namespace if kind is None or kind.namespaced else ""
        full = ObjectKey(group=key.group, kind=key.kind, plural=plural, namespace=namespace, name=key.name)
        if key.name:
            found.setdefault((full.group, plural, namespace, full.name), (full, kind))
    for each in (resource for work in applied for resource in work.resources):
        kind = Kind(
            group=each.group, version=each.version, kind="", plural=each.plural, namespaced=bool(each.namespace)
        )
        found.setdefault((each.group, each.plural, each.namespace, each.name), (each.key, kind))
    return dict(found.values())


async def _kinds(
    cluster: ClusterSide,
    manifests: Sequence[Json],
    *,
    applied: Sequence[AppliedWork],
    status: Status | None,
    may_ask: bool,
) -> Mapping[tuple[str, str], Kind]:
    """Return the kinds of manifests: from the agent's report where it names them, else from the cluster."""
    versions = {(each.group, each.plural): each for work in applied for each in work.resources}
    kinds: dict[tuple[str, str], Kind] = {}
    for report in status.manifests if status else ():
        key = report.key
        line = versions.get((key.group, key.plural))
        if line is not None and key.plural:
            namespaced = bool(line.namespace)
            kinds[(key.group, key.kind)] = Kind(
                group=key.group, version=line.version, kind=key.kind, plural=key.plural, namespaced=namespaced
            )
    missing = {(key.group, key.kind) for key in map(reading.manifest_key, manifests)} - set(kinds)
    for group, name in sorted(missing) if may_ask else ():
        served = [each for each in await cluster.kinds([name.lower()], group=group) if each.group == group]
        if served:
            kinds[(group, name)] = served[0]
    return kinds


async def _look_at(cluster: ClusterSide, key: ObjectKey, kind: Kind | None, *, depth: Depth) -> Live:
    if kind is None:
        return Live(cluster=cluster.label, key=key, state="absent", trouble=f"the cluster has no kind {key.kind}")
    if kind.namespaced and not key.namespace:
        return Live(cluster=cluster.label, key=key, state="unknown", trouble="the manifest names no namespace")
    try:
        found = await cluster.objects(kind, namespace=key.namespace, name=key.name)
    except NoAccess as error:
        return Live(cluster=cluster.label, key=key, state="unknown", trouble=str(error))
    if not found:
        return Live(cluster=cluster.label, key=key, state="absent")
    document = found[0]
    is_work = key.group == WORK_GROUP and kind.plural == "manifestworks"
    kept = document if depth.whole or is_work else {"metadata": document.get("metadata")}
    return reading.live(kept, cluster=cluster.label, key=key)


async def _nested(
    cluster: ClusterSide, manifests: Sequence[Json], *, lives: Iterable[Live], depth: Depth, level: int
) -> Sequence[NestedWork]:
    inner = [each for each in manifests if _is_work(each)]
    if not inner or level > DEEPEST:
        return ()
    by_key = {(live.key.namespace, live.key.name): live for live in lives if live.key.plural == "manifestworks"}
    names = [reading.manifest_key(each).name for each in inner]
    records = [reading.applied_work(each, cluster=cluster.label) for each in await cluster.applied_works(names) if each]
    return [
        await _nested_work(cluster, each, live=by_key.get(_place(each)), records=records, depth=depth, level=level)
        for each in inner
    ]


async def _nested_work(
    cluster: ClusterSide,
    manifest: Json,
    *,
    live: Live | None,
    records: Sequence[AppliedWork],
    depth: Depth,
    level: int,
) -> NestedWork:
    key = reading.manifest_key(manifest)
    # What the cluster has counts; the manifest only serves where it cannot be seen.
    document = live.content if live and live.content else manifest
    workload = reading.mapping(reading.mapping(document.get("spec")).get("workload"))
    manifests = reading.mappings(workload.get("manifests"))
    applied = [each for each in records if each.work_name == key.name]
    status = reading.work_status(document)
    kinds = await _kinds(cluster, manifests, applied=applied, status=status, may_ask=True)
    keys = wanted_keys(manifests, applied=applied, kinds=kinds)
    lives = await asyncio.gather(*(_look_at(cluster, each, kind, depth=depth) for each, kind in keys.items()))
    return NestedWork(
        depth=level,
        cluster=cluster.label,
        namespace=key.namespace,
        name=key.name,
        manifests=manifests,
        status=status,
        applied=tuple(applied),
        lives=tuple(lives),
        nested=tuple(await _nested(cluster, manifests, lives=lives, depth=depth, level=level + 1)),
    )


def _is_work(manifest: Json) -> bool:
    key = reading.manifest_key(manifest)
    return key.group == WORK_GROUP and key.kind == "ManifestWork"


def _place(manifest: Json) -> tuple[str, str]:
    key = reading.manifest_key(manifest)
    return key.namespace, key.name
