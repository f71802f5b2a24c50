"""Turn lists and watch events into the changes of a resource.

`KnownObjects` has the version of every object. After a gap in the watch, a new list shows which objects were added,
modified or deleted meanwhile. Pure: `maestropy.kube.watch` does the I/O.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from maestropy.kube import objects
from maestropy.kube.errors import Unreachable
from maestropy.kube.objects import Json


@dataclass(frozen=True, slots=True)
class Added:
    """An object was added."""

    object: Json


@dataclass(frozen=True, slots=True)
class Modified:
    """An object was modified."""

    object: Json


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object was deleted."""

    object: Json
    """Its final state; if that is unknown, only apiVersion, kind and the identifying metadata."""
    is_final_state_known: bool = True
    """False if the deletion was found by a list and not reported by the watch."""


@dataclass(frozen=True, slots=True)
class Synced:
    """The list is complete; changes follow."""

    resource_version: str


Change = Added | Modified | Deleted | Synced

_ObjectKey = tuple[str, str]  # namespace and name


class ObjectVersion(NamedTuple):
    """UID and resource version of an object."""

    uid: str
    resource_version: str


class KnownObjects:
    """The versions of all objects of one resource."""

    def __init__(self, *, api_version: str, kind: str) -> None:
        self._api_version = api_version
        self._kind = kind
        self._present: dict[_ObjectKey, ObjectVersion] = {}

    def __len__(self) -> int:
        return len(self._present)

    def version_of(self, namespace: str, name: str) -> ObjectVersion | None:
        """Return the last known version of an object; None if it does not exist."""
        return self._present.get((namespace, name))

    def apply_list(self, items: Iterable[Any], *, listed_keys: set[_ObjectKey]) -> Iterator[Change]:
        """Yield the changes of one page of a list, and add its objects to `listed_keys`."""
        for item in items:
            obj = self._complete(item)
            listed_keys.add(_key(obj))
            yield from self._set(obj)

    def remove_missing(self, *, listed_keys: set[_ObjectKey]) -> Iterator[Deleted]:
        """Yield the deletions of objects that are not in the list any more."""
        for key in [known_key for known_key in self._present if known_key not in listed_keys]:
            yield Deleted(self._tombstone(key, self._present.pop(key)), is_final_state_known=False)

    def apply_event(self, event: str, item: Any) -> Iterator[Change]:
        """Yield the changes of one watch event."""
        obj = self._complete(item)
        if event != "DELETED":
            yield from self._set(obj)
        elif self._present.pop(_key(obj), None) is not None:
            yield Deleted(obj)

    def _set(self, obj: Json) -> Iterator[Change]:
        key = _key(obj)
        before = self._present.get(key)
        uid, version = objects.uid(obj), objects.resource_version(obj)
        self._present[key] = ObjectVersion(uid, version)
        if before is None:
            yield Added(obj)
        elif before.uid != uid:
            # Deleted and created again during the gap.
            yield Deleted(self._tombstone(key, before), is_final_state_known=False)
            yield Added(obj)
        elif before.resource_version != version:
            yield Modified(obj)

    def _complete(self, item: Any) -> Json:
        """Return an object with the apiVersion and kind that items of a list lack."""
        if not isinstance(item, dict):
            raise Unreachable(f"the API server sent a {self._kind} that is no object")
        # A metadata-only list has items of kind PartialObjectMetadata; readers need the kind of the object.
        return {**item, "apiVersion": self._api_version, "kind": self._kind}

    def _tombstone(self, key: _ObjectKey, gone: ObjectVersion) -> Json:
        namespace, name = key
        metadata: Json = {"name": name, "uid": gone.uid, "resourceVersion": gone.resource_version}
        if namespace:
            metadata["namespace"] = namespace
        return {"apiVersion": self._api_version, "kind": self._kind, "metadata": metadata}


def _key(obj: Mapping[str, Any]) -> _ObjectKey:
    metadata = objects.metadata(obj)
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
