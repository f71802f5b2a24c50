"""Read logs into a table of hits. The one stage of this package that reads files.

All requests: every record passes once, large files in several parts at a time. One request: its ids are searched in the
bytes of the file, and only the neighbourhood of each find is read; what is compressed or in columns is read through.
"""

import mmap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO

from maestropy.trace.request import csvscan, inputs, lines, reading, search, sources, textscan, workers
from maestropy.trace.request.hits import Hit, Hits, What
from maestropy.trace.request.inputs import Writer
from maestropy.trace.request.lines import Raw

_TAIL = 64 << 10
_WORTH_A_PROCESS = 48 << 20
_LOOKED_AT = 16 << 20
_LONGEST_RECORD = 1 << 20

Finds = dict[tuple[str, bytes], list[int]]
"""Where texts were found in files, for whoever searches a second time."""


@dataclass(slots=True, kw_only=True)
class Scan:
    """What came out of the logs."""

    hits: Hits = field(default_factory=Hits)
    writers: list[Writer] = field(default_factory=list)
    refused: list[sources.Refusal] = field(default_factory=list)
    bytes: int = 0

    @property
    def unreadable(self) -> list[str]:
        """What could not be read, a sentence for each reason."""
        reasons = Counter(each.reason for each in self.refused)
        return [_sentence(reason, [each.name for each in self.refused if each.reason == reason]) for reason in reasons]


def _sentence(reason: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{names[0]}: {reason}"
    return f"{len(names):,} files: {reason} ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"


Progress = Callable[[int], None]


def _silent(_: int) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some of a file, from one record to another; all of it when it has no end."""

    path: str
    start: int = 0
    end: int = 0


def everything(paths: Sequence[str], *, now: float, progress: Progress = _silent, jobs: int = 1) -> Scan:
    """Read all records of all inputs; large ones by several processes."""
    shares = _shares(sources.plain_files(paths), jobs) if jobs > 1 and workers.can_fork() else []
    if len(shares) < 2:
        return _settled(_scan(paths, now=now, progress=progress), paths)

    def told(amount: int) -> None:
        progress(amount * len(shares))  # the others are about as far as we are

    task = partial(_scan_share, now=now, progress=_silent)
    answers = workers.spread(task, shares, mine=partial(_scan_share, now=now, progress=told))
    merged = next(answers)
    for share, read in zip(shares[1:], answers, strict=True):
        _merge(merged, read, is_more=share[0].start > 0)
    return _settled(merged, paths)


def _shares(files: Sequence[Path], jobs: int) -> list[list[Part]]:
    """Cut large inputs into equal shares, at the beginnings of records; one share when they are not worth it."""
    sizes = [each.stat().st_size if each.exists() else 0 for each in files]
    total = sum(sizes)
    goal = total if total < _WORTH_A_PROCESS else -(-total // jobs)
    shares: list[list[Part]] = [[]]
    room = goal
    for file, size in zip(files, sizes, strict=True):
        start = 0
        while len(shares) < jobs and size - start > room:
            cuts = sources.record_starts(file, [start + room]) if room > 0 else [start]
            if not cuts:
                break  # it has to be read from its beginning to its end
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
    merged.hits.join(read.hits, files=len(merged.writers) - is_more, lines=before)
    if is_more:
        merged.writers[-1].merge(read.writers[0])
    merged.writers += read.writers[1:] if is_more else read.writers
    merged.refused += read.refused
    merged.bytes += read.bytes


def _settled(scan: Scan, paths: Sequence[str]) -> Scan:
    """Leave out what only lay beside the logs: files of a directory in which nothing looks like a record."""
    named = {Path(path) for path in paths}
    strange = [each for each in scan.writers if not each.first and each.origin is not None and each.origin not in named]
    if strange and len(strange) < len(scan.writers):
        kept = [number for number, each in enumerate(scan.writers) if each not in strange]
        scan.hits.renumber({old: new for new, old in enumerate(kept)})
        scan.writers = [scan.writers[number] for number in kept]
        scan.refused += [sources.Refusal(name=each.path, reason="no log") for each in strange]
    return scan


def about(
    paths: Sequence[str],
    needles: Sequence[str],
    *,
    now: float,
    progress: Progress = _silent,
    finds: Finds | None = None,
) -> Scan:
    """Read what is around every occurrence of `needles`, and the beginning and end of every file.

    Lines of plain files are not counted: see `count_lines`.
    """
    wanted = [each.encode() for each in needles]
    return _settled(
        _scan(paths, now=now, progress=progress, needles=wanted, finds={} if finds is None else finds), paths
    )


def count_lines(scan: Scan) -> None:
    """Give all hits of plain files the numbers of their lines, which searching does not find out."""
    offsets: dict[int, list[int]] = {}
    for file, number, offset in zip(scan.hits.files, scan.hits.lines, scan.hits.offsets, strict=True):
        if not number:
            offsets.setdefault(file, []).append(offset)
    numbers: dict[tuple[int, int], int] = {}
    for file, wanted in offsets.items():
        origin = scan.writers[file].origin
        if origin is not None:
            with origin.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as memory:
                found = search.line_numbers(memory, wanted)
            numbers |= {(file, offset): number for offset, number in found.items()}
    for index, place in enumerate(zip(scan.hits.files, scan.hits.offsets, strict=True)):
        if not scan.hits.lines[index]:
            scan.hits.lines[index] = numbers.get(place, 0)


def _scan(
    paths: Sequence[str],
    *,
    now: float,
    progress: Progress,
    needles: Sequence[bytes] = (),
    finds: Finds | None = None,
    parts: Mapping[str, Part] = MappingProxyType({}),
) -> Scan:
    scan = Scan()
    for blob in sources.opened(paths, now=now):
        if isinstance(blob, sources.Refusal):
            scan.refused.append(blob)
            continue
        try:
            opening = sources.examined(blob)
            if opening.is_binary or not opening.sample:
                reason = (
                    "not text" if opening.is_binary else f"damaged ({opening.trouble})" if opening.trouble else "empty"
                )
                scan.refused.append(sources.Refusal(name=blob.name, reason=reason))
                continue
            if opening.columns is not None:
                _read_csv(scan, blob, opening)
            elif needles and blob.size and _is_plain(blob, opening):
                _search(scan, blob, opening, needles=needles, finds={} if finds is None else finds)
            else:
                _read_through(scan, blob, opening, part=parts.get(str(blob.path)), progress=progress)
            if opening.trouble is not None:
                # It has still told something: keep that, and say so.
                scan.refused.append(sources.Refusal(name=blob.name, reason=f"breaks off ({opening.trouble})"))
        except (OSError, EOFError, sources.SourceError) as error:
            scan.refused.append(sources.Refusal(name=blob.name, reason=str(error)))
            continue
        progress(0 if opening.columns is None else blob.size)
    return scan


def _is_plain(blob: sources.Blob, opening: sources.Opening) -> bool:
    return blob.path is not None and opening.stream is blob.stream


def _opened_writer(scan: Scan, blob: sources.Blob, opening: sources.Opening) -> tuple[Writer, lines.Clock]:
    bearings = lines.bearings(opening.sample, modified=blob.modified)
    origin = blob.path if _is_plain(blob, opening) else None
    writer = Writer(path=blob.name, pod=inputs.pod_of(blob.name), origin=origin, is_year_guessed=bearings.is_guess)
    scan.writers.append(writer)
    _note_kind(writer, opening.sample)
    return writer, lines.Clock(around=bearings.around, zone=bearings.zone)


def _search(
    scan: Scan, blob: sources.Blob, opening: sources.Opening, *, needles: Sequence[bytes], finds: Finds
) -> None:
    writer, clock = _opened_writer(scan, blob, opening)
    file = len(scan.writers) - 1
    with mmap.mmap(blob.stream.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        for needle in needles:
            place = (str(blob.path), needle)
            if place not in finds:
                finds[place] = search.found(memory, needle)
        for piece in search.pieces(memory, [at for needle in needles for at in finds[str(blob.path), needle]]):
            _take(scan, lines.joined(piece), clock, file=file)
        writer.bytes = len(memory)
        _note_verbosity(writer, memory)
    scan.bytes += writer.bytes


def _read_through(
    scan: Scan, blob: sources.Blob, opening: sources.Opening, *, part: Part | None, progress: Progress
) -> None:
    writer, clock = _opened_writer(scan, blob, opening)
    reader = textscan.TextReader(scan.hits, writer, clock, file=len(scan.writers) - 1)
    stream: IO[bytes] = opening.stream
    begin, end = (part.start, part.end) if part is not None else (0, 0)
    if begin:
        stream.seek(begin)
    number, offset = 1, begin
    held: list[bytes] = []
    try:
        for block in sources.text_blocks(stream, most=end - begin if end else 0):
            block[:0] = held
            last = textscan.end_of_records(block)
            block, held = block[:last], block[last:]  # noqa: PLW2901 - what goes on is left for the next one
            reader.take(block, number=number, offset=offset)
            size = sum(map(len, block)) + len(block)
            number, offset = number + len(block), offset + size
            progress(size)
    finally:
        reader.take(held, number=number, offset=offset)
        reader.finish()
        number, offset = number + len(held), offset + sum(map(len, held)) + len(held)
        writer.bytes, writer.lines = offset - begin, number - 1
        scan.bytes += writer.bytes


def _read_csv(scan: Scan, blob: sources.Blob, opening: sources.Opening) -> None:
    """Give every pod of the file its own writer."""
    columns = opening.columns
    assert columns is not None
    hits, writers = len(scan.hits), len(scan.writers)
    is_timed = columns.time >= 0
    rows = sources.csv_rows(opening.stream, columns, has_header=opening.has_header)
    try:
        told = list(csvscan.read_rows(scan, rows, path=blob.name, modified=blob.modified, is_timed=is_timed))
    except csvscan.OutOfOrder:
        scan.hits.cut(hits)
        del scan.writers[writers:]
        opening.stream.seek(0)
        rows = iter(csvscan.in_order(sources.csv_rows(opening.stream, columns, has_header=opening.has_header)))
        told = list(csvscan.read_rows(scan, rows, path=blob.name, modified=blob.modified, is_timed=is_timed))
    for writer, sample in told:
        scan.bytes += writer.bytes
        _note_kind(writer, sample)


def _take(scan: Scan, records: Iterable[Raw], clock: lines.Clock, *, file: int) -> None:
    writer = scan.writers[file]
    for raw in records:
        if not lines.starts_record(raw.text):
            continue
        whole = lines.unwrapped(raw) if raw.text[:1] in b"2[{" else raw
        said = reading.read(whole, clock, file=file)
        if said is not None:
            writer.note(said)
            scan.hits.add(said.hit)
        else:
            at = clock.at(whole)
            writer.reach(at, at)


def _note_kind(writer: Writer, sample: bytes) -> None:
    head = sample[:_TAIL]
    if writer.format == "text":
        writer.format = (
            "json" if head[:1] == b"{" else "klog" if b"] " in head[:200] and head[:1] in b"IWEF" else "text"
        )
        if writer.format == "text" and head[:2] == b"20":
            writer.format = "zap"
    writer.is_ours = b".py:" in head
    writer.is_truncated = not lines.starts_record(head[:200]) and head[:1] in b" \t"


def _note_verbosity(writer: Writer, memory: mmap.mmap) -> None:
    """Look for one line of each verbosity: what a search around ids does not see, the writer may still say."""
    for phrase, verbosity, what in (
        (b'] "Received event"', 2, What.RECEIVED_STATUS),
        (b'] "Received event from channel"', 4, What.NOTIFIED),
    ):
        if writer.verbosity < verbosity and memory.find(phrase, 0, _LOOKED_AT) >= 0:
            writer.verbosity = verbosity
            writer.seen[what] += 1


def resources_of(hits: Iterable[Hit], identifiers: Sequence[str]) -> dict[str, set[str]]:
    """Return the resource IDs that each identifier stands for: as resource, operation, name, event or manifest."""
    found: dict[str, set[str]] = {each: set() for each in identifiers}
    for hit in hits:
        if not hit.resource:
            continue
        manifest = hit.detail.rsplit("/", 1)[-1] if hit.what in (What.APPLIED, What.DELETING, What.REMOVED) else ""
        for value in (hit.resource, hit.op, hit.name, hit.event, hit.ce, manifest):
            if value in found:
                found[value].add(hit.resource)
    return found


def record_at(origin: Path, offset: int) -> Raw:
    """Return the record of a plain file that begins at `offset`."""
    with origin.open("rb") as stream:
        stream.seek(offset)
        text = stream.read(_LONGEST_RECORD)
    return lines.unwrapped(next(lines.joined(sources.lines_between(text, number=0, offset=offset))))


def line_of(writers: Sequence[Writer], hit: Hit, *, longest: int = 300) -> str:
    """Return the line of a plain file that a hit was read from; nothing for other inputs."""
    origin = writers[hit.file].origin
    if origin is None:
        return ""
    with origin.open("rb") as stream:
        stream.seek(hit.offset)
        line = stream.readline(longest + 1).rstrip().decode("utf-8", "replace")
    return line if len(line) <= longest else f"{line[:longest]}…"
