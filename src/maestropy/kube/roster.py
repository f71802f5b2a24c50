"""Turn what lists and watches tell into what changed for a reader who saw everything before.

A roster remembers who is there. After a gap in the watch a new list tells who came, changed, or disappeared meanwhile.
It does no I/O; `maestropy.kube.watch` feeds it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from maestropy.kube import objects
from maestropy.kube.errors import Unreachable
from maestropy.kube.objects import Json


@dataclass(frozen=True, slots=True)
class Added:
    """An object is there that was not."""

    object: Json


@dataclass(frozen=True, slots=True)
class Modified:
    """An object is not as it was."""

    object: Json


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object is gone."""

    object: Json
    """As it was last; if nobody saw it go, only apiVersion, kind and the metadata that identify it."""
    was_seen: bool = True
    """False if a list no longer had it: when it went, and what it was like then, nobody knows."""


@dataclass(frozen=True, slots=True)
class Synced:
    """All that was there when the list was made has been told; changes follow."""

    resource_version: str


Change = Added | Modified | Deleted | Synced

_Place = tuple[str, str]  # namespace and name


class Sighting(NamedTuple):
    """Which life and version of an object was last told."""

    uid: str
    resource_version: str


class Roster:
    """Who is there, of one resource."""

    def __init__(self, *, api_version: str, kind: str) -> None:
        self._api_version = api_version
        self._kind = kind
        self._present: dict[_Place, Sighting] = {}

    def __len__(self) -> int:
        return len(self._present)

    def sight(self, namespace: str, name: str) -> Sighting | None:
        """Return what was last told of an object; nothing if it is not there."""
        return self._present.get((namespace, name))

    def take_listed(self, items: Iterable[Any], *, met: set[_Place]) -> Iterator[Change]:
        """Yield what a page of a list changes, and note in `met` who was on it."""
        for item in items:
            found = self._complete(item)
            met.add(_place(found))
            yield from self._set(found)

    def take_missing(self, *, met: set[_Place]) -> Iterator[Deleted]:
        """Yield who was there before a list and was on none of its pages."""
        for place in [each for each in self._present if each not in met]:
            yield Deleted(self._tombstone(place, self._present.pop(place)), was_seen=False)

    def take_event(self, event: str, item: Any) -> Iterator[Change]:
        """Yield what one event of a watch changes."""
        found = self._complete(item)
        if event != "DELETED":
            yield from self._set(found)
        elif self._present.pop(_place(found), None) is not None:
            yield Deleted(found)

    def _set(self, found: Json) -> Iterator[Change]:
        place = _place(found)
        before = self._present.get(place)
        uid, version = objects.uid(found), objects.resource_version(found)
        self._present[place] = Sighting(uid, version)
        if before is None:
            yield Added(found)
        elif before.uid != uid:
            # Deleted and made anew behind our back.
            yield Deleted(self._tombstone(place, before), was_seen=False)
            yield Added(found)
        elif before.resource_version != version:
            yield Modified(found)

    def _complete(self, item: Any) -> Json:
        """Return an object with the apiVersion and kind that items of a list lack."""
        if not isinstance(item, dict):
            raise Unreachable(f"the API server sent a {self._kind} that is no object")
        # What asks for metadata only gets a kind that says so; readers want to know what it is the metadata of.
        return {**item, "apiVersion": self._api_version, "kind": self._kind}

    def _tombstone(self, place: _Place, gone: Sighting) -> Json:
        namespace, name = place
        metadata: Json = {"name": name, "uid": gone.uid, "resourceVersion": gone.resource_version}
        if namespace:
            metadata["namespace"] = namespace
        return {"apiVersion": self._api_version, "kind": self._kind, "metadata": metadata}


def _place(found: Mapping[str, Any]) -> _Place:
    metadata = objects.metadata(found)
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
