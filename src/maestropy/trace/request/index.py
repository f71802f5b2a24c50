"""Keep what was read from logs, so that the same logs need not be read twice.

An index belongs to files of a certain size, age and content, and to the code that read them; anything else, and any
damage, makes it worthless, and then it is ignored with a reason. It holds ids, times and places in the files. What
people or programs wrote in sentences (errors above all) is not in it: such records are read again from the logs.
"""

import hashlib
import os
import sys
import tempfile
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any, Final

import msgspec

from maestropy.journal import fields
from maestropy.trace.request import attach, bulk, cloudevents, hits, lines, phrases, plainly, reading, swift, textscan
from maestropy.trace.request.hits import Hits, What
from maestropy.trace.request.inputs import Writer
from maestropy.trace.request.scan import Scan, record_at
from maestropy.trace.request.sources import INDEX_SUFFIX, Refusal
from maestropy.trace.request.survey import Sorted

_MAGIC: Final = b"maestro trace index 1\n"
_ENDS: Final = 64 << 10
_READERS: Final = (attach, bulk, cloudevents, fields, hits, lines, phrases, plainly, reading, swift, textscan)
_HARMLESS: Final = frozenset({
    What.APPLIED, What.DELETING, What.REMOVED, What.BROADCAST, What.STALE, What.SENDING_STATUS, What.RECEIVED_STATUS,
    What.UPDATING, What.TO_CLIENTS, What.PENDING_DELETION,
})  # fmt: skip
"""Sayings whose details are names, numbers or words of ours."""


_COUNTS: Final = ("generations", "roles", "stages", "seen")
_SETS: Final = ("consumers", "instances")


class Useless(Exception):
    """The index cannot be used; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What an index gives back."""

    scan: Scan
    resources: Sorted


class _Content(msgspec.Struct, array_like=True):
    """What stands in an index besides columns."""

    code: str
    files: list[tuple[str, int, int, str]]
    writers: list[dict[str, Any]]
    refused: list[tuple[str, str]]
    size: int
    words: list[bytes]
    rests: list[tuple[str, str, str, str, bool, str]]
    untold: list[int]
    """Rows whose details are in the logs only."""
    columns: list[int]
    """How long the columns are that follow."""
    plain: list[bytes]
    others: list[tuple[int, bytes]]
    events: dict[int, int]


def home(environ: Mapping[str, str]) -> Path:
    """Return the folder for indexes of this user."""
    cache = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "maestropy" / "trace"


def place(files: Sequence[Path], folder: Path) -> Path:
    """Return where the index of these files is kept."""
    names = "\0".join(str(file.resolve()) for file in files)
    return folder / f"{hashlib.blake2b(names.encode(), digest_size=16).hexdigest()}{INDEX_SUFFIX}"


def load(path: Path, files: Sequence[Path]) -> Kept:
    """Return what was kept of these files."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Useless(f"there is no index yet ({error.strerror})") from error
    view = memoryview(data)[len(_MAGIC) :]
    if data[: len(_MAGIC)] != _MAGIC or view[:16] != _digest(view[16:]):
        raise Useless("the index is damaged, or of another version")
    end = 24 + int.from_bytes(view[16:24], "little")
    try:
        content = msgspec.msgpack.decode(view[24:end], type=_Content)
    except msgspec.MsgspecError as error:
        raise Useless("the index is damaged, or of another version") from error
    if content.code != _code():
        raise Useless("the index was written by another version")
    if content.files != _fingerprints(files):
        raise Useless("the logs have changed since they were indexed")
    columns = []
    for length in content.columns:
        columns.append(view[end : end + length])
        end += length
    return _kept(content, columns, files=files)


def save(path: Path, scan: Scan, resources: Sorted, *, files: Sequence[Path]) -> bool:
    """Keep what was read; nothing when the logs are not plain files, of which every record can be found again."""
    if any(each.origin is None for each in scan.writers):
        return False
    head = msgspec.msgpack.encode(_content(scan, resources, files))
    # Columns are written from where they are: a copy of them is as large as the table.
    pieces: list[bytes | memoryview] = [
        len(head).to_bytes(8, "little"),
        head,
        *(memoryview(each).cast("B") for each in scan.hits.columns()),
    ]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Whoever reads it meanwhile sees the old one or the new one.
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
    """Remove the oldest indexes, for logs come and go."""
    found = sorted(folder.glob(f"*{INDEX_SUFFIX}"), key=lambda each: each.stat().st_mtime, reverse=True)
    for each in found[most:]:
        each.unlink(missing_ok=True)


def _digest(*pieces: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def _code() -> str:
    """Return what stands for the code that reads: an index is as good as its reader."""
    sources = [Path(module.__file__ or "") for module in _READERS]
    texts = b"".join(each.read_bytes() for each in sources if each.is_file())
    return f"{sys.byteorder} {hashlib.blake2b(texts, digest_size=16).hexdigest()}"


def _fingerprints(files: Sequence[Path]) -> list[tuple[str, int, int, str]]:
    found = []
    for file in files:
        try:
            stat = file.stat()
            with file.open("rb") as stream:
                ends = stream.read(_ENDS)
                stream.seek(max(0, stat.st_size - _ENDS))
                ends += stream.read(_ENDS)
        except OSError as error:
            raise Useless(f"{file.name} cannot be read") from error
        found.append((str(file.resolve()), stat.st_size, stat.st_mtime_ns, _digest(ends).hex()))
    return found


def _content(scan: Scan, resources: Sorted, files: Sequence[Path]) -> _Content:
    table = scan.hits
    rests = list(table.all_rests())
    kinds = set(zip(table.whats, table.rests, strict=True))
    # A text is left out unless only names, numbers and words of ours are said with it.
    secret = {rest for what, rest in kinds if rests[rest][5] and what not in _HARMLESS}
    untold = [index for index, rest in enumerate(table.rests) if rest in secret] if secret else []
    plain = resources.plain
    return _Content(
        code=_code(),
        files=_fingerprints(files),
        writers=[_writer_model(each) for each in scan.writers],
        refused=[(each.name, each.reason) for each in scan.refused],
        size=scan.bytes,
        words=list(table.ids),
        rests=[(*rest[:5], "") if number in secret else rest for number, rest in enumerate(rests)],
        untold=untold,
        columns=[len(column) * column.itemsize for column in table.columns()],
        plain=[each.tobytes() for each in (plain.resources, plain.wishes, plain.events, plain.moments)],
        others=[(number, indices.tobytes()) for number, indices in resources.others.places.items()],
        events=dict(resources.others.events),
    )


def _kept(content: _Content, columns: Sequence[memoryview], *, files: Sequence[Path]) -> Kept:
    table = Hits.restored(columns, words=content.words, rests=content.rests)
    writers = [_writer(each) for each in content.writers]
    if not {each.origin for each in writers} <= set(files):
        raise Useless("the index is of other files")
    for index in content.untold:
        _tell(table, index, writers)
    resources, wishes, events, moments = content.plain
    plain = plainly.Verdicts(array("I", resources), array("I", wishes), array("I", events), array("d", moments))
    others = {number: array("I", indices) for number, indices in content.others}
    grouping = attach.Grouping(others, content.events)
    refused = [Refusal(name=name, reason=reason) for name, reason in content.refused]
    return Kept(
        scan=Scan(hits=table, writers=writers, refused=refused, bytes=content.size),
        resources=Sorted(plain=plain, others=grouping),
    )


def _tell(table: Hits, index: int, writers: Sequence[Writer]) -> None:
    """Read a record's details again."""
    origin = writers[table.files[index]].origin
    assert origin is not None
    clock = lines.Clock(around=table.times[index])
    said = reading.read(record_at(origin, table.offsets[index]), clock, file=table.files[index])
    if said is None or said.hit.what != table.whats[index]:
        raise Useless("the logs have changed since they were indexed")
    table.rests[index] = table.rest_number(said.hit)


def _writer_model(writer: Writer) -> dict[str, Any]:
    model = {each.name: getattr(writer, each.name) for each in dataclass_fields(Writer)}
    for name in _COUNTS:
        model[name] = [(key if isinstance(key, str) else int(key), count) for key, count in model[name].items()]
    return {**model, "origin": str(writer.origin), **{name: sorted(model[name]) for name in _SETS}}


def _writer(model: dict[str, Any]) -> Writer:
    counts = {name: Counter(dict(model[name])) for name in _COUNTS}
    counts["seen"] = Counter({What(what): count for what, count in model["seen"]})
    sets = {name: set(model[name]) for name in _SETS}
    return Writer(**{**model, **counts, **sets, "origin": Path(model["origin"])})
