"""Decide what to write to bring one object to its desired state.

Four update strategies: `Update` merges metadata and replaces the rest, `CreateOnly` writes once, `ServerSideApply`
sends the manifest's fields and leaves the rest to other field managers, `ReadOnly` never writes. The caller reads the
live object and carries the action out; after a write it asks `owner_followup` and keeps `last_applied` for the next
decision.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maestropy.agent.decide import ignored_fields, kind_updates, manifest_identity, ownership
from maestropy.agent.expressions import go_values
from maestropy.agent.expressions.budget import Budget
from maestropy.wire import errors, json_types
from maestropy.wire.json_types import Object
from maestropy.wire.works import options, status_hash

FIELD_MANAGER = "work-agent"
"""The default field manager, and the user agent of every write."""
CONFIG_HASH = "open-cluster-management.io/config-spec-hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastApplied:
    """Hashes of what was written last and of the object it produced; kept in memory per object."""

    desired_hash: str
    live_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyInput:
    """Everything that decides what to write to one object."""

    manifest: Object
    """As `sendable` returns it."""
    live: Object | None
    """None if it does not exist."""
    strategy: options.UpdateStrategy
    owner: ownership.OwnerReference
    last_applied: LastApplied | None = None
    budget: Budget = field(default_factory=Budget, compare=False)
    """Charged for the expressions of `ignoreFields`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateObject:
    """Create the object by POST."""

    body: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceObject:
    """Replace the object by PUT; its resource version makes this fail if the object changed."""

    body: Object
    can_defer: bool = False
    """Only fields that the manifest does not state differ; another actor, such as an autoscaler, may own them."""
    should_recreate_if_immutable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecreateObject:
    """Delete the object with this UID, then create it."""

    body: Object
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSideApply:
    """Apply the manifest by a server-side apply PATCH."""

    body: Object
    field_manager: str
    force: bool
    warnings: tuple[str, ...] = ()
    """Warnings for the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchMetadata:
    """Send this merge patch; it carries UID and resource version."""

    body: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveUnchanged:
    """Nothing to write."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectManifest:
    """The manifest cannot be applied; nothing is written."""

    problem: str
    is_ignore_fields_error: bool = False


Action = (
    CreateObject | ReplaceObject | RecreateObject | ServerSideApply | PatchMetadata | LeaveUnchanged | RejectManifest
)


def sendable(manifest: Object, *, is_namespaced: bool) -> Object:
    """Return a manifest without server-set metadata, and without a namespace for cluster-scoped kinds."""
    dropped: dict[str, None] = dict.fromkeys(("uid", "resourceVersion", "managedFields"))
    if not is_namespaced:
        dropped["namespace"] = None
    return {**manifest, "metadata": json_types.merged(json_types.object_at(manifest, "metadata"), dropped)}


def decide(inputs: ApplyInput) -> Action:
    """Decide what to write."""
    try:
        match inputs.strategy.type:
            case options.UPDATE:
                return _update(inputs)
            case options.CREATE_ONLY:
                return _create_only(inputs)
            case options.SERVER_SIDE_APPLY:
                return _apply(inputs)
            case options.READ_ONLY:
                return LeaveUnchanged(reason="read-only")
            case unknown:
                known = f"{options.UPDATE}, {options.CREATE_ONLY}, {options.SERVER_SIDE_APPLY} or {options.READ_ONLY}"
                return RejectManifest(problem=f'updateStrategy.type "{unknown}" is not known: set it to {known}')
    except ignored_fields.IgnoreFieldsError as error:
        return RejectManifest(problem=str(error), is_ignore_fields_error=True)
    except (errors.WireError, kind_updates.ConflictingDataError) as error:
        return RejectManifest(problem=str(error))


def owner_followup(inputs: ApplyInput, result: Object) -> PatchMetadata | None:
    """Return the patch after a write: server-side apply does not set owner references."""
    if inputs.strategy.type != options.SERVER_SIDE_APPLY:
        return None
    return _owner_patch(result, inputs.owner)


def last_applied(inputs: ApplyInput, result: Object) -> LastApplied:
    """Return what to keep of a successful write."""
    strategy = inputs.strategy
    desired = [inputs.manifest, strategy.type, strategy.force, strategy.field_manager]
    return LastApplied(desired_hash=_hash(desired), live_hash=_hash(_content(result)))


def _update(inputs: ApplyInput) -> Action:
    kind = manifest_identity.gvk_of(inputs.manifest)
    manifest = kind_updates.completed(kind, inputs.manifest)
    if inputs.live is None:
        return CreateObject(body=_body_to_create(manifest, inputs.owner))
    if kind_updates.must_recreate(kind, manifest, live=inputs.live):
        body = _body_to_create(manifest, inputs.owner)
        return RecreateObject(body=body, uid=json_types.text_at(inputs.live, "metadata", "uid"))
    metadata = _merged_metadata(manifest, inputs.live, inputs.owner)
    is_metadata_same = _is_metadata_same(metadata, inputs.live)
    members = kind_updates.members_to_set(kind, manifest, live=inputs.live)
    if members is None:
        body = {**manifest, "metadata": metadata}
    else:
        body = {**json_types.merged(inputs.live, members), "metadata": metadata}
    is_substance_same = _is_same(_content(body), _content(inputs.live))
    if is_metadata_same and (is_substance_same or _is_unchanged_since_apply(inputs, inputs.live)):
        return LeaveUnchanged(reason="already in the desired state")
    return ReplaceObject(
        body=body,
        can_defer=is_metadata_same
        and inputs.last_applied is not None
        and _contains_stated(_content(manifest), inputs.live),
        should_recreate_if_immutable=kind_updates.may_recreate(kind),
    )


def _create_only(inputs: ApplyInput) -> Action:
    if inputs.live is None:
        return CreateObject(body=_body_to_create(inputs.manifest, inputs.owner))
    return _owner_patch(inputs.live, inputs.owner) or LeaveUnchanged(reason="exists already")


def _apply(inputs: ApplyInput) -> Action:
    manifest = _without_null_timestamps(inputs.manifest)
    strategy = inputs.strategy
    body: Object = manifest
    warnings: tuple[str, ...] = ()
    if strategy.ignore_fields:
        body, warnings = ignored_fields.without_fields(manifest, strategy.ignore_fields, budget=inputs.budget)
        config_hash = go_values.object_hash(body)
        if inputs.live is None:
            # Ignored fields are set on create; they are ignored once the object exists.
            body = manifest
        elif json_types.text_map_at(inputs.live, "metadata", "annotations").get(CONFIG_HASH) == config_hash:
            return _owner_patch(inputs.live, inputs.owner) or LeaveUnchanged(reason="the manifest has not changed")
        body = _annotated(body, config_hash)
    elif (
        inputs.live is not None
        and _is_unchanged_since_apply(inputs, inputs.live)
        and _contains_stated(_user_metadata(manifest), _user_metadata(inputs.live))
    ):
        return _owner_patch(inputs.live, inputs.owner) or LeaveUnchanged(reason="already in the desired state")
    return ServerSideApply(
        body=body, field_manager=strategy.field_manager or FIELD_MANAGER, force=strategy.force, warnings=warnings
    )


def _owner_patch(live: Object, owner: ownership.OwnerReference) -> PatchMetadata | None:
    patch = ownership.owner_references_patch(live, owner)
    return None if patch is None else PatchMetadata(body=patch)


def _body_to_create(manifest: Object, owner: ownership.OwnerReference) -> Object:
    """Return the manifest with our owner reference, and without keys that only remove entries of a live object."""
    metadata = dict(json_types.object_at(manifest, "metadata"))
    for name in ("labels", "annotations"):
        if name in metadata:
            entries = json_types.text_map_at(metadata, name)
            metadata[name] = {key: value for key, value in entries.items() if not key.endswith("-")}
    changes = {"ownerReferences": [owner.to_json()] if owner.is_owned else None}
    return {**manifest, "metadata": json_types.merged(metadata, changes)}


def _merged_metadata(manifest: Object, live: Object, owner: ownership.OwnerReference) -> dict[str, Any]:
    """Merge labels, annotations and owner references into the live ones; finalizers belong to the cluster."""
    desired, current = json_types.object_at(manifest, "metadata"), json_types.object_at(live, "metadata")
    annotations = _merged_map(current, desired, "annotations")
    is_default = json_types.object_at(current, "annotations").get(kind_updates.DEFAULT_CLASS)
    if is_default is not None and manifest.get("kind") == "StorageClass":
        annotations[kind_updates.DEFAULT_CLASS] = is_default
    return json_types.merged(
        desired,
        {
            "labels": _merged_map(current, desired, "labels") or None,
            "annotations": annotations or None,
            "ownerReferences": ownership.merged_owner_references(
                json_types.objects_at(current, "ownerReferences"), owner
            )
            or None,
            "finalizers": current.get("finalizers") or None,
            "resourceVersion": current.get("resourceVersion"),
            "uid": current.get("uid"),
            "creationTimestamp": current.get("creationTimestamp"),
        },
    )


def _merged_map(current: Object, desired: Object, name: str) -> dict[str, str]:
    """Merge a map into the live one; a key with a trailing dash removes the key."""
    merged = dict(json_types.text_map_at(current, name))
    for key, value in json_types.text_map_at(desired, name).items():
        if key.endswith("-"):
            merged.pop(key[:-1], None)
        else:
            merged[key] = value
    return merged


def _is_metadata_same(merged: Object, live: Object) -> bool:
    current = json_types.object_at(live, "metadata")
    names = ("labels", "annotations", "ownerReferences")
    return all((merged.get(name) or None) == (current.get(name) or None) for name in names)


def _is_unchanged_since_apply(inputs: ApplyInput, live: Object) -> bool:
    """Return whether the object is still what the last apply of this manifest produced."""
    return inputs.last_applied is not None and inputs.last_applied == last_applied(inputs, live)


def _user_metadata(body: Object) -> Object:
    metadata = json_types.object_at(body, "metadata")
    return {name: metadata.get(name) for name in ("labels", "annotations", "finalizers")}


def _content(body: Object) -> Object:
    return {name: value for name, value in body.items() if name not in ("metadata", "status")}


def _is_same(left: Any, right: Any) -> bool:
    """Compare as Kubernetes does: missing, null and empty are equal."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return all(_is_same(left.get(name), right.get(name)) for name in {*left, *right})
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_same, left, right))
    return left == right or (left in (None, {}, []) and right in (None, {}, []))


def _contains_stated(stated: Any, live: Any) -> bool:
    """Return whether every field of the manifest has its value; fields it leaves out may differ."""
    if isinstance(stated, Mapping) and isinstance(live, Mapping):
        return all(_contains_stated(value, live.get(name)) for name, value in stated.items())
    if isinstance(stated, list) and isinstance(live, list):
        return len(stated) == len(live) and all(map(_contains_stated, stated, live))
    return _is_same(stated, live)


def _annotated(body: Object, config_hash: str) -> Object:
    metadata = json_types.object_at(body, "metadata")
    annotations = {**json_types.object_at(metadata, "annotations"), CONFIG_HASH: config_hash}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def _without_null_timestamps(value: Any) -> Any:
    """Drop `creationTimestamp: null` from all metadata: API servers would count it as a change each time."""
    if isinstance(value, list):
        return [_without_null_timestamps(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    cleaned = {name: _without_null_timestamps(item) for name, item in value.items()}
    metadata = cleaned.get("metadata")
    if isinstance(metadata, dict) and metadata.get("creationTimestamp", "") is None:
        del metadata["creationTimestamp"]
    return cleaned


def _hash(value: object) -> str:
    return hashlib.sha256(status_hash.canonical(value)).hexdigest()
