"""Scan logs into a table of records. The only module of this package that reads whole files.

For all requests, every record is read once, large files in several parts in parallel. For one request, its IDs are
searched in the bytes of the file and only the records around each match are read; compressed files and CSV are read
completely.
"""

import mmap
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO

from maestropy.trace.errors import InputUnreadable
from maestropy.trace.logs.evidence import NAMED_BY_ID
from maestropy.trace.logs.log_records import LogRecord, RecordKind, RecordTable
from maestropy.trace.logs.read import csv_reader, lines, log_writers, record_reader, search, text_reader, workers
from maestropy.trace.logs.read.inputs import input_files, log_inputs, otlp_export
from maestropy.trace.logs.read.lines import RawRecord
from maestropy.trace.logs.read.log_writers import LogWriter
from maestropy.untrusted.printable import escape

_TAIL = 64 << 10
_PREFIX = 512
_FIRST_LINES = 40
_WORTH_A_PROCESS = 48 << 20
_LOOKED_AT = 16 << 20
_LONGEST_RECORD = 1 << 20
_MOST_AROUND = 24 << 20
"""Up to so many bytes around the matches are always read record by record."""

Matches = dict[tuple[str, bytes], list[int]]
"""Offsets of texts in files, reused by a second search."""


@dataclass(slots=True, kw_only=True)
class Scan:
    """The records read from the logs."""

    records: RecordTable = field(default_factory=RecordTable)
    writers: list[LogWriter] = field(default_factory=list)
    unreadable_inputs: list[log_inputs.UnreadableInput] = field(default_factory=list)
    bytes: int = 0

    def leave_out(self, name: str, reason: str) -> None:
        """Note what cannot be read."""
        self.unreadable_inputs.append(log_inputs.UnreadableInput(name=name, reason=reason))

    @property
    def is_partial(self) -> bool:
        """Whether a part of the logs could not be read."""
        return any(unreadable.is_left_out for unreadable in self.unreadable_inputs)

    @property
    def unreadable(self) -> list[str]:
        """What could not be read, a sentence for each reason."""
        return log_inputs.messages(self.unreadable_inputs)


Progress = Callable[[int], None]


def silent(_: object) -> None:
    """Take no notice of progress and warnings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some of a file, from one record to another; all of it when it has no end."""

    path: str
    start: int = 0
    end: int = 0


def scan_all(paths: Sequence[str], *, now: float, progress: Progress = silent, jobs: int = 1) -> Scan:
    """Read all records of all inputs; large ones by several processes."""
    shares = _shares(log_inputs.plain_files(paths), jobs) if jobs > 1 and workers.can_fork() else []
    if len(shares) < 2:
        return _finished(_scan(paths, now=now, progress=progress), paths)

    def report_progress(amount: int) -> None:
        progress(amount * len(shares))  # the other processes have read about as much

    task = partial(_scan_share, now=now, progress=silent)
    scans = workers.run_shares(task, shares, mine=partial(_scan_share, now=now, progress=report_progress))
    merged = next(scans)
    for share, read in zip(shares[1:], scans, strict=True):
        _merge(merged, read, is_more=share[0].start > 0)
    return _finished(merged, paths)


def _shares(files: Sequence[Path], jobs: int) -> list[list[Part]]:
    """Split large inputs into equal shares at starts of records; return one share when splitting is not worth it."""
    sizes = [file.stat().st_size if file.exists() else 0 for file in files]
    total = sum(sizes)
    goal = total if total < _WORTH_A_PROCESS else -(-total // jobs)
    shares: list[list[Part]] = [[]]
    room = goal
    for file, size in zip(files, sizes, strict=True):
        start = 0
        while len(shares) < jobs and size - start > room:
            cuts = log_inputs.record_starts(file, [start + room]) if room > 0 else [start]
            if not cuts:
                break  # it must be read completely
            if cuts[0] > start:
                shares[-1].append(Part(path=str(file), start=start, end=cuts[0]))
            shares.append([])
            start, room = cuts[0], goal
        shares[-1].append(Part(path=str(file), start=start, end=size if start else 0))
        room -= size - start
    return [share for share in shares if share]


def _scan_share(share: Sequence[Part], *, now: float, progress: Progress) -> Scan:
    parts = {part.path: part for part in share}
    return _scan(list(parts), now=now, progress=progress, parts=parts)


def _merge(merged: Scan, read: Scan, *, is_more: bool) -> None:
    """Add what a worker has read: other files, the first of which may be more of the last one."""
    is_more = is_more and bool(read.writers and merged.writers)
    before = merged.writers[-1].lines if is_more else 0
    merged.records.join(read.records, files=len(merged.writers) - is_more, lines=before)
    if is_more:
        merged.writers[-1].merge(read.writers[0])
    merged.writers += read.writers[1:] if is_more else read.writers
    merged.unreadable_inputs += read.unreadable_inputs
    merged.bytes += read.bytes


def _finished(scan: Scan, paths: Sequence[str]) -> Scan:
    """Remove files of a directory that contain no log record, and name copies of others, which were not read."""
    if any(writer.is_export for writer in scan.writers):
        otlp_export.drop_logged(scan.records, {at for at, writer in enumerate(scan.writers) if writer.is_export})
    named = {Path(path) for path in paths}
    strange = [
        writer
        for writer in scan.writers
        if not writer.first and writer.origin is not None and writer.origin not in named
    ]
    if strange and len(strange) < len(scan.writers):
        kept = [number for number, writer in enumerate(scan.writers) if writer not in strange]
        scan.records.renumber({old: new for new, old in enumerate(kept)})
        scan.writers = [scan.writers[number] for number in kept]
        for writer in strange:
            scan.leave_out(writer.path, log_inputs.NO_LOG)
    reasons = {unreadable.name: unreadable.reason for unreadable in scan.unreadable_inputs}
    for copy, original in input_files.distinct(paths).copies:
        name, of = escape(copy.name), escape(original.name)
        reason = reasons.get(of) or f"{log_inputs.COPY}{of}"
        scan.leave_out(name, reason)
        for writer in [writer for writer in scan.writers if writer.path == of][:1]:
            writer.copies.append(name)
    return scan


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A time of which all records of components are read, and texts that are searched in whole files."""

    since: float
    until: float
    lasting: Mapping[str, tuple[bytes, ...]]
    """By path."""


class FoundEverywhere(Exception):
    """The matches are all over the logs, which are read faster from start to end."""


@dataclass(slots=True, kw_only=True)
class _Search:
    """What is searched in plain files."""

    needles: Sequence[bytes]
    matches: Matches
    size: int
    """How many bytes the logs have."""
    around: int = 0
    """How many bytes lie around the matches."""
    window: Window | None = None


def scan_around(
    paths: Sequence[str],
    needles: Sequence[str],
    *,
    now: float,
    progress: Progress = silent,
    matches: Matches | None = None,
    window: Window | None = None,
) -> Scan:
    """Read the records around every occurrence of `needles`, and the start and end of every file.

    Lines of plain files are not counted: see `count_lines`. Raise FoundEverywhere before most of large logs is read so.
    """
    texts = [needle.encode() for needle in needles]
    known_matches = {} if matches is None else matches
    search_for = _Search(needles=texts, matches=known_matches, size=total_size(paths), window=window)
    return _finished(_scan(paths, now=now, progress=progress, search_for=search_for), paths)


def total_size(paths: Sequence[str]) -> int:
    """Return how many bytes the files behind `paths` have."""
    return sum(file.stat().st_size for file in log_inputs.plain_files(paths) if file.exists())


def count_lines(scan: Scan, shown: Container[tuple[int, int]]) -> None:
    """Set the line numbers of the records at `shown` files and offsets, which a search does not count."""
    offsets: dict[int, list[int]] = {}
    for file, number, offset in zip(scan.records.files, scan.records.lines, scan.records.offsets, strict=True):
        if not number and (file, offset) in shown:
            offsets.setdefault(file, []).append(offset)
    numbers: dict[tuple[int, int], int] = {}
    for file, file_offsets in offsets.items():
        origin = scan.writers[file].origin
        if origin is not None:
            with origin.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as memory:
                line_numbers = search.line_numbers(memory, file_offsets)
            numbers |= {(file, offset): number for offset, number in line_numbers.items()}
    for index, position in enumerate(zip(scan.records.files, scan.records.offsets, strict=True)):
        if not scan.records.lines[index]:
            scan.records.lines[index] = numbers.get(position, 0)


def _scan(
    paths: Sequence[str],
    *,
    now: float,
    progress: Progress,
    search_for: _Search | None = None,
    parts: Mapping[str, Part] = MappingProxyType({}),
) -> Scan:
    scan = Scan()
    scan.records.is_partial = search_for is not None
    for log_input in log_inputs.opened(paths, now=now):
        if isinstance(log_input, log_inputs.UnreadableInput):
            scan.leave_out(log_input.name, log_input.reason)
            continue
        try:
            opening = log_inputs.examine(log_input)
            if reason := opening.reason_not_to_read:
                scan.leave_out(log_input.name, reason)
                continue
            if opening.columns is not None:
                _read_csv(scan, log_input, opening)
            elif _has_pod_prefixes(opening.sample):
                _read_prefixed(scan, log_input, opening)
            elif search_for is not None and log_input.size and _is_plain(log_input, opening):
                _search(scan, log_input, opening, search_for)
            else:
                _read_through(scan, log_input, opening, part=parts.get(str(log_input.path)), progress=progress)
            if opening.problem is not None:
                # Keep the records that were read, and report the damage.
                scan.leave_out(log_input.name, f"breaks off ({opening.problem})")
        except (OSError, EOFError, InputUnreadable) as error:
            scan.leave_out(log_input.name, str(error))
            continue
        progress(0 if opening.columns is None else log_input.size)
    return scan


def _is_plain(log_input: log_inputs.LogInput, opening: log_inputs.Opening) -> bool:
    return log_input.path is not None and opening.stream is log_input.stream


def _opened_writer(
    scan: Scan, log_input: log_inputs.LogInput, opening: log_inputs.Opening
) -> tuple[LogWriter, lines.RecordClock]:
    clock_hints = lines.clock_hints(opening.sample, modified=log_input.modified)
    origin = log_input.path if _is_plain(log_input, opening) else None
    writer = LogWriter(
        path=log_input.name, pod=log_writers.pod_of(log_input.name), origin=origin, is_year_guessed=clock_hints.is_guess
    )
    writer.is_export = log_input.is_export
    scan.writers.append(writer)
    _note_kind(writer, opening.sample)
    return writer, lines.RecordClock(around=clock_hints.around, zone=clock_hints.zone)


def _search(scan: Scan, log_input: log_inputs.LogInput, opening: log_inputs.Opening, search_for: _Search) -> None:
    matches = search_for.matches
    writer, clock = _opened_writer(scan, log_input, opening)
    file = len(scan.writers) - 1
    with mmap.mmap(log_input.stream.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        path, window = str(log_input.path), search_for.window
        needles = [*search_for.needles, *(window.lasting.get(path, ()) if window is not None else ())]
        for needle in needles:
            if (path, needle) not in matches:
                matches[path, needle] = search.find_all(memory, needle)
        offsets = [at for needle in needles for at in matches[path, needle]]
        if window is not None:
            offsets += _in_window(memory, window, clock)
        search_for.around += search.size_around(memory, offsets)
        if search_for.around > max(_MOST_AROUND, search_for.size // 2):
            raise FoundEverywhere
        writer.bytes, writer.torn_line = len(memory), search.torn_line(memory)
        for piece in search.pieces(memory, offsets):
            piece_lines = list(piece)
            if any(raw.text == log_inputs.LEFT_OUT for raw in piece_lines):
                _note_long_line(scan, log_input)
            _read_records(scan, lines.joined(piece_lines), clock, file=file)
        _note_verbosity(writer, memory)
    scan.bytes += writer.bytes


def _in_window(memory: mmap.mmap, window: Window, clock: lines.RecordClock) -> list[int]:
    """Return the offsets of component records in a window; lines of a log are in order of time, up to a few."""

    def time_of(line: bytes) -> float:
        raw = RawRecord(0, 0, line)
        return clock.at(lines.unwrapped(raw)) if lines.starts_record(line) else 0.0

    begin, end = search.between(memory, window.since, window.until, time_of=time_of)
    offsets: list[int] = []
    for line, at in search.lines_of(memory, begin, end):
        if record_reader.is_of_component(line):
            offsets.append(at)
    return offsets


def _read_through(
    scan: Scan, log_input: log_inputs.LogInput, opening: log_inputs.Opening, *, part: Part | None, progress: Progress
) -> None:
    writer, clock = _opened_writer(scan, log_input, opening)
    reader = text_reader.TextReader(scan.records, writer, clock, file=len(scan.writers) - 1)
    stream: IO[bytes] = opening.stream
    begin, end = (part.start, part.end) if part is not None else (0, 0)
    if begin:
        stream.seek(begin)
    number, offset = 1, begin
    open_record: list[bytes] = []
    blocks = log_inputs.TextBlocks(stream, most=end - begin if end else 0)
    try:
        for block in blocks:
            if blocks.left_out:
                reader.take(open_record, number=number, offset=offset)
                number += len(open_record) + 1
                offset += sum(map(len, open_record)) + len(open_record) + blocks.left_out
                open_record = []
                _note_long_line(scan, log_input)
            block[:0] = open_record
            last = text_reader.end_of_records(block)
            block, open_record = block[:last], block[last:]  # noqa: PLW2901 - what goes on is left for the next one
            reader.take(block, number=number, offset=offset)
            size = sum(map(len, block)) + len(block)
            number, offset = number + len(block), offset + size
            progress(size)
    finally:
        writer.torn_line = number + len(open_record) - 1 if blocks.is_torn else 0
        if len(open_record) == 1 and writer.torn_line and lines.is_unfinished(open_record[0]):
            _note_end(writer, RawRecord(number, offset, open_record[0]), clock)
        else:
            reader.take(open_record, number=number, offset=offset)
        number, offset = number + len(open_record), offset + sum(map(len, open_record)) + len(open_record)
        writer.bytes, writer.lines = offset - begin, number - 1
        scan.bytes += writer.bytes


def _read_csv(scan: Scan, log_input: log_inputs.LogInput, opening: log_inputs.Opening) -> None:
    """Give every pod of the file its own writer."""
    columns = opening.columns
    assert columns is not None
    records, writers = len(scan.records), len(scan.writers)
    read = partial(
        csv_reader.read_rows, scan, path=log_input.name, modified=log_input.modified, is_timed=columns.time >= 0
    )
    rows = partial(csv_reader.csv_rows, opening.stream, columns, has_header=opening.has_header)
    try:
        writers_read = list(read(rows()))
    except csv_reader.OutOfOrder:
        scan.records.cut(records)
        del scan.writers[writers:]
        opening.stream.seek(0)
        writers_read = list(read(csv_reader.in_order(rows())))
    for writer, sample in writers_read:
        scan.bytes += writer.bytes
        _note_kind(writer, sample)


def _has_pod_prefixes(sample: bytes) -> bool:
    first = sample.split(b"\n", _FIRST_LINES)[:_FIRST_LINES]
    is_prefixed = any(lines.pod_prefix(line[:_PREFIX]) is not None for line in first)
    return is_prefixed and not any(lines.starts_record(line) and line[:1] != b"[" for line in first)


def _read_prefixed(scan: Scan, log_input: log_inputs.LogInput, opening: log_inputs.Opening) -> None:
    """Give every pod of a text whose lines start with their pod its own writer."""
    rows = log_inputs.prefixed_rows(opening.stream)
    read = csv_reader.read_rows(scan, rows, path=log_input.name, modified=log_input.modified, is_timed=False)
    for writer, sample in list(read):
        writer.format = "text"
        scan.bytes += writer.bytes
        _note_kind(writer, sample)


def _read_records(scan: Scan, records: Iterable[RawRecord], clock: lines.RecordClock, *, file: int) -> None:
    writer = scan.writers[file]
    for raw in records:
        if not lines.starts_record(raw.text):
            continue
        if writer.torn_line and raw.offset + len(raw.text) >= writer.bytes and lines.is_unfinished(raw.text):
            _note_end(writer, raw, clock)
            continue
        whole = lines.unwrapped(raw) if raw.text[:1] in b"2[{" else raw
        writer.take(whole, clock, scan.records, file=file)


def _note_end(writer: LogWriter, torn: RawRecord, clock: lines.RecordClock) -> None:
    """Let the log end with a record that is cut, without taking it for what its beginning says."""
    at = clock.at(lines.unwrapped(torn))
    writer.extend_coverage(at, at)


def _note_long_line(scan: Scan, log_input: log_inputs.LogInput) -> None:
    if not any((one.name, one.reason) == (log_input.name, log_inputs.TOO_LONG) for one in scan.unreadable_inputs):
        scan.leave_out(log_input.name, log_inputs.TOO_LONG)


def _note_kind(writer: LogWriter, sample: bytes) -> None:
    head = sample[:_TAIL]
    if writer.format == "text":
        writer.format = (
            "json" if head[:1] == b"{" else "klog" if b"] " in head[:200] and head[:1] in b"IWEF" else "text"
        )
        if writer.format == "text" and head[:2] == b"20":
            writer.format = "zap"
    writer.is_ours = b".py:" in head
    writer.is_truncated = not lines.starts_record(head[:200]) and head[:1] in b" \t"


def _note_verbosity(writer: LogWriter, memory: mmap.mmap) -> None:
    """Search for one line of each verbosity, because a search around IDs may not see them."""
    for phrase, verbosity, kind in (
        (b'] "Received event"', 2, RecordKind.RECEIVED_STATUS),
        (b'] "Received event from channel"', 4, RecordKind.NOTIFIED),
    ):
        if writer.verbosity < verbosity and memory.find(phrase, 0, _LOOKED_AT) >= 0:
            writer.verbosity = verbosity
            writer.kinds[kind] += 1


def resources_of(records: Iterable[LogRecord], identifiers: Sequence[str]) -> dict[str, set[str]]:
    """Return the resource IDs of each identifier: as resource ID, op-id, work name, event ID or manifest name."""
    resources: dict[str, set[str]] = {identifier: set() for identifier in identifiers}
    ids: set[str] = set()
    for record in records:
        if not record.resource:
            continue
        if record.resource in resources and record.kind in NAMED_BY_ID:
            ids.add(record.resource)
        manifest = (
            record.detail.rsplit("/", 1)[-1]
            if record.kind in (RecordKind.APPLIED, RecordKind.DELETING, RecordKind.REMOVED)
            else ""
        )
        for value in (record.resource, record.op_id, record.name, record.event, record.cloudevent_id, manifest):
            if value in resources:
                resources[value].add(record.resource)
    for identifier, own in resources.items():
        if identifier not in ids and len(own) > 1:
            own.discard(identifier)  # the work's name, which old agents write in place of the resource ID
    return resources


def record_at(origin: Path, offset: int) -> RawRecord:
    """Return the record of a plain file that starts at `offset`."""
    with origin.open("rb") as stream:
        stream.seek(offset)
        text = stream.read(_LONGEST_RECORD)
    return lines.unwrapped(next(lines.joined(log_inputs.lines_between(text, number=0, offset=offset))))


def line_of(writers: Sequence[LogWriter], record: LogRecord, *, longest: int = 300) -> str:
    """Return the line of a record in a plain file; empty for other inputs."""
    origin = writers[record.file].origin
    if origin is None:
        return ""
    with origin.open("rb") as stream:
        stream.seek(record.offset)
        line = stream.readline(longest + 1).rstrip().decode("utf-8", "replace")
    return line if len(line) <= longest else f"{line[:longest]}…"
