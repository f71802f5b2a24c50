"""Leave out repetitions among the records of one resource, and count them. Pure.

A log may repeat one line millions of times: an agent tries for weeks, or somebody wants the tracer to fail. What such
records show, the first and the last of them show too. Records of different requests, versions and statuses are never
left out, so that memory grows with these.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Final

from maestropy.trace.logs.evidence import NAMED_BY_ID
from maestropy.trace.logs.log_records import RecordKind, RecordTable
from maestropy.trace.logs.match.status_updates import STATUS_KINDS

MOST: Final = 10_000
"""Up to so many records of a resource none is left out."""
_KEPT: Final = 250
"""Of more, so many of the first and of the last equal ones are kept."""
_ERRORS: Final = frozenset({RecordKind.APPLY_FAILED, RecordKind.CONTROLLER_FAILED, RecordKind.DECODE_FAILED})
"""Their texts may have times and versions in them, and differ each time."""


def kept_records(
    records: RecordTable, indices: "array[int]", *, times: Sequence[float]
) -> tuple[list[int], dict[int, int]]:
    """Return the records to keep, and for some of them how many equal ones follow that are not kept.

    `times` are those of the indices, clocks corrected.
    """
    in_order = [indices[at] for at in sorted(range(len(indices)), key=times.__getitem__)]
    groups = _groups(records, in_order)
    sizes = Counter(groups)
    kept: list[int] = []
    left_out: dict[int, int] = {}
    met: Counter[int] = Counter()
    for index, group in zip(in_order, groups, strict=True):
        met[group] += 1
        if met[group] <= _KEPT or met[group] > sizes[group] - _KEPT:
            kept.append(index)
        if met[group] == _KEPT and sizes[group] > 2 * _KEPT:
            left_out[index] = sizes[group] - 2 * _KEPT
    return kept, left_out


def _groups(records: RecordTable, in_order: Sequence[int]) -> list[int]:
    """Return for each record the number of its group: equal ones between the same two requests, statuses in a row."""
    numbers: dict[object, int] = {}
    groups = []
    named: set[object] = set()
    last: dict[int, object] = {}
    """By file, the record before."""
    runs: Counter[int] = Counter()
    for index in in_order:
        kind, file = records.kinds[index], records.files[index]
        key: tuple[int, ...] = (
            kind, file, records.versions[index], records.sequences[index], records.operations[index],
            records.events[index], 0 if kind in _ERRORS else records.details[index],
        )  # fmt: skip
        if kind in NAMED_BY_ID:
            # What follows the first one of a request is not about the request before.
            named.add(key)
        if last.get(file) != key:
            runs[file] += 1
            last[file] = key
        # Which records of statuses belong together is shown by their order only.
        place = runs[file] if kind in STATUS_KINDS else len(named)
        groups.append(numbers.setdefault((place, key), len(numbers)))
    return groups
