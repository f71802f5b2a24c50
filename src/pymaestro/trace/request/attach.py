"""Give every hit its resource: through names, database events, and neighbours in the same file.

Some records carry no resource ID. A database event's id leads to it; "no clients registered" follows the broadcast it
belongs to; a Go server behind the gRPC broker writes "handle …" and "… was sent" around the one record that has the id;
agents of old tell only the object. Pure: a table in, lists per resource out.
"""

from array import array
from collections import defaultdict, deque
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from pymaestro.trace.request.hits import Hit, Hits, What

_CONCLUDING = frozenset({What.UPDATING, What.STALE, What.UNCHANGED, What.STATUS_NOT_FOUND})
_BY_EVENT = frozenset({What.NOTIFIED, What.OTHER_INSTANCE, What.PUBLISH_FAILED})
_BY_OPERATION = frozenset({What.DECODE_FAILED, What.STATUS_FAILED})
_OF_AGENT = frozenset({What.APPLIED, What.DELETING, What.REMOVED, What.APPLY_FAILED, What.PENDING_DELETION})
_WAITING = frozenset({What.HANDLING, What.DELETE_SENT, What.UPDATE_SENT, *_OF_AGENT})
_TELLING = (*_WAITING, *_CONCLUDING, What.RECEIVED_SPEC, What.STORED, What.BROADCAST, What.NO_CLIENTS)
_COMPONENTS = tuple(what for what in What if What.STARTED <= what < What.OTHER)


@dataclass(slots=True)
class Grouping:
    """Where the sayings about each resource are in the table."""

    places: "dict[int, array[int]]"
    events: dict[int, int]
    """The database events that some sayings belong to without telling."""
    merged: frozenset[int]
    """Resources that got sayings which name the work instead."""

    def without(self, resources: Iterable[int]) -> "Grouping":
        """Return the rest of it."""
        gone = set(resources)
        places = {number: indices for number, indices in self.places.items() if number not in gone}
        kept = {index for indices in places.values() for index in indices}
        events = {index: event for index, event in self.events.items() if index in kept}
        return Grouping(places, events, self.merged)


def grouped(hits: Hits) -> Grouping:
    """Give every saying its resource, as far as it can be known."""
    places: defaultdict[int, array[int]] = defaultdict(_indices)
    for index, number in enumerate(hits.resources):
        places[number].append(index)
    homeless = places.pop(0, _indices())
    aliases = _aliases(hits, places)
    for name, resource in aliases.items():
        places[resource].extend(places.pop(name))
    events: dict[int, int] = {}
    _settle(hits, homeless, places, events)
    return Grouping(dict(places), events, frozenset(aliases.values()))


def _indices() -> "array[int]":
    return array("I")


def hits_of(hits: Hits, grouping: Grouping, number: int, *, skews: Sequence[float]) -> list[Hit]:
    """Return the hits of one resource in order of time, clocks corrected."""
    resource = hits.word(number)
    found = []
    for index in grouping.places[number]:
        hit = hits[index]
        if not hit.resource or hit.resource != resource or skews[hit.file]:
            event = hits.word(grouping.events[index]) if index in grouping.events else hit.event
            hit = hit._replace(resource=resource, event=event, at=hit.at - skews[hit.file])
        found.append(hit)
    found.sort(key=_in_time)
    return found


def _in_time(hit: Hit) -> tuple[float, int, int, int, int]:
    return hit.at, hit.stage, hit.file, hit.offset, hit.line


def about_components(hits: Hits) -> list[Hit]:
    """Return the hits that concern whole components."""
    return list(hits.where(*_COMPONENTS))


def _settle(hits: Hits, homeless: Sequence[int], places: "dict[int, array[int]]", events: dict[int, int]) -> None:
    """Find resources for sayings that tell none, by events and by their neighbours in the same file."""
    whats, files = hits.whats, hits.files
    kinds = {whats[index] for index in homeless}
    if kinds & _BY_EVENT:
        _settle_by(_events(hits), hits.events, [index for index in homeless if whats[index] in _BY_EVENT], places)
    if kinds & _BY_OPERATION:
        # Errors of Go's SDK about an event tell its op-id and nothing else.
        told = [index for index in homeless if whats[index] in _BY_OPERATION]
        _settle_by(_operations(hits, places), hits.operations, told, places)
    if kinds & _WAITING:
        _settle_by_neighbours(hits, places, events)
    elif What.NO_CLIENTS in kinds:
        broadcasts: dict[int, tuple[int, int]] = {}
        for index in _in_order(hits, What.BROADCAST, What.NO_CLIENTS):
            if whats[index] == What.BROADCAST:
                broadcasts[files[index]] = (hits.resources[index], hits.events[index])
            elif files[index] in broadcasts:
                number, events[index] = broadcasts[files[index]]
                if number:
                    places[number].append(index)


def _settle_by(
    known: dict[int, int], column: Sequence[int], homeless: Iterable[int], places: "dict[int, array[int]]"
) -> None:
    """Find resources for sayings through the event or operation that a column tells."""
    for index in homeless:
        number = known.get(column[index], 0)
        if number:
            places[number].append(index)


def _operations(hits: Hits, places: "dict[int, array[int]]") -> dict[int, int]:
    known: dict[int, int] = {}
    for number, indices in places.items():
        for index in indices:
            if hits.operations[index]:
                known.setdefault(hits.operations[index], number)
    return known


def strays(hits: Hits) -> list[Hit]:
    """Return, in order of time, what servers say of database events that no other record names."""
    events = _events(hits)
    found = [
        hit
        for hit in hits.where(What.OTHER_INSTANCE, What.PUBLISH_FAILED)
        if not hit.resource and hits.number(hit.event) not in events
    ]
    return sorted(found, key=_in_time)


def _in_order(hits: Hits, *whats: What) -> list[int]:
    """Return where such sayings are: a table is in order of its files, but not of the lines within a part of them."""
    files, offsets, lines = hits.files, hits.offsets, hits.lines
    return sorted(hits.places(*whats), key=lambda index: (files[index], offsets[index], lines[index]))


def _settle_by_neighbours(hits: Hits, places: "dict[int, array[int]]", events: dict[int, int]) -> None:
    neighbours: dict[int, _Neighbours] = defaultdict(_Neighbours)
    of_resource = {index: number for number, indices in places.items() for index in indices}
    for index in _in_order(hits, *_TELLING):
        what, near = hits.whats[index], neighbours[hits.files[index]]
        number = of_resource.get(index, 0)
        if number:
            for other in near.known(what, number):
                places[number].append(other)
            if what == What.BROADCAST:
                near.broadcast = (number, hits.events[index])
                for other in near.deletions(is_last=hits.rest_of(index)[3] == "delete"):
                    places[number].append(other)
            continue
        number = near.unknown(what, index)
        if what == What.NO_CLIENTS:
            number, events[index] = near.broadcast
        if number:
            places[number].append(index)


def _events(hits: Hits) -> dict[int, int]:
    wanted = hits.places(What.PUBLISHING, What.SENDING_SPEC, What.TO_AGENTS)
    return {hits.events[at]: hits.resources[at] for at in wanted if hits.events[at] and hits.resources[at]}


def _aliases(hits: Hits, places: Container[int]) -> dict[int, int]:
    """Return the resource of each work name that only one resource has, where records use the name for it."""
    resources: dict[int, set[int]] = defaultdict(set)
    names, numbers = hits.names, hits.resources
    for at in hits.places(What.WISH, What.RECEIVED_SPEC, What.TO_CLIENTS):
        name, number = names[at], numbers[at]
        if name and number and name != number and name in places:
            resources[name].add(number)
    return {name: next(iter(ids)) for name, ids in resources.items() if len(ids) == 1}


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
