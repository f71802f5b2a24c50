"""Open log inputs: files, directories, archives and standard input, as text or CSV. Yield their raw lines.

This module knows containers and encodings; it does not know log phrases. What archives inflate to is bounded while they
are read: a few megabytes can stand for gigabytes.
"""

import gzip
import io
import lzma
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from maestropy.trace.errors import InputUnreadable
from maestropy.trace.logs.read import lines
from maestropy.trace.logs.read.csv_reader import CsvColumns, csv_columns
from maestropy.trace.logs.read.inputs import archives, input_files, otlp_export, split_lines
from maestropy.trace.logs.read.inputs.archives import Inflation
from maestropy.trace.logs.read.inputs.raw_stream import RawStream
from maestropy.trace.logs.read.lines import RawRecord
from maestropy.untrusted.printable import escape

_CHUNK = 1 << 20  # with all that is made of it, it fits into the cache of one processor
_LONGEST_LINE = 16 << 20
TOO_LONG = f"has a line of more than {_LONGEST_LINE >> 20} MiB, which is not read"
COPY = "left out, for its content is that of "
NOT_TEXT, EMPTY, NO_LOG = "not text", "empty", "no log"
_FOREIGN = frozenset({NOT_TEXT, EMPTY, NO_LOG})
_SAMPLE = 256 << 10
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst")
LEFT_OUT = b"(a line that is too long)"
_RECORD = rb"(?=[IWEF]\d{4} \d\d:|20\d\d-\d\d-\d\dT|\{\"|\[pod/)"
_HOLE = re.compile(rb"\0" + _RECORD)
"""The end of a hole of NULs, as a crash leaves it in a file, before a record."""
_FIRST_RECORD = re.compile(rb"^" + _RECORD, re.MULTILINE)
# Tried once for each run of NULs: otherwise a file of a database would take minutes, as much as its length squared.
_HOLES = re.compile(rb"(?<!\0)\0++(?:" + _RECORD + rb"|\Z)")
_DAMAGES = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInput:
    """One readable input: a file, a member of an archive, or standard input."""

    name: str
    stream: IO[bytes]
    size: int
    modified: float
    path: Path | None = None
    """Where it lies as a plain file, which can be searched without reading it line by line."""
    inflation: Inflation | None = None
    """The limit of the archive it comes from."""
    is_export: bool = False
    """Whether it stands for the spans of an OTLP export."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableInput:
    """Something that cannot be read, and why."""

    name: str
    reason: str

    @property
    def is_left_out(self) -> bool:
        """Whether it may hold records of its own: other files, empty ones and copies do not."""
        return self.reason not in _FOREIGN and not self.reason.startswith(COPY)


def messages(unreadable_inputs: Iterable[UnreadableInput]) -> list[str]:
    """Return what could not be read, a sentence for each reason."""
    names: dict[str, list[str]] = {}
    for unreadable in unreadable_inputs:
        names.setdefault(unreadable.reason, []).append(unreadable.name)
    return [_message(reason, of_reason) for reason, of_reason in names.items()]


def _message(reason: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{names[0]}: {reason}"
    return f"{len(names):,} files: {reason} ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"


def opened(paths: Sequence[str], *, now: float) -> Iterator[LogInput | UnreadableInput]:
    """Yield everything behind `paths`, one open at a time; what cannot be read does not stop the rest."""
    if "-" in paths:
        yield LogInput(name="stdin", stream=sys.stdin.buffer, size=0, modified=now)
    for file in input_files.distinct(paths).files:
        try:
            yield from _opened_file(file)
        except InputUnreadable as error:
            yield UnreadableInput(name=escape(file.name), reason=str(error))


def plain_files(paths: Sequence[str]) -> list[Path]:
    """Return the files behind `paths`, each once; nothing when standard input is among them."""
    return [] if "-" in paths else list(input_files.distinct(paths).files)


def _opened_file(path: Path) -> Iterator[LogInput | UnreadableInput]:
    try:
        stat = path.stat()
        name = path.name.lower()
        if name.endswith(_ARCHIVES):
            yield from _members(archives.tar_members(path, inflation=Inflation(path, size=stat.st_size)))
        elif zipfile.is_zipfile(path):
            inflation = Inflation(path, size=stat.st_size)
            yield from _members(archives.zip_members(path, modified=stat.st_mtime, inflation=inflation))
        elif name.endswith(".gz"):
            with gzip.open(path, "rb") as stream:
                inflation = Inflation(path, size=stat.st_size)
                yield LogInput(
                    name=escape(path.name),
                    stream=stream,  # type: ignore[arg-type]  # a GzipFile reads as IO[bytes] does
                    size=0,
                    modified=stat.st_mtime,
                    inflation=inflation,
                )
        else:
            with path.open("rb") as plain:
                if otlp_export.is_export(plain):
                    for process, log in otlp_export.logs(plain).items():
                        name = escape(f"{path.name}/{process}")
                        yield LogInput(name=name, stream=log, size=0, modified=stat.st_mtime, is_export=True)
                    return
                yield LogInput(
                    name=escape(path.name), stream=plain, size=stat.st_size, modified=stat.st_mtime, path=path
                )
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputUnreadable(f"a damaged archive ({error}); collect it again") from error
    except OSError as error:
        raise InputUnreadable(f"cannot be read ({error.strerror or error}); check its rights") from error


def _members(members: Iterable[archives.Member | archives.RejectedMember]) -> Iterator[LogInput | UnreadableInput]:
    for member in members:
        if isinstance(member, archives.RejectedMember):
            yield UnreadableInput(name=member.name, reason=member.reason)
        else:
            yield LogInput(
                name=member.name,
                stream=member.stream,
                size=member.size,
                modified=member.modified,
                inflation=member.inflation,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The first bytes of an input, and a stream that starts at its beginning."""

    sample: bytes
    stream: IO[bytes]
    columns: CsvColumns | None
    is_binary: bool
    has_header: bool = False
    source: "_TolerantStream | None" = None

    @property
    def problem(self) -> Exception | None:
        """What has ended the stream before its end."""
        return self.source.problem if self.source is not None else None

    @property
    def reason_not_to_read(self) -> str:
        """Why there is nothing to read; empty for a text."""
        if self.is_binary:
            return NOT_TEXT
        if self.sample:
            return ""
        return f"damaged ({self.problem})" if self.problem else EMPTY


def examine(log_input: LogInput) -> Opening:
    """Read the first bytes of an input and detect its format."""
    rest: IO[bytes] = log_input.stream
    source: _TolerantStream | None = None
    if log_input.path is not None:
        sample = rest.read(_SAMPLE)
        rest.seek(0)
    else:
        source = _TolerantStream(rest, inflation=log_input.inflation)
        sample = source.beginning(_SAMPLE)
        rest = source.buffered()
    encoding = _utf16(sample)
    if encoding:
        rest = _Utf16Stream(rest, encoding).buffered()
        sample = sample.decode(encoding, "replace").encode()
    elif b"\r" in sample and b"\n" not in sample:
        rest = _CarriageReturnStream(rest).buffered()
        sample = sample.replace(b"\r", b"\n")
    elif split_lines.has_pieces(sample, log_input.path):
        rest = split_lines.JoinedLines(rest).buffered()
    clean = _HOLES.sub(b"", sample.removeprefix(b"\xef\xbb\xbf"))
    # A log may have holes; what has no record outside of them is no log.
    counted = clean if _FIRST_RECORD.search(clean) else sample
    is_binary = counted.count(b"\0") * 20 > len(counted)
    columns, has_header = csv_columns(clean)
    return Opening(sample=clean, stream=rest, columns=columns, is_binary=is_binary, has_header=has_header,
                   source=source)  # fmt: skip


def _utf16(sample: bytes) -> str:
    """Return the kind of UTF-16 that a text is in; empty for other encodings.

    Every second byte of it is zero: a byte order mark alone may be accidental, and may be missing.
    """
    if sample.count(b"\0") * 4 <= len(sample):
        return ""
    if sample[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    even, odd = sample[::2].count(b"\0"), sample[1::2].count(b"\0")
    return "utf-16-le" if odd > 4 * even else "utf-16-be" if even > 4 * odd else ""


class _Utf16Stream(RawStream):
    """Recodes UTF-16 text to UTF-8."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._letters = io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="")

    def next_bytes(self, length: int) -> bytes:
        # No character takes more than four bytes.
        return self._letters.read(max(1, length // 4)).encode()


class _CarriageReturnStream(RawStream):
    """Ends lines with line feeds where a text has carriage returns only."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def next_bytes(self, length: int) -> bytes:
        return self._stream.read(length).replace(b"\r", b"\n")


class _TolerantStream(RawStream):
    """A stream with a peekable beginning, which ends where it is damaged instead of losing what was read before."""

    def __init__(self, stream: IO[bytes], *, inflation: Inflation | None) -> None:
        self._stream = stream
        self._inflation = inflation
        self._inflated = 0
        self._head = io.BytesIO()
        self.problem: Exception | None = None

    def beginning(self, length: int) -> bytes:
        """Return the first bytes of the stream; it starts there again."""
        head = b""
        while len(head) < length and (data := self._more(length - len(head))):
            head += data
        self._head = io.BytesIO(head)
        return head

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Seek to the beginning; other positions are not supported."""
        assert (offset, whence) == (0, 0)
        self._head, self.problem = io.BytesIO(), None
        if self._inflation is not None:
            self._inflation.count(-self._inflated)
        self._inflated = 0
        return self._stream.seek(0)

    def tell(self) -> int:
        """Return 0; a buffered reader needs the method, but not the position."""
        return 0

    def next_bytes(self, length: int) -> bytes:
        return self._head.read(length) or self._more(length)

    def _more(self, length: int) -> bytes:
        if self.problem is not None:
            return b""
        read = getattr(self._stream, "read1", self._stream.read)
        try:
            data: bytes = read(length)
            if self._inflation is not None:
                self._inflated += len(data)
                self._inflation.count(len(data))
        except (*_DAMAGES, InputUnreadable) as error:
            self.problem = error
            return b""
        return data


class TextBlocks:
    """The lines of a text, or of its next `most` bytes, in blocks; lines that are far too long are left out."""

    def __init__(self, stream: IO[bytes], *, most: int = 0) -> None:
        self._stream = stream
        self._left = most or sys.maxsize
        self.left_out = 0
        """How many bytes were left out between the block before and this one: the line that is too long."""
        self.is_torn = False
        """Whether the last line has no end; known at the end."""

    def __iter__(self) -> Iterator[list[bytes]]:
        tail = b""
        while chunk := self._chunk():
            block = without_holes(tail + chunk).split(b"\n")
            tail = block.pop()
            yield block
            self.left_out = 0
            if len(tail) > _LONGEST_LINE:
                self.left_out, tail = self._rest_of_line(len(tail))
        if tail or self.left_out:
            block = without_holes(tail).split(b"\n")
            self.is_torn = bool(block[-1])
            yield block if self.is_torn else block[:-1]

    def _rest_of_line(self, size: int) -> tuple[int, bytes]:
        """Skip the rest of a line; return the size of the line, and what follows it."""
        while chunk := self._chunk():
            size += len(chunk)
            end = chunk.find(b"\n")
            if end >= 0:
                rest = chunk[end + 1 :]
                return size - len(rest), rest
        return size, b""

    def _chunk(self) -> bytes:
        chunk = self._stream.read(min(_CHUNK, self._left))
        self._left -= len(chunk)
        return chunk


def without_holes(text: bytes) -> bytes:
    """Return a text in which records after NULs start a line; its length is the same."""
    return _HOLE.sub(b"\n", text) if b"\0" in text else text


def record_starts(path: Path, near: Iterable[int]) -> list[int]:
    """Return where records start in a plain text near some offsets; empty if the file cannot be split."""
    starts: list[int] = []
    try:
        for log_input in _opened_file(path):
            if isinstance(log_input, UnreadableInput):
                return []
            opening = examine(log_input)
            if log_input.path is None or opening.stream is not log_input.stream or opening.columns or opening.is_binary:
                return []
            for offset in near:
                log_input.stream.seek(offset)
                start = _next_record(log_input.stream.read(_SAMPLE))
                if start >= 0:
                    starts.append(offset + start)
    except InputUnreadable:
        return []
    return starts


def _next_record(text: bytes) -> int:
    at = text.find(b"\n")
    while at >= 0:
        if lines.starts_record(text[at + 1 : at + 64]):
            return at + 1
        at = text.find(b"\n", at + 1)
    return -1


def lines_between(data: bytes, *, number: int, offset: int) -> Iterator[RawRecord]:
    """Yield the lines of a piece of a file; without numbers where the first one's is 0."""
    step = 1 if number else 0
    for line in without_holes(data).split(b"\n"):
        yield RawRecord(number, offset, line.rstrip(b"\r") if len(line) <= _LONGEST_LINE else LEFT_OUT)
        number += step
        offset += len(line) + 1


def prefixed_rows(stream: IO[bytes]) -> Iterator[tuple[str, RawRecord]]:
    """Yield (pod, line) of a text in which each line starts with its pod; other lines continue the one before."""
    pod, number = "", 0
    for block in TextBlocks(stream):
        for line in block:
            number += 1
            prefix = lines.pod_prefix(line)
            pod, text = prefix if prefix is not None else (pod, line)
            yield pod, RawRecord(number, 0, text.rstrip(b"\r"))
