"""Whom do the objects of a cluster belong to, and what does the agent remember of them?

An AppliedManifestWork is the agent's only lasting memory: a cluster-scoped record per work, named after the server's
address and the work, that lists the applied objects and owns them through their `ownerReferences`. Name, finalizer and
references are those of the Go agent, so either can take over from the other on a living cluster.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.wire import errors, jsontypes, options, status, work
from maestropy.wire.jsontypes import Object

API_VERSION = work.API_VERSION
KIND = "AppliedManifestWork"
GROUP = "work.open-cluster-management.io"
FINALIZER = "cluster.open-cluster-management.io/applied-manifest-work-cleanup"
ANNOUNCED = "maestropy/announced-resources"
"""What a record was created for, before any of it was there; the status of a record cannot be created with it."""
_ANNOUNCED_MAX_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who this agent is to the cluster."""

    hub_hash: str
    agent_id: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AppliedResource:
    """One object the record lists; the order of the fields is the order of the list."""

    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes two entries the same object: another version is still the same one."""
        return self.group, self.resource, self.namespace, self.name

    def to_json(self) -> dict[str, str]:
        """Return the entry as the record carries it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The owner reference an object should carry, or should lose."""

    name: str
    uid: str
    is_wanted: bool

    def to_json(self) -> dict[str, str]:
        """Return the reference; it neither controls nor blocks."""
        return {"apiVersion": API_VERSION, "kind": KIND, "name": self.name, "uid": self.uid}


def hub_hash(address: str) -> str:
    """Return what names a server: the hash of its address exactly as it is configured."""
    return hashlib.sha256(address.encode()).hexdigest()


def record_name(hub: str, work_name: str) -> str:
    """Return the name of a work's record."""
    return f"{hub}-{work_name}"


def new_record(
    wanted: work.ManifestWork, *, identity: Identity, coming: Sequence[AppliedResource] = ()
) -> dict[str, Any]:
    """Return the record to create for a work; it takes the work's labels once and for all.

    What is `coming` is announced in it: should the agent die before it can list what it created, that is found all
    the same. What does not fit is not announced.
    """
    metadata: dict[str, Any] = {
        "name": record_name(identity.hub_hash, wanted.name),
        "finalizers": [FINALIZER],
    }
    if wanted.labels:
        metadata["labels"] = dict(wanted.labels)
    announcement = jsontypes.encode({"resources": [[*each.key, each.version] for each in coming]})
    if coming and len(announcement) <= _ANNOUNCED_MAX_BYTES:
        metadata["annotations"] = {ANNOUNCED: announcement.decode()}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": _record_spec(wanted.name, identity=identity),
    }


def record_spec_patch(record: Object, *, work_name: str, identity: Identity) -> dict[str, Any] | None:
    """Return the merge patch that makes a record ours, or None if it is."""
    spec = _record_spec(work_name, identity=identity)
    if jsontypes.object_at(record, "spec") == spec:
        return None
    return {**_guard(record), "spec": spec}


def record_status_patch(record: Object, resources: Iterable[AppliedResource]) -> dict[str, Any] | None:
    """Return the merge patch of the record's status, or None if it lists these objects already."""
    wanted = sorted(set(resources))
    if [*read_resources(record)] == wanted:
        return None
    return {**_guard(record), "status": {"appliedResources": [resource.to_json() for resource in wanted]}}


def finalizer_patch(record: Object, *, is_wanted: bool) -> dict[str, Any] | None:
    """Return the merge patch that sets or removes the record's finalizer, or None if nothing changes."""
    found = [*jsontypes.texts_at(record, "metadata", "finalizers")]
    wanted = [*(name for name in found if name != FINALIZER), *([FINALIZER] if is_wanted else [])]
    if sorted(found) == sorted(wanted):
        return None
    patch = _guard(record)
    patch["metadata"]["finalizers"] = wanted or None
    return patch


def read_resources(record: Object) -> Sequence[AppliedResource]:
    """Return the objects a record lists."""
    return [
        AppliedResource(**{name: jsontypes.text_at(found, name) for name in AppliedResource.__slots__})
        for found in jsontypes.objects_at(record, "status", "appliedResources")
    ]


def read_announced(record: Object) -> Sequence[AppliedResource]:
    """Return the objects a record announced and does not list, as they may or may not be there."""
    text = jsontypes.text_map_at(record, "metadata", "annotations").get(ANNOUNCED, "")
    listed = {each.key for each in read_resources(record)}
    try:
        members = jsontypes.decode_object(text, what=ANNOUNCED) if text else {}
        found = [_announced(each) for each in members.get("resources") or ()]
    except (errors.WireError, TypeError, ValueError):
        # Somebody else wrote it.
        return []
    return [each for each in found if each.key not in listed]


def _announced(found: Any) -> AppliedResource:
    group, resource, namespace, name, version = map(str, found)
    return AppliedResource(group=group, version=version, resource=resource, namespace=namespace, name=name)


def is_owned(option: options.DeleteOption | None, meta: status.ResourceMeta) -> bool:
    """Say whether an object goes with its work."""
    if option is None or option.propagation_policy == options.FOREGROUND:
        return True
    if option.propagation_policy == options.ORPHAN:
        return False
    # An unknown policy counts as this one: its rules are honoured, and everything else is owned.
    identifier = options.ResourceIdentifier(
        group=meta.group, resource=meta.resource, name=meta.name, namespace=meta.namespace
    )
    return identifier not in option.orphaning_rules


def merged_owners(found: Sequence[Object], owner: Owner) -> list[Object]:
    """Return the owner references with ours set or removed; everyone else's stay.

    A reference to an earlier record of this name goes too: its owner is gone, and the garbage collector would follow.
    """
    merged: list[Object] = []
    is_set = False
    for reference in found:
        if not _names(reference, owner):
            merged.append(reference)
        elif owner.is_wanted:
            # A record that was created anew has the same name and another uid.
            merged.append(reference if reference.get("uid") == owner.uid else owner.to_json())
            is_set = True
    return [*merged, owner.to_json()] if owner.is_wanted and not is_set else merged


def has_owner_of(live: Object, *, hub: str) -> bool:
    """Say whether an object names a record of this server's works as its owner."""
    metadata = live.get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    return isinstance(references, list) and any(
        isinstance(each, Mapping) and each.get("kind") == KIND and str(each.get("name", "")).startswith(hub)
        for each in references
    )


def owners_patch(live: Object, owner: Owner) -> dict[str, Any] | None:
    """Return the merge patch that sets or removes our reference on a living object, or None if nothing changes."""
    found = jsontypes.objects_at(live, "metadata", "ownerReferences")
    merged = merged_owners(found, owner)
    if merged == [*found]:
        return None
    patch = _guard(live)
    patch["metadata"]["ownerReferences"] = merged
    return patch


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """A manifest whose object could not be looked up this time."""

    group: str
    namespace: str
    name: str


def untracked(
    previous: Iterable[AppliedResource],
    current: Iterable[AppliedResource],
    *,
    unresolved: Sequence[Unresolved] = (),
) -> list[AppliedResource]:
    """Return recorded objects that no manifest wants any more.

    What an unresolved manifest may mean stays, so that a kind which vanished for a moment costs nobody an object, and
    the rest of the work is cleaned up all the same.
    """
    wanted = {resource.key for resource in current}
    doubtful = {(found.group, found.name) for found in unresolved}
    return [
        resource
        for resource in previous
        if resource.key not in wanted and (resource.group, resource.name) not in doubtful
    ]


def _names(reference: Object, owner: Owner) -> bool:
    group = str(reference.get("apiVersion", "")).rpartition("/")[0]
    return group == GROUP and reference.get("kind") == KIND and reference.get("name") == owner.name


def _record_spec(work_name: str, *, identity: Identity) -> dict[str, str]:
    return {"hubHash": identity.hub_hash, "agentID": identity.agent_id, "manifestWorkName": work_name}


def _guard(found: Object) -> dict[str, Any]:
    """Return the start of a merge patch that fails unless the object is still the one we looked at."""
    metadata: Mapping[str, Any] = jsontypes.object_at(found, "metadata")
    return {"metadata": {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}}
