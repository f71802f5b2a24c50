"""From an object on a cluster up to the works that own it.

An object names its owners; an AppliedManifestWork among them names its work. Two things lie in between at times: the
controllers of Kubernetes (a Pod of a ReplicaSet of a Deployment), and works within works, where the owner's work is
itself a ManifestWork object that another AppliedManifestWork owns. Both are followed. It only asks, and decides
nothing about what it finds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from maestropy.trace.errors import NoAccess
from maestropy.trace.work import reading
from maestropy.trace.work.model import WORK_GROUP, AppliedWork, Json, Live, ObjectKey, Owner
from maestropy.trace.work.question import Manifest
from maestropy.trace.work.sides import ClusterSide

_MOST_OWNERS = 6
"""Levels of controllers above an object; Kubernetes' own have at most three."""
_MOST_NESTED = 3


@dataclass(slots=True)
class Climb:
    """What was met on the way up, on one cluster."""

    cluster: str
    starts: list[Live] = field(default_factory=list)
    applied: dict[str, AppliedWork] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    """The way in words, one line a step."""

    @property
    def work_names(self) -> tuple[str, ...]:
        """The works met, nearest first."""
        return tuple(dict.fromkeys(each.work_name for each in self.applied.values() if each.work_name))


async def from_manifest(cluster: ClusterSide, wanted: Manifest) -> Climb:
    """Find the manifest on a cluster and climb from it."""
    climb = Climb(cluster.label)
    for kind in await cluster.kinds(wanted.kinds, group=wanted.group):
        for document in await cluster.objects(kind, namespace=wanted.namespace, name=wanted.name):
            found = reading.live(document, cluster=cluster.label, key=_key(document, kind.plural))
            climb.starts.append(found)
            await _climb_owners(cluster, found, climb=climb, level=0)
    return climb


async def from_applied_work(cluster: ClusterSide, name: str) -> Climb:
    """Find an AppliedManifestWork by its name and climb from it."""
    climb = Climb(cluster.label)
    await _climb_applied(cluster, name, climb=climb, level=0)
    return climb


async def _climb_owners(cluster: ClusterSide, found: Live, *, climb: Climb, level: int) -> None:
    for owner in found.applied_owners:
        climb.steps.append(f"{found.key} is owned by AppliedManifestWork {owner.name}")
        await _climb_applied(cluster, owner.name, climb=climb, level=0)
    if found.applied_owners or level >= _MOST_OWNERS:
        return
    for owner in found.owners:
        for above in await _owner_object(cluster, owner, namespace=found.key.namespace):
            climb.steps.append(f"{found.key} is owned by {above.key}")
            await _climb_owners(cluster, above, climb=climb, level=level + 1)


async def _owner_object(cluster: ClusterSide, owner: Owner, *, namespace: str) -> Sequence[Live]:
    found = []
    for kind in await cluster.kinds([owner.kind.lower()], group=owner.group):
        where = namespace if kind.namespaced else ""
        for document in await cluster.objects(kind, namespace=where, name=owner.name):
            live = reading.live(document, cluster=cluster.label, key=_key(document, kind.plural))
            if live.uid == owner.uid:
                found.append(live)
    return found


async def _climb_applied(cluster: ClusterSide, name: str, *, climb: Climb, level: int) -> None:
    if name in climb.applied or level > _MOST_NESTED:
        return
    document = await cluster.applied_work(name)
    if document is None:
        climb.steps.append(f"AppliedManifestWork {name} is not there any more")
        return
    applied = reading.applied_work(document, cluster=cluster.label)
    climb.applied[name] = applied
    try:
        await _climb_outer_works(cluster, applied, climb=climb, level=level)
    except NoAccess as error:
        # Most works are in no other work: not being allowed to look must not hide the one just found.
        climb.steps.append(f"whether {applied.work_name} is a work within a work is unknown: {error}")


async def _climb_outer_works(cluster: ClusterSide, applied: AppliedWork, *, climb: Climb, level: int) -> None:
    """Climb on where the owner's work is an object of this very cluster."""
    for kind in await cluster.kinds(["manifestwork"], group=WORK_GROUP):
        for outer in await cluster.objects(kind, namespace="", name=applied.work_name):
            live = reading.live(outer, cluster=cluster.label, key=_key(outer, kind.plural))
            for owner in live.applied_owners:
                climb.steps.append(f"{live.key} is owned by AppliedManifestWork {owner.name}")
                await _climb_applied(cluster, owner.name, climb=climb, level=level + 1)


def _key(document: Json, plural: str) -> ObjectKey:
    found = reading.manifest_key(document)
    return ObjectKey(group=found.group, kind=found.kind, plural=plural, namespace=found.namespace, name=found.name)
