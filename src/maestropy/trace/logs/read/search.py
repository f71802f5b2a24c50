"""Find texts in a memory-mapped file and read the lines around them.

Only the text around a match is split into lines. Lines are counted only up to the last match, and only when line
numbers are needed. Knows nothing of records.
"""

import mmap
from collections.abc import Callable, Iterator, Sequence

from maestropy.trace.logs.read.inputs import log_inputs
from maestropy.trace.logs.read.lines import RawRecord

_BEFORE = 8 << 10
_AFTER = 24 << 10
_TAIL = 64 << 10
_MOST_FINDS = 200_000
_STEP = 16 << 20
_NEAR = 64 << 10


def find_all(memory: mmap.mmap, needle: bytes) -> list[int]:
    """Return the offsets of a text, without those whose surroundings are read anyway."""
    offsets: list[int] = []
    at = _find_from(memory, needle, 0)
    while at >= 0 and len(offsets) < _MOST_FINDS:
        offsets.append(at)
        at = _find_from(memory, needle, at + _AFTER // 2)
    return offsets


def size_around(memory: mmap.mmap, offsets: Sequence[int]) -> int:
    """Return how many bytes are read around these offsets."""
    return sum(end - start for start, end in _spans(memory, offsets))


def torn_line(memory: mmap.mmap) -> int:
    """Return the number of the last line if it has no end; 0 otherwise."""
    return 0 if memory[-1:] == b"\n" else _newlines(memory, 0, len(memory)) + 1


def lines_of(memory: mmap.mmap, begin: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Yield the lines of a part of a file, with their offsets."""
    begin = memory.rfind(b"\n", 0, begin) + 1
    while begin < end:
        stop = memory.find(b"\n", min(begin + _STEP, end) - 1)
        stop = len(memory) if stop < 0 else stop
        at = begin
        for line in memory[begin:stop].split(b"\n"):
            yield line, at
            at += len(line) + 1
        _release(memory, begin)
        begin = stop + 1


def between(memory: mmap.mmap, since: float, until: float, *, time_of: Callable[[bytes], float]) -> tuple[int, int]:
    """Return where the lines of some time start and end; `time_of` returns 0 for a line without a time."""
    return _first_after(memory, since, time_of=time_of), _first_after(memory, until, time_of=time_of)


def _first_after(memory: mmap.mmap, moment: float, *, time_of: Callable[[bytes], float]) -> int:
    low, high = 0, len(memory)
    while high - low > _NEAR:
        middle = (low + high) // 2
        at = _time_from(memory, middle, time_of=time_of)
        if at and at < moment:
            low = middle
        else:
            high = middle
    return high


def _time_from(memory: mmap.mmap, offset: int, *, time_of: Callable[[bytes], float]) -> float:
    """Return the time of the first line after `offset` that has one."""
    for line in memory[offset : offset + _TAIL].split(b"\n")[1:]:
        if at := time_of(line):
            return at
    return 0.0


def pieces(memory: mmap.mmap, offsets: Sequence[int]) -> Iterator[Iterator[RawRecord]]:
    """Yield the lines around each offset and at both ends of the file, without numbers; merge overlapping spans."""
    size = len(memory)
    end_before = 0
    for start, end in _spans(memory, offsets):
        start = memory.rfind(b"\n", 0, start) + 1 if start else 0  # noqa: PLW2901 - grown to whole lines
        line_end = memory.find(b"\n", end - 1) if end < size else size
        end = line_end if line_end >= 0 else size  # noqa: PLW2901 - grown to whole lines
        start = max(start, end_before)  # noqa: PLW2901 - the span before has read the rest
        yield log_inputs.lines_between(memory[start:end], number=0, offset=start)
        end_before = end + 1


def _find_from(memory: mmap.mmap, needle: bytes, start: int) -> int:
    """Find a needle, step by step, so that what was searched does not stay in memory."""
    size = len(memory)
    for at in range(start, size, _STEP):
        offset = memory.find(needle, at, min(size, at + _STEP + len(needle) - 1))
        if offset >= 0:
            return offset
        _release(memory, at)
    return -1


def _release(memory: mmap.mmap, at: int) -> None:
    # Pages of the file can be read again; keeping them counts as memory of this process.
    if hasattr(mmap, "MADV_DONTNEED"):
        begin = at // mmap.PAGESIZE * mmap.PAGESIZE
        memory.madvise(mmap.MADV_DONTNEED, begin, min(_STEP, len(memory) - begin))


def _spans(memory: mmap.mmap, offsets: Sequence[int]) -> list[tuple[int, int]]:
    size = len(memory)
    spans = [(0, min(_TAIL, size)), (max(0, size - _TAIL), size)]
    spans += [(max(0, at - _BEFORE), min(size, at + _AFTER)) for at in offsets]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + _BEFORE:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def line_numbers(memory: mmap.mmap, offsets: Sequence[int]) -> dict[int, int]:
    """Return the number of the line that starts at each offset."""
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
        _release(memory, at)
    return count
