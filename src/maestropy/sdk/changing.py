"""What a wanted work would change in a stored one, and what a patch makes of it. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work
from maestropy.wire import work as wire
from maestropy.wire.jsontypes import Object
from maestropy.wire.work import ManifestWork

Patch = Mapping[str, Any] | Callable[[Work], Work]
"""A JSON merge patch of the ManifestWork (None removes a member, lists are replaced), or a function of the work."""

_NOT_OURS = (wire.VERSION_ANNOTATION, wire.SEQUENCE_ID_ANNOTATION, wire.DATA_TYPE_ANNOTATION)
_EXECUTOR = "executor"


def is_unchanged(stored: ManifestWork, wanted: ManifestWork) -> bool:
    """Say whether storing `wanted` over `stored` would change anything.

    The REST API does not show an executor, so a work that wants one always counts as changed.
    """
    return wanted.spec.get(_EXECUTOR) is None and _content(stored) == _content(wanted)


def differences(stored: Work, wanted: Work) -> list[tuple[str, Any, Any]]:
    """Return every path at which the two works ask for something different: (path, stored, wanted)."""
    return list(_differences(_content(stored.manifest_work), _content(wanted.manifest_work), ""))


def patched(stored: Work, patch: Patch) -> Work:
    """Return the work that `patch` makes of a stored one; who and which version it is stays."""
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


def _content(found: ManifestWork) -> dict[str, Any]:
    """Return what its author decides: labels, annotations and spec, with what is empty left out."""
    annotations = {
        name: value
        for name, value in found.annotations.items()
        if name not in _NOT_OURS and not name.startswith(wire.TRACING_PREFIX)
    }
    metadata = {"labels": dict(found.labels), "annotations": annotations}
    spec = {name: value for name, value in found.spec.items() if name != _EXECUTOR}
    return {"metadata": _without_empty(metadata), "spec": _without_empty(spec)}


def _without_empty(found: Object) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value not in (None, {}, [], "")}


def _differences(old: Any, new: Any, path: str) -> list[tuple[str, Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = [*old, *(name for name in new if name not in old)]
        return [each for name in names for each in _differences(old.get(name), new.get(name), f"{path}.{name}")]
    if isinstance(old, list) and isinstance(new, list):
        pairs = [(*each, f"{path}[{index}]") for index, each in enumerate(_paired(old, new))]
        return [found for left, right, where in pairs for found in _differences(left, right, where)]
    return [] if old == new else [(path.lstrip("."), old, new)]


def _paired(old: list[Any], new: list[Any]) -> list[tuple[Any, Any]]:
    length = max(len(old), len(new))
    return [
        (old[index] if index < len(old) else None, new[index] if index < len(new) else None) for index in range(length)
    ]
