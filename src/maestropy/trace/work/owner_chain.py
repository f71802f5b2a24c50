"""Follow an object on a cluster up to the works that own it.

An object names its owners; an AppliedManifestWork among them names its work. In between there may be controllers of
Kubernetes (a Pod of a ReplicaSet of a Deployment) and nested works, where the work of the owner is itself a
ManifestWork object that another AppliedManifestWork owns. Both are followed. This module only reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from maestropy.trace.errors import NoAccess
from maestropy.trace.work import parse
from maestropy.trace.work.model import WORK_GROUP, AppliedWork, Json, LiveObject, ObjectKey, Owner
from maestropy.trace.work.query import ManifestQuery
from maestropy.trace.work.readers import ClusterReader

_MOST_OWNERS = 6
"""Levels of controllers above an object; Kubernetes' own have at most three."""
_MOST_NESTED = 3


@dataclass(slots=True)
class OwnerChain:
    """The owners found on one cluster."""

    cluster: str
    starts: list[LiveObject] = field(default_factory=list)
    applied: dict[str, AppliedWork] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    """The owner relations, one line each."""

    @property
    def work_names(self) -> tuple[str, ...]:
        """The works met, nearest first."""
        return tuple(
            dict.fromkeys(applied_work.work_name for applied_work in self.applied.values() if applied_work.work_name)
        )


async def from_manifest(cluster: ClusterReader, manifest: ManifestQuery) -> OwnerChain:
    """Find the manifest on a cluster and climb from it."""
    chain = OwnerChain(cluster.label)
    for kind in await cluster.kinds(manifest.kinds, group=manifest.group):
        for document in await cluster.objects(kind, namespace=manifest.namespace, name=manifest.name):
            live = parse.live(document, cluster=cluster.label, key=_key(document, kind.plural))
            chain.starts.append(live)
            await _follow_owners(cluster, live, chain=chain, level=0)
    return chain


async def from_applied_work(cluster: ClusterReader, name: str) -> OwnerChain:
    """Find an AppliedManifestWork by its name and climb from it."""
    chain = OwnerChain(cluster.label)
    await _follow_applied_work(cluster, name, chain=chain, level=0)
    return chain


async def _follow_owners(cluster: ClusterReader, live: LiveObject, *, chain: OwnerChain, level: int) -> None:
    for owner in live.applied_owners:
        chain.steps.append(f"{live.key} is owned by AppliedManifestWork {owner.name}")
        await _follow_applied_work(cluster, owner.name, chain=chain, level=0)
    if live.applied_owners or level >= _MOST_OWNERS:
        return
    for owner in live.owners:
        for above in await _owner_object(cluster, owner, namespace=live.key.namespace):
            chain.steps.append(f"{live.key} is owned by {above.key}")
            await _follow_owners(cluster, above, chain=chain, level=level + 1)


async def _owner_object(cluster: ClusterReader, owner: Owner, *, namespace: str) -> Sequence[LiveObject]:
    owners = []
    for kind in await cluster.kinds([owner.kind.lower()], group=owner.group):
        owner_namespace = namespace if kind.namespaced else ""
        for document in await cluster.objects(kind, namespace=owner_namespace, name=owner.name):
            live = parse.live(document, cluster=cluster.label, key=_key(document, kind.plural))
            if live.uid == owner.uid:
                owners.append(live)
    return owners


async def _follow_applied_work(cluster: ClusterReader, name: str, *, chain: OwnerChain, level: int) -> None:
    if name in chain.applied or level > _MOST_NESTED:
        return
    document = await cluster.applied_work(name)
    if document is None:
        chain.steps.append(f"AppliedManifestWork {name} is not there any more")
        return
    applied = parse.applied_work(document, cluster=cluster.label)
    chain.applied[name] = applied
    try:
        await _follow_outer_works(cluster, applied, chain=chain, level=level)
    except NoAccess as error:
        # Most works are not nested: a missing right must not hide the work just found.
        chain.steps.append(f"whether {applied.work_name} is a work within a work is unknown: {error}")


async def _follow_outer_works(cluster: ClusterReader, applied: AppliedWork, *, chain: OwnerChain, level: int) -> None:
    """Climb on where the owner's work is an object of this very cluster."""
    for kind in await cluster.kinds(["manifestwork"], group=WORK_GROUP):
        for outer in await cluster.objects(kind, namespace="", name=applied.work_name):
            live = parse.live(outer, cluster=cluster.label, key=_key(outer, kind.plural))
            for owner in live.applied_owners:
                chain.steps.append(f"{live.key} is owned by AppliedManifestWork {owner.name}")
                await _follow_applied_work(cluster, owner.name, chain=chain, level=level + 1)


def _key(document: Json, plural: str) -> ObjectKey:
    key = parse.manifest_key(document)
    return ObjectKey(group=key.group, kind=key.kind, plural=plural, namespace=key.namespace, name=key.name)
