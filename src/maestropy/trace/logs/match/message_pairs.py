"""Pair the records of messages between servers and agents: one that was sent, and one that it was received. Pure.

Only messages that were sent once and received once count: other records do not show which of them belong together.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from maestropy.trace.logs.log_records import RecordKind, RecordTable
from maestropy.trace.logs.read.log_writers import LogWriter

_SEQUENCE_BITS: Final = 22
_SEQUENCE_EPOCH: Final = 1288834974.657
_FIRST_LOGS: Final = 1_600_000_000.0
_QUARTER: Final = 900.0
_SENT_WITHIN: Final = 5.0
_EARLY: Final = 1.0
_Message = tuple[int, int, str]
"""Resource, version and action of a spec event."""
Pair = tuple[int, float]
"""The agent's record, by its index, and how many seconds the message seems to have taken."""


class MessagePairs:
    """The pairs of each agent's log, by the times that the clocks show."""

    def __init__(self, records: RecordTable, writers: Sequence[LogWriter], *, times: Sequence[float]) -> None:
        self._times = times
        self._records = records
        self._published: dict[_Message, list[float]] = defaultdict(list)
        self._received: dict[int, dict[_Message, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._sent: dict[int, dict[int, int]] = defaultdict(dict)
        self._taken: dict[int, float] = {}
        is_server = [writer.role == "server" for writer in writers]
        self._read_specs(is_server)
        self._read_statuses(is_server)

    def _read_specs(self, is_server: Sequence[bool]) -> None:
        records = self._records
        for index in records.indices(RecordKind.SENDING_SPEC, RecordKind.SENT_TO_AGENTS):
            if records.versions[index] > 0 and is_server[records.files[index]]:
                self._published[_message(records, index)].append(self._times[index])
        for index in records.indices(RecordKind.RECEIVED_SPEC):
            if records.versions[index] > 0:
                self._received[records.files[index]][_message(records, index)].append(index)

    def _read_statuses(self, is_server: Sequence[bool]) -> None:
        records, times = self._records, self._times
        for index in records.indices(RecordKind.SENDING_STATUS):
            sequence = records.sequences[index]
            if sequence and not _is_sent_again(sequence, times[index]):
                # Only the first counts: a status that is sent again arrived before.
                first = self._sent[records.files[index]]
                if sequence not in first or times[index] < times[first[sequence]]:
                    first[sequence] = index
        for index in records.indices(RecordKind.RECEIVED_STATUS):
            sequence, at = records.sequences[index], times[index]
            if sequence and at < self._taken.get(sequence, math.inf) and is_server[records.files[index]]:
                self._taken[sequence] = at

    @property
    def files(self) -> set[int]:
        """The files that any message was sent or received in."""
        return set(self._received) | set(self._sent)

    def down(self, file: int) -> list[Pair]:
        """Return the requests that the agent of a file received."""
        return [
            (received[0], self._times[received[0]] - self._published[message][0])
            for message, received in self._received.get(file, {}).items()
            if len(received) == 1 and len(self._published.get(message, ())) == 1
        ]

    def up(self, file: int) -> list[Pair]:
        """Return the statuses that the agent of a file sent."""
        return [
            (index, self._taken[sequence] - self._times[index])
            for sequence, index in self._sent.get(file, {}).items()
            if sequence in self._taken
        ]

    def has_early_status(self, file: int) -> bool:
        """Say whether an agent wrote a status after the request that it reports on, with an earlier time."""
        records, times = self._records, self._times
        received: dict[tuple[int, int], int] = {}
        for (resource, version, _), indices in self._received.get(file, {}).items():
            if len(indices) == 1 and received.setdefault((resource, version), indices[0]) != indices[0]:
                received[resource, version] = -1
        for index in self._sent.get(file, {}).values():
            before = received.get((records.resources[index], records.versions[index]), -1)
            if before >= 0 and times[index] < times[before] - _EARLY and _is_after(records, index, before):
                return True
        return False


def _is_after(records: RecordTable, index: int, before: int) -> bool:
    return (records.offsets[index], records.lines[index]) > (records.offsets[before], records.lines[before])


def _is_sent_again(sequence: int, at: float) -> bool:
    """Say whether a status was sent at another time than its sequence ID was made, which is by the same clock."""
    made = (sequence >> _SEQUENCE_BITS) / 1000 + _SEQUENCE_EPOCH
    # A log in another time zone is off by quarters of an hour; IDs that begin with no time are older than any log.
    off = abs(at - made) % _QUARTER
    return made > _FIRST_LOGS and min(off, _QUARTER - off) > _SENT_WITHIN


def _message(records: RecordTable, index: int) -> _Message:
    _, _, _, action, is_deleting, _ = records.details_of(index)
    return records.resources[index], records.versions[index], "delete" if is_deleting else action
