"""Read logs into a table of hits. The one stage of this package that reads files.

All requests: every record passes once. One request: its ids are searched in the bytes of the file first, and only the
neighbourhood of each find is read, which is as fast as the memory; what is compressed or in columns is read through.
"""

import mmap
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from typing import IO

from pymaestro.trace.request import inputs, lines, reading, sources, textscan
from pymaestro.trace.request.hits import Hit, Hits, What
from pymaestro.trace.request.inputs import Writer
from pymaestro.trace.request.lines import Raw

_BEFORE = 8 << 10
_AFTER = 24 << 10
_TAIL = 64 << 10
_MOST_FINDS = 200_000
_WORTH_A_PROCESS = 64 << 20
_LOOKED_AT = 16 << 20


@dataclass(slots=True, kw_only=True)
class Scan:
    """What came out of the logs."""

    hits: Hits = field(default_factory=Hits)
    writers: list[Writer] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    bytes: int = 0


Progress = Callable[[int], None]


def _silent(_: int) -> None:
    return


def everything(paths: Sequence[str], *, now: float, progress: Progress = _silent, jobs: int = 1) -> Scan:
    """Read all records of all inputs; large ones by several processes, a file each."""
    files = sources.plain_files(paths) if jobs > 1 else []
    if len(files) < 2 or sum(size for _, size in files) < _WORTH_A_PROCESS:
        return _scan(paths, needles=(), now=now, progress=progress)
    merged = Scan()
    # Workers leave Ctrl-C to us; leaving the block ends them.
    with get_context("spawn").Pool(min(jobs, len(files)), initializer=_ignore_interrupts) as pool:
        for part in pool.imap(partial(_scan_one, now=now), [path for path, _ in files]):
            merged.hits.join(part.hits, files=len(merged.writers))
            merged.writers += part.writers
            merged.unreadable += part.unreadable
            merged.bytes += part.bytes
            progress(part.bytes)
    return merged


def _scan_one(path: str, *, now: float) -> Scan:
    return _scan([path], needles=(), now=now, progress=_silent)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def about(paths: Sequence[str], needles: Sequence[str], *, now: float, progress: Progress = _silent) -> Scan:
    """Read what is around every occurrence of `needles`, and the beginning and end of every file."""
    return _scan(paths, needles=[each.encode() for each in needles], now=now, progress=progress)


def _scan(paths: Sequence[str], *, needles: Sequence[bytes], now: float, progress: Progress) -> Scan:
    scan = Scan()
    for blob in sources.opened(paths, now=now):
        opening = sources.examined(blob)
        if opening.is_binary or not opening.sample:
            scan.unreadable.append(f"{blob.name}: {'not text' if opening.is_binary else 'empty'}")
            continue
        try:
            _read_blob(scan, blob, opening, needles=needles, progress=progress)
        except (OSError, EOFError, sources.SourceError) as error:
            # A file that breaks off has still told something: keep that, and say so.
            scan.unreadable.append(f"{blob.name}: {error}")
    return scan


def _read_blob(
    scan: Scan, blob: sources.Blob, opening: sources.Opening, *, needles: Sequence[bytes], progress: Progress
) -> None:
    bearings = lines.bearings(opening.sample, modified=blob.modified)
    if opening.columns is not None:
        _read_csv(scan, blob, opening, progress=progress)
        return
    file = _open_writer(scan, path=blob.name, pod=inputs.pod_of(blob.name), kind="text")
    writer = scan.writers[file]
    is_plain = blob.path is not None and opening.stream is blob.stream
    writer.origin = blob.path if is_plain else None
    clock = lines.Clock(around=bearings.around, zone=bearings.zone)
    if needles and is_plain and blob.size:
        with mmap.mmap(blob.stream.fileno(), 0, access=mmap.ACCESS_READ) as memory:
            for piece in pieces(memory, needles):
                _take(scan, lines.joined(piece), clock, file=file)
            writer.bytes = len(memory)
            progress(len(memory))
            _note_verbosity(writer, memory)
    else:
        _read_through(scan, opening.stream, clock, file=file, progress=progress)
    scan.bytes += writer.bytes
    _note_kind(writer, opening.sample)


def _read_through(scan: Scan, stream: IO[bytes], clock: lines.Clock, *, file: int, progress: Progress) -> None:
    writer = scan.writers[file]
    reader = textscan.TextReader(scan.hits, writer, clock, file=file)
    number, offset = 1, 0
    held: list[bytes] = []
    for block in sources.text_blocks(stream):
        block[:0] = held
        end = textscan.end_of_records(block)
        block, held = block[:end], block[end:]  # noqa: PLW2901 - what goes on is left for the next one
        reader.take(block, number=number, offset=offset)
        size = sum(map(len, block)) + len(block)
        number, offset = number + len(block), offset + size
        progress(size)
    reader.take(held, number=number, offset=offset)
    number, offset = number + len(held), offset + sum(map(len, held)) + len(held)
    reader.finish()
    writer.bytes, writer.lines = offset, number - 1


def _read_csv(scan: Scan, blob: sources.Blob, opening: sources.Opening, *, progress: Progress) -> None:
    """Give every pod of the file its own writer: rows of several pods may be interleaved."""
    assert opening.columns is not None
    by_pod: dict[str, list[Raw]] = {}
    for pod, raw in sources.csv_rows(opening.stream, opening.columns, has_header=opening.has_header):
        by_pod.setdefault(pod, []).append(raw)
    for pod, raws in by_pod.items():
        if opening.columns.time >= 0 and _is_out_of_order(raws):
            raws.sort(key=lambda raw: raw.stamp)
        file = _open_writer(scan, path=blob.name, pod=pod or inputs.pod_of(blob.name), kind="csv")
        writer = scan.writers[file]
        sample = b"\n".join(raw.text for raw in raws[:500])
        bearings = lines.bearings(sample, modified=blob.modified)
        _take(scan, lines.joined(raws), lines.Clock(around=bearings.around, zone=bearings.zone), file=file)
        writer.lines = len(raws)
        writer.bytes = sum(len(raw.text) for raw in raws)
        scan.bytes += writer.bytes
        progress(writer.bytes)
        _note_kind(writer, sample)


def _is_out_of_order(raws: Sequence[Raw]) -> bool:
    """Say whether the export lost the order of a pod's records; rows of one moment keep theirs."""
    return any(later.stamp < earlier.stamp for earlier, later in pairwise(raws))


def _open_writer(scan: Scan, *, path: str, pod: str, kind: str) -> int:
    scan.writers.append(Writer(path=path, pod=pod, format=kind))
    return len(scan.writers) - 1


def _take(scan: Scan, records: Iterable[Raw], clock: lines.Clock, *, file: int) -> None:
    writer = scan.writers[file]
    add, read = scan.hits.add, reading.read
    last: Raw | None = None
    for raw in records:
        if raw.text[:1] in b"2[{":
            raw = lines.unwrapped(raw)  # noqa: PLW2901 - the same record without its wrapping
        said = read(raw, clock, file=file)
        if said is not None:
            writer.note(said)
            add(said.hit)
        elif last is None and lines.starts_record(raw.text):
            writer.first = clock.at(raw)
        last = raw
    if last is not None and lines.starts_record(last.text):
        writer.last = max(writer.last, clock.at(last))


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


def pieces(memory: mmap.mmap, needles: Sequence[bytes]) -> Iterator[Iterator[Raw]]:
    """Yield the lines around each occurrence of a needle, overlapping neighbourhoods as one, with their numbers."""
    size = len(memory)
    spans = [(0, min(_TAIL, size)), (max(0, size - _TAIL), size)]
    for needle in needles:
        at, finds = memory.find(needle), 0
        while at >= 0 and finds < _MOST_FINDS:
            spans.append((max(0, at - _BEFORE), min(size, at + _AFTER)))
            # The rest of the neighbourhood is read anyway.
            at, finds = memory.find(needle, at + _AFTER // 2), finds + 1
    last = max((start for start, _ in spans[2:]), default=0)
    number, counted = 1, 0
    for start, end in _merged(spans):
        start = memory.rfind(b"\n", 0, start) + 1 if start else 0  # noqa: PLW2901 - grown to whole lines
        line_end = memory.find(b"\n", end - 1) if end < size else size
        end = line_end if line_end >= 0 else size  # noqa: PLW2901 - grown to whole lines
        start = max(start, counted)  # noqa: PLW2901 - the span before has read the rest
        data = memory[start:end]
        if start > last:
            # Nobody will point at a line of the file's end; counting up to it would take longer than the search.
            yield sources.lines_between(data, number=0, offset=start)
            return
        number += _newlines(memory, counted, start)
        yield sources.lines_between(data, number=number, offset=start)
        number += data.count(b"\n") + 1
        counted = end + 1


def _newlines(memory: mmap.mmap, start: int, end: int) -> int:
    step = 16 << 20
    return sum(memory[at : min(at + step, end)].count(b"\n") for at in range(start, end, step))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + _BEFORE:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def resources_of(hits: Iterable[Hit], identifiers: Sequence[str]) -> dict[str, set[str]]:
    """Return the resource IDs that each identifier stands for: as resource, operation, name, event or manifest."""
    found: dict[str, set[str]] = {each: set() for each in identifiers}
    for hit in hits:
        if not hit.resource:
            continue
        manifest = hit.detail.rsplit("/", 1)[-1] if hit.what in (What.APPLIED, What.REMOVED) else ""
        for value in (hit.resource, hit.op, hit.name, hit.event, hit.ce, manifest):
            if value in found:
                found[value].add(hit.resource)
    return found


def line_of(writers: Sequence[Writer], hit: Hit, *, longest: int = 300) -> str:
    """Return the line of a plain file that a hit was read from; nothing for other inputs."""
    origin = writers[hit.file].origin
    if origin is None:
        return ""
    with origin.open("rb") as stream:
        stream.seek(hit.offset)
        line = stream.readline(longest + 1).rstrip().decode("utf-8", "replace")
    return line if len(line) <= longest else f"{line[:longest]}…"
