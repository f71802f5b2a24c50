"""Open what the user points at: files, directories, archives, standard input; text or CSV, and yield their records.

Everything is a stream of raw records per pod. This module knows containers and columns; it does not know phrases.
"""

import csv
import glob
import gzip
import io
import lzma
import os
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from maestropy.trace.request import lines
from maestropy.trace.request.lines import Raw

_CHUNK = 1 << 20  # with all that is made of it, it fits into the cache of one processor
_LONGEST_LINE = 16 << 20
INDEX_SUFFIX = ".index"
"""How files are named in which we keep what we have read."""
_SAMPLE = 256 << 10
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
_TIME_COLUMNS = frozenset({"timestamp", "precisetimestamp", "env_time", "time", "timegenerated", "@timestamp"})
_POD_COLUMNS = frozenset({"pod_name", "podname", "pod", "kubernetes.pod_name"})
_LOG_COLUMNS = frozenset({"log", "message", "msg", "logmessage", "body"})


class SourceError(Exception):
    """An input that cannot be read; the message names it and says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """One readable thing: a file, a member of an archive, standard input."""

    name: str
    stream: IO[bytes]
    size: int
    modified: float
    path: Path | None = None
    """Where it lies as a plain file, which can be searched without reading it line by line."""


class Columns(NamedTuple):
    """Which column is what; -1 for none."""

    time: int
    pod: int
    log: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something that cannot be read, and why."""

    name: str
    reason: str


def opened(paths: Sequence[str], *, now: float) -> Iterator[Blob | Refusal]:
    """Yield everything behind `paths`, one open at a time; what cannot be read does not stop the rest."""
    for path in paths:
        if path == "-":
            yield Blob(name="stdin", stream=sys.stdin.buffer, size=0, modified=now)
            continue
        for file in _expanded(path):
            try:
                yield from _opened_file(file)
            except SourceError as error:
                yield Refusal(name=file.name, reason=str(error))


def plain_files(paths: Sequence[str]) -> list[Path]:
    """Return the files behind `paths`; nothing when standard input is among them."""
    return [] if "-" in paths else [file for path in paths for file in _expanded(path)]


def _expanded(path: str) -> list[Path]:
    here = Path(path)
    if here.is_dir():
        # Traces that were written beside the logs quote them: read again, everything would have happened twice.
        ours = (".", "trace_request.")
        found = sorted(each for each in _below(here) if not each.name.startswith(ours) and each.suffix != INDEX_SUFFIX)
        if not found:
            raise SourceError(f"{path} holds no files; collect logs into it first: maestro trace logs collect")
        return [each for each in found if each.suffix not in {".json", ".yaml", ".html"} or _looks_like_log(each)]
    if here.is_char_device():
        raise SourceError(f"{path} is a device; name a log file, a directory, an archive, or - for standard input")
    if here.exists():
        return [here]
    found = [Path(each) for each in sorted(glob.glob(path, recursive=True))]  # noqa: PTH207 - absolute patterns too
    if not found:
        raise SourceError(f"{path} does not exist; name a log file, a directory, an archive, or - for standard input")
    return found


def _below(folder: Path) -> Iterator[Path]:
    for home, _, names in os.walk(folder):
        yield from (each for each in (Path(home) / name for name in names) if each.is_file())


def _looks_like_log(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return b'"msg":"' in stream.read(4096)
    except OSError:
        return True  # whoever opens it will say what is wrong


def _opened_file(path: Path) -> Iterator[Blob]:
    try:
        stat = path.stat()
        name = path.name.lower()
        if name.endswith(_ARCHIVES):
            yield from _tar_members(path)
        elif zipfile.is_zipfile(path):
            yield from _zip_members(path, modified=stat.st_mtime)
        elif name.endswith(".gz"):
            with gzip.open(path, "rb") as stream:
                yield Blob(name=path.name, stream=stream, size=0, modified=stat.st_mtime)  # type: ignore[arg-type]  # a GzipFile reads as IO[bytes] does
        else:
            with path.open("rb") as plain:
                yield Blob(name=path.name, stream=plain, size=stat.st_size, modified=stat.st_mtime, path=path)
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError) as error:
        raise SourceError(f"a damaged archive ({error}); collect it again") from error
    except OSError as error:
        raise SourceError(f"cannot be read ({error.strerror or error}); check its rights") from error


def _tar_members(path: Path) -> Iterator[Blob]:
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                yield Blob(name=f"{path.name}/{member.name}", stream=stream, size=member.size, modified=member.mtime)


def _zip_members(path: Path, *, modified: float) -> Iterator[Blob]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                with archive.open(member) as stream:
                    yield Blob(name=f"{path.name}/{member.filename}", stream=stream, size=0, modified=modified)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The beginning of a blob, and a stream that starts there again."""

    sample: bytes
    stream: IO[bytes]
    columns: Columns | None
    is_binary: bool
    has_header: bool = False
    source: "_Patient | None" = None

    @property
    def trouble(self) -> Exception | None:
        """What has ended the stream before its end."""
        return self.source.trouble if self.source is not None else None


def examined(blob: Blob) -> Opening:
    """Look at the beginning of `blob` and find out what it is."""
    rest: IO[bytes] = blob.stream
    source: _Patient | None = None
    if blob.path is not None:
        sample = rest.read(_SAMPLE)
        rest.seek(0)
    else:
        source = _Patient(rest)
        sample = source.beginning(_SAMPLE)
        rest = io.BufferedReader(source)  # type: ignore[type-var]  # it reads, as the stub asks
    # Two zero bytes in four letters: a mark at the beginning alone may be rubbish.
    if sample[:2] in (b"\xff\xfe", b"\xfe\xff") and sample.count(b"\0") * 4 > len(sample):
        rest = io.BufferedReader(_Recoded(rest))  # type: ignore[type-var]  # it reads, as the stub asks
        sample = sample.decode("utf-16", "replace").encode()
    clean = sample.removeprefix(b"\xef\xbb\xbf")
    is_binary = sample.count(b"\0") * 20 > len(sample)
    columns, has_header = csv_columns(clean)
    return Opening(sample=clean, stream=rest, columns=columns, is_binary=is_binary, has_header=has_header,
                   source=source)  # fmt: skip


class _Recoded(io.RawIOBase):
    """A text of two bytes a letter, in the usual way."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._letters = io.TextIOWrapper(stream, encoding="utf-16", errors="replace", newline="")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # Python 3.11 has no name for buffers
        # No letter takes more than four bytes.
        data = self._letters.read(max(1, len(buffer) // 4)).encode()
        buffer[: len(data)] = data
        return len(data)


class _Patient(io.RawIOBase):
    """A stream whose beginning can be looked at, and which ends where it breaks off instead of losing what it gave."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._head = io.BytesIO()
        self.trouble: Exception | None = None

    def beginning(self, length: int) -> bytes:
        """Return what the stream begins with; it starts there again."""
        head = b""
        while len(head) < length and (data := self._more(length - len(head))):
            head += data
        self._head = io.BytesIO(head)
        return head

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go back to the beginning, which is all that anybody asks for."""
        assert (offset, whence) == (0, 0)
        self._head, self.trouble = io.BytesIO(), None
        return self._stream.seek(0)

    def tell(self) -> int:
        """Say where it is, as far as somebody who buffers wants to know."""
        return 0

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # Python 3.11 has no name for buffers
        data = self._head.read(len(buffer)) or self._more(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _more(self, length: int) -> bytes:
        if self.trouble is not None:
            return b""
        read = getattr(self._stream, "read1", self._stream.read)
        try:
            data: bytes = read(length)
        except (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile) as error:
            self.trouble = error
            return b""
        return data


def csv_columns(sample: bytes) -> tuple[Columns | None, bool]:
    """Say which columns a CSV has, by its header or its first row; nothing for what is not CSV."""
    first = sample[: _SAMPLE // 4].decode("utf-8", "replace")
    line = first.split("\n", 1)[0]
    if "," not in line or (lines.starts_record(line.encode()) and "\t" in line):
        return None, False
    try:
        row = next(csv.reader(io.StringIO(first)))
    except (csv.Error, StopIteration):
        return None, False
    names = [name.strip().lower() for name in row]
    if set(names) & _LOG_COLUMNS:
        return Columns(_place(names, _TIME_COLUMNS), _place(names, _POD_COLUMNS), _place(names, _LOG_COLUMNS)), True
    if len(row) < 2 or (lines.starts_record(line.encode()) and lines.rfc3339(row[0].encode()) is None):
        return None, False
    log = next((at for at, value in enumerate(row) if lines.starts_record(value.encode()) and len(value) > 40), -1)
    if log < 0:
        return None, False
    time = next((at for at, value in enumerate(row) if lines.rfc3339(value.encode()) is not None and at != log), -1)
    pod = next((at for at in range(len(row)) if at not in (log, time)), -1)
    return Columns(time, pod, log), False


def _place(names: Sequence[str], wanted: frozenset[str]) -> int:
    return next((at for at, name in enumerate(names) if name in wanted), -1)


def text_blocks(stream: IO[bytes], *, most: int = 0) -> Iterator[list[bytes]]:
    """Yield the lines of a text, or of its next `most` bytes, many at a time; a line of absurd length is left empty."""
    tail, left = b"", most or sys.maxsize
    while chunk := stream.read(min(_CHUNK, left)):
        left -= len(chunk)
        block = (tail + chunk).split(b"\n")
        tail = block.pop()
        if len(tail) > _LONGEST_LINE:
            tail = b""
        yield block
    if tail:
        yield [tail]


def record_starts(path: Path, near: Iterable[int]) -> list[int]:
    """Return where records begin in a plain text near some places; nothing for what cannot be cut."""
    found: list[int] = []
    try:
        for blob in _opened_file(path):
            opening = examined(blob)
            if blob.path is None or opening.stream is not blob.stream or opening.columns or opening.is_binary:
                return []
            for place in near:
                blob.stream.seek(place)
                start = _next_record(blob.stream.read(_SAMPLE))
                if start >= 0:
                    found.append(place + start)
    except SourceError:
        return []
    return found


def _next_record(text: bytes) -> int:
    at = text.find(b"\n")
    while at >= 0:
        if lines.starts_record(text[at + 1 : at + 64]):
            return at + 1
        at = text.find(b"\n", at + 1)
    return -1


def lines_between(data: bytes, *, number: int, offset: int) -> Iterator[Raw]:
    """Yield the lines of a piece of a file; without numbers where the first one's is 0."""
    step = 1 if number else 0
    for line in data.split(b"\n"):
        yield Raw(number, offset, line.rstrip(b"\r"))
        number += step
        offset += len(line) + 1


def csv_rows(stream: IO[bytes], columns: Columns, *, has_header: bool) -> Iterator[tuple[str, Raw]]:
    """Yield (pod, line) of a CSV: a field of several lines becomes several."""
    csv.field_size_limit(1 << 30)
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
    reader = csv.reader(_without_nul(text))
    before = 0
    try:
        for row in reader:
            number, before = before + 1, reader.line_num
            if (number == 1 and has_header) or len(row) <= max(columns):
                continue
            stamp = lines.rfc3339(row[columns.time].encode()) if columns.time >= 0 else None
            pod = row[columns.pod] if columns.pod >= 0 else ""
            for part in row[columns.log].encode().rstrip(b"\r\n").split(b"\n"):
                yield pod, Raw(number, 0, part.rstrip(b"\r"), stamp or 0.0)
    except csv.Error as error:
        raise SourceError(f"line {reader.line_num} is not CSV ({error}); export the query's result again") from error
    finally:
        text.detach()


def _without_nul(text: Iterable[str]) -> Iterator[str]:
    return (line.replace("\0", "") for line in text)
