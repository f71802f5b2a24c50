"""Read the objects of a work from one cluster: whether they exist, their owners, and nested works."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from maestropy.trace.errors import NoAccess
from maestropy.trace.work import parse
from maestropy.trace.work.model import WORK_GROUP, AppliedWork, Json, Kind, LiveObject, NestedWork, ObjectKey, Status
from maestropy.trace.work.readers import ClusterReader

DEEPEST = 2
"""Levels of works within works that are followed down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupDepth:
    """How much to read."""

    objects: bool = True
    """Read every object: existence, uid, deletion, finalizers, owners."""
    nested: bool = True
    whole: bool = False
    """Keep whole objects, to compare them with their manifests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadObjects:
    """What looking at one work brought."""

    live_objects: tuple[LiveObject, ...] = ()
    nested: tuple[NestedWork, ...] = ()
    plurals: Mapping[tuple[str, str], str]
    versions: Mapping[tuple[str, str], tuple[str, ...]]


async def read_live_objects(
    cluster: ClusterReader,
    manifests: Sequence[Json],
    *,
    applied: Sequence[AppliedWork],
    status: Status | None,
    depth: LookupDepth,
    level: int = 1,
) -> ReadObjects:
    """Read all objects of a work: those of its manifests, and those that its applied works list.

    `level` is that of works within it, which are read too.
    """
    kinds = await _kinds(cluster, manifests, applied=applied, status=status, may_ask=depth.objects)
    plurals = {(group, kind): resolved.plural for (group, kind), resolved in kinds.items()}
    versions = {key: resolved.versions for key, resolved in kinds.items() if resolved.versions}
    if not depth.objects:
        return ReadObjects(plurals=plurals, versions=versions)
    keys = object_keys(manifests, applied=applied, kinds=kinds)
    live_objects = await asyncio.gather(*(_read_object(cluster, key, kind, depth=depth) for key, kind in keys.items()))
    nested = (
        await _nested(cluster, manifests, live_objects=live_objects, depth=depth, level=level) if depth.nested else ()
    )
    return ReadObjects(live_objects=tuple(live_objects), nested=tuple(nested), plurals=plurals, versions=versions)


def object_keys(
    manifests: Sequence[Json], *, applied: Sequence[AppliedWork], kinds: Mapping[tuple[str, str], Kind]
) -> Mapping[ObjectKey, Kind | None]:
    """Return every object to read, once; a kind that the cluster does not serve is None."""
    keys: dict[tuple[str, str, str, str], tuple[ObjectKey, Kind | None]] = {}
    for manifest in manifests:
        key = parse.manifest_key(manifest)
        kind = kinds.get((key.group, key.kind))
        plural = kind.plural if kind else parse.plural_of(key.kind)
        # Manifests of cluster-scoped kinds often have a namespace.
        namespace = key.namespace if kind is None or kind.namespaced else ""
        full = ObjectKey(group=key.group, kind=key.kind, plural=plural, namespace=namespace, name=key.name)
        if key.name:
            keys.setdefault((full.group, plural, namespace, full.name), (full, kind))
    for applied_resource in (resource for work in applied for resource in work.resources):
        kind = Kind(
            group=applied_resource.group,
            version=applied_resource.version,
            kind="",
            plural=applied_resource.plural,
            namespaced=bool(applied_resource.namespace),
        )
        keys.setdefault(
            (applied_resource.group, applied_resource.plural, applied_resource.namespace, applied_resource.name),
            (applied_resource.key, kind),
        )
    return dict(keys.values())


async def _kinds(
    cluster: ClusterReader,
    manifests: Sequence[Json],
    *,
    applied: Sequence[AppliedWork],
    status: Status | None,
    may_ask: bool,
) -> Mapping[tuple[str, str], Kind]:
    """Return the kinds of manifests: from the agent's report where it names them, else from the cluster."""
    versions = {(resource.group, resource.plural): resource for work in applied for resource in work.resources}
    kinds: dict[tuple[str, str], Kind] = {}
    for report in status.manifests if status else ():
        key = report.key
        line = versions.get((key.group, key.plural))
        if line is not None and key.plural:
            namespaced = bool(line.namespace)
            kinds[(key.group, key.kind)] = Kind(
                group=key.group, version=line.version, kind=key.kind, plural=key.plural, namespaced=namespaced
            )
    missing = {(key.group, key.kind) for key in map(parse.manifest_key, manifests)} - set(kinds)
    for group, name in sorted(missing) if may_ask else ():
        served = [kind for kind in await cluster.kinds([name.lower()], group=group) if kind.group == group]
        if served:
            kinds[(group, name)] = served[0]
    return kinds


async def _read_object(cluster: ClusterReader, key: ObjectKey, kind: Kind | None, *, depth: LookupDepth) -> LiveObject:
    if kind is None:
        return LiveObject(cluster=cluster.label, key=key, state="absent", problem=f"the cluster has no kind {key.kind}")
    if kind.namespaced and not key.namespace:
        return LiveObject(cluster=cluster.label, key=key, state="unknown", problem="the manifest names no namespace")
    try:
        documents = await cluster.objects(kind, namespace=key.namespace, name=key.name)
    except NoAccess as error:
        return LiveObject(cluster=cluster.label, key=key, state="unknown", problem=str(error))
    if not documents:
        return LiveObject(cluster=cluster.label, key=key, state="absent")
    document = documents[0]
    is_work = key.group == WORK_GROUP and kind.plural == "manifestworks"
    kept = document if depth.whole or is_work else {"metadata": document.get("metadata")}
    return parse.live(kept, cluster=cluster.label, key=key)


async def _nested(
    cluster: ClusterReader,
    manifests: Sequence[Json],
    *,
    live_objects: Iterable[LiveObject],
    depth: LookupDepth,
    level: int,
) -> Sequence[NestedWork]:
    inner = [manifest for manifest in manifests if _is_work(manifest)]
    if not inner or level > DEEPEST:
        return ()
    by_key = {(live.key.namespace, live.key.name): live for live in live_objects if live.key.plural == "manifestworks"}
    names = [parse.manifest_key(manifest).name for manifest in inner]
    records = [
        parse.applied_work(applied_work, cluster=cluster.label)
        for applied_work in await cluster.applied_works(names)
        if applied_work
    ]
    return [
        await _nested_work(
            cluster, manifest, live=by_key.get(_namespaced_name(manifest)), records=records, depth=depth, level=level
        )
        for manifest in inner
    ]


async def _nested_work(
    cluster: ClusterReader,
    manifest: Json,
    *,
    live: LiveObject | None,
    records: Sequence[AppliedWork],
    depth: LookupDepth,
    level: int,
) -> NestedWork:
    key = parse.manifest_key(manifest)
    # What the cluster has counts; the manifest only serves where it cannot be seen.
    document = live.content if live and live.content else manifest
    workload = parse.mapping(parse.mapping(document.get("spec")).get("workload"))
    manifests = parse.mappings(workload.get("manifests"))
    applied = [record for record in records if record.work_name == key.name]
    status = parse.work_status(document)
    objects = await read_live_objects(cluster, manifests, applied=applied, status=status, depth=depth, level=level + 1)
    return NestedWork(
        depth=level,
        cluster=cluster.label,
        namespace=key.namespace,
        name=key.name,
        manifests=manifests,
        status=status,
        applied=tuple(applied),
        live_objects=objects.live_objects,
        nested=objects.nested,
    )


def _is_work(manifest: Json) -> bool:
    key = parse.manifest_key(manifest)
    return key.group == WORK_GROUP and key.kind == "ManifestWork"


def _namespaced_name(manifest: Json) -> tuple[str, str]:
    key = parse.manifest_key(manifest)
    return key.namespace, key.name
