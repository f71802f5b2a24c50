"""What has to be written to bring one object to its wanted state?

Four strategies: `Update` merges metadata and replaces the rest, `CreateOnly` writes once, `ServerSideApply` states the
fields it wants and lets others own the rest, `ReadOnly` never writes. The caller has read the living object (or found
none) and carries the action out; after a write it asks `followup` and keeps `settled` for the next time.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maestropy.agent.decide import gotext, identity, ignoring, kinds, ownership
from maestropy.wire import errors, hashing, jsontypes, options
from maestropy.wire.jsontypes import Object

FIELD_MANAGER = "work-agent"
"""The field manager by default, and the user agent of every write."""
CONFIG_HASH = "open-cluster-management.io/config-spec-hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What we wrote last, and what the cluster made of it; kept in memory per object."""

    wish_hash: str
    live_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """All that decides about one object."""

    manifest: Object
    """As `prepared` returns it."""
    live: Object | None
    """None if it does not exist."""
    strategy: options.UpdateStrategy
    owner: ownership.Owner
    last: Settled | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """POST this."""

    body: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace:
    """PUT this; its resource version makes it fail if someone was quicker."""

    body: Object
    can_wait: bool = False
    """All fields of the manifest hold; only others differ, which someone else (an autoscaler, say) may well own."""
    recreate_if_immutable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreate:
    """Delete the object with this uid, then POST this."""

    body: Object
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """PATCH this as server-side apply."""

    body: Object
    field_manager: str
    force: bool
    notes: tuple[str, ...] = ()
    """Worth a log line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchMetadata:
    """PATCH this as a merge patch; it carries uid and resource version."""

    body: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Nothing to write."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """The wish cannot be followed; nothing is written."""

    problem: str
    is_about_ignored_fields: bool = False


Action = Create | Replace | Recreate | Apply | PatchMetadata | Leave | Refuse


def prepared(manifest: Object, *, is_namespaced: bool) -> Object:
    """Return a manifest as it can be sent: without what only a cluster sets, and without a namespace it cannot have."""
    dropped: dict[str, None] = dict.fromkeys(("uid", "resourceVersion", "managedFields"))
    if not is_namespaced:
        dropped["namespace"] = None
    return {**manifest, "metadata": jsontypes.merged(jsontypes.object_at(manifest, "metadata"), dropped)}


def decide(wish: Wish) -> Action:
    """Return what has to be written."""
    try:
        match wish.strategy.type:
            case options.UPDATE:
                return _update(wish)
            case options.CREATE_ONLY:
                return _create_only(wish)
            case options.SERVER_SIDE_APPLY:
                return _apply(wish)
            case options.READ_ONLY:
                return Leave(reason="read-only")
            case unknown:
                known = f"{options.UPDATE}, {options.CREATE_ONLY}, {options.SERVER_SIDE_APPLY} or {options.READ_ONLY}"
                return Refuse(problem=f'updateStrategy.type "{unknown}" is not known: set it to {known}')
    except ignoring.IgnoreFieldsError as error:
        return Refuse(problem=str(error), is_about_ignored_fields=True)
    except (errors.WireError, kinds.ConflictingDataError) as error:
        return Refuse(problem=str(error))


def followup(wish: Wish, result: Object) -> PatchMetadata | None:
    """Return what a write leaves to do: server-side apply does not touch owners."""
    if wish.strategy.type != options.SERVER_SIDE_APPLY:
        return None
    return _owners(result, wish.owner)


def settled(wish: Wish, result: Object) -> Settled:
    """Return what to remember of a write that succeeded with this result."""
    strategy = wish.strategy
    asked = [wish.manifest, strategy.type, strategy.force, strategy.field_manager]
    return Settled(wish_hash=_hash(asked), live_hash=_hash(_substance(result)))


def _update(wish: Wish) -> Action:
    kind = identity.kind_of(wish.manifest)
    manifest = kinds.completed(kind, wish.manifest)
    if wish.live is None:
        return Create(body=_created(manifest, wish.owner))
    if kinds.must_recreate(kind, manifest, live=wish.live):
        body = _created(manifest, wish.owner)
        return Recreate(body=body, uid=jsontypes.text_at(wish.live, "metadata", "uid"))
    metadata = _merged_metadata(manifest, wish.live, wish.owner)
    is_metadata_same = _is_metadata_same(metadata, wish.live)
    members = kinds.members_to_set(kind, manifest, live=wish.live)
    if members is None:
        body = {**manifest, "metadata": metadata}
    else:
        body = {**jsontypes.merged(wish.live, members), "metadata": metadata}
    is_substance_same = _is_same(_substance(body), _substance(wish.live))
    if is_metadata_same and (is_substance_same or _is_settled(wish, wish.live)):
        return Leave(reason="already as wanted")
    return Replace(
        body=body,
        can_wait=is_metadata_same and wish.last is not None and _is_stated(_substance(manifest), wish.live),
        recreate_if_immutable=kinds.may_recreate(kind),
    )


def _create_only(wish: Wish) -> Action:
    if wish.live is None:
        return Create(body=_created(wish.manifest, wish.owner))
    return _owners(wish.live, wish.owner) or Leave(reason="exists already")


def _apply(wish: Wish) -> Action:
    manifest = _without_null_timestamps(wish.manifest)
    strategy = wish.strategy
    body: Object = manifest
    notes: tuple[str, ...] = ()
    if strategy.ignore_fields:
        body, notes = ignoring.without_fields(manifest, strategy.ignore_fields)
        wanted = gotext.object_hash(body)
        if wish.live is None:
            # Created whole: fields to ignore are ignored once they are there.
            body = manifest
        elif jsontypes.text_map_at(wish.live, "metadata", "annotations").get(CONFIG_HASH) == wanted:
            return _owners(wish.live, wish.owner) or Leave(reason="the wish has not changed")
        body = _annotated(body, wanted)
    elif wish.live is not None and _is_settled(wish, wish.live) and _is_stated(_marks(manifest), _marks(wish.live)):
        return _owners(wish.live, wish.owner) or Leave(reason="already as wanted")
    return Apply(body=body, field_manager=strategy.field_manager or FIELD_MANAGER, force=strategy.force, notes=notes)


def _owners(live: Object, owner: ownership.Owner) -> PatchMetadata | None:
    patch = ownership.owners_patch(live, owner)
    return None if patch is None else PatchMetadata(body=patch)


def _created(manifest: Object, owner: ownership.Owner) -> Object:
    """Return the manifest with our owner reference, and without marks that only mean something on a living object."""
    metadata = dict(jsontypes.object_at(manifest, "metadata"))
    for name in ("labels", "annotations"):
        if name in metadata:
            found = jsontypes.text_map_at(metadata, name)
            metadata[name] = {key: value for key, value in found.items() if not key.endswith("-")}
    changes = {"ownerReferences": [owner.to_json()] if owner.is_wanted else None}
    return {**manifest, "metadata": jsontypes.merged(metadata, changes)}


def _merged_metadata(manifest: Object, live: Object, owner: ownership.Owner) -> dict[str, Any]:
    """Merge labels, annotations and owners into the living ones; finalizers belong to the cluster."""
    wanted, found = jsontypes.object_at(manifest, "metadata"), jsontypes.object_at(live, "metadata")
    annotations = _merged_texts(found, wanted, "annotations")
    is_default = jsontypes.object_at(found, "annotations").get(kinds.DEFAULT_CLASS)
    if is_default is not None and manifest.get("kind") == "StorageClass":
        annotations[kinds.DEFAULT_CLASS] = is_default
    return jsontypes.merged(
        wanted,
        {
            "labels": _merged_texts(found, wanted, "labels") or None,
            "annotations": annotations or None,
            "ownerReferences": ownership.merged_owners(jsontypes.objects_at(found, "ownerReferences"), owner) or None,
            "finalizers": found.get("finalizers") or None,
            "resourceVersion": found.get("resourceVersion"),
            "uid": found.get("uid"),
            "creationTimestamp": found.get("creationTimestamp"),
        },
    )


def _merged_texts(found: Object, wanted: Object, name: str) -> dict[str, str]:
    """Add what is wanted to what is there; a key with a trailing dash removes the key."""
    merged = dict(jsontypes.text_map_at(found, name))
    for key, value in jsontypes.text_map_at(wanted, name).items():
        if key.endswith("-"):
            merged.pop(key[:-1], None)
        else:
            merged[key] = value
    return merged


def _is_metadata_same(merged: Object, live: Object) -> bool:
    found = jsontypes.object_at(live, "metadata")
    names = ("labels", "annotations", "ownerReferences")
    return all((merged.get(name) or None) == (found.get(name) or None) for name in names)


def _is_settled(wish: Wish, live: Object) -> bool:
    """Say whether the cluster still holds what it made of this very wish."""
    return wish.last is not None and wish.last == settled(wish, live)


def _marks(found: Object) -> Object:
    metadata = jsontypes.object_at(found, "metadata")
    return {name: metadata.get(name) for name in ("labels", "annotations", "finalizers")}


def _substance(found: Object) -> Object:
    return {name: value for name, value in found.items() if name not in ("metadata", "status")}


def _is_same(left: Any, right: Any) -> bool:
    """Compare as Kubernetes does: nothing, null and empty are the same."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return all(_is_same(left.get(name), right.get(name)) for name in {*left, *right})
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_same, left, right))
    return left == right or (left in (None, {}, []) and right in (None, {}, []))


def _is_stated(stated: Any, found: Any) -> bool:
    """Say whether everything the manifest states holds; what it leaves out may be anything."""
    if isinstance(stated, Mapping) and isinstance(found, Mapping):
        return all(_is_stated(value, found.get(name)) for name, value in stated.items())
    if isinstance(stated, list) and isinstance(found, list):
        return len(stated) == len(found) and all(map(_is_stated, stated, found))
    return _is_same(stated, found)


def _annotated(body: Object, config_hash: str) -> Object:
    metadata = jsontypes.object_at(body, "metadata")
    annotations = {**jsontypes.object_at(metadata, "annotations"), CONFIG_HASH: config_hash}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def _without_null_timestamps(value: Any) -> Any:
    """Drop `creationTimestamp: null` from every metadata: an API server would count it as a change each time."""
    if isinstance(value, list):
        return [_without_null_timestamps(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    cleaned = {name: _without_null_timestamps(item) for name, item in value.items()}
    metadata = cleaned.get("metadata")
    if isinstance(metadata, dict) and metadata.get("creationTimestamp", "") is None:
        del metadata["creationTimestamp"]
    return cleaned


def _hash(found: object) -> str:
    return hashlib.sha256(hashing.canonical(found)).hexdigest()
