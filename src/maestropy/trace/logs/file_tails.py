"""Read log files that grow: appended data, new files, and files after a rotation or a truncation.

The files are polled instead of watched, because polling works on every file system.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from maestropy.trace.errors import InputUnreadable
from maestropy.trace.logs.read.inputs import input_files

Sink = Callable[[str, bytes], None]
_AT_ONCE = 4 << 20
_UNREADABLE = frozenset({".gz", ".zip", ".xz", ".bz2", ".tgz", ".json", ".yaml", ".html", ".png"})


@dataclass(slots=True)
class _FileTail:
    stream: BinaryIO
    inode: int


class FileTails:
    """The files of some paths; directories are rescanned for new files."""

    def __init__(self, paths: Sequence[Path], *, most_history: int = 16 << 20) -> None:
        self._paths = paths
        self._most_history = most_history
        self._tails: dict[Path, _FileTail] = {}
        self._is_first = True

    def read(self, sink: Sink) -> int:
        """Hand on what was added since the last time; returns how many bytes that was."""
        count = 0
        for file in self._files():
            with contextlib.suppress(FileNotFoundError):  # between two names of a rotation
                count += self._read(file, sink)
        self._is_first = False
        return count

    def _files(self) -> list[Path]:
        files: list[Path] = []
        for path in self._paths:
            inside = sorted(file for file in path.rglob("*.log") if file.is_file()) if path.is_dir() else [path]
            files += [path for path in inside if not path.name.startswith("trace_request.")]
        return input_files.without_other_names(file for file in files if file.suffix not in _UNREADABLE)

    def _read(self, file: Path, sink: Sink) -> int:
        tail = self._tails.get(file)
        count = 0
        if tail is not None:
            count = self._drain(file, tail, sink)
            stat = file.stat()
            if stat.st_ino == tail.inode and stat.st_size >= tail.stream.tell():
                return count
            tail.stream.close()
        self._tails[file] = tail = self._opened(file, is_old=tail is None and self._is_first)
        return count + self._drain(file, tail, sink)

    def _opened(self, file: Path, *, is_old: bool) -> _FileTail:
        stream = file.open("rb")
        stat = os.fstat(stream.fileno())
        if is_old and stat.st_size > self._most_history:
            stream.seek(stat.st_size - self._most_history)
            stream.readline()
        return _FileTail(stream, stat.st_ino)

    def _drain(self, file: Path, tail: _FileTail, sink: Sink) -> int:
        count = 0
        while data := tail.stream.read(_AT_ONCE):
            sink(file.name, data)
            count += len(data)
        return count

    def close(self) -> None:
        for tail in self._tails.values():
            tail.stream.close()


def existing(paths: Sequence[str]) -> list[Path]:
    """Return the paths, all of which must be there."""
    missing = next((path for path in paths if not Path(path).exists()), None)
    if missing is not None:
        raise InputUnreadable(f"{missing} does not exist; name the files or directories that the logs are written to")
    return [Path(path) for path in paths]


async def follow(paths: Sequence[Path], sink: Sink, *, pause: float = 0.2) -> None:
    """Hand on what is written, for ever."""
    tails = FileTails(paths)
    try:
        while True:
            tails.read(sink)
            await asyncio.sleep(pause)
    finally:
        tails.close()
