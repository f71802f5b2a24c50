"""Keep the errors that nothing ties to a request: nothing that they name shows whose they are.

They may be shown beside a request that stopped near them. They are never its cause: several works go on at once. Pure.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Final

from maestropy.trace.logs.evidence import EVIDENCE, Shows
from maestropy.trace.logs.log_records import LogRecord, RecordKind, RecordTable

_OF_COMPONENTS: Final = (
    RecordKind.DISCONNECTED, RecordKind.LISTENER_LOST, RecordKind.STREAM_BROKEN, RecordKind.UNAUTHORISED,
    RecordKind.DATABASE, RecordKind.API_SERVER_FAILED, RecordKind.FOREIGN_EVENT,
)  # fmt: skip
_OF_REQUESTS: Final = tuple(kind for kind, shown in EVIDENCE.items() if shown.shows is Shows.FAILED)
_MOST: Final = 200


class UntiedErrors:
    """The errors of a record table that belong to no request, in order of time."""

    def __init__(self, records: RecordTable, attributed: Mapping[int, Iterable[int]]) -> None:
        self._records = records
        indices = [*records.indices(*_OF_COMPONENTS), *_without_resource(records, attributed)]
        indices.sort(key=records.times.__getitem__)
        self._indices = array("I", indices)
        self._times = array("d", [records.times[index] for index in indices])

    def between(self, since: float, until: float) -> list[LogRecord]:
        """Return the errors of a time, as many as anybody would read."""
        begin, end = bisect_left(self._times, since), bisect_right(self._times, until)
        return [self._records[index] for index in self._indices[begin : min(end, begin + _MOST)]]


def _without_resource(records: RecordTable, attributed: Mapping[int, Iterable[int]]) -> set[int]:
    """Return the errors about objects and events that were not attributed to a resource."""
    if records.is_partial:
        return set()  # the records that would tie them to other works were not read
    errors = {index for index in records.indices(*_OF_REQUESTS) if not records.resources[index]}
    if errors:
        for indices in attributed.values():
            errors.difference_update(indices)
    return errors
