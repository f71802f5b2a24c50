"""Find the neighbourhoods of some texts in a file, as fast as memory can be searched.

Nothing is split into lines but what lies around a find; lines are counted only up to the last find, and only when
somebody asks for numbers. Knows nothing of records.
"""

import mmap
from collections.abc import Iterator, Sequence

from maestropy.trace.request import sources
from maestropy.trace.request.lines import Raw

_BEFORE = 8 << 10
_AFTER = 24 << 10
_TAIL = 64 << 10
_MOST_FINDS = 200_000
_STEP = 16 << 20


def found(memory: mmap.mmap, needle: bytes) -> list[int]:
    """Return where a text is, leaving out places whose neighbourhood is read anyway."""
    places: list[int] = []
    at = _found(memory, needle, 0)
    while at >= 0 and len(places) < _MOST_FINDS:
        places.append(at)
        at = _found(memory, needle, at + _AFTER // 2)
    return places


def pieces(memory: mmap.mmap, places: Sequence[int]) -> Iterator[Iterator[Raw]]:
    """Yield the lines around each place, and those at both ends, overlapping neighbourhoods as one, without numbers."""
    size = len(memory)
    spans = [(0, min(_TAIL, size)), (max(0, size - _TAIL), size)]
    spans += [(max(0, at - _BEFORE), min(size, at + _AFTER)) for at in places]
    end_before = 0
    for start, end in _merged(spans):
        start = memory.rfind(b"\n", 0, start) + 1 if start else 0  # noqa: PLW2901 - grown to whole lines
        line_end = memory.find(b"\n", end - 1) if end < size else size
        end = line_end if line_end >= 0 else size  # noqa: PLW2901 - grown to whole lines
        start = max(start, end_before)  # noqa: PLW2901 - the span before has read the rest
        yield sources.lines_between(memory[start:end], number=0, offset=start)
        end_before = end + 1


def _found(memory: mmap.mmap, needle: bytes, start: int) -> int:
    """Find a needle, step by step, so that what was searched does not stay in memory."""
    size = len(memory)
    for at in range(start, size, _STEP):
        found = memory.find(needle, at, min(size, at + _STEP + len(needle) - 1))
        if found >= 0:
            return found
        _forget(memory, at)
    return -1


def _forget(memory: mmap.mmap, at: int) -> None:
    # Pages of a file can be had again at any time; keeping them counts as ours.
    if hasattr(mmap, "MADV_DONTNEED"):
        begin = at // mmap.PAGESIZE * mmap.PAGESIZE
        memory.madvise(mmap.MADV_DONTNEED, begin, min(_STEP, len(memory) - begin))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + _BEFORE:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def line_numbers(memory: mmap.mmap, offsets: Sequence[int]) -> dict[int, int]:
    """Return the number of the line that begins at each offset."""
    numbers: dict[int, int] = {}
    number, counted = 1, 0
    for offset in sorted(set(offsets)):
        number += _newlines(memory, counted, offset)
        counted = offset
        numbers[offset] = number
    return numbers


def _newlines(memory: mmap.mmap, start: int, end: int) -> int:
    count = 0
    for at in range(start, end, _STEP):
        count += memory[at : min(at + _STEP, end)].count(b"\n")
        _forget(memory, at)
    return count
