"""Read a text from one end to the other: usual records many at a time, all others in full, noise not at all.

A record is a line and those after it that begin none. Lines come in blocks of whole records. This module decides
nothing about requests; it fills a table, in which the records of one block stand in no order.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from operator import add
from typing import Any

import orjson

from maestropy.trace.request import lines as records
from maestropy.trace.request import reading
from maestropy.trace.request.bulk import Bulk
from maestropy.trace.request.hits import Hits, Row
from maestropy.trace.request.inputs import Writer
from maestropy.trace.request.lines import Clock, Raw
from maestropy.trace.request.swift import VERBOSITY, Swift

_LOOKED_AT = 1000
_MESSAGES = 4096


def end_of_records(lines: Sequence[bytes]) -> int:
    """Return where the last record of a block begins, which may go on in the next one."""
    lowest = max(0, len(lines) - _LOOKED_AT)
    for at in range(len(lines) - 1, lowest - 1, -1):
        if records.starts_record(lines[at]):
            return at
    return len(lines)


class TextReader:
    """Reads the records of one file into a table."""

    def __init__(self, hits: Hits, writer: Writer, clock: Clock, *, file: int) -> None:
        self._hits = hits
        self._writer = writer
        self._clock = clock
        self._file = file
        self._swift = Swift(hits)
        self._bulk = Bulk(hits, self._swift)
        self._usual: Counter[int] = Counter()
        self._noise: set[bytes] = set()
        """Messages that say nothing to us."""
        self._begun = False

    def take(self, lines: Sequence[bytes], *, number: int, offset: int) -> None:
        """Read whole records; the first line has this number and begins at this offset."""
        if not lines:
            return
        block = _Block(lines, number=number, offset=offset)
        lines = block.lines
        groups, unusual = self._sorted_by_message(lines)
        for group in groups.values():
            unusual += self._tell_times(group, lines)
        rows: list[Row] = []
        continued = self._read_unusual(block, sorted(unusual), rows)
        for message, group in groups.items():
            if not continued.isdisjoint(group.places):
                group.keep([at for at, index in enumerate(group.places) if index not in continued])
            if group.places:
                self._read_group(block, message, group, rows)
        self._hits.extend(rows, file=self._file)
        self._note_ends(lines)

    def _sorted_by_message(self, lines: Sequence[bytes]) -> "tuple[dict[bytes, _Group], list[int]]":
        """Return usual lines by their messages, and the places of all others."""
        cuts: dict[bytes, list[list[Any]]] = {message: [] for message in self._bulk.readers}
        add_to = {message: found.append for message, found in cuts.items()}
        unusual: list[int] = []
        find, other, noise = add_to.get, unusual.append, self._noise
        for index, line in enumerate(lines):
            parts = line.split(b'"', 2)
            adding = find(parts[1]) if len(parts) == 3 else None
            if adding is not None:
                parts[1] = index  # type: ignore[call-overload]  # which message it is, its list tells
                adding(parts)
            # Lines that begin a record which says nothing to us are not even remembered.
            elif len(parts) != 3 or parts[1] not in noise or line[:1] not in b"IWEF" or not line[1:5].isdigit():
                other(index)
        return {message: _Group(found) for message, found in cuts.items() if found}, unusual

    def _tell_times(self, group: "_Group", lines: Sequence[bytes]) -> list[int]:
        """Give a group its times; return the places of lines without a readable one, which have left it."""
        if not group.is_structured():
            return self._tell_odd_times(group, lines)
        known, heads = self._clock.seconds, [head[:14] for head in group.heads]
        for head in set(heads):
            if head not in known:
                self._clock.second_of(lines[group.places[heads.index(head)]])
        try:
            # One list of numbers is read faster than its numbers are.
            micros = orjson.loads(b"[0%b]" % b",0".join([head[14:21] for head in group.heads]))
            group.times = list(map(add, map(known.__getitem__, heads), micros))
        except (ValueError, KeyError, TypeError):
            return self._tell_odd_times(group, lines)
        return self._tell_odd_times(group, lines) if len(micros) != len(heads) else []

    def _tell_odd_times(self, group: "_Group", lines: Sequence[bytes]) -> list[int]:
        """Read times behind a collector's stamps, one by one."""
        times = []
        for index in group.places:
            raw = records.unwrapped(Raw(0, 0, lines[index]))
            is_whole = (
                records.starts_record(lines[index]) and raw.text[15:21].isdigit() and _is_structured(lines[index])
            )
            times.append(self._clock.at(raw) if is_whole else 0.0)
        odd = [index for index, at in zip(group.places, times, strict=True) if not at]
        group.times = times
        group.keep([at for at, time in enumerate(times) if time])
        return odd

    def _read_unusual(self, block: "_Block", unusual: Sequence[int], rows: list[Row]) -> set[int]:
        """Read all other records in full; return which usual lines go on in the next line, and were read here."""
        lines, continued = block.lines, set()
        more: list[bytes] = []
        held, before = -1, -2
        for index in unusual:
            line = lines[index]
            if records.starts_record(line):
                if held >= 0:
                    self._read_in_full(block, held, more, rows)
                is_known = reading.is_known(line)
                held, more = (index if is_known else -1), []
                if not is_known:
                    self._note_noise(line)
            elif index != before + 1 and index:
                # The line before is a usual one; as it goes on, it is not.
                if held >= 0:
                    self._read_in_full(block, held, more, rows)
                held, more = index - 1, [line]
                continued.add(held)
            elif held >= 0:
                more.append(line)
            before = index
        if held >= 0:
            self._read_in_full(block, held, more, rows)
        return continued

    def _note_noise(self, line: bytes) -> None:
        parts = line.split(b'"', 2)
        if len(parts) == 3 and parts[0].find(b"]") == len(parts[0]) - 2 and len(self._noise) < _MESSAGES:
            self._noise.add(parts[1])

    def _read_in_full(self, block: "_Block", index: int, more: list[bytes], rows: list[Row]) -> None:
        raw = records.whole(Raw(block.number + index, block.ends[index] + index, block.lines[index]), more)
        if raw.text[:1] in b"2[{":
            raw = records.unwrapped(raw)
        said = reading.read(raw, self._clock, file=self._file)
        if said is not None:
            self._writer.note(said)
            rows.append(self._hits.row(said.hit))

    def _read_group(self, block: "_Block", message: bytes, group: "_Group", rows: list[Row]) -> None:
        is_plain = b"".join(group.rests).isascii()
        columns = self._bulk.readers[message](group.rests) if is_plain else None
        if columns is None:
            self._read_one_by_one(block, message, group, rows)
            return
        number, ends, count = block.number, block.ends, len(group.places)
        places = [number + index for index in group.places]
        offsets = [ends[index] + index for index in group.places]
        whats = array("B", [columns.what]) * count
        self._hits.extend_columns((whats, group.times, places, offsets, *columns[1:]), count=count, file=self._file)
        self._usual[columns.what] += count
        self._writer.reach(min(group.times), max(group.times))

    def _read_one_by_one(self, block: "_Block", message: bytes, group: "_Group", rows: list[Row]) -> None:
        read = self._swift.readers[message]
        for index, at, rest in zip(group.places, group.times, group.rests, strict=True):
            fields = read(rest) if rest.isascii() else None
            if fields is None:
                self._read_in_full(block, index, [], rows)
            else:
                rows.append((fields[0], at, block.number + index, block.ends[index] + index, *fields[1:]))
                self._usual[fields[0]] += 1
                self._writer.reach(at, at)

    def _note_ends(self, lines: Sequence[bytes]) -> None:
        """Note the times of the first and the last record, whatever they say."""
        last = next((line for line in reversed(lines[-_LOOKED_AT:]) if records.starts_record(line)), None)
        if last is not None:
            self._writer.reach(0.0, self._clock.at(records.unwrapped(Raw(0, 0, last))))
        if not self._begun:
            first = next((line for line in lines[:_LOOKED_AT] if records.starts_record(line)), None)
            if first is not None:
                self._writer.reach(self._clock.at(records.unwrapped(Raw(0, 0, first))), 0.0)
            self._begun = True

    def finish(self) -> None:
        """Note what the usual records have given away about their writer."""
        self._writer.note_many(self._usual, verbosities=VERBOSITY)
        self._writer.consumers |= self._swift.consumers
        self._writer.instances |= self._swift.instances


def _is_structured(line: bytes) -> bool:
    """Say whether the first quoted text of a line is its message."""
    head = line.partition(b'"')[0]
    return head.find(b"]") == len(head) - 2


class _Group:
    """Lines of one message: what precedes it, their places in the block, what follows it, and their times."""

    __slots__ = ("heads", "places", "rests", "times")

    def __init__(self, cuts: Sequence[Sequence[Any]]) -> None:
        self.heads: Sequence[bytes]
        self.places: Sequence[int]
        self.rests: Sequence[bytes]
        self.heads, self.places, self.rests = zip(*cuts, strict=True)
        self.times: list[float] = []

    def is_structured(self) -> bool:
        """Say whether the message is the first thing that all of the lines say."""
        text, count = b"\n".join(self.heads), len(self.heads)
        return text.count(b"]") == count and text.count(b"] \n") == count - 1 and text.endswith(b"] ")

    def keep(self, kept: Sequence[int]) -> None:
        """Leave out all but some."""
        self.heads = [self.heads[at] for at in kept]
        self.places = [self.places[at] for at in kept]
        self.rests = [self.rests[at] for at in kept]
        self.times = [self.times[at] for at in kept]


class _Block:
    """Lines with their places in the file."""

    __slots__ = ("ends", "lines", "number")

    def __init__(self, lines: Sequence[bytes], *, number: int, offset: int) -> None:
        # Whole files have the line ends of Windows, or none of their lines has.
        self.lines = [line.removesuffix(b"\r") for line in lines] if lines[0][-1:] == b"\r" else lines
        self.number = number
        self.ends = list(accumulate(map(len, lines), initial=offset))
        """Where each line begins, without the line ends before it."""
