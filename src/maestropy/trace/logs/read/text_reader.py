"""Read a log text from start to end: frequent records in groups, others one by one, irrelevant ones not at all.

A record is a line and the following lines that start no record. Lines are passed in blocks of whole records. This
module fills a record table, in which the records of one block are in no particular order.
"""

from array import array
from collections.abc import Sequence
from copy import copy
from itertools import accumulate
from operator import add
from typing import Any

import orjson

from maestropy.trace.logs.log_records import RecordKind, RecordRow, RecordTable
from maestropy.trace.logs.read import lines as log_lines
from maestropy.trace.logs.read import record_reader
from maestropy.trace.logs.read.column_reader import FREQUENT, ColumnReader
from maestropy.trace.logs.read.lines import RawRecord, RecordClock
from maestropy.trace.logs.read.log_writers import LogWriter
from maestropy.trace.logs.read.record_reader import ParsedRecord

_LOOKED_AT = 1000
_MESSAGES = 4096
_REPEATED = 4
_FEW = 16
"""Up to so many records are read in full if one of them is unusual."""


def end_of_records(lines: Sequence[bytes]) -> int:
    """Return where the last record of a block starts, which may continue in the next block."""
    lowest = max(0, len(lines) - _LOOKED_AT)
    for at in range(len(lines) - 1, lowest - 1, -1):
        if log_lines.starts_record(lines[at]):
            return at
    return len(lines)


class TextReader:
    """Reads the records of one file into a table."""

    def __init__(self, records: RecordTable, writer: LogWriter, clock: RecordClock, *, file: int) -> None:
        self._records = records
        self._writer = writer
        self._clock = clock
        self._file = file
        self._column_reader = ColumnReader(records, writer)
        self._irrelevant: set[bytes] = set()
        """Messages that are not relevant."""
        self._begun = False

    def take(self, lines: Sequence[bytes], *, number: int, offset: int) -> None:
        """Read whole records; the first line has this number and starts at this offset."""
        if not lines:
            return
        block = _Block(lines, number=number, offset=offset)
        lines = block.lines
        groups, unusual = self._sorted_by_message(lines)
        for group in groups.values():
            unusual += self._set_times(group, lines)
        rows: list[RecordRow] = []
        continued = self._read_unusual(block, sorted(unusual), rows)
        for message, group in groups.items():
            if not continued.isdisjoint(group.indices):
                group.keep([at for at, index in enumerate(group.indices) if index not in continued])
            if group.indices:
                self._read_group(block, message, group, rows)
        self._records.extend(rows, file=self._file)
        self._note_ends(lines)

    def _sorted_by_message(self, lines: Sequence[bytes]) -> "tuple[dict[bytes, _Group], list[int]]":
        """Return frequent lines grouped by message, and the indices of all others."""
        cuts: dict[bytes, list[list[Any]]] = {message: [] for message in FREQUENT}
        add_to = {message: group.append for message, group in cuts.items()}
        unusual: list[int] = []
        find, other, irrelevant = add_to.get, unusual.append, self._irrelevant
        for index, line in enumerate(lines):
            parts = line.split(b'"', 2)
            adding = find(parts[1]) if len(parts) == 3 else None
            if adding is not None:
                parts[1] = index  # type: ignore[call-overload]  # which message it is, its list tells
                adding(parts)
            # Lines with an irrelevant message are skipped.
            elif len(parts) != 3 or parts[1] not in irrelevant or line[:1] not in b"IWEF" or not line[1:5].isdigit():
                other(index)
        return {message: _Group(group) for message, group in cuts.items() if group}, unusual

    def _set_times(self, group: "_Group", lines: Sequence[bytes]) -> list[int]:
        """Set the times of a group; remove lines without a readable time from it, and return their indices."""
        if not group.is_structured():
            return self._set_times_one_by_one(group, lines)
        known, heads = self._clock.seconds, [head[:14] for head in group.heads]
        for head in set(heads):
            if head not in known:
                self._clock.second_of(lines[group.indices[heads.index(head)]])
        try:
            # One list of numbers is read faster than its numbers are.
            micros = orjson.loads(b"[0%b]" % b",0".join([head[14:21] for head in group.heads]))
            group.times = list(map(add, map(known.__getitem__, heads), micros))
        except (ValueError, KeyError, TypeError):
            return self._set_times_one_by_one(group, lines)
        return self._set_times_one_by_one(group, lines) if len(micros) != len(heads) else []

    def _set_times_one_by_one(self, group: "_Group", lines: Sequence[bytes]) -> list[int]:
        """Read times behind a collector's stamps, one by one."""
        times = []
        for index in group.indices:
            raw = log_lines.unwrapped(RawRecord(0, 0, lines[index]))
            is_whole = (
                log_lines.starts_record(lines[index]) and raw.text[15:21].isdigit() and _is_structured(lines[index])
            )
            times.append(self._clock.at(raw) if is_whole else 0.0)
        odd = [index for index, at in zip(group.indices, times, strict=True) if not at]
        group.times = times
        group.keep([at for at, time in enumerate(times) if time])
        return odd

    def _read_unusual(self, block: "_Block", unusual: Sequence[int], rows: list[RecordRow]) -> set[int]:
        """Read all other records in full; return the indices of frequent lines that continue and were read here."""
        lines, continued = block.lines, set()
        more: list[bytes] = []
        open_record, before = -1, -2
        for index in unusual:
            line = lines[index]
            if log_lines.starts_record(line):
                if open_record >= 0:
                    self._read_in_full(block, open_record, more, rows)
                is_known = record_reader.is_known(line)
                open_record, more = (index if is_known else -1), []
                if not is_known:
                    self._note_irrelevant(line)
            elif index != before + 1 and index:
                # The line before is a frequent one, but it continues here, so it must be read in full.
                if open_record >= 0:
                    self._read_in_full(block, open_record, more, rows)
                open_record, more = index - 1, [line]
                continued.add(open_record)
            elif open_record >= 0:
                more.append(line)
            before = index
        if open_record >= 0:
            self._read_in_full(block, open_record, more, rows)
        return continued

    def _note_irrelevant(self, line: bytes) -> None:
        parts = line.split(b'"', 2)
        if len(parts) == 3 and parts[0].find(b"]") == len(parts[0]) - 2 and len(self._irrelevant) < _MESSAGES:
            self._irrelevant.add(parts[1])

    def _read_in_full(
        self, block: "_Block", index: int, more: list[bytes], rows: list[RecordRow]
    ) -> ParsedRecord | None:
        raw = log_lines.whole(RawRecord(block.number + index, block.ends[index] + index, block.lines[index]), more)
        if raw.text[:1] in b"2[{":
            raw = log_lines.unwrapped(raw)
        parsed = record_reader.read(raw, self._clock, file=self._file)
        if parsed is not None:
            self._writer.note(parsed)
            if parsed.record.kind is not RecordKind.PROGRESS:
                rows.append(self._records.row(parsed.record))
        return parsed

    def _read_group(self, block: "_Block", message: bytes, group: "_Group", rows: list[RecordRow]) -> None:
        """Read a group as columns; if one of its records is unusual, divide it, and read small groups in full."""
        columns = self._column_reader.read(FREQUENT[message], group.rests)
        if columns is None:
            repeated = group.repeated()
            for part in repeated:
                self._read_repeated(block, part)
            if repeated:
                return
            parts = group.parts()
            for part in parts:
                self._read_group(block, message, part, rows)
            for index in () if parts else group.indices:
                self._read_in_full(block, index, [], rows)
            return
        number, ends, count = block.number, block.ends, len(group.indices)
        line_numbers = [number + index for index in group.indices]
        offsets = [ends[index] + index for index in group.indices]
        kinds = array("B", [columns.kind]) * count
        self._records.extend_columns(
            (kinds, group.times, line_numbers, offsets, *columns[1:]), count=count, file=self._file
        )
        self._writer.note_many(columns.kind, count, verbosity=FREQUENT[message].verbosity)
        self._writer.extend_coverage(min(group.times), max(group.times))

    def _read_repeated(self, block: "_Block", group: "_Group") -> None:
        """Read lines that differ in their times only: the first of them in full, the others like it."""
        rows: list[RecordRow] = []
        parsed = self._read_in_full(block, group.indices[0], [], rows)
        if parsed is None:
            return
        self._records.extend(rows, file=self._file)
        count = len(group.indices) - 1
        if count:
            kind, _, _, _, *values = rows[0]
            line_numbers = [block.number + index for index in group.indices[1:]]
            offsets = [block.ends[index] + index for index in group.indices[1:]]
            same: list[Sequence[Any]] = [[value] * count for value in values]
            columns: list[Sequence[Any]] = [[kind] * count, group.times[1:], line_numbers, offsets, *same]
            self._records.extend_columns(columns, count=count, file=self._file)
            self._writer.note_again(parsed, count)
            self._writer.extend_coverage(min(group.times), max(group.times))

    def _note_ends(self, lines: Sequence[bytes]) -> None:
        """Extend the coverage to the times of the first and the last record."""
        last = next((line for line in reversed(lines[-_LOOKED_AT:]) if log_lines.starts_record(line)), None)
        if last is not None:
            self._writer.extend_coverage(0.0, self._clock.at(log_lines.unwrapped(RawRecord(0, 0, last))))
        if not self._begun:
            first = next((line for line in lines[:_LOOKED_AT] if log_lines.starts_record(line)), None)
            if first is not None:
                self._writer.extend_coverage(self._clock.at(log_lines.unwrapped(RawRecord(0, 0, first))), 0.0)
            self._begun = True


def _is_structured(line: bytes) -> bool:
    """Say whether the first quoted text of a line is its message."""
    head = line.partition(b'"')[0]
    return head.find(b"]") == len(head) - 2


class _Group:
    """Lines of one message: the text before it, their indices in the block, the text after it, and their times."""

    __slots__ = ("heads", "indices", "rests", "times")

    def __init__(self, cuts: Sequence[Sequence[Any]]) -> None:
        self.heads: Sequence[bytes]
        self.indices: Sequence[int]
        self.rests: Sequence[bytes]
        self.heads, self.indices, self.rests = zip(*cuts, strict=True)
        self.times: list[float] = []

    def is_structured(self) -> bool:
        """Say whether the message is the first quoted text of all lines."""
        text, count = b"\n".join(self.heads), len(self.heads)
        return text.count(b"]") == count and text.count(b"] \n") == count - 1 and text.endswith(b"] ")

    def keep(self, kept: Sequence[int]) -> None:
        self.heads = [self.heads[at] for at in kept]
        self.indices = [self.indices[at] for at in kept]
        self.rests = [self.rests[at] for at in kept]
        self.times = [self.times[at] for at in kept]

    def repeated(self) -> "list[_Group]":
        """Divide the group into equal lines; return nothing unless most of them have several."""
        distinct = len(set(self.rests))
        if distinct * _REPEATED > len(self.rests):
            return []
        equal: dict[bytes, list[int]] = {}
        for at, rest in enumerate(self.rests):
            equal.setdefault(rest, []).append(at)
        return [self._part(kept) for kept in equal.values()]

    def parts(self) -> "list[_Group]":
        """Divide the group by the keys and ends of its lines, else into small groups; return nothing if it is small."""
        by_keys: dict[object, list[int]] = {}
        for at, rest in enumerate(self.rests):
            fields = rest.partition(b"{")[0]
            by_keys.setdefault((*fields.split(b'"')[::2], b".status." in fields, rest[-1:]), []).append(at)
        places = list(by_keys.values())
        if len(places) == 1:
            count = len(self.rests)
            places = [list(range(at, min(at + _FEW, count))) for at in range(0, count, _FEW)] if count > _FEW else []
        return [self._part(kept) for kept in places]

    def _part(self, kept: Sequence[int]) -> "_Group":
        part = copy(self)
        part.keep(kept)
        return part


class _Block:
    """Lines with their positions in the file."""

    __slots__ = ("ends", "lines", "number")

    def __init__(self, lines: Sequence[bytes], *, number: int, offset: int) -> None:
        # Whole files have the line ends of Windows, or none of their lines has.
        self.lines = [line.removesuffix(b"\r") for line in lines] if lines[0][-1:] == b"\r" else lines
        self.number = number
        self.ends = list(accumulate(map(len, lines), initial=offset))
        """The offset of each line, not counting the line ends before it."""
