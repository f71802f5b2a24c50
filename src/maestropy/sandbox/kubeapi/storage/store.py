"""Store objects by resource, with one resourceVersion counter and a bounded watch cache per resource.

The store validates nothing. Every change goes through `put` or `delete`, which append an event to the watch cache and
wake its readers. Objects are never changed in place: a change is a new object.
"""

import asyncio
import bisect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

Json = dict[str, Any]
Resource = tuple[str, str]
"""Group and plural name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """One version of an object."""

    resource: Resource
    obj: Json
    raw: bytes
    version: int

    @property
    def namespace(self) -> str:
        """The namespace, empty for cluster-scoped objects."""
        return str(self.obj["metadata"].get("namespace", ""))

    @property
    def name(self) -> str:
        """The name."""
        return str(self.obj["metadata"]["name"])

    @property
    def uid(self) -> str:
        """The UID: an object that is deleted and created again has another one."""
        return str(self.obj["metadata"]["uid"])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreEvent:
    """One change: created (no `before`), updated, or deleted (no `after`)."""

    version: int
    before: StoredObject | None
    after: StoredObject | None
    last: StoredObject
    """The state to show to watchers: the new one, or the last one with the version of the deletion."""


class WatchCache:
    """The recent events of one resource, in order."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._events: list[StoreEvent] = []
        self._waiting: list[asyncio.Future[None]] = []
        self.compacted_version = 0
        """Version of the newest event that was dropped."""

    def append(self, event: StoreEvent) -> None:
        """Append an event, drop old ones and wake readers."""
        self._events.append(event)
        if len(self._events) > 2 * self._capacity:
            self._drop_oldest(len(self._events) - self._capacity)
        self.wake()

    def compact(self) -> None:
        """Drop every event, as a compaction of etcd does."""
        self._drop_oldest(len(self._events))

    def _drop_oldest(self, count: int) -> None:
        if count:
            self.compacted_version = self._events[count - 1].version
            del self._events[:count]

    def events_since(self, version: int) -> list[StoreEvent]:
        """Return the events after `version`, or raise LookupError if some of them were dropped."""
        if version < self.compacted_version:
            raise LookupError(self.compacted_version)
        start = bisect.bisect_right(self._events, version, key=lambda event: event.version)
        return self._events[start:]

    def wake(self) -> None:
        """Wake every reader."""
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    async def wait_for_event(self, seconds: float) -> None:
        """Wait for the next event, at most `seconds`."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            await asyncio.wait_for(waiting, seconds)
        except TimeoutError:
            return
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)


class ObjectStore:
    """All objects of the cluster."""

    def __init__(self, *, history: int) -> None:
        self._history = history
        self._objects: dict[Resource, dict[str, dict[str, StoredObject]]] = {}
        self._by_uid: dict[str, StoredObject] = {}
        self._dependents: dict[str, set[str]] = {}
        self._watch_caches: dict[Resource, WatchCache] = {}
        self._handlers: list[Callable[[StoreEvent], None]] = []
        # Not zero, because clients send resourceVersion "0" to mean "any version".
        self.version = 1
        self.is_closed = False

    def add_event_handler(self, handler: Callable[[StoreEvent], None]) -> None:
        """Call `handler` with every change, within the change: a handler may only enqueue work."""
        self._handlers.append(handler)

    def watch_cache(self, resource: Resource) -> WatchCache:
        """Return the watch cache of a resource."""
        if resource not in self._watch_caches:
            self._watch_caches[resource] = WatchCache(self._history)
        return self._watch_caches[resource]

    def get(self, resource: Resource, namespace: str, name: str) -> StoredObject | None:
        """Return one object."""
        return self._objects.get(resource, {}).get(namespace, {}).get(name)

    def by_uid(self, uid: str) -> StoredObject | None:
        """Return the object with this UID."""
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[StoredObject]:
        """Return the objects that name `uid` as an owner."""
        return [self._by_uid[dependent_uid] for dependent_uid in sorted(self._dependents.get(uid, ()))]

    def select(self, resource: Resource, namespace: str = "") -> list[StoredObject]:
        """Return the objects of a resource sorted by key; no namespace means all namespaces."""
        spaces = self._objects.get(resource, {})
        chosen = [spaces.get(namespace, {})] if namespace else [spaces[name] for name in sorted(spaces)]
        return [space[name] for space in chosen for name in sorted(space)]

    def all_objects(self) -> Iterator[StoredObject]:
        """Yield all objects."""
        for spaces in self._objects.values():
            for space in spaces.values():
                yield from space.values()

    def put(self, resource: Resource, obj: Json) -> StoredObject:
        """Store `obj` under the next resourceVersion, replacing the object of the same name."""
        self.version += 1
        stored = self._stamp(resource, obj, self.version)
        before = self.get(resource, stored.namespace, stored.name)
        self._index(stored, before)
        self._announce(StoreEvent(version=self.version, before=before, after=stored, last=stored))
        return stored

    def delete(self, stored: StoredObject) -> StoredObject:
        """Delete an object; return its last state with the resourceVersion of the deletion."""
        self.version += 1
        last = self._stamp(stored.resource, stored.obj, self.version)
        space = self._objects[stored.resource][stored.namespace]
        del space[stored.name]
        del self._by_uid[stored.uid]
        self._relate(stored, present=False)
        self._announce(StoreEvent(version=self.version, before=stored, after=None, last=last))
        return last

    def load(self, objects: Iterable[tuple[Resource, Json]], version: int) -> None:
        """Add saved objects as they are, without events."""
        for resource, obj in objects:
            stored = self._stamp(resource, obj, int(obj["metadata"]["resourceVersion"]))
            self._index(stored, None)
        self.version = max(self.version, version)
        for resource in self._objects:
            self.watch_cache(resource).compacted_version = self.version

    def close(self) -> None:
        """Wake every reader for the last time."""
        self.is_closed = True
        for cache in self._watch_caches.values():
            cache.wake()

    def _stamp(self, resource: Resource, obj: Json, version: int) -> StoredObject:
        # apiVersion and kind come first, so that lists can cut them off the raw form.
        head = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
        stamped = {**head, **obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
        return StoredObject(resource=resource, obj=stamped, raw=orjson.dumps(stamped), version=version)

    def _index(self, stored: StoredObject, before: StoredObject | None) -> None:
        if before is not None:
            self._relate(before, present=False)
        space = self._objects.setdefault(stored.resource, {}).setdefault(stored.namespace, {})
        space[stored.name] = stored
        self._by_uid[stored.uid] = stored
        self._relate(stored, present=True)

    def _relate(self, stored: StoredObject, *, present: bool) -> None:
        for owner in stored.obj["metadata"].get("ownerReferences") or []:
            related = self._dependents.setdefault(owner["uid"], set())
            if present:
                related.add(stored.uid)
            else:
                related.discard(stored.uid)
                if not related:
                    del self._dependents[owner["uid"]]

    def _announce(self, event: StoreEvent) -> None:
        self.watch_cache(event.last.resource).append(event)
        for handler in self._handlers:
            handler(event)
