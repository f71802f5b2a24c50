"""Write what is collected into a folder of this computer: redacted on the way, within a limit of bytes.

The folder survives an interruption, so that a collection can go on. Everything in it has passed the redactor.
"""

import csv
import fcntl
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import orjson

from maestropy.diagnose import manifest as manifests
from maestropy.diagnose.redaction.redact import LogRedactor, Redactor
from maestropy.trace.errors import InvalidArguments

_STATE: Final = ".state.json"
_LOCK: Final = ".lock"
_LONGEST_LINE: Final = 1 << 20


def check_free(folder: Path) -> None:
    """Raise InvalidArguments if a collection that still runs writes into a folder."""
    os.close(_locked(folder))


def _locked(folder: Path) -> int:
    """Return the open lock file of a folder; the lock ends with the process, however that ends."""
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise InvalidArguments(
            f"another collection is running (pid {pid}) in {folder}; wait for its end, or name another --output"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


class SizeLimitReached(Exception):
    """The collection has as many bytes as it may have."""


class Staging:
    """The folder of one collection."""

    def __init__(self, folder: Path, *, most_bytes: int) -> None:
        self.folder = folder
        self.redactor = Redactor()
        self._most = most_bytes
        self._used = 0
        if folder.is_symlink():
            raise InvalidArguments(f"{folder} is a link, and is not followed; remove it, or name another --output")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(folder)

    @property
    def left(self) -> int:
        """How many bytes may still be written."""
        return max(0, self._most - self._used)

    def close(self) -> None:
        """Let another collection use the folder."""
        os.close(self._lock)

    def document(self, name: str, value: Mapping[str, Any]) -> None:
        """Write one document."""
        self.documents(name, [value])

    def documents(self, name: str, values: Iterable[Mapping[str, Any]]) -> int:
        """Write documents, one a line; return how many."""
        with DocumentFile(self, name) as file:
            for value in values:
                file.add(value)
        return file.count

    def text(self, name: str, content: str) -> None:
        """Write a text, line by line."""
        with LogFile(self, name) as file:
            for line in content.splitlines():
                file.add(line)

    def spend(self, amount: int) -> None:
        """Count bytes; raise SizeLimitReached before there are too many."""
        if self._used + amount > self._most:
            raise SizeLimitReached
        self._used += amount

    def path(self, name: str) -> Path:
        """Return where a file is written."""
        path = self.folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def files(self) -> list[str]:
        """Return the names of all files, the documents before the logs."""
        found = [
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if path.is_file() and path.name not in {_STATE, _LOCK} and not path.name.endswith(".part")
        ]
        return sorted(found, key=lambda name: (name.startswith("logs/"), name))

    def load(self) -> manifests.Manifest | None:
        """Return what an interrupted collection has done; None if there is none that can be continued."""
        try:
            state = msgspec.json.decode((self.folder / _STATE).read_bytes(), type=manifests.Manifest)
        except (OSError, msgspec.MsgspecError):
            return None
        self._used = sum((self.folder / name).stat().st_size for name in self.files())
        self.redactor.hidden.update(state.hidden)
        return state

    def save(self, manifest: manifests.Manifest) -> None:
        """Store what is done so far."""
        part = self.folder / f"{_STATE}.part"
        part.write_bytes(manifests.encode(manifest))
        part.replace(self.folder / _STATE)


class _File:
    """A file that is written to; it has its name only when it is complete."""

    def __init__(self, staging: Staging, name: str) -> None:
        self._staging = staging
        self._path = staging.path(name)
        self._part = self._path.with_name(f"{self._path.name}.part")
        self.count = 0

    def __enter__(self) -> Self:
        self._stream = self._part.open("wb")
        os.fchmod(self._stream.fileno(), 0o600)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stream.close()
        # At the size limit, what is there counts; after another failure, the file is collected again.
        if kind is None or issubclass(kind, SizeLimitReached):
            self._part.replace(self._path)
        else:
            self._part.unlink(missing_ok=True)

    def _write(self, content: bytes) -> None:
        self._staging.spend(len(content))
        self._stream.write(content)


class DocumentFile(_File):
    """JSON documents, one a line."""

    def add(self, value: Mapping[str, Any]) -> None:
        """Write a document without its secrets."""
        cleaned = self._staging.redactor.document(value)
        self._write(orjson.dumps(cleaned, option=orjson.OPT_NON_STR_KEYS) + b"\n")
        self.count += 1


class LogFile(_File):
    """Lines of a log, or rows of a table."""

    def __enter__(self) -> Self:
        self._lines = LogRedactor(self._staging.redactor)
        self._columns: dict[int, LogRedactor] = {}
        return super().__enter__()

    def add(self, line: str) -> None:
        """Write a line without its secrets."""
        self._write(self._lines.line(line[:_LONGEST_LINE]).encode("utf-8", "surrogateescape") + b"\n")
        self.count += 1

    def add_row(self, row: Sequence[str]) -> None:
        """Write a row of a table as CSV, without its secrets; a cell may have several lines."""
        cells = []
        for number, cell in enumerate(row):
            column = self._columns.setdefault(number, LogRedactor(self._staging.redactor))
            cells.append("\n".join(column.line(line[:_LONGEST_LINE]) for line in cell.split("\n")))
        written = io.StringIO()
        csv.writer(written, lineterminator="\n").writerow(cells)
        self._write(written.getvalue().encode("utf-8", "surrogateescape"))
        self.count += 1
