"""Give every hit its resource: through names, database events, and neighbours in the same file.

Some records carry no resource ID. A database event's id leads to it; "no clients registered" follows the broadcast it
belongs to; a Go server behind the gRPC broker writes "handle …" and "… was sent" around the one record that has the id;
agents of old tell only the object. Pure: a table in, lists per resource out.
"""

from array import array
from collections import defaultdict, deque
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from maestropy.trace.request.hits import Hit, Hits, What

_CONCLUDING = frozenset({What.UPDATING, What.STALE, What.UNCHANGED, What.STATUS_NOT_FOUND})
_BY_EVENT = frozenset({What.NOTIFIED, What.OTHER_INSTANCE, What.PUBLISH_FAILED})
_BY_OPERATION = frozenset({What.DECODE_FAILED, What.STATUS_FAILED})
_OF_AGENT = frozenset({What.APPLIED, What.DELETING, What.REMOVED, What.APPLY_FAILED, What.PENDING_DELETION})
_WAITING = frozenset({What.HANDLING, What.DELETE_SENT, What.UPDATE_SENT, *_OF_AGENT})
_TELLING = (*_WAITING, *_CONCLUDING, What.RECEIVED_SPEC, What.STORED, What.BROADCAST, What.NO_CLIENTS)
_COMPONENTS = tuple(what for what in What if What.STARTED <= what < What.OTHER)


@dataclass(frozen=True, slots=True)
class Grouping:
    """Where the sayings about each resource are in the table."""

    places: "dict[int, array[int]]"
    events: Mapping[int, int]
    """The database events that some sayings belong to without telling."""


@dataclass(frozen=True, slots=True)
class Owners:
    """Whose every saying of a table is, as far as it can be known."""

    resources: "array[int]"
    """A column of the table; 0 where nobody knows."""
    events: Mapping[int, int]
    """The database events that some sayings belong to without telling."""
    merged: frozenset[int]
    """Resources that got sayings which name the work instead."""

    def grouped(self, *, without: Iterable[int] = ()) -> Grouping:
        """Return the sayings of each resource but some."""
        places: defaultdict[int, array[int]] = defaultdict(_indices)
        gone = {0, *without}
        for index, number in enumerate(self.resources):
            if number not in gone:
                places[number].append(index)
        kept = set(chain.from_iterable(places.values())) if self.events else set()
        return Grouping(dict(places), {index: event for index, event in self.events.items() if index in kept})


def owners(hits: Hits) -> Owners:
    """Give every saying its resource."""
    resources = hits.resources[:]
    aliases = _aliases(hits, set(resources))
    if aliases:
        resources = array("I", [aliases.get(number, number) for number in resources])
    events: dict[int, int] = {}
    _settle(hits, resources, events)
    return Owners(resources, events, frozenset(aliases.values()))


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


def _settle(hits: Hits, resources: "array[int]", events: dict[int, int]) -> None:
    """Find resources for sayings that tell none, by events and by their neighbours in the same file."""
    whats, files = hits.whats, hits.files
    homeless = [index for index, number in enumerate(resources) if not number]
    kinds = {whats[index] for index in homeless}
    if kinds & _BY_EVENT:
        _settle_by(_events(hits), hits.events, [index for index in homeless if whats[index] in _BY_EVENT], resources)
    if kinds & _BY_OPERATION:
        # Errors of Go's SDK about an event tell its op-id and nothing else.
        told = [index for index in homeless if whats[index] in _BY_OPERATION]
        _settle_by(_operations(hits, resources), hits.operations, told, resources)
    if kinds & _WAITING:
        _settle_by_neighbours(hits, resources, events)
    elif What.NO_CLIENTS in kinds:
        broadcasts: dict[int, tuple[int, int]] = {}
        for index in _in_order(hits, What.BROADCAST, What.NO_CLIENTS):
            if whats[index] == What.BROADCAST:
                broadcasts[files[index]] = (resources[index], hits.events[index])
            elif files[index] in broadcasts:
                resources[index], events[index] = broadcasts[files[index]]


def _settle_by(
    known: Mapping[int, int], column: Sequence[int], homeless: Iterable[int], resources: "array[int]"
) -> None:
    """Find resources for sayings through the event or operation that a column tells."""
    for index in homeless:
        resources[index] = known.get(column[index], 0)


def _operations(hits: Hits, resources: Iterable[int]) -> dict[int, int]:
    known: dict[int, int] = {}
    for operation, number in zip(hits.operations, resources, strict=True):
        if operation and number:
            known.setdefault(operation, number)
    return known


def strays(hits: Hits) -> list[Hit]:
    """Return, in order of time, what servers say of database events that no other record names."""
    found = [hit for hit in hits.where(What.OTHER_INSTANCE, What.PUBLISH_FAILED) if not hit.resource]
    events = _events(hits) if found else {}
    return sorted((hit for hit in found if hits.number(hit.event) not in events), key=_in_time)


def _in_order(hits: Hits, *whats: What) -> list[int]:
    """Return where such sayings are: a table is in order of its files, but not of the lines within a part of them."""
    files, offsets, lines = hits.files, hits.offsets, hits.lines
    # By file, offset and line; one number is compared faster than three.
    return sorted(hits.places(*whats), key=lambda index: (files[index] << 64 | offsets[index]) << 32 | lines[index])


def _settle_by_neighbours(hits: Hits, resources: "array[int]", events: dict[int, int]) -> None:
    neighbours: dict[int, _Neighbours] = defaultdict(_Neighbours)
    for index in _in_order(hits, *_TELLING):
        what, near = hits.whats[index], neighbours[hits.files[index]]
        number = resources[index]
        if number:
            for other in near.known(what, number):
                resources[other] = number
            if what == What.BROADCAST:
                near.broadcast = (number, hits.events[index])
                for other in near.deletions(is_last=hits.rest_of(index)[3] == "delete"):
                    resources[other] = number
            continue
        number = near.unknown(what, index)
        if what == What.NO_CLIENTS:
            number, events[index] = near.broadcast
        resources[index] = number


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
