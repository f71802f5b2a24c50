"""Watch applied objects and reconcile the works that own them.

One watch is shared per kind and namespace in use. Only objects that a work tracks are cached, and objects owned by one
of our AppliedManifestWorks, because their works are about to arrive. Of all other objects only the existence is
remembered. While a watch is forbidden or not synced, and for an object not yet seen since it is tracked, `read` says
"not watched" and the caller asks the API server.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, aclosing, contextmanager, nullcontext
from typing import Any, NamedTuple

from maestropy.agent.decide.slow_lanes import Lane
from maestropy.agent.state.watch_event_buffer import ObjectChange, WatchHold
from maestropy.aio import tasks
from maestropy.journal.emit import Journal
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import AgentPhrase
from maestropy.kube import errors, freshness, objects, watch
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.packed_objects import PackedObject, pack
from maestropy.kube.request import ResourceType

# A kind used in more namespaces than this is watched in all namespaces at once.
_MAX_NAMESPACE_WATCHES = 16


class ObjectRef(NamedTuple):
    """One object of the cluster."""

    resource: ResourceType
    namespace: str
    name: str

    @property
    def lane(self) -> Lane:
        """What requests about this object have in common with others."""
        return Lane(self.resource.group, self.resource.kind, self.namespace)


class _Scope(NamedTuple):
    resource: ResourceType
    namespace: str


class WatchCallbacks(NamedTuple):
    """What the watcher calls."""

    changed: Callable[[str], None]
    """An object of the work changed."""
    unwatched: Callable[[str], None]
    """An object of the work is no longer watched; polling is enough."""
    requesting: Callable[[Lane], AbstractContextManager[None]] = lambda _lane: nullcontext()
    """Entered during a request about an object."""


class WatchedObject(NamedTuple):
    """A cached object; nothing if it is not watched or was not seen since it is tracked."""

    is_watched: bool
    live: Json | None


_NOT_WATCHED = WatchedObject(is_watched=False, live=None)


class ObjectWatcher:
    """The shared watches of an agent."""

    def __init__(
        self,
        client: KubeClient,
        *,
        callbacks: WatchCallbacks,
        jitter: Callable[[], float],
        journal: Journal,
        group: asyncio.TaskGroup,
        is_ours: Callable[[Json], bool],
    ) -> None:
        self._client = client
        self._is_ours = is_ours
        self._callbacks = callbacks
        self._jitter = jitter
        self._journal = journal
        self._group = group
        self._hold: WatchHold[ObjectRef] = WatchHold(self._handle)
        self._refs: dict[str, frozenset[ObjectRef]] = {}
        self._keys_by_ref: dict[ObjectRef, set[str]] = {}
        self._objects: dict[ObjectRef, PackedObject] = {}
        """Objects as a response or the watch last showed them; `read` decides whether they are current."""
        self._objects_per_namespace: dict[ResourceType, Counter[str]] = {}
        """How many tracked objects of each kind are in which namespace."""
        self._tasks: dict[_Scope, asyncio.Task[None]] = {}
        self._synced: dict[_Scope, watch.ResourceWatch] = {}

    def track(self, key: str, refs: Iterable[ObjectRef]) -> None:
        """Reconcile `key` when one of these objects changes, and no others."""
        tracked = frozenset(refs)
        previous = self._refs.get(key, frozenset())
        if tracked == previous:
            return
        self._refs[key] = tracked
        changed = {ref.resource for ref in tracked - previous if self._add_key(ref, key)}
        changed |= {ref.resource for ref in previous - tracked if self._remove_key(ref, key)}
        if not tracked:
            self._refs.pop(key, None)
        for resource in changed:
            self._adjust_watches(resource)

    def expect(self, key: str, refs: Iterable[ObjectRef]) -> None:
        """Reconcile `key` for these objects too.

        Objects tracked so far stay tracked until the next `track`: an object of the previous generation that was
        created a moment ago would otherwise look deleted, because the watch has not shown it yet.
        """
        self.track(key, self._refs.get(key, frozenset()).union(refs))

    def refs_of(self, key: str) -> frozenset[ObjectRef]:
        """Return the objects that a work tracks."""
        return self._refs.get(key, frozenset())

    def read(self, ref: ObjectRef) -> WatchedObject:
        """Return the current object, if it is known without a request."""
        match self._verdict(ref, self._last_sighting(ref)):
            case freshness.Freshness.CURRENT:
                return WatchedObject(is_watched=True, live=self._objects[ref].unpack())
            case freshness.Freshness.DELETED:
                return WatchedObject(is_watched=True, live=None)
            case _:
                return _NOT_WATCHED

    def is_current(self, ref: ObjectRef, shown: watch.ObjectVersion) -> bool:
        """Whether an object is watched and still the version that was seen."""
        return self._verdict(ref, shown) == freshness.Freshness.CURRENT

    @contextmanager
    def during_request(self, ref: ObjectRef) -> Iterator[None]:
        """Enter during a request about an object; call `observe` with the response before leaving."""
        with self._callbacks.requesting(ref.lane), self._hold.during(ref):
            yield

    def observe(self, ref: ObjectRef, live: Json | None) -> None:
        """Store an object from a response; the watch may be behind or ahead of it."""
        if ref not in self._keys_by_ref:
            return
        if live is None:
            self._objects.pop(ref, None)
            return
        known = self._last_sighting(ref)
        if known is None or not freshness.is_newer(known.resource_version, objects.resource_version(live)):
            self._objects[ref] = pack(live)

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return len(self._tasks)

    def _add_key(self, ref: ObjectRef, key: str) -> bool:
        """Track an object for a work; return whether it is the first of its kind in its namespace."""
        keys = self._keys_by_ref.setdefault(ref, set())
        is_first_key = not keys
        keys.add(key)
        if not is_first_key:
            return False
        counts = self._objects_per_namespace.setdefault(ref.resource, Counter())
        counts[ref.namespace] += 1
        return counts[ref.namespace] == 1

    def _remove_key(self, ref: ObjectRef, key: str) -> bool:
        """Stop tracking an object for a work; return whether it was the last of its kind in its namespace."""
        keys = self._keys_by_ref[ref]
        keys.discard(key)
        if keys:
            return False
        del self._keys_by_ref[ref]
        self._objects.pop(ref, None)
        counts = self._objects_per_namespace[ref.resource]
        counts[ref.namespace] -= 1
        if counts[ref.namespace]:
            return False
        del counts[ref.namespace]
        return True

    def _last_sighting(self, ref: ObjectRef) -> watch.ObjectVersion | None:
        shown = self._objects.get(ref)
        return None if shown is None else shown.version

    def _verdict(self, ref: ObjectRef, shown: watch.ObjectVersion | None) -> freshness.Freshness:
        watching = next((self._synced[scope] for scope in _scopes(ref) if scope in self._synced), None)
        if watching is None:
            return freshness.Freshness.UNKNOWN
        sighting = watching.version_of(ref.namespace, ref.name)
        return freshness.compare(shown, sighting, watched_until=watching.watched_until)

    def _adjust_watches(self, resource: ResourceType) -> None:
        """Open the watches that a kind needs and close the others."""
        names = self._objects_per_namespace[resource].keys()
        is_cluster_wide = len(names) > _MAX_NAMESPACE_WATCHES or (names and not resource.namespaced)
        needed = {_Scope(resource, "")} if is_cluster_wide else {_Scope(resource, name) for name in names}
        if not names:
            del self._objects_per_namespace[resource]
        for scope in needed - self._tasks.keys():
            name = f"watch {scope.resource} {scope.namespace}"
            task = tasks.start_in_group(self._group, name, self._watch(scope))
            if task is not None:
                self._tasks[scope] = task
        for scope in [
            open_scope for open_scope in self._tasks if open_scope.resource == resource and open_scope not in needed
        ]:
            self._tasks.pop(scope).cancel()
            self._synced.pop(scope, None)
            for ref in [ref for ref in self._objects if ref not in self._keys_by_ref and scope in _scopes(ref)]:
                del self._objects[ref]

    async def _watch(self, scope: _Scope) -> None:
        """Watch one kind in one namespace until cancelled; if the kind is removed, try again."""
        while True:
            watching = watch.ResourceWatch(
                self._client,
                scope.resource,
                namespace=scope.namespace,
                jitter=self._jitter,
                on_error=lambda error: self._on_trouble(scope, error),
            )
            try:
                async with aclosing(watching.changes()) as changes:
                    async for change in changes:
                        self._receive(scope, change, watching)
            except errors.NotFound as error:
                self._on_trouble(scope, error)
                await asyncio.sleep(5 + 5 * self._jitter())

    def _on_trouble(self, scope: _Scope, error: errors.KubeError) -> None:
        # Until the watch is back, objects are read one by one. Most interruptions are short.
        if scope in self._synced:
            del self._synced[scope]
            keys = {key for ref, keys in self._keys_by_ref.items() if scope in _scopes(ref) for key in keys}
            for key in keys:
                self._callbacks.unwatched(key)
        self._journal.warning(AgentPhrase.WATCH_INTERRUPTED, {LogKey.GVR: str(scope.resource)}, err=error)

    def _receive(self, scope: _Scope, change: watch.Change, watching: watch.ResourceWatch) -> None:
        if isinstance(change, watch.Synced):
            self._synced[scope] = watching
            self._wake_changed_in_gap(scope)
            return
        ref = _ref(scope.resource, change.object)
        if ref in self._keys_by_ref:
            self._hold.deliver(ref, change)
        elif isinstance(change, watch.Deleted):
            self._objects.pop(ref, None)
        elif self._is_ours(change.object):
            # After a restart objects are seen before their works arrive; caching them saves a request for each.
            self._objects[ref] = pack(change.object)

    def _handle(self, ref: ObjectRef, change: ObjectChange) -> None:
        keys = self._keys_by_ref.get(ref)
        if keys is None or freshness.is_known_change(change, response=self._last_sighting(ref)):
            return
        if isinstance(change, watch.Deleted):
            self._objects.pop(ref, None)
        else:
            self._objects[ref] = pack(change.object)
        for key in keys:
            self._callbacks.changed(key)

    def _wake_changed_in_gap(self, scope: _Scope) -> None:
        """Reconcile the works whose objects were created, changed or deleted while no watch was open."""
        for ref, keys in self._keys_by_ref.items():
            if scope in _scopes(ref) and self._verdict(ref, self._last_sighting(ref)) != freshness.Freshness.CURRENT:
                self._objects.pop(ref, None)
                for key in keys:
                    self._callbacks.changed(key)


def _scopes(ref: ObjectRef) -> tuple[_Scope, _Scope]:
    return _Scope(ref.resource, ref.namespace), _Scope(ref.resource, "")


def _ref(resource: ResourceType, live: Json) -> ObjectRef:
    metadata: dict[str, Any] = live.get("metadata") or {}
    return ObjectRef(resource, metadata.get("namespace") or "", metadata.get("name") or "")
