"""Open the members of zip and tar archives, with bounds on everything that an archive can make its reader do.

All methods of compression are read in chunks of a bounded size, and what they inflate to is counted. Archives inside of
archives are not opened.
"""

import bz2
import copy
import gzip
import importlib
import io
import lzma
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

from maestropy.trace.errors import InputUnreadable
from maestropy.trace.logs.read.inputs.raw_stream import RawStream
from maestropy.untrusted.printable import escape

_INFLATED_BYTES = 256 << 20
"""Any archive may inflate to this much,"""
_INFLATED_RATIO = 150
"""and beyond it to so many times its own size; logs compress by 10 to 50, an archive made to do harm by 1000."""
MEMBERS: Final = 5000
"""So many members of an archive are read: each costs memory and time, however short it is."""
_DIRECTORY_BYTES = 8 << 20
"""The list of members at the end of a zip, which is read as a whole."""
_LARGEST_READ = 4 << 20
"""What is read of a tar at once: a header with a long name is read as a whole."""
_DICTIONARY_BYTES = 256 << 20
_COMPRESSED_CHUNK = 64 << 10
_BOUNDED_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_SUMMARY = b"PK\5\6"
_SUMMARY_SIZE = 22
_LARGE_SUMMARY = b"PK\6\6"
_LARGE_SUMMARY_DISTANCE = 20 + 56
_UNPACK = "if you trust it, unpack it and name the files"


def zstd() -> Any:
    """Return Python's module for Zstandard, or its backport for versions before 3.14."""
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputUnreadable(
            f"{name} is not installed, which Zstandard needs; install the extra `diagnose`"
        ) from error


class _ZstdReader:
    """Opens a Zstandard stream; its errors become those of a damaged file, as with other compressions."""

    def __init__(self, file: IO[bytes]) -> None:
        module = zstd()
        self._errors: type[Exception] = module.ZstdError
        self._stream: IO[bytes] = module.ZstdFile(file, "rb")

    def read(self, length: int) -> bytes:
        try:
            return self._stream.read(length)
        except self._errors as error:
            raise EOFError(str(error)) from error

    def seek(self, offset: int, whence: int = 0) -> int:
        try:
            return self._stream.seek(offset, whence)
        except self._errors as error:
            raise EOFError(str(error)) from error

    def tell(self) -> int:
        return self._stream.tell()


_TAR_COMPRESSIONS: dict[bytes, Callable[..., object]] = {
    b"\x28\xb5\x2f\xfd": _ZstdReader,
    b"\x1f\x8b": gzip.GzipFile,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"\x5d\0\0": lzma.LZMAFile,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file in an archive, opened."""

    name: str
    stream: IO[bytes]
    size: int
    modified: float
    inflation: "Inflation | None"
    """What counts the bytes that are read; None if the archive counts them itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedMember:
    """A file in an archive that is not read, and why."""

    name: str
    reason: str


class Inflation:
    """What may be read of one archive: all its members together."""

    def __init__(self, archive: Path, *, size: int) -> None:
        self._archive = archive
        self._size = size
        self._left = max(_INFLATED_BYTES, _INFLATED_RATIO * size)

    def count(self, amount: int) -> None:
        """Count inflated bytes; a negative amount is read again. Raise InputUnreadable beyond the limit."""
        self._left -= amount
        self.check()

    def check(self) -> None:
        """Raise InputUnreadable if the limit was exceeded."""
        if self._left < 0:
            raise InputUnreadable(
                f"{self._archive.name} inflates to more than {_INFLATED_BYTES >> 20} MiB and {_INFLATED_RATIO} times "
                f"its own {self._size} bytes; {_UNPACK}"
            )


def zip_members(path: Path, *, modified: float, inflation: Inflation) -> Iterator[Member | RejectedMember]:
    """Yield the files of a zip, one open at a time."""
    _check_directory(path)
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist()[:MEMBERS]:
            if info.is_dir():
                continue
            name = escape(f"{path.name}/{info.filename}")
            reason = _unsupported(info)
            if reason:
                yield RejectedMember(name=name, reason=reason)
                continue
            with _opened_member(archive, info) as stream:
                yield Member(name=name, stream=stream, size=0, modified=modified, inflation=inflation)
            inflation.check()
        _check_count(path, len(archive.infolist()))


def tar_members(path: Path, *, inflation: Inflation) -> Iterator[Member | RejectedMember]:
    """Yield the files of a tar, compressed or not, one open at a time."""
    with path.open("rb") as file, tarfile.open(fileobj=_tar_stream(file, inflation), mode="r:") as archive:
        for number, info in enumerate(archive, 1):
            _check_count(path, number)
            name = escape(f"{path.name}/{info.name}")
            if info.issparse():
                yield RejectedMember(name=name, reason="a sparse file, which may stand for any size; unpack it")
                continue
            stream = archive.extractfile(info) if info.isfile() else None
            if stream is not None:
                yield Member(name=name, stream=stream, size=info.size, modified=info.mtime, inflation=None)
                inflation.check()


def _check_count(path: Path, count: int) -> None:
    if count > MEMBERS:
        raise InputUnreadable(f"{path.name} has more than {MEMBERS} members, and the rest is not read; {_UNPACK}")


def _check_directory(path: Path) -> None:
    """Raise InputUnreadable if the list of members is too large to be read."""
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - (1 << 16) - _SUMMARY_SIZE - _LARGE_SUMMARY_DISTANCE))
        end = file.read()
    at = end.rfind(_SUMMARY)
    length = int.from_bytes(end[at + 12 : at + 16], "little") if at >= 0 else 0
    large = end[at - _LARGE_SUMMARY_DISTANCE :] if at >= _LARGE_SUMMARY_DISTANCE else b""
    if large.startswith(_LARGE_SUMMARY):
        length = int.from_bytes(large[40:48], "little")
    if min(length, size) > _DIRECTORY_BYTES:
        raise InputUnreadable(f"{path.name} has a list of members of more than {_DIRECTORY_BYTES >> 20} MiB; {_UNPACK}")


def _unsupported(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & 1:
        return "encrypted; unpack it and name the files"
    if info.compress_type not in _BOUNDED_METHODS | {zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA}:
        return f"compressed by method {info.compress_type}, which is not supported; unpack it and name the files"
    return ""


@contextmanager
def _opened_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[IO[bytes]]:
    if info.compress_type in _BOUNDED_METHODS:
        with archive.open(info) as stream:
            yield stream
        return
    # zipfile inflates a whole chunk of these methods at once, whatever it becomes: take the compressed bytes from it.
    compressed = copy.copy(info)
    compressed.compress_type, compressed.file_size = zipfile.ZIP_STORED, info.compress_size
    del compressed.CRC  # that of the inflated bytes
    with archive.open(compressed) as stream:
        yield _InflatedMember(stream, info).buffered()


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _InflatedMember(RawStream):
    """A member of a zip that is compressed by BZIP2 or LZMA; never inflates more than it is asked for."""

    def __init__(self, compressed: IO[bytes], info: zipfile.ZipInfo) -> None:
        self._compressed = compressed
        self._info = info
        self._restart()

    def _restart(self) -> None:
        self._left = self._info.file_size
        self._checksum = 0
        self._decompressor = self._new_decompressor()

    def _new_decompressor(self) -> _Decompressor:
        if self._info.compress_type == zipfile.ZIP_BZIP2:
            return bz2.BZ2Decompressor()
        header = self._compressed.read(4 + 5)
        sizes, dictionary = header[4:5], int.from_bytes(header[5:9], "little")
        if header[2:4] != b"\5\0" or len(header) < 9 or sizes[0] >= 9 * 5 * 5:
            raise zipfile.BadZipFile("the LZMA properties are damaged")
        if dictionary > _DICTIONARY_BYTES:
            raise zipfile.BadZipFile(f"LZMA with a dictionary of more than {_DICTIONARY_BYTES >> 20} MiB")
        rest, lc = divmod(sizes[0], 9)
        pb, lp = divmod(rest, 5)
        properties = {"id": lzma.FILTER_LZMA1, "dict_size": max(4096, dictionary), "lc": lc, "lp": lp, "pb": pb}
        return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[properties])

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Seek to the beginning; other positions are not supported."""
        if (offset, whence) == (0, 0):
            self._compressed.seek(0)
            self._restart()
        return self.tell()

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._info.file_size - self._left

    def next_bytes(self, length: int) -> bytes:
        data = self._inflated(min(length, self._left)) if self._left else b""
        self._left -= len(data)
        self._checksum = zlib.crc32(data, self._checksum)
        if not self._left and self._checksum != self._info.CRC:
            raise zipfile.BadZipFile("bad checksum")
        return data

    def _inflated(self, length: int) -> bytes:
        while not self._decompressor.eof:
            needs_input = self._decompressor.needs_input
            chunk = self._compressed.read(_COMPRESSED_CHUNK) if needs_input else b""
            data = self._decompressor.decompress(chunk, length)
            if data:
                return data
            if needs_input and not chunk:
                break
        raise EOFError("the compressed bytes end early")


def _tar_stream(file: IO[bytes], inflation: Inflation) -> IO[bytes]:
    start = file.read(6)
    file.seek(0)
    opener = next((opener for magic, opener in _TAR_COMPRESSIONS.items() if start.startswith(magic)), None)
    inflated = file if opener is None else opener(file) if opener is not gzip.GzipFile else opener(fileobj=file)
    return cast("IO[bytes]", _CountedStream(cast("IO[bytes]", inflated), inflation))


class _CountedStream:
    """What tarfile reads, counted by the furthest position: members, those that are skipped, and headers."""

    def __init__(self, stream: IO[bytes], inflation: Inflation) -> None:
        self._stream = stream
        self._inflation = inflation
        self._furthest = 0

    def read(self, length: int) -> bytes:
        if length > _LARGEST_READ:
            raise InputUnreadable(f"a header of more than {_LARGEST_READ >> 20} MiB; {_UNPACK}")
        data = self._stream.read(length)
        self._count()
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        while offset - self._stream.tell() > _LARGEST_READ and not whence:
            # In steps, so that the bytes are counted before the next ones are inflated.
            before = self._stream.tell()
            if self._stream.seek(before + _LARGEST_READ) == before:
                break
            self._count()
        position = self._stream.seek(offset, whence)
        self._count()
        return position

    def tell(self) -> int:
        return self._stream.tell()

    def _count(self) -> None:
        position = self._stream.tell()
        if position > self._furthest:
            self._inflation.count(position - self._furthest)
            self._furthest = position
