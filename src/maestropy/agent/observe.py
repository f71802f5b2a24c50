"""Stage: what the cluster does to our objects wakes the works that own them.

One shared watch per kind and namespace in use. Only objects that some work tracks are kept, and those that name one of
our records as their owner, because their works are on the way; of all others the watch remembers no more than that they
are there. Where no watch can be had (forbidden, not synced yet), and where an object
is there that nobody showed us since it is tracked, the answer is "ask", and the caller asks the API server itself.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, aclosing
from typing import Any, NamedTuple

from maestropy.agent.holding import Holding, Told
from maestropy.aio import tasks
from maestropy.journal.emit import Journal
from maestropy.journal.fields import Key
from maestropy.kube import errors, freshness, objects, watch
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.packing import Packed, pack
from maestropy.kube.request import ResourceType

# A kind that is used in more namespaces than this is watched in all of them at once.
_NAMESPACES_EACH = 16


class Place(NamedTuple):
    """One object of the cluster."""

    resource: ResourceType
    namespace: str
    name: str


class _Scope(NamedTuple):
    resource: ResourceType
    namespace: str


class Wakes(NamedTuple):
    """Whom to tell that a work should be looked at."""

    changed: Callable[[str], None]
    """An object of the work is not as it was."""
    unwatched: Callable[[str], None]
    """An object of the work is no longer watched; looking in a while is enough."""


class Known(NamedTuple):
    """What is known of an object without asking: nothing, if it is not watched, or was not shown since it is."""

    is_watched: bool
    live: Json | None


_UNKNOWN = Known(is_watched=False, live=None)


class Observer:
    """The shared watches of an agent."""

    def __init__(
        self,
        client: KubeClient,
        *,
        wakes: Wakes,
        jitter: Callable[[], float],
        journal: Journal,
        group: asyncio.TaskGroup,
        is_ours: Callable[[Json], bool],
    ) -> None:
        self._client = client
        self._is_ours = is_ours
        self._wakes = wakes
        self._jitter = jitter
        self._journal = journal
        self._group = group
        self._holding: Holding[Place] = Holding(self._heard)
        self._places: dict[str, frozenset[Place]] = {}
        self._watchers: dict[Place, set[str]] = {}
        self._shown: dict[Place, Packed] = {}
        """Objects as an answer or the watch last showed them; whether that is still so, `look` decides."""
        self._uses: dict[ResourceType, Counter[str]] = {}
        """How many tracked objects of each kind are in which namespace."""
        self._tasks: dict[_Scope, asyncio.Task[None]] = {}
        self._synced: dict[_Scope, watch.Watch] = {}

    def track(self, key: str, places: Iterable[Place]) -> None:
        """Wake `key` when one of these objects changes, and no others."""
        wanted = frozenset(places)
        before = self._places.get(key, frozenset())
        if wanted == before:
            return
        self._places[key] = wanted
        changed = {place.resource for place in wanted - before if self._begin(place, key)}
        changed |= {place.resource for place in before - wanted if self._end(place, key)}
        if not wanted:
            self._places.pop(key, None)
        for resource in changed:
            self._adjust(resource)

    def expect(self, key: str, places: Iterable[Place]) -> None:
        """Wake `key` for these too.

        What it has tracked so far stays until `track` is told what is left: an object of an earlier wish that was
        created a moment ago, and of which the watch has not heard, would otherwise be taken for gone.
        """
        self.track(key, self._places.get(key, frozenset()).union(places))

    def look(self, place: Place) -> Known:
        """Return how an object is now, if that is known without asking."""
        match self._judge(place, self._sighting(place)):
            case freshness.Verdict.SHOWN:
                return Known(is_watched=True, live=self._shown[place].unpack())
            case freshness.Verdict.GONE:
                return Known(is_watched=True, live=None)
            case _:
                return _UNKNOWN

    def is_current(self, place: Place, shown: watch.Sighting) -> bool:
        """Whether an object is watched and, as far as anybody knows, still the one that was shown."""
        return self._judge(place, shown) == freshness.Verdict.SHOWN

    def asking(self, place: Place) -> AbstractContextManager[None]:
        """Enter while a request about an object is under way, and let `learn` know its answer before leaving."""
        return self._holding.during(place)

    def learn(self, place: Place, live: Json | None) -> None:
        """Note what an answer of the API server just showed; the watch may be a moment behind, or ahead."""
        if place not in self._watchers:
            return
        if live is None:
            self._shown.pop(place, None)
            return
        known = self._sighting(place)
        if known is None or not freshness.is_newer(known.resource_version, objects.resource_version(live)):
            self._shown[place] = pack(live)

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return len(self._tasks)

    def _begin(self, place: Place, key: str) -> bool:
        """Track an object for a work; whether that is the first one of its kind in its namespace."""
        keys = self._watchers.setdefault(place, set())
        is_first_key = not keys
        keys.add(key)
        if not is_first_key:
            return False
        uses = self._uses.setdefault(place.resource, Counter())
        uses[place.namespace] += 1
        return uses[place.namespace] == 1

    def _end(self, place: Place, key: str) -> bool:
        """Track an object no longer for a work; whether that was the last one of its kind in its namespace."""
        keys = self._watchers[place]
        keys.discard(key)
        if keys:
            return False
        del self._watchers[place]
        self._shown.pop(place, None)
        uses = self._uses[place.resource]
        uses[place.namespace] -= 1
        if uses[place.namespace]:
            return False
        del uses[place.namespace]
        return True

    def _sighting(self, place: Place) -> watch.Sighting | None:
        shown = self._shown.get(place)
        return None if shown is None else shown.sighting

    def _judge(self, place: Place, shown: watch.Sighting | None) -> freshness.Verdict:
        watching = next((self._synced[scope] for scope in _scopes(place) if scope in self._synced), None)
        if watching is None:
            return freshness.Verdict.ASK
        told = watching.sight(place.namespace, place.name)
        return freshness.judge(shown, told, heard_until=watching.heard_until)

    def _adjust(self, resource: ResourceType) -> None:
        """Open the watches of a kind that are needed and end those that are not."""
        names = self._uses[resource].keys()
        everywhere = len(names) > _NAMESPACES_EACH or (names and not resource.namespaced)
        needed = {_Scope(resource, "")} if everywhere else {_Scope(resource, name) for name in names}
        if not names:
            del self._uses[resource]
        for scope in needed - self._tasks.keys():
            name = f"watch {scope.resource} {scope.namespace}"
            task = tasks.join(self._group, name, self._follow(scope))
            if task is not None:
                self._tasks[scope] = task
        for scope in [each for each in self._tasks if each.resource == resource and each not in needed]:
            self._tasks.pop(scope).cancel()
            self._synced.pop(scope, None)
            for place in [each for each in self._shown if each not in self._watchers and scope in _scopes(each)]:
                del self._shown[place]

    async def _follow(self, scope: _Scope) -> None:
        """Watch one kind in one namespace until nobody needs it; a kind that vanishes is looked for again."""
        while True:
            follower = watch.Watch(
                self._client,
                scope.resource,
                namespace=scope.namespace,
                jitter=self._jitter,
                on_trouble=lambda error: self._on_trouble(scope, error),
            )
            try:
                async with aclosing(follower.changes()) as changes:
                    async for change in changes:
                        self._take(scope, change, follower)
            except errors.NotFound as error:
                self._on_trouble(scope, error)
                await asyncio.sleep(5 + 5 * self._jitter())

    def _on_trouble(self, scope: _Scope, error: errors.KubeError) -> None:
        # Until the watch stands again its objects are asked for one by one. Mostly it stands again in a moment.
        if scope in self._synced:
            del self._synced[scope]
            keys = {key for place, keys in self._watchers.items() if scope in _scopes(place) for key in keys}
            for key in keys:
                self._wakes.unwatched(key)
        self._journal.warning("a watch is interrupted", {Key.GVR: str(scope.resource)}, err=error)

    def _take(self, scope: _Scope, change: watch.Change, follower: watch.Watch) -> None:
        if isinstance(change, watch.Synced):
            self._synced[scope] = follower
            self._compare(scope)
            return
        place = _place(scope.resource, change.object)
        if place in self._watchers:
            self._holding.tell(place, change)
        elif isinstance(change, watch.Deleted):
            self._shown.pop(place, None)
        elif self._is_ours(change.object):
            # After a restart the works come later than their objects; nobody has to ask for these one by one.
            self._shown[place] = pack(change.object)

    def _heard(self, place: Place, change: Told) -> None:
        keys = self._watchers.get(place)
        if keys is None or freshness.is_echo(change, shown=self._sighting(place)):
            return
        if isinstance(change, watch.Deleted):
            self._shown.pop(place, None)
        else:
            self._shown[place] = pack(change.object)
        for key in keys:
            self._wakes.changed(key)

    def _compare(self, scope: _Scope) -> None:
        """Let those look again whose objects came, changed or went in the gap before this list, unseen by a watch."""
        for place, keys in self._watchers.items():
            if scope in _scopes(place) and self._judge(place, self._sighting(place)) != freshness.Verdict.SHOWN:
                self._shown.pop(place, None)
                for key in keys:
                    self._wakes.changed(key)


def _scopes(place: Place) -> tuple[_Scope, _Scope]:
    return _Scope(place.resource, place.namespace), _Scope(place.resource, "")


def _place(resource: ResourceType, found: Json) -> Place:
    metadata: dict[str, Any] = found.get("metadata") or {}
    return Place(resource, metadata.get("namespace") or "", metadata.get("name") or "")
