"""What is in the cluster, and what happened to it lately? Objects by resource, one version counter, a bounded history.

Keeps and tells; judges nothing. Every change goes through `put` or `drop`, which write the event down and wake readers
of it. Objects are never changed in place: a change is a new object.
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
class Stored:
    """One object as it was after one write."""

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
        """The identity that survives nothing but updates."""
        return str(self.obj["metadata"]["uid"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change: from nothing, to nothing, or from one state to the next."""

    version: int
    before: Stored | None
    after: Stored | None
    last: Stored
    """The state to show: the new one, or the last one of what is gone (with the version of its removal)."""


class Log:
    """The recent events of one resource, in order."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._events: list[Event] = []
        self._waiting: list[asyncio.Future[None]] = []
        self.forgotten = 0
        """Version of the newest event that is no longer known."""

    def append(self, event: Event) -> None:
        """Write an event down, forget old ones and wake readers."""
        self._events.append(event)
        if len(self._events) > 2 * self._capacity:
            self._forget(len(self._events) - self._capacity)
        self.wake()

    def forget_all(self) -> None:
        """Forget every event, as a compaction would."""
        self._forget(len(self._events))

    def _forget(self, count: int) -> None:
        if count:
            self.forgotten = self._events[count - 1].version
            del self._events[:count]

    def since(self, version: int) -> list[Event]:
        """Return the events after `version`, or raise LookupError if some of them are forgotten."""
        if version < self.forgotten:
            raise LookupError(self.forgotten)
        start = bisect.bisect_right(self._events, version, key=lambda event: event.version)
        return self._events[start:]

    def wake(self) -> None:
        """Wake every reader."""
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    async def news(self, seconds: float) -> None:
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


class Store:
    """All objects of the cluster."""

    def __init__(self, *, history: int) -> None:
        self._history = history
        self._objects: dict[Resource, dict[str, dict[str, Stored]]] = {}
        self._by_uid: dict[str, Stored] = {}
        self._dependents: dict[str, set[str]] = {}
        self._logs: dict[Resource, Log] = {}
        self._listeners: list[Callable[[Event], None]] = []
        # Real clusters never start at zero either: clients take "0" to mean "anything".
        self.version = 1
        self.closed = False

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with every change, within the change itself: it must only take note."""
        self._listeners.append(listener)

    def log(self, resource: Resource) -> Log:
        """Return the history of a resource."""
        if resource not in self._logs:
            log = Log(self._history)
            log.forgotten = 0
            self._logs[resource] = log
        return self._logs[resource]

    def get(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        """Return one object."""
        return self._objects.get(resource, {}).get(namespace, {}).get(name)

    def by_uid(self, uid: str) -> Stored | None:
        """Return the object with this identity."""
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[Stored]:
        """Return the objects that name `uid` as an owner."""
        return [self._by_uid[each] for each in sorted(self._dependents.get(uid, ()))]

    def select(self, resource: Resource, namespace: str = "") -> list[Stored]:
        """Return the objects of a resource in the order of their keys; no namespace means all of them."""
        spaces = self._objects.get(resource, {})
        chosen = [spaces.get(namespace, {})] if namespace else [spaces[name] for name in sorted(spaces)]
        return [space[name] for space in chosen for name in sorted(space)]

    def everything(self) -> Iterator[Stored]:
        """Yield all objects."""
        for spaces in self._objects.values():
            for space in spaces.values():
                yield from space.values()

    def put(self, resource: Resource, obj: Json) -> Stored:
        """Keep `obj` under the next version, in place of what has its name."""
        self.version += 1
        stored = self._stamp(resource, obj, self.version)
        before = self.get(resource, stored.namespace, stored.name)
        self._index(stored, before)
        self._announce(Event(version=self.version, before=before, after=stored, last=stored))
        return stored

    def drop(self, stored: Stored) -> Stored:
        """Forget an object; returns its last state under the version of its removal."""
        self.version += 1
        last = self._stamp(stored.resource, stored.obj, self.version)
        space = self._objects[stored.resource][stored.namespace]
        del space[stored.name]
        del self._by_uid[stored.uid]
        self._relate(stored, present=False)
        self._announce(Event(version=self.version, before=stored, after=None, last=last))
        return last

    def load(self, objects: Iterable[tuple[Resource, Json]], version: int) -> None:
        """Take objects in as they are, without events; for the start of a cluster that was saved."""
        for resource, obj in objects:
            stored = self._stamp(resource, obj, int(obj["metadata"]["resourceVersion"]))
            self._index(stored, None)
        self.version = max(self.version, version)
        for resource in self._objects:
            self.log(resource).forgotten = self.version

    def close(self) -> None:
        """Wake every reader for the last time."""
        self.closed = True
        for log in self._logs.values():
            log.wake()

    def _stamp(self, resource: Resource, obj: Json, version: int) -> Stored:
        # The type comes first, so that lists can cut it off the raw form.
        head = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
        stamped = {**head, **obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
        return Stored(resource=resource, obj=stamped, raw=orjson.dumps(stamped), version=version)

    def _index(self, stored: Stored, before: Stored | None) -> None:
        if before is not None:
            self._relate(before, present=False)
        space = self._objects.setdefault(stored.resource, {}).setdefault(stored.namespace, {})
        space[stored.name] = stored
        self._by_uid[stored.uid] = stored
        self._relate(stored, present=True)

    def _relate(self, stored: Stored, *, present: bool) -> None:
        for owner in stored.obj["metadata"].get("ownerReferences") or []:
            related = self._dependents.setdefault(owner["uid"], set())
            if present:
                related.add(stored.uid)
            else:
                related.discard(stored.uid)
                if not related:
                    del self._dependents[owner["uid"]]

    def _announce(self, event: Event) -> None:
        self.log(event.last.resource).append(event)
        for listener in self._listeners:
            listener(event)
