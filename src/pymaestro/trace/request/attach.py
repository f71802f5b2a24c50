"""Give every hit its resource: through names, database events, and neighbours in the same file.

Some records carry no resource ID. A database event's id leads to it; "no clients registered" follows the broadcast it
belongs to; a Go server behind the gRPC broker writes "handle …" and "… was sent" around the one record that has the id;
agents of old tell only the object. Pure: a table in, lists per resource out.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

from pymaestro.trace.request.hits import Hit, Hits, What

_CONCLUDING = frozenset({What.UPDATING, What.STALE, What.UNCHANGED, What.STATUS_NOT_FOUND})
_BY_EVENT = frozenset({What.NOTIFIED, What.OTHER_INSTANCE, What.PUBLISH_FAILED})
_OF_AGENT = frozenset({What.APPLIED, What.REMOVED, What.APPLY_FAILED, What.PENDING_DELETION})


def by_resource(hits: Hits, *, skews: Sequence[float], wanted: frozenset[str] | None = None) -> dict[str, list[Hit]]:
    """Return the hits of each resource in order of time, clocks corrected; only `wanted` ones where given."""
    events, aliases = _events(hits), _aliases(hits)
    found: dict[str, list[Hit]] = defaultdict(list)
    neighbours: dict[int, _Neighbours] = defaultdict(_Neighbours)
    for hit in hits:
        for known in neighbours[hit.file].resolve(_named(hit, events=events, aliases=aliases)):
            if wanted is None or known.resource in wanted:
                skew = skews[known.file]
                found[known.resource].append(known._replace(at=known.at - skew) if skew else known)
    for each in found.values():
        each.sort(key=lambda hit: (hit.at, hit.stage, hit.file, hit.line))
    return dict(found)


def about_components(hits: Hits) -> list[Hit]:
    """Return the hits that concern whole components."""
    return [hit for hit in hits if hit.what >= What.STARTED and hit.what is not What.OTHER]


def _events(hits: Iterable[Hit]) -> dict[str, str]:
    return {hit.event: hit.resource for hit in hits if hit.event and hit.resource and hit.stage == 2}


def _aliases(hits: Iterable[Hit]) -> dict[str, str]:
    """Return the resource of each work name that only one resource has."""
    resources: dict[str, set[str]] = defaultdict(set)
    for hit in hits:
        if hit.name and hit.resource and hit.name != hit.resource:
            resources[hit.name].add(hit.resource)
    return {name: next(iter(ids)) for name, ids in resources.items() if len(ids) == 1}


def _named(hit: Hit, *, events: Mapping[str, str], aliases: Mapping[str, str]) -> Hit:
    if hit.resource:
        other = aliases.get(hit.resource)
        return hit._replace(resource=other) if other else hit
    if hit.what in _BY_EVENT and hit.event in events:
        return hit._replace(resource=events[hit.event])
    return hit


class _Neighbours:
    """What has passed in one file, as far as it may explain a record without an id."""

    def __init__(self) -> None:
        self._handled: deque[Hit] = deque(maxlen=64)
        self._deleted: deque[Hit] = deque(maxlen=64)
        self._unsent: deque[str] = deque(maxlen=64)
        self._broadcast = Hit(What.OTHER, 0, 0, 0, 0)
        self._received = ""

    def resolve(self, hit: Hit) -> Iterable[Hit]:
        """Return the hits whose resource is known now: this one, and those that waited for it."""
        if hit.resource:
            return self._known(hit)
        if hit.what is What.HANDLING:
            self._handled.append(hit)
        elif hit.what is What.DELETE_SENT:
            self._deleted.append(hit)
        elif hit.what is What.UPDATE_SENT and self._unsent:
            return [hit._replace(resource=self._unsent.popleft())]
        elif hit.what is What.NO_CLIENTS and self._broadcast.resource:
            return [hit._replace(resource=self._broadcast.resource, event=self._broadcast.event)]
        elif hit.what in _OF_AGENT and self._received:
            return [hit._replace(resource=self._received)]
        return ()

    def _known(self, hit: Hit) -> list[Hit]:
        found = [hit]
        if hit.what in _CONCLUDING:
            if hit.what is What.UPDATING:
                self._unsent.append(hit.resource)
            if self._handled:
                found.insert(0, self._handled.popleft()._replace(resource=hit.resource))
        elif hit.what is What.UPDATE_SENT and hit.resource in self._unsent:
            self._unsent.remove(hit.resource)
        elif hit.what is What.BROADCAST:
            self._broadcast = hit
            if hit.action == "delete" and self._deleted:
                found.insert(0, self._deleted.popleft()._replace(resource=hit.resource))
                if self._handled:
                    found.insert(0, self._handled.popleft()._replace(resource=hit.resource))
        elif hit.what in (What.RECEIVED_SPEC, What.STORED):
            self._received = hit.resource
        return found
