"""Build AppliedManifestWorks and owner references.

An AppliedManifestWork is the agent's only persistent state: one cluster-scoped object per work, named after the
server's address and the work. It lists the applied objects and owns them through their `ownerReferences`. Name,
finalizer and references are those of the Go agent, so either agent can replace the other on a live cluster.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.wire import errors, json_types
from maestropy.wire.json_types import Object
from maestropy.wire.works import options, status, work

API_VERSION = work.API_VERSION
KIND = "AppliedManifestWork"
GROUP = "work.open-cluster-management.io"
FINALIZER = "cluster.open-cluster-management.io/applied-manifest-work-cleanup"
ANNOUNCED = "maestropy/announced-resources"
"""Annotation with the objects that are about to be created; a create request cannot set the status."""
_ANNOUNCED_MAX_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentIdentity:
    """The identity of this agent on the cluster."""

    hub_hash: str
    agent_id: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AppliedResource:
    """One object that an AppliedManifestWork lists; the field order is the sort order."""

    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The identity of the object: without the version, because all versions show the same object."""
        return self.group, self.resource, self.namespace, self.name

    def to_json(self) -> dict[str, str]:
        """Return the entry of `status.appliedResources`."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerReference:
    """The owner reference that an object should have, or should lose."""

    name: str
    uid: str
    is_owned: bool

    def to_json(self) -> dict[str, str]:
        """Return the reference; it neither controls nor blocks."""
        return {"apiVersion": API_VERSION, "kind": KIND, "name": self.name, "uid": self.uid}


def hub_hash(address: str) -> str:
    """Return the hub hash: the hash of the server's address exactly as configured."""
    return hashlib.sha256(address.encode()).hexdigest()


def applied_work_name(hub: str, work_name: str) -> str:
    """Return the name of a work's AppliedManifestWork."""
    return f"{hub}-{work_name}"


def new_applied_work(
    manifest_work: work.ManifestWork,
    *,
    identity: AgentIdentity,
    planned: Sequence[AppliedResource] = (),
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the AppliedManifestWork to create for a work; it copies the work's labels once.

    The `planned` resources are announced in an annotation: if the agent crashes before it lists what it created, those
    objects are still found. A list that is too long is not announced.
    """
    metadata: dict[str, Any] = {
        "name": applied_work_name(identity.hub_hash, manifest_work.name),
        "finalizers": [FINALIZER],
    }
    if manifest_work.labels:
        metadata["labels"] = dict(manifest_work.labels)
    announcement = json_types.encode({"resources": [[*resource.key, resource.version] for resource in planned]})
    own_annotations = dict(annotations or {})
    if planned and len(announcement) <= _ANNOUNCED_MAX_BYTES:
        own_annotations[ANNOUNCED] = announcement.decode()
    if own_annotations:
        metadata["annotations"] = own_annotations
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": _applied_work_spec(manifest_work.name, identity=identity),
    }


def is_of_agent(applied_work: Object, identity: AgentIdentity) -> bool:
    """Return whether an AppliedManifestWork belongs to the agents of this identity."""
    return json_types.text_at(applied_work, "spec", "agentID") == identity.agent_id


def spec_patch(applied_work: Object, *, work_name: str, identity: AgentIdentity) -> dict[str, Any] | None:
    """Return the merge patch that sets our spec, or None if it is set."""
    spec = _applied_work_spec(work_name, identity=identity)
    if json_types.object_at(applied_work, "spec") == spec:
        return None
    return {**_preconditions(applied_work), "spec": spec}


def annotation_patch(applied_work: Object, name: str, text: str) -> dict[str, Any] | None:
    """Return the merge patch that sets an annotation, or None if it is set."""
    if json_types.text_map_at(applied_work, "metadata", "annotations").get(name, "") == text:
        return None
    patch = _preconditions(applied_work)
    patch["metadata"]["annotations"] = {name: text}
    return patch


def status_patch(applied_work: Object, resources: Iterable[AppliedResource]) -> dict[str, Any] | None:
    """Return the merge patch of the applied resources, or None if they are listed already."""
    entries = sorted(set(resources))
    if [*applied_resources(applied_work)] == entries:
        return None
    return {
        **_preconditions(applied_work),
        "status": {"appliedResources": [resource.to_json() for resource in entries]},
    }


def finalizer_patch(applied_work: Object, *, is_set: bool) -> dict[str, Any] | None:
    """Return the merge patch that sets or removes the finalizer, or None if nothing changes."""
    current = [*json_types.texts_at(applied_work, "metadata", "finalizers")]
    desired = [*(name for name in current if name != FINALIZER), *([FINALIZER] if is_set else [])]
    if sorted(current) == sorted(desired):
        return None
    patch = _preconditions(applied_work)
    patch["metadata"]["finalizers"] = desired or None
    return patch


def applied_resources(applied_work: Object) -> Sequence[AppliedResource]:
    """Return the objects that an AppliedManifestWork lists."""
    return [
        AppliedResource(**{name: json_types.text_at(entry, name) for name in AppliedResource.__slots__})
        for entry in json_types.objects_at(applied_work, "status", "appliedResources")
    ]


def announced_resources(applied_work: Object) -> Sequence[AppliedResource]:
    """Return the objects that are announced and not listed; they may or may not exist."""
    text = json_types.text_map_at(applied_work, "metadata", "annotations").get(ANNOUNCED, "")
    listed = {resource.key for resource in applied_resources(applied_work)}
    try:
        members = json_types.decode_object(text, label=ANNOUNCED) if text else {}
        announced = [_announced_resource(entry) for entry in members.get("resources") or ()]
    except (errors.WireError, TypeError, ValueError):
        # Another writer changed the annotation.
        return []
    return [resource for resource in announced if resource.key not in listed]


def announces(applied_work: Object, planned: Sequence[AppliedResource]) -> bool:
    """Return whether an AppliedManifestWork that lists nothing yet announces exactly the planned resources."""
    return {resource.key for resource in announced_resources(applied_work)} == {resource.key for resource in planned}


def _announced_resource(entry: Any) -> AppliedResource:
    group, resource, namespace, name, version = map(str, entry)
    return AppliedResource(group=group, version=version, resource=resource, namespace=namespace, name=name)


def is_owned(
    option: options.DeleteOption | None,
    meta: status.ResourceMeta,
    *,
    orphaned: Collection[options.ResourceIdentifier],
) -> bool:
    """Return whether an object is deleted with its work; `orphaned` has the orphaning rules of the option."""
    if option is None or option.propagation_policy == options.FOREGROUND:
        return True
    if option.propagation_policy == options.ORPHAN:
        return False
    # An unknown policy counts as SelectivelyOrphan: its rules are honoured, and everything else is owned.
    identifier = options.ResourceIdentifier(
        group=meta.group, resource=meta.resource, name=meta.name, namespace=meta.namespace
    )
    return identifier not in orphaned


def merged_owner_references(references: Sequence[Object], owner: OwnerReference) -> list[Object]:
    """Return the owner references with ours set or removed; all others stay.

    A reference to a previous AppliedManifestWork of this name is removed too: its owner is gone, and the garbage
    collector would delete the object.
    """
    merged: list[Object] = []
    is_set = False
    for reference in references:
        if not _refers_to(reference, owner):
            merged.append(reference)
        elif owner.is_owned:
            # A recreated AppliedManifestWork has the same name and another UID.
            merged.append(reference if reference.get("uid") == owner.uid else owner.to_json())
            is_set = True
    return [*merged, owner.to_json()] if owner.is_owned and not is_set else merged


def owners_of(live: Object, *, hub: str) -> list[str]:
    """Return the names of the AppliedManifestWorks of this hub that own the object."""
    references = json_types.objects_at(live, "metadata", "ownerReferences")
    names = [str(reference.get("name", "")) for reference in references if reference.get("kind") == KIND]
    return [name for name in names if name.startswith(hub)]


def is_owned_by_hub(live: Object, *, hub: str) -> bool:
    """Return whether an AppliedManifestWork of this hub owns the object."""
    metadata = live.get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    return isinstance(references, list) and any(
        isinstance(reference, Mapping)
        and reference.get("kind") == KIND
        and str(reference.get("name", "")).startswith(hub)
        for reference in references
    )


def is_applied_by(live: Object, owner: OwnerReference) -> bool:
    """Return whether this AppliedManifestWork owns the object, so that its work applied it."""
    references = json_types.objects_at(live, "metadata", "ownerReferences")
    return any(_refers_to(reference, owner) and reference.get("uid") == owner.uid for reference in references)


def owner_references_patch(live: Object, owner: OwnerReference) -> dict[str, Any] | None:
    """Return the merge patch that sets or removes our reference on a live object, or None if nothing changes."""
    references = json_types.objects_at(live, "metadata", "ownerReferences")
    merged = merged_owner_references(references, owner)
    if merged == [*references]:
        return None
    patch = _preconditions(live)
    patch["metadata"]["ownerReferences"] = merged
    return patch


@dataclass(frozen=True, slots=True, kw_only=True)
class UnresolvedManifest:
    """A manifest whose object could not be resolved."""

    group: str
    namespace: str
    name: str


def untracked(
    previous: Iterable[AppliedResource],
    current: Iterable[AppliedResource],
    *,
    unresolved: Sequence[UnresolvedManifest] = (),
) -> list[AppliedResource]:
    """Return applied objects that no manifest contains any more.

    An object that an unresolved manifest may mean stays: a kind that is missing for a moment costs no object, and the
    rest of the work is pruned all the same.
    """
    current_keys = {resource.key for resource in current}
    possibly_wanted = {(manifest.group, manifest.name) for manifest in unresolved}
    return [
        resource
        for resource in previous
        if resource.key not in current_keys and (resource.group, resource.name) not in possibly_wanted
    ]


def _refers_to(reference: Object, owner: OwnerReference) -> bool:
    group = str(reference.get("apiVersion", "")).rpartition("/")[0]
    return group == GROUP and reference.get("kind") == KIND and reference.get("name") == owner.name


def _applied_work_spec(work_name: str, *, identity: AgentIdentity) -> dict[str, str]:
    return {"hubHash": identity.hub_hash, "agentID": identity.agent_id, "manifestWorkName": work_name}


def _preconditions(body: Object) -> dict[str, Any]:
    """Return the start of a merge patch that fails unless the object is unchanged."""
    metadata: Mapping[str, Any] = json_types.object_at(body, "metadata")
    return {"metadata": {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}}
