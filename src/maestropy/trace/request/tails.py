"""Read files that grow: what is added, what comes anew, and on after a rotation or a truncation.

Looks at the files once in a while instead of asking the kernel: that works on every file system, and what a person
reads may be a fifth of a second late.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from maestropy.trace.errors import Unreadable

Sink = Callable[[str, bytes], None]
_AT_ONCE = 4 << 20
_UNREADABLE = frozenset({".gz", ".zip", ".xz", ".bz2", ".tgz", ".json", ".yaml", ".html", ".png"})


@dataclass(slots=True)
class _Tail:
    stream: BinaryIO
    inode: int


class Tails:
    """The files behind some paths; directories are looked through again for new ones."""

    def __init__(self, paths: Sequence[Path], *, most_history: int = 16 << 20) -> None:
        self._paths = paths
        self._most_history = most_history
        self._tails: dict[Path, _Tail] = {}
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
        found: list[Path] = []
        for path in self._paths:
            inside = sorted(each for each in path.rglob("*.log") if each.is_file()) if path.is_dir() else [path]
            found += [each for each in inside if not each.name.startswith("trace_request.")]
        return [each for each in found if each.suffix not in _UNREADABLE]

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

    def _opened(self, file: Path, *, is_old: bool) -> _Tail:
        stream = file.open("rb")
        stat = os.fstat(stream.fileno())
        if is_old and stat.st_size > self._most_history:
            stream.seek(stat.st_size - self._most_history)
            stream.readline()
        return _Tail(stream, stat.st_ino)

    def _drain(self, file: Path, tail: _Tail, sink: Sink) -> int:
        count = 0
        while data := tail.stream.read(_AT_ONCE):
            sink(file.name, data)
            count += len(data)
        return count

    def close(self) -> None:
        """Close all files."""
        for tail in self._tails.values():
            tail.stream.close()


def existing(paths: Sequence[str]) -> list[Path]:
    """Return the paths, all of which must be there."""
    missing = next((each for each in paths if not Path(each).exists()), None)
    if missing is not None:
        raise Unreadable(f"{missing} does not exist; name the files or directories that the logs are written to")
    return [Path(each) for each in paths]


async def follow(paths: Sequence[Path], sink: Sink, *, pause: float = 0.2) -> None:
    """Hand on what is written, for ever."""
    tails = Tails(paths)
    try:
        while True:
            tails.read(sink)
            await asyncio.sleep(pause)
    finally:
        tails.close()
