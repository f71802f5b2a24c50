"""Keep the records that nothing ties to a request: nothing that they name shows whose they are. Pure.

Errors may be shown beside a request that stopped near them. They are never its cause: several works go on at once. An
applied object without a work may be of any work that the agent was handling.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from maestropy.trace.logs.log_records import LogRecord, RecordKind, RecordTable

_OF_COMPONENTS: Final = (
    RecordKind.DISCONNECTED, RecordKind.LISTENER_LOST, RecordKind.STREAM_BROKEN, RecordKind.UNAUTHORISED,
    RecordKind.DATABASE, RecordKind.API_SERVER_FAILED, RecordKind.FOREIGN_EVENT,
)  # fmt: skip
_MOST: Final = 200


class UntiedRecords:
    """The records of a table that belong to no request, in order of time."""

    def __init__(self, records: RecordTable, untied: Sequence[int]) -> None:
        if records.is_partial:
            untied = ()  # the records that would tie them to other works were not read
        applied = [index for index in untied if records.kinds[index] == RecordKind.APPLIED]
        errors = [index for index in untied if records.kinds[index] != RecordKind.APPLIED]
        self._applied = _ByTime(records, applied)
        self._errors = _ByTime(records, [*records.indices(*_OF_COMPONENTS), *errors])

    def errors(self, since: float, until: float) -> list[LogRecord]:
        """Return the errors of a time, as many as anybody would read."""
        return self._errors.between(since, until)

    def applied(self, since: float, until: float) -> list[LogRecord]:
        """Return the records of applied objects of a time, as many as anybody would read."""
        return self._applied.between(since, until)


class _ByTime:
    def __init__(self, records: RecordTable, indices: Iterable[int]) -> None:
        self._records = records
        self._indices = array("I", sorted(indices, key=records.times.__getitem__))
        self._times = array("d", [records.times[index] for index in self._indices])

    def between(self, since: float, until: float) -> list[LogRecord]:
        begin, end = bisect_left(self._times, since), bisect_right(self._times, until)
        return [self._records[index] for index in self._indices[begin : min(end, begin + _MOST)]]
