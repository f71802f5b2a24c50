"""Compare a desired work with a stored one, and apply patches. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work
from maestropy.wire.json_types import Object
from maestropy.wire.works import status
from maestropy.wire.works import work as wire
from maestropy.wire.works.work import ManifestWork

Patch = Mapping[str, Any] | Callable[[Work], Work]
"""A JSON merge patch of the ManifestWork (None removes a member, lists are replaced), or a function of the work."""

_PROTOCOL_ANNOTATIONS = (wire.VERSION_ANNOTATION, wire.SEQUENCE_ID_ANNOTATION, wire.DATA_TYPE_ANNOTATION)


def is_unchanged(stored: ManifestWork, desired: ManifestWork) -> bool:
    """Return whether `desired` equals `stored`.

    A Go server does not return the executor: a desired work with one always counts as changed there.
    """
    return _content(stored) == _content(desired)


def has_nothing_to_publish(stored: Work, desired: Work) -> bool:
    """Return whether `desired` need not be published: it is stored, and no agent waits for the source's word."""
    hold = stored.condition(status.DATA_SAFETY_HOLD)
    is_held_back = hold is not None and (hold.status, hold.reason) == (status.TRUE, status.OLDER_VERSION)
    is_same = is_unchanged(stored.manifest_work, desired.manifest_work)
    return is_same and not stored.is_deleting and not is_held_back


def differences(stored: Work, desired: Work) -> list[tuple[str, Any, Any]]:
    """Return every path at which the two works differ: (path, stored, desired)."""
    return list(_differences(_content(stored.manifest_work), _content(desired.manifest_work), ""))


def patched(stored: Work, patch: Patch) -> Work:
    """Return the stored work with a patch applied; its identity and version stay."""
    if callable(patch):
        changed = patch(stored)
        if not isinstance(changed, Work):
            raise Invalid(f"the patch function returned a {type(changed).__name__}", advice="return the changed Work")
    elif isinstance(patch, Mapping):
        changed = Work.from_dict(merge_patch(stored.to_dict(), patch))
    else:
        raise Invalid(f"a patch cannot be of type {type(patch).__name__}", advice="give a dict or a function")
    if (changed.name, changed.consumer or stored.consumer) != (stored.name, stored.consumer):
        raise Invalid("a patch cannot change the name or the consumer of a work", advice="create another work")
    return changed


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` with a JSON merge patch (RFC 7396) applied."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def _content(manifest_work: ManifestWork) -> dict[str, Any]:
    """Return what its source sets: labels, annotations and spec, without empty members."""
    annotations = {
        name: value
        for name, value in manifest_work.annotations.items()
        if name not in _PROTOCOL_ANNOTATIONS and not name.startswith(wire.TRACING_PREFIX)
    }
    metadata = {"labels": dict(manifest_work.labels), "annotations": annotations}
    return {"metadata": _without_empty(metadata), "spec": _without_empty(manifest_work.spec)}


def _without_empty(members: Object) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value not in (None, {}, [], "")}


def _differences(old: Any, new: Any, path: str) -> list[tuple[str, Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = [*old, *(name for name in new if name not in old)]
        return [
            difference for name in names for difference in _differences(old.get(name), new.get(name), f"{path}.{name}")
        ]
    if isinstance(old, list) and isinstance(new, list):
        pairs = [(*pair, f"{path}[{index}]") for index, pair in enumerate(_paired(old, new))]
        return [difference for left, right, item_path in pairs for difference in _differences(left, right, item_path)]
    return [] if old == new else [(path.lstrip("."), old, new)]


def _paired(old: list[Any], new: list[Any]) -> list[tuple[Any, Any]]:
    length = max(len(old), len(new))
    return [
        (old[index] if index < len(old) else None, new[index] if index < len(new) else None) for index in range(length)
    ]
