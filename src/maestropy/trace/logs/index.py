"""Cache the records read from log files, so that unchanged files are not read again.

An index is valid for files of a certain size, time and content, and for the code that read them. Anything else, and any
damage, makes it unusable; then it is ignored with a reason. It holds IDs, times and positions in the files. Free text
such as errors is not stored: those records are read again from the logs.
"""

import hashlib
import os
import sys
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any, Final

import msgspec

from maestropy.journal import phrases, redact
from maestropy.trace.errors import InvalidArguments
from maestropy.trace.logs.judge import complete_requests
from maestropy.trace.logs.log_records import RecordKind, RecordTable
from maestropy.trace.logs.match import attribution
from maestropy.trace.logs.read import lines, record_reader
from maestropy.trace.logs.read.inputs import log_inputs
from maestropy.trace.logs.read.inputs.input_files import INDEX_SUFFIX
from maestropy.trace.logs.read.inputs.log_inputs import UnreadableInput
from maestropy.trace.logs.read.log_writers import LogWriter
from maestropy.trace.logs.read.scan import Scan, record_at, scan_all, silent
from maestropy.trace.logs.tracer import ClassifiedResources, classify

_KIND: Final = b"maestro trace index "
_MAGIC: Final = _KIND + b"1\n"
_ENDS: Final = 64 << 10
_WORTH_KEEPING: Final = 32 << 20
_HARMLESS: Final = frozenset({
    RecordKind.APPLIED, RecordKind.DELETING, RecordKind.REMOVED, RecordKind.BROADCAST, RecordKind.STALE,
    RecordKind.SENDING_STATUS, RecordKind.RECEIVED_STATUS, RecordKind.UPDATING,
    RecordKind.SENT_TO_CLIENTS, RecordKind.PENDING_DELETION,
})  # fmt: skip
"""Record kinds whose details are only names, numbers or fixed texts."""


_COUNTS: Final = ("generations", "roles", "stages", "kinds")
_SETS: Final = ("consumers", "instances", "ring")


class UnusableIndex(Exception):
    """The index cannot be used; the message gives the reason."""


class _Content(msgspec.Struct, array_like=True):
    """The content of an index besides columns."""

    code: str
    files: list[tuple[str, int, int, str]]
    writers: list[dict[str, Any]]
    unreadable_inputs: list[tuple[str, str]]
    size: int
    texts: list[bytes]
    details: list[tuple[str, str, str, str, bool, str]]
    unstored: list[int]
    """Rows whose details are in the logs only."""
    columns: list[int]
    """How long the columns are that follow."""
    plain: list[bytes]
    others: list[tuple[int, bytes]]
    events: dict[int, int]
    untied: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How logs are read, and who is told about it."""

    now: float
    progress: Callable[[int], None] = silent
    jobs: int = 1
    index: str = "off"
    """auto: large logs only, in the user's cache; off; or a file."""
    log: Callable[[str], None] = silent
    """Called with what becomes of the index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLogs:
    """What was read, or kept."""

    scan: Scan
    resources: ClassifiedResources | None
    files: tuple[Path, ...]
    path: Path | None = None
    """Where to keep it."""


def read(paths: Sequence[str], how: ReadOptions) -> ReadLogs:
    """Return the records of the logs, from the index if it is valid."""
    files = tuple(log_inputs.plain_files(paths))
    path = _path(files, how)
    if path is not None:
        try:
            kept = load(path, files)
        except UnusableIndex as reason:
            how.log(f"{path}: {reason}; the logs are read")
        else:
            how.log(f"{path}: the logs are unchanged and not read again")
            return kept
    scanned = scan_all(paths, now=how.now, progress=how.progress, jobs=how.jobs)
    return ReadLogs(scan=scanned, resources=None, files=files, path=path)


def classified(logs: ReadLogs, writers: Sequence[LogWriter], how: ReadOptions) -> ClassifiedResources:
    """Return the classified resources of the logs; write the index for the next run."""
    if logs.resources is not None:
        return logs.resources
    resources = classify(logs.scan.records, writers)
    if logs.path is not None:
        try:
            is_kept = save(logs.path, logs.scan, resources, files=logs.files)
            if how.index == "auto":
                prune(logs.path.parent)
        except (OSError, UnusableIndex) as error:
            how.log(f"{logs.path}: cannot be written ({error})")
        else:
            how.log(f"{logs.path}: {'written' if is_kept else 'not written, for not all logs are plain files'}")
    return resources


def _path(files: Sequence[Path], how: ReadOptions) -> Path | None:
    if how.index == "off" or not files:
        return None
    if how.index != "auto":
        check_place(how.index)
        return Path(how.index).resolve()
    size = sum(file.stat().st_size for file in files if file.exists())
    return index_path(files, cache_directory(os.environ)) if size >= _WORTH_KEEPING else None


def check_place(place: str) -> None:
    """Raise InvalidArguments if an index at `place` would replace anything but an index or an empty file."""
    path = Path(place)
    try:
        # A pipe would never be opened, and a device never ends.
        is_replaceable = bool(place) and (not path.exists() or (path.is_file() and _is_index(path)))
    except (OSError, ValueError) as error:
        raise InvalidArguments(f"--index {place} cannot be read ({error}); name another file") from error
    if not is_replaceable:
        raise InvalidArguments(f"--index {place or repr(place)} is no index and would be replaced; name another file")


def _is_index(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(_KIND)) in (b"", _KIND)


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return the folder for indexes of this user."""
    cache = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "maestropy" / "trace"


def index_path(files: Sequence[Path], folder: Path) -> Path:
    """Return where the index of these files is kept."""
    names = "\0".join(str(file.resolve()) for file in files)
    return folder / f"{hashlib.blake2b(names.encode(), digest_size=16).hexdigest()}{INDEX_SUFFIX}"


def load(path: Path, files: Sequence[Path]) -> ReadLogs:
    """Return what was kept of these files."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnusableIndex(f"no index yet ({error.strerror})") from error
    view = memoryview(data)[len(_MAGIC) :]
    if data[: len(_MAGIC)] != _MAGIC or view[:16] != _digest(view[16:]):
        raise UnusableIndex("the index is damaged, or of another version")
    end = 24 + int.from_bytes(view[16:24], "little")
    try:
        content = msgspec.msgpack.decode(view[24:end], type=_Content)
    except msgspec.MsgspecError as error:
        raise UnusableIndex("the index is damaged, or of another version") from error
    if content.code != _code():
        raise UnusableIndex("the index was written by another version")
    if content.files != _fingerprints(files):
        raise UnusableIndex("the logs have changed since they were indexed")
    columns = []
    for length in content.columns:
        columns.append(view[end : end + length])
        end += length
    return _restored(content, columns, files=files)


def save(path: Path, scan: Scan, resources: ClassifiedResources, *, files: Sequence[Path]) -> bool:
    """Keep what was read; nothing when the logs are not plain files, of which every record can be found again."""
    if any(writer.origin is None for writer in scan.writers):
        return False
    head = msgspec.msgpack.encode(_content(scan, resources, files))
    # Columns are written from where they are: a copy of them is as large as the table.
    pieces: list[bytes | memoryview] = [
        len(head).to_bytes(8, "little"),
        head,
        *(memoryview(column).cast("B") for column in scan.records.columns()),
    ]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A concurrent reader sees either the old index or the new one.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(_MAGIC + _digest(*pieces))
            stream.writelines(pieces)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
    return True


def prune(folder: Path, *, most: int = 4) -> None:
    """Remove the oldest indexes."""
    indexes = sorted(folder.glob(f"*{INDEX_SUFFIX}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in indexes[most:]:
        path.unlink(missing_ok=True)


def _digest(*pieces: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def _code() -> str:
    """Return a digest of the code that reads logs: an index is valid for one version of it only."""
    sources = [Path(phrases.__file__), Path(redact.__file__), *sorted(Path(__file__).parent.rglob("*.py"))]
    texts = b"".join(source.read_bytes() for source in sources if source.is_file())
    return f"{sys.byteorder} {hashlib.blake2b(texts, digest_size=16).hexdigest()}"


def _fingerprints(files: Sequence[Path]) -> list[tuple[str, int, int, str]]:
    fingerprints = []
    for file in files:
        try:
            stat = file.stat()
            with file.open("rb") as stream:
                ends = stream.read(_ENDS)
                stream.seek(max(0, stat.st_size - _ENDS))
                ends += stream.read(_ENDS)
        except OSError as error:
            raise UnusableIndex(f"{file.name} cannot be read") from error
        fingerprints.append((str(file.resolve()), stat.st_size, stat.st_mtime_ns, _digest(ends).hex()))
    return fingerprints


def _content(scan: Scan, resources: ClassifiedResources, files: Sequence[Path]) -> _Content:
    table = scan.records
    details = list(table.all_details())
    kinds = set(zip(table.kinds, table.details, strict=True))
    # A text is left out unless records of all its kinds have harmless details.
    secret = {number for kind, number in kinds if details[number][5] and kind not in _HARMLESS}
    unstored = [index for index, number in enumerate(table.details) if number in secret] if secret else []
    plain = resources.plain
    return _Content(
        code=_code(),
        files=_fingerprints(files),
        writers=[_writer_model(writer) for writer in scan.writers],
        unreadable_inputs=[(unreadable.name, unreadable.reason) for unreadable in scan.unreadable_inputs],
        size=scan.bytes,
        texts=list(table.ids),
        details=[(*entry[:5], "") if number in secret else entry for number, entry in enumerate(details)],
        unstored=unstored,
        columns=[len(column) * column.itemsize for column in table.columns()],
        plain=[column.tobytes() for column in (plain.resources, plain.requests, plain.events, plain.moments)],
        others=[(number, indices.tobytes()) for number, indices in resources.others.indices.items()],
        events=dict(resources.others.events),
        untied=resources.others.untied.tobytes(),
    )


def _restored(content: _Content, columns: Sequence[memoryview], *, files: Sequence[Path]) -> ReadLogs:
    table = RecordTable.restored(columns, texts=content.texts, details=content.details)
    writers = [_writer(writer) for writer in content.writers]
    if not {writer.origin for writer in writers} <= set(files):
        raise UnusableIndex("the index is of other files")
    for index in content.unstored:
        _read_details_again(table, index, writers)
    resources, requests, events, moments = content.plain
    plain = complete_requests.CompleteRequests(
        array("I", resources), array("I", requests), array("I", events), array("d", moments)
    )
    others = {number: array("I", indices) for number, indices in content.others}
    records_by_resource = attribution.RecordsByResource(others, content.events, array("I", content.untied))
    unreadable_inputs = [UnreadableInput(name=name, reason=reason) for name, reason in content.unreadable_inputs]
    return ReadLogs(
        files=tuple(files),
        scan=Scan(records=table, writers=writers, unreadable_inputs=unreadable_inputs, bytes=content.size),
        resources=ClassifiedResources(plain=plain, others=records_by_resource),
    )


def _read_details_again(table: RecordTable, index: int, writers: Sequence[LogWriter]) -> None:
    """Read a record's details again."""
    origin = writers[table.files[index]].origin
    assert origin is not None
    clock = lines.RecordClock(around=table.times[index])
    parsed = record_reader.read(record_at(origin, table.offsets[index]), clock, file=table.files[index])
    if parsed is None or parsed.record.kind != table.kinds[index]:
        raise UnusableIndex("the logs have changed since they were indexed")
    table.details[index] = table.details_number(parsed.record)


def _writer_model(writer: LogWriter) -> dict[str, Any]:
    model = {field_.name: getattr(writer, field_.name) for field_ in dataclass_fields(LogWriter)}
    for name in _COUNTS:
        model[name] = [(key if isinstance(key, str) else int(key), count) for key, count in model[name].items()]
    return {**model, "origin": str(writer.origin), **{name: sorted(model[name]) for name in _SETS}}


def _writer(model: dict[str, Any]) -> LogWriter:
    counts = {name: Counter(dict(model[name])) for name in _COUNTS}
    counts["kinds"] = Counter({RecordKind(kind): count for kind, count in model["kinds"]})
    sets = {name: set(model[name]) for name in _SETS}
    return LogWriter(**{**model, **counts, **sets, "origin": Path(model["origin"])})
