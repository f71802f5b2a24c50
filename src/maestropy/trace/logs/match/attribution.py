"""Attribute every log record to its resource.

Some records carry no resource ID. Their resource is found by the ID of the database event, by the op-id, by the work
name, or by neighbouring records of the same file: "no clients registered" follows the broadcast it belongs to, and a Go
server behind the gRPC broker writes "handle …" and "… was sent" around the one record that has the ID. Records of an
agent about objects are attributed by `applied_objects`. A record that nothing ties to one resource stays without one.
Pure.
"""

from array import array
from collections import defaultdict, deque
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from maestropy.trace.logs.evidence import EVIDENCE, NAMED_BY_ID, Shows
from maestropy.trace.logs.log_records import LogRecord, RecordKind, RecordTable
from maestropy.trace.logs.match import applied_objects, repeated_records

_CONCLUDING = frozenset({RecordKind.UPDATING, RecordKind.STALE, RecordKind.UNCHANGED, RecordKind.STATUS_NOT_FOUND})
_BY_EVENT = frozenset(
    {RecordKind.NOTIFIED, RecordKind.OTHER_INSTANCE, RecordKind.NO_AGENT_HERE, RecordKind.PUBLISH_FAILED}
)
_BY_OPERATION = frozenset({RecordKind.DECODE_FAILED, RecordKind.STATUS_FAILED})
_WAITING = frozenset({RecordKind.HANDLING, RecordKind.DELETE_SENT, RecordKind.UPDATE_SENT})
_ORDERED_KINDS = (*_WAITING, *_CONCLUDING, RecordKind.BROADCAST, RecordKind.NO_CLIENTS)
_TIED = (RecordKind.APPLIED, *(kind for kind, shown in EVIDENCE.items() if shown.shows is Shows.FAILED))
_ANNOUNCED = 0.25
"""A server may broadcast a deletion before it has logged that it sent the event: so long the record may follow."""
_COMPONENTS = tuple(kind for kind in RecordKind if RecordKind.STARTED <= kind < RecordKind.OTHER)


@dataclass(frozen=True, slots=True)
class RecordsByResource:
    """The indices of the records of each resource in the table."""

    indices: "dict[int, array[int]]"
    events: Mapping[int, int]
    """Database events attributed to records that do not name one, by record index."""
    untied: "array[int]"
    """Records of applied objects, and of errors of requests, that nothing ties to a resource."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The resource of every record of a table, as far as it is known."""

    resources: "array[int]"
    """A column of the table; 0 where the resource is unknown."""
    events: Mapping[int, int]
    """Database events attributed to records that do not name one, by record index."""
    merged: frozenset[int]
    """Resources with records that name the work instead of the resource ID."""
    untied: "array[int]"
    """Records of applied objects, and of errors of requests, that nothing ties to a resource."""

    def by_resource(self, *, without: Iterable[int] = ()) -> RecordsByResource:
        """Return the records of each resource, without some resources."""
        indices: defaultdict[int, array[int]] = defaultdict(_indices)
        gone = {0, *without}
        for index, number in enumerate(self.resources):
            if number not in gone:
                indices[number].append(index)
        kept = set(chain.from_iterable(indices.values())) if self.events else set()
        events = {index: event for index, event in self.events.items() if index in kept}
        return RecordsByResource(dict(indices), events, self.untied)


def attribute(records: RecordTable) -> Attribution:
    """Attribute every record to its resource."""
    resources = records.resources[:]
    aliases = _aliases(records, set(resources))
    if aliases:
        resources = array("I", [aliases.get(number, number) for number in resources])
    events: dict[int, int] = {}
    _attribute_remaining(records, resources, events)
    untied = array("I", (index for index in records.indices(*_TIED) if not resources[index]))
    return Attribution(resources, events, frozenset(aliases.values()), untied)


def _indices() -> "array[int]":
    return array("I")


def records_of(
    records: RecordTable, records_by_resource: RecordsByResource, number: int, *, skews: Sequence[float]
) -> list[LogRecord]:
    """Return the records of one resource in order of time, clocks corrected, without most repetitions."""
    resource = records.text(number)
    indices = records_by_resource.indices[number]
    kept: Iterable[int] = indices
    repeats: Mapping[int, int] = {}
    if len(indices) > repeated_records.MOST:
        times = array("d", (records.times[index] - skews[records.files[index]] for index in indices))
        kept, repeats = repeated_records.kept_records(records, indices, times=times)
    own = []
    for index in kept:
        record = records[index]
        if index in repeats:
            record = record._replace(repeats=repeats[index])
        if not record.resource or record.resource != resource or skews[record.file]:
            event = (
                records.text(records_by_resource.events[index]) if index in records_by_resource.events else record.event
            )
            record = record._replace(resource=resource, event=event, at=record.at - skews[record.file])
        own.append(record)
    own.sort(key=_time_order)
    return own


def _time_order(record: LogRecord) -> tuple[float, int, int, int, int]:
    return record.at, record.stage, record.file, record.offset, record.line


def component_records(records: RecordTable, *, skews: Sequence[float]) -> list[LogRecord]:
    """Return the records about whole components, clocks corrected."""
    return _corrected(records.select(*_COMPONENTS), skews)


def _corrected(records: Iterable[LogRecord], skews: Sequence[float]) -> list[LogRecord]:
    return [record._replace(at=record.at - skews[record.file]) if skews[record.file] else record for record in records]


def _attribute_remaining(records: RecordTable, resources: "array[int]", events: dict[int, int]) -> None:
    """Attribute the remaining records by their events and by neighbouring records of the same file."""
    kinds, files = records.kinds, records.files
    unattributed = [index for index, number in enumerate(resources) if not number]
    unattributed_kinds = {kinds[index] for index in unattributed}
    if unattributed_kinds & _BY_EVENT:
        _attribute_by_column(
            _events(records), records.events, [index for index in unattributed if kinds[index] in _BY_EVENT], resources
        )
    if unattributed_kinds & _BY_OPERATION:
        # Errors of Go's SDK about an event contain only its op-id.
        with_operation = [index for index in unattributed if kinds[index] in _BY_OPERATION]
        _attribute_by_column(_operations(records, resources), records.operations, with_operation, resources)
    if unattributed_kinds & applied_objects.KINDS:
        in_order = _in_order(records, *applied_objects.ORDERED_KINDS)
        applied_objects.attribute(records, in_order, resources)
    if unattributed_kinds & _WAITING:
        _attribute_by_neighbours(records, resources, events)
    elif RecordKind.NO_CLIENTS in unattributed_kinds:
        broadcasts: dict[int, tuple[int, int]] = {}
        for index in _in_order(records, RecordKind.BROADCAST, RecordKind.NO_CLIENTS):
            if kinds[index] == RecordKind.BROADCAST:
                broadcasts[files[index]] = (resources[index], records.events[index])
            elif files[index] in broadcasts:
                resources[index], events[index] = broadcasts[files[index]]


def _attribute_by_column(
    add_known: Mapping[int, int], column: Sequence[int], homeless: Iterable[int], resources: "array[int]"
) -> None:
    """Attribute records by the event or operation in a column."""
    for index in homeless:
        resources[index] = add_known.get(column[index], 0)


def _operations(records: RecordTable, resources: Iterable[int]) -> dict[int, int]:
    add_known: dict[int, int] = {}
    for operation, number in zip(records.operations, resources, strict=True):
        if operation and number:
            add_known.setdefault(operation, number)
    return add_known


def unattributed_records(records: RecordTable, *, skews: Sequence[float]) -> list[LogRecord]:
    """Return, in order of time and clocks corrected, server records of database events that no other record names."""
    unnamed = [record for record in records.select(*_BY_EVENT) if not record.resource]
    # Servers announce status events in the same words; each is named again when the status is broadcast.
    of_statuses = {records.events[index] for index in records.indices(RecordKind.BROADCAST)} if unnamed else set()
    events = {*_events(records), *of_statuses} if unnamed else set()
    unknown = [record for record in unnamed if records.number(record.event) not in events]
    return sorted(_corrected(unknown, skews), key=_time_order)


def _in_order(records: RecordTable, *kinds: RecordKind) -> list[int]:
    """Return the indices of such records in order of file and line, which a table does not guarantee."""
    files, offsets, lines = records.files, records.offsets, records.lines
    # By file, offset and line; one number is compared faster than three.
    return sorted(records.indices(*kinds), key=lambda index: (files[index] << 64 | offsets[index]) << 32 | lines[index])


def _attribute_by_neighbours(records: RecordTable, resources: "array[int]", events: dict[int, int]) -> None:
    neighbours: dict[int, _Neighbours] = defaultdict(_Neighbours)
    receivers = _receivers(records, resources)
    for index in _in_order(records, *_ORDERED_KINDS):
        kind, near = records.kinds[index], neighbours[records.files[index]]
        number = resources[index]
        if number:
            for other in near.add_known(kind, number):
                resources[other] = number
            if kind == RecordKind.BROADCAST:
                near.broadcast = (number, records.events[index])
                if records.details_of(index)[3] == "delete":
                    is_own = _is_receiver(records.files[index], number, receivers)
                    for other in near.add_deletion(number, records.times[index], is_own=is_own):
                        resources[other] = number
            continue
        if kind == RecordKind.DELETE_SENT:
            number, handled = near.add_deleted(index, records.times[index])
            for other in handled:
                resources[other] = number
        else:
            number = near.add_unknown(kind, index)
        if kind == RecordKind.NO_CLIENTS:
            number, events[index] = near.broadcast
        resources[index] = number


def _receivers(records: RecordTable, resources: Sequence[int]) -> dict[int, set[int]]:
    """Return the resources whose statuses each server received, where its log shows that."""
    receivers: dict[int, set[int]] = defaultdict(set)
    if next(records.indices(RecordKind.DELETE_SENT), None) is not None:
        for index in records.indices(RecordKind.RECEIVED_STATUS):
            receivers[records.files[index]].add(resources[index])
    return receivers


def _is_receiver(file: int, resource: int, receivers: Mapping[int, set[int]]) -> bool:
    """Say whether a server may have handled the statuses of a resource: all servers broadcast what one handled."""
    return file not in receivers or resource in receivers[file]


def _events(records: RecordTable) -> dict[int, int]:
    indices = records.indices(RecordKind.PUBLISHING, RecordKind.SENDING_SPEC, RecordKind.SENT_TO_AGENTS)
    return {records.events[at]: records.resources[at] for at in indices if records.events[at] and records.resources[at]}


def _aliases(records: RecordTable, numbers_in_use: Container[int]) -> dict[int, int]:
    """Return the resource of each work name that only one resource has, where records use the name for it."""
    resources: dict[int, set[int]] = defaultdict(set)
    names, numbers = records.names, records.resources
    for at in records.indices(RecordKind.REQUEST_RECEIVED, RecordKind.RECEIVED_SPEC, RecordKind.SENT_TO_CLIENTS):
        name, number = names[at], numbers[at]
        if name and number and name != number and name in numbers_in_use:
            resources[name].add(number)
    # Anybody may name a work like the resource ID of another one, whose records stay its own.
    ids = {numbers[at] for at in records.indices(*NAMED_BY_ID)} if resources else set()
    return {name: next(iter(owners)) for name, owners in resources.items() if len(owners) == 1 and name not in ids}


class _Neighbours:
    """What has passed in one file, as far as it may explain a record without an id."""

    def __init__(self) -> None:
        self._handled: deque[int] = deque(maxlen=64)
        self._deleted: deque[int] = deque(maxlen=64)
        self._announced: deque[tuple[int, float]] = deque(maxlen=64)
        """Deletions that were broadcast before "delete … was sent", and when."""
        self._unsent: deque[int] = deque(maxlen=64)
        self.broadcast = (0, 0)

    def add_known(self, kind: int, resource: int) -> Sequence[int]:
        """Add a record with a known resource; return the indices of the records that waited for it."""
        if kind in _CONCLUDING:
            if kind == RecordKind.UPDATING:
                self._unsent.append(resource)
            return [self._handled.popleft()] if self._handled else ()
        if kind == RecordKind.UPDATE_SENT and self._unsent and resource in self._unsent:
            self._unsent.remove(resource)
        return ()

    def add_deletion(self, resource: int, at: float, *, is_own: bool) -> list[int]:
        """Add the broadcast of a deletion that this server handled (`is_own`), or may not have handled.

        Return the indices of "delete … was sent" and of the record before it that waited for it.
        """
        if self._deleted:
            return [*self._take_handled(), self._deleted.popleft()]
        if is_own and self._handled:
            self._announced.append((resource, at))
        return []

    def add_deleted(self, index: int, at: float) -> tuple[int, list[int]]:
        """Add "delete … was sent"; return its resource and the record before it, if its broadcast came first."""
        while self._announced and self._announced[0][1] < at - _ANNOUNCED:
            self._announced.popleft()
        if self._announced:
            return self._announced.popleft()[0], self._take_handled()
        self._deleted.append(index)
        return 0, []

    def _take_handled(self) -> list[int]:
        return [self._handled.popleft()] if self._handled else []

    def add_unknown(self, kind: int, index: int) -> int:
        """Add a record without a resource; return the resource if it is known already."""
        if kind == RecordKind.HANDLING:
            self._handled.append(index)
        elif kind == RecordKind.UPDATE_SENT and self._unsent:
            return self._unsent.popleft()
        return 0
