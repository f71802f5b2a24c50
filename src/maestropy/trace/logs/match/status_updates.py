"""Group the status records of one resource into status updates: one per status that the agent published.

A status update is identified by its sequence ID where any of its records shows one. Otherwise records of one server
follow each other (received, handled, sent), and the n-th status event belongs to the n-th stored status. Which status a
broadcast is about is therefore derived, and proves nothing about the order of records. Pure.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from maestropy.trace.logs.log_records import LogRecord, RecordKind

_CLOSING = frozenset({RecordKind.UPDATE_SENT, RecordKind.DELETE_SENT, RecordKind.STALE, RecordKind.UNCHANGED,
                      RecordKind.STATUS_FAILED, RecordKind.NOT_OWNED, RecordKind.STATUS_NOT_FOUND})  # fmt: skip
STATUS_KINDS: Final = frozenset(range(RecordKind.SENDING_STATUS, RecordKind.STATUS_DISPATCH_FAILED + 1)) | {
    RecordKind.STATUS_REJECTED
}
"""The kinds of records that belong to a status update."""
OF_STATUS_EVENTS: Final = frozenset({RecordKind.BROADCAST, RecordKind.NO_CLIENTS})
"""The kinds of records that name a status event and no status: theirs is derived from order and time."""
_ALONE = frozenset({RecordKind.SENT_TO_CLIENTS, RecordKind.STATUS_DISPATCH_FAILED, RecordKind.RECEIVED_STATUS,
                    RecordKind.SENDING_STATUS, RecordKind.STATUS_REJECTED})  # fmt: skip
_CLOSE = 5.0


@dataclass(slots=True)
class StatusUpdateRecords:
    """The records of one status update, from the agent to the clients."""

    sequence: int = 0
    version: int = -1
    is_deleting: bool = False
    records: list[LogRecord] = field(default_factory=list)
    _kinds: set[RecordKind] = field(default_factory=set)
    _kinds_by_file: set[tuple[RecordKind, int]] = field(default_factory=set)
    _has_final_event: bool = False

    def add(self, record: LogRecord) -> None:
        """Add one more record."""
        self.records.append(record)
        self._kinds.add(record.kind)
        self._kinds_by_file.add((record.kind, record.file))
        self.sequence = self.sequence or record.sequence
        if record.version >= 0:
            self.version = record.version
        self.is_deleting = self.is_deleting or record.is_deleting
        if record.kind is RecordKind.BROADCAST and record.action == "delete":
            self._has_final_event = True

    def has(self, *kinds: RecordKind) -> bool:
        """Say whether it has such a record."""
        return not self._kinds.isdisjoint(kinds)

    def has_like(self, record: LogRecord) -> bool:
        """Say whether it has a record of this kind from the same file."""
        return (record.kind, record.file) in self._kinds_by_file

    @property
    def at(self) -> float:
        """The time of its first record."""
        return min(record.at for record in self.records)

    @property
    def sent_at(self) -> float:
        """When the agent sent it; the time of its first record where the agent's is not in the logs."""
        return min((record.at for record in self.records if record.kind is RecordKind.SENDING_STATUS), default=self.at)

    @property
    def is_announced_deletion(self) -> bool:
        """Say whether it reports on a deletion, and servers told their clients that this is over."""
        return self.is_deleting and self._has_final_event

    @property
    def confirms_deletion(self) -> bool:
        """Say whether it confirms a deletion."""
        if self.has(RecordKind.DELETE_SENT, RecordKind.UPDATE_SENT):
            return self.has(
                RecordKind.DELETE_SENT
            )  # the server's record decides, because other statuses of our agent look like the last one
        if self.is_announced_deletion:
            return True
        return any(
            record.kind is RecordKind.SENDING_STATUS and record.is_deleting and record.detail == "final"
            for record in self.records
        )

    @property
    def result(self) -> str:
        """The result of the status update on the server."""
        result = next((result for kind, result in _RESULTS if self.has(kind)), "unknown")
        is_duplicate = result == "stale" and any(
            record.kind is RecordKind.STALE and record.detail == "sequence" for record in self.records
        )
        return "duplicate" if is_duplicate else result


_RESULTS = (
    (RecordKind.DELETE_SENT, "sent"),
    (RecordKind.UPDATE_SENT, "sent"),
    # Some server has stored what is sent to clients, whatever another one that was later found.
    (RecordKind.SENT_TO_CLIENTS, "sent"),
    (RecordKind.STATUS_FAILED, "error"),
    # A server logs "Updating" before it compares sequence IDs.
    (RecordKind.STALE, "stale"),
    (RecordKind.UPDATING, "sent"),
    (RecordKind.UNCHANGED, "nochange"),
    (RecordKind.STATUS_NOT_FOUND, "not-found"),
)


def is_about_status(record: LogRecord) -> bool:
    """Say whether a record belongs to a status update."""
    return record.kind in STATUS_KINDS


def status_updates_of(records: Sequence[LogRecord]) -> list[StatusUpdateRecords]:
    """Return the reports of one resource in order of time."""
    numbered: dict[int, StatusUpdateRecords] = {}
    unnumbered: list[StatusUpdateRecords] = []
    files = sorted({record.file for record in records})
    for file in files:
        _of_file([record for record in records if record.file == file], numbered, unnumbered)
    _join_unnumbered(unnumbered, numbered)
    status_updates = [*numbered.values(), *(update for update in unnumbered if update.records)]
    status_updates.sort(key=lambda update: update.at)
    _add_broadcasts(
        status_updates, [record for record in records if record.kind in (RecordKind.BROADCAST, RecordKind.NO_CLIENTS)]
    )
    return [update for update in status_updates if update.records]


def _of_file(
    records: Iterable[LogRecord], numbered: dict[int, StatusUpdateRecords], unnumbered: list[StatusUpdateRecords]
) -> None:
    """Follow one server's or agent's records in their order."""
    open_ = _OpenUpdates(unnumbered)
    for record in sorted(records, key=lambda record: (record.offset, record.line)):
        if record.sequence:
            update = numbered.setdefault(record.sequence, StatusUpdateRecords())
            open_.note_numbered(record, update)
            update.add(record)
        elif record.kind is RecordKind.STATUS_UPDATE_RECEIVED:
            (open_.unreceived(record) or open_.new()).add(record)
        elif record.kind is RecordKind.HANDLING or record.kind is RecordKind.UPDATING or record.kind in _CLOSING:
            open_.close_before_record(record)
            (open_.first or open_.new()).add(record)
            if record.kind in _CLOSING:
                open_.close_first()
        elif record.kind in _ALONE:
            unnumbered.append(StatusUpdateRecords())
            unnumbered[-1].add(record)


class _OpenUpdates:
    """The status updates of one file that are not finished, in order; searched in steps that are never repeated."""

    def __init__(self, unnumbered: list[StatusUpdateRecords]) -> None:
        self._unnumbered = unnumbered
        self._updates: list[StatusUpdateRecords] = []
        self._positions: dict[int, int] = {}
        """Where those are that were received with a sequence ID, by their identities in memory."""
        self._deleting: deque[int] = deque()
        """Where those of them are that report on a deletion."""
        self._closed = 0
        self._received = 0
        """So many of the first ones have a record of being received."""

    @property
    def first(self) -> StatusUpdateRecords | None:
        return self._updates[self._closed] if self._closed < len(self._updates) else None

    def note_numbered(self, record: LogRecord, update: StatusUpdateRecords) -> None:
        """Note that a record names the sequence ID of an update: it is received, or being stored."""
        if record.kind is RecordKind.RECEIVED_STATUS:
            self._positions[id(update)] = len(self._updates)
            if record.is_deleting:
                self._deleting.append(len(self._updates))
            self._updates.append(update)
        elif record.kind is RecordKind.UPDATING:
            first = self.first
            if first is not None and not first.sequence:
                _merge(first, into=update)
                self._updates[self._closed] = update
            else:
                # A server handles them in order: those before are over, though an export may not show how.
                self._closed = max(self._closed, self._positions.get(id(update), 0))

    def new(self) -> StatusUpdateRecords:
        update = StatusUpdateRecords()
        self._unnumbered.append(update)
        self._updates.append(update)
        return update

    def close_first(self) -> None:
        self._closed += 1

    def close_before_record(self, record: LogRecord) -> None:
        """Close those that a record without a sequence ID cannot be about."""
        if record.kind is RecordKind.UPDATING and self.first is not None and self.first.has_like(record):
            self.close_first()  # older servers log nothing more about it
        elif record.kind is RecordKind.DELETE_SENT:
            # Only a status that reports on a deletion ends with its event.
            while self._deleting and self._deleting[0] < self._closed:
                self._deleting.popleft()
            if self._deleting:
                self._closed = self._deleting[0]

    def unreceived(self, record: LogRecord) -> StatusUpdateRecords | None:
        """Return the first one without a record like this one."""
        self._received = max(self._received, self._closed)
        while self._received < len(self._updates):
            update = self._updates[self._received]
            if not update.has_like(record):
                return update
            self._received += 1
        return None


def _merge(one: StatusUpdateRecords, *, into: StatusUpdateRecords) -> None:
    _extend(into, one.records)
    one.records = []  # what has no records is left out at the end


def _join_unnumbered(unnumbered: list[StatusUpdateRecords], numbered: dict[int, StatusUpdateRecords]) -> None:
    """Join updates without a sequence ID to the last one published before; an export may omit sequence IDs."""
    sent = sorted(
        (
            (record.at, update)
            for update in (*numbered.values(), *unnumbered)
            for record in update.records
            if record.kind is RecordKind.SENDING_STATUS
        ),
        key=lambda pair: pair[0],
    )
    times = [at for at, _ in sent]
    for candidate in unnumbered:
        if not candidate.records or candidate.has(RecordKind.SENDING_STATUS):
            continue
        moment = candidate.at
        for index in range(bisect_right(times, moment + 0.5) - 1, -1, -1):
            if moment - times[index] >= _CLOSE * 12:
                break
            update = sent[index][1]
            if candidate.version == update.version or -1 in (candidate.version, update.version):
                _merge(candidate, into=update)
                break


def _add_broadcasts(status_updates: Sequence[StatusUpdateRecords], records: Sequence[LogRecord]) -> None:
    """Add the n-th status event to the n-th stored status; to the nearest one when their numbers differ."""
    events: dict[str, list[LogRecord]] = {}
    for number, record in enumerate(records):
        events.setdefault(record.event or f"?{number}", []).append(record)
    deletions = [group for group in events.values() if group[0].action == "delete"]
    changes = [group for group in events.values() if group[0].action != "delete"]
    final = [update for update in status_updates if update.has(RecordKind.DELETE_SENT)]
    # The record of the server that stored the last status may be in a log that is not given.
    deleting = [update for update in status_updates if update.is_deleting and not update.has(RecordKind.UPDATE_SENT)]
    last = [update for update in status_updates if update.confirms_deletion]
    _add_events(deletions, final, among=last or deleting or status_updates)
    is_last = [update.has(RecordKind.DELETE_SENT) or update.is_announced_deletion for update in status_updates]
    others = [update for update, is_over in zip(status_updates, is_last, strict=True) if not is_over]
    _add_events(changes, [update for update in others if update.result == "sent"], among=status_updates)


def _add_events(
    groups: Sequence[Sequence[LogRecord]],
    stored: Sequence[StatusUpdateRecords],
    *,
    among: Sequence[StatusUpdateRecords],
) -> None:
    """Add the records of status events to the statuses that are stored, or if there is none, to others."""
    if len(groups) == len(stored):
        for group, update in zip(groups, stored, strict=True):
            _extend(update, group)
        return
    by_time = _ByTime(stored or among)
    for group in groups:
        nearest = by_time.nearest(group[0].at)
        if nearest is not None:
            _extend(nearest, group)


class _ByTime:
    """Status updates by the time at which a server handled them; the first of those of one time."""

    def __init__(self, status_updates: Sequence[StatusUpdateRecords]) -> None:
        first: dict[float, int] = {}
        for position, update in enumerate(status_updates):
            first.setdefault(_handled_at(update), position)
        self._times = sorted(first)
        self._positions = [first[at] for at in self._times]
        self._sent = [update.sent_at for update in status_updates]
        self._status_updates = status_updates

    def nearest(self, at: float) -> StatusUpdateRecords | None:
        """Return the one nearest to a time, the first of two that are equally near; if possible one sent before it."""
        after = bisect_left(self._times, at)
        near = [index for index in (after - 1, after) if 0 <= index < len(self._times)]
        positions = [(abs(self._times[index] - at), self._positions[index]) for index in near]
        sent = [one for one in positions if self._sent[one[1]] <= at]
        nearest = min(sent or positions, default=None)
        return self._status_updates[nearest[1]] if nearest is not None else None


def _extend(update: StatusUpdateRecords, group: Iterable[LogRecord]) -> None:
    for record in group:
        update.add(record)


def _handled_at(update: StatusUpdateRecords) -> float:
    return max((record.at for record in update.records if record.stage in (6, 7)), default=update.at)
