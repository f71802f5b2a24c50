"""Summarise a spec change: the objects of a new work, or the names of the paths that an update changes.

Pure. A summary never holds a value. It holds a digest of the whole spec, by which two versions can be compared, but
none if the spec may contain a Secret: whoever knows the rest could find a short secret by trying.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from maestropy.server.decide.history import kinds
from maestropy.wire.events import event, stored_event

MAX_PATHS: Final = 24
MAX_OBJECTS: Final = 12
_PATH_CHARACTERS: Final = 160
_KEY_CHARACTERS: Final = 63
_MAX_DEPTH: Final = 32
_MAX_VISITS: Final = 20_000
"""Pairs of values that one comparison looks at: some milliseconds."""
_DIGEST_BYTES: Final = 8
_SET_BY_CLIENTS: Final = frozenset(("resourceVersion", "generation", "creationTimestamp", "managedFields", "uid"))


class _ObjectMeta(msgspec.Struct):
    name: str | None = None
    namespace: str | None = None


class _Object(msgspec.Struct):
    kind: str | None = None
    metadata: _ObjectMeta | None = None


class _Bundle(msgspec.Struct):
    manifests: list[_Object] | None = None


_decode_bundle = msgspec.json.Decoder(_Bundle).decode
_decode_meta = msgspec.json.Decoder(_ObjectMeta).decode


def created(parts: stored_event.StoredParts) -> str:
    """Return the detail of a new work: its name, its objects and its digest."""
    names, count = _objects(parts.data)
    return kinds.detail(
        {
            "name": _name(parts.metadata),
            "manifests": count,
            "objects": names,
            "digest": digest(parts.data),
            "truncated": count > len(names),
        }
    )


def updated(before: stored_event.StoredParts, after: stored_event.StoredParts) -> str:
    """Return the detail of an update: its name, the changed paths and its digest."""
    comparison = _Comparison()
    try:
        comparison.metadata(_metadata(before.metadata), _metadata(after.metadata))
        comparison.spec(_decoded(before.data), _decoded(after.data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The stored spec is damaged, and is replaced as a whole.
        comparison.add("", "spec", sign="~")
    return kinds.detail(
        {
            "name": _name(after.metadata),
            "changes": comparison.changes,
            "digest": digest(after.data),
            "truncated": comparison.is_truncated,
        }
    )


def deletion(stored: stored_event.StoredParts, *, is_from_operator: bool = False) -> str:
    """Return the detail of a deletion: the name of the work, and whether an operator asked for it, not its source."""
    return kinds.detail({"name": _name(stored.metadata), "action": "delete" if is_from_operator else ""})


def digest(data: bytes) -> str:
    """Return a digest of a spec; empty if it may contain a Secret, also one inside of another object."""
    # An escaped character could spell the word.
    if not data or b"Secret" in data or b"\\u" in data:
        return ""
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def _objects(data: bytes) -> tuple[list[str], int]:
    try:
        manifests = (_decode_bundle(data).manifests if data else None) or []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [], 0
    return [_object_name(each) for each in manifests[:MAX_OBJECTS]], len(manifests)


def _object_name(manifest: _Object) -> str:
    metadata = manifest.metadata or _ObjectMeta()
    place = f"{metadata.namespace}/{metadata.name or ''}" if metadata.namespace else metadata.name or ""
    return kinds.short(f"{manifest.kind or ''} {place}".strip(), limit=_PATH_CHARACTERS)


def _name(metadata: bytes) -> str:
    try:
        return kinds.short(_decode_meta(metadata).name or "") if metadata else ""
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def _decoded(data: bytes) -> Any:
    return msgspec.json.decode(data) if data else {}


def _metadata(data: bytes) -> Any:
    members = _decoded(data)
    if not isinstance(members, dict):
        return {}
    kept = {key: value for key, value in members.items() if key not in _SET_BY_CLIENTS}
    annotations = kept.get("annotations")
    if isinstance(annotations, dict):
        kept["annotations"] = {key: value for key, value in annotations.items() if key != event.OPERATION_ID_KEY}
    return kept


@dataclass(slots=True)
class _Comparison:
    """Collects the paths that differ between two values."""

    changes: list[str] = field(default_factory=list)
    is_truncated: bool = False
    _visits: int = 0

    def metadata(self, before: Any, after: Any) -> None:
        self._walk("", "metadata", before, after, depth=0)

    def spec(self, before: Any, after: Any) -> None:
        if not (isinstance(before, dict) and isinstance(after, dict)):
            self._walk("", "spec", before, after, depth=0)
            return
        self._manifests(before.get("manifests"), after.get("manifests"))
        for key in _keys(before, after):
            if key != "manifests":
                self._pair("", key, before, after, key=key, depth=0)

    def add(self, label: str, path: str, *, sign: str) -> None:
        if len(self.changes) >= MAX_PATHS:
            self.is_truncated = True
            return
        shown = f"{label}: {path}" if label and path else label or path
        self.changes.append(kinds.short(f"{sign} {shown}", limit=_PATH_CHARACTERS))

    def _manifests(self, before: Any, after: Any) -> None:
        old, new = dict(_by_identity(before)), dict(_by_identity(after))
        for label in _keys(old, new):
            self._pair(label, "", old, new, key=label, depth=0)

    def _pair(self, label: str, path: str, before: Any, after: Any, *, key: str, depth: int) -> None:
        if key not in before:
            self.add(label, path, sign="+")
        elif key not in after:
            self.add(label, path, sign="-")
        else:
            self._walk(label, path, before[key], after[key], depth=depth + 1)

    def _walk(self, label: str, path: str, before: Any, after: Any, *, depth: int) -> None:
        self._visits += 1
        if self._visits > _MAX_VISITS or self.is_truncated:
            self.is_truncated = True
        elif isinstance(before, dict) and isinstance(after, dict) and depth < _MAX_DEPTH:
            for key in _keys(before, after):
                step = kinds.short(key, limit=_KEY_CHARACTERS)
                self._pair(label, f"{path}.{step}" if path else step, before, after, key=key, depth=depth)
        elif isinstance(before, list) and isinstance(after, list) and depth < _MAX_DEPTH:
            for index, (left, right) in enumerate(zip(before, after, strict=False)):
                self._walk(label, f"{path}[{index}]", left, right, depth=depth + 1)
            for index in range(min(len(before), len(after)), max(len(before), len(after))):
                self.add(label, f"{path}[{index}]", sign="+" if len(after) > index else "-")
                if self.is_truncated:
                    return
        # Compared as text: in Python 1, 1.0 and True are equal.
        elif type(before) is not type(after) or before != after:
            self.add(label, path, sign="~")


def _keys(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[str]:
    return dict.fromkeys([*before, *after])


def _by_identity(manifests: Any) -> Iterator[tuple[str, Any]]:
    """Yield the manifests by kind, namespace and name; others by their place."""
    seen: set[str] = set()
    for index, manifest in enumerate(manifests if isinstance(manifests, list) else ()):
        try:
            label = _object_name(msgspec.convert(manifest, _Object))
        except msgspec.ValidationError:
            label = ""
        if not label or label in seen:
            label = f"manifests[{index}]"
        seen.add(label)
        yield label, manifest
