"""Put the records of an export into the order of their times where its rows are in none. Pure.

A query without an order returns rows as they come. Rows with a time column are sorted when they are read; without one,
only the log lines show the time. What a record belongs to depends on the records before it.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from maestropy.trace.logs.log_records import RecordTable
from maestropy.trace.logs.read.log_writers import LogWriter

_BACK: Final = 1.0
_TIMES: Final = 3
"""A clock that is set back makes one such step; rows in no order make many."""


def correct(records: RecordTable, writers: Sequence[LogWriter]) -> None:
    """Give the records of unordered exports offsets in the order of their times; these have no other use there."""
    exports = {file for file, writer in enumerate(writers) if writer.format == "csv"}
    if not exports:
        return
    by_file: dict[int, list[int]] = defaultdict(list)
    for index, file in enumerate(records.files):
        if file in exports:
            by_file[file].append(index)
    for indices in by_file.values():
        indices.sort(key=records.offsets.__getitem__)
        steps = sum(records.times[after] < records.times[before] - _BACK for before, after in pairwise(indices))
        if steps < _TIMES:
            continue
        offsets = [records.offsets[index] for index in indices]
        for index, offset in zip(sorted(indices, key=records.times.__getitem__), offsets, strict=True):
            records.offsets[index] = offset
