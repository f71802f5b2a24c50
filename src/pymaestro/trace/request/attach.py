"""Give every hit its resource: through names, database events, and neighbours in the same file.

Some records carry no resource ID. A database event's id leads to it; "no clients registered" follows the broadcast it
belongs to; a Go server behind the gRPC broker writes "handle …" and "… was sent" around the one record that has the id;
agents of old tell only the object. Pure: a table in, lists per resource out.
"""

from array import array
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from pymaestro.trace.request.hits import Hit, Hits, What

_CONCLUDING = frozenset({What.UPDATING, What.STALE, What.UNCHANGED, What.STATUS_NOT_FOUND})
_BY_EVENT = frozenset({What.NOTIFIED, What.OTHER_INSTANCE, What.PUBLISH_FAILED})
_OF_AGENT = frozenset({What.APPLIED, What.REMOVED, What.APPLY_FAILED, What.PENDING_DELETION})
_COMPONENTS = tuple(what for what in What if What.STARTED <= what < What.OTHER)


def by_resource(
    hits: Hits, *, skews: Sequence[float], wanted: frozenset[str] | None = None
) -> Iterator[tuple[str, list[Hit]]]:
    """Yield the hits of each resource in order of time, clocks corrected; only of `wanted` ones where given."""
    places, events = _places(hits)
    for number, indices in places.items():
        resource = hits.word(number)
        if not number or (wanted is not None and resource not in wanted):
            continue
        found = []
        for index in indices:
            hit = hits[index]
            if not hit.resource or hit.resource != resource or skews[hit.file]:
                event = hits.word(events[index]) if index in events else hit.event
                hit = hit._replace(resource=resource, event=event, at=hit.at - skews[hit.file])
            found.append(hit)
        found.sort(key=lambda hit: (hit.at, hit.stage, hit.file, hit.line))
        yield resource, found


def about_components(hits: Hits) -> list[Hit]:
    """Return the hits that concern whole components."""
    return list(hits.where(*_COMPONENTS))


def _places(hits: Hits) -> "tuple[dict[int, array[int]], dict[int, int]]":
    """Return the places of each resource's hits in the table, and the events that some of them belong to."""
    known, aliases = _events(hits), _aliases(hits)
    places: dict[int, array[int]] = {}
    events: dict[int, int] = {}
    neighbours: dict[int, _Neighbours] = defaultdict(_Neighbours)
    for index, (what, file, resource) in enumerate(zip(hits.whats, hits.files, hits.resources, strict=True)):
        number = aliases.get(resource, resource)
        if not number and what in _BY_EVENT:
            number = known.get(hits.events[index], 0)
        near = neighbours[file]
        if number:
            for other in near.known(what, number):
                places.setdefault(number, array("I")).append(other)
            if what == What.BROADCAST:
                near.broadcast = (number, hits.events[index])
                for other in near.deletions(is_last=hits[index].action == "delete"):
                    places.setdefault(number, array("I")).append(other)
        else:
            number = near.unknown(what, index)
            if what == What.NO_CLIENTS:
                number, events[index] = near.broadcast
        if number:
            places.setdefault(number, array("I")).append(index)
    return places, events


def _events(hits: Hits) -> dict[int, int]:
    wanted = (What.PUBLISHING, What.SENDING_SPEC, What.TO_AGENTS)
    rows = zip(hits.whats, hits.events, hits.resources, strict=True)
    return {event: resource for what, event, resource in rows if event and resource and what in wanted}


def _aliases(hits: Hits) -> dict[int, int]:
    """Return the resource of each work name that only one resource has."""
    resources: dict[str, set[str]] = defaultdict(set)
    for hit in hits.where(What.WISH, What.RECEIVED_SPEC, What.TO_CLIENTS):
        if hit.name and hit.resource and hit.name != hit.resource:
            resources[hit.name].add(hit.resource)
    return {hits.number(name): hits.number(next(iter(ids))) for name, ids in resources.items() if len(ids) == 1}


class _Neighbours:
    """What has passed in one file, as far as it may explain a record without an id."""

    def __init__(self) -> None:
        self._handled: deque[int] = deque(maxlen=64)
        self._deleted: deque[int] = deque(maxlen=64)
        self._unsent: deque[int] = deque(maxlen=64)
        self._received = 0
        self.broadcast = (0, 0)

    def known(self, what: int, resource: int) -> Sequence[int]:
        """Take a record whose resource is known; return the places of those that waited for it."""
        if what in _CONCLUDING:
            if what == What.UPDATING:
                self._unsent.append(resource)
            return [self._handled.popleft()] if self._handled else ()
        if what == What.UPDATE_SENT and self._unsent and resource in self._unsent:
            self._unsent.remove(resource)
        elif what in (What.RECEIVED_SPEC, What.STORED):
            self._received = resource
        return ()

    def deletions(self, *, is_last: bool) -> list[int]:
        """Return the places of "delete … was sent", and what led to it, that waited for this broadcast."""
        if not is_last or not self._deleted:
            return []
        found = [self._handled.popleft()] if self._handled else []
        return [*found, self._deleted.popleft()]

    def unknown(self, what: int, index: int) -> int:
        """Take a record without a resource; return the resource if it is known already."""
        if what == What.HANDLING:
            self._handled.append(index)
        elif what == What.DELETE_SENT:
            self._deleted.append(index)
        elif what == What.UPDATE_SENT and self._unsent:
            return self._unsent.popleft()
        elif what in _OF_AGENT:
            return self._received
        return 0
