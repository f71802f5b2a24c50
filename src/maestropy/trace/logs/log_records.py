"""The log record of a request, and a compact table of many records.

A table needs about fifty bytes per record, so the records of a large fleet fit into memory; their text stays in the
files. This module only stores: it neither reads lines nor judges them.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from maestropy.trace.logs.evidence import STAGE_OF as STAGE_OF
from maestropy.trace.logs.evidence import RecordKind as RecordKind

LARGEST_VERSION = 1 << 31
LARGEST_SEQUENCE = 1 << 63
LARGE = "the event is large: "
"""The prefix of the detail of an event that is larger than brokers usually accept."""
APPLIED = "applied"
"""The detail of a status that says that the agent applied the version it is about."""
APPLIED_AND_GONE = "applied, objects gone"
"""The same, of a status that says that none of the objects exists any more."""
NOT_AVAILABLE = "applied, not available: "
"""The prefix of the detail of a status that says that it is applied and not available, before the reason."""
NOT_APPLIED = "not applied: "
"""The prefix of the detail of a status that says that the agent could not apply it, before the reason."""
NOT_TRIED = "not tried yet"
"""The detail of a status of a version that says only what became of the version before: Go agents send such a one."""
OBJECTS = "objects: "
"""The prefix of the detail of a request whose manifests the record shows, before their identities."""
_PAYLOAD = "; payload "
"""Separates the identities from a digest of what the request wants."""


def objects_detail(objects: Sequence[str], digest: str) -> str:
    """Return the detail of a request whose manifests the record shows."""
    return f"{OBJECTS}{', '.join(objects)}{_PAYLOAD}{digest}"


def objects_of(detail: str) -> list[str]:
    """Return the identities of the objects that a request wants, where its record shows them."""
    return detail.removeprefix(OBJECTS).partition(_PAYLOAD)[0].split(", ") if detail.startswith(OBJECTS) else []


def payload_of(detail: str) -> str:
    """Return the digest of what a request wants; empty where its record does not show it."""
    return detail.partition(_PAYLOAD)[2] if detail.startswith(OBJECTS) else ""


def says_applied(detail: str) -> bool:
    """Say whether the detail of a status says that the version it is about was applied."""
    return detail in (APPLIED, APPLIED_AND_GONE) or detail.startswith(NOT_AVAILABLE)


_KINDS_BY_NUMBER = {int(kind): kind for kind in RecordKind}
_STAGES = [STAGE_OF.get(_KINDS_BY_NUMBER[number], 0) if number in _KINDS_BY_NUMBER else 0 for number in range(128)]


class LogRecord(NamedTuple):
    """One log record; fields that it does not have are empty, 0 or -1."""

    kind: RecordKind
    at: float
    """Seconds since 1970 by the writer's clock; 0 when the record has no readable time."""
    file: int
    line: int
    offset: int
    resource: str = ""
    """The resource ID, or the work name where an old agent knows nothing else."""
    version: int = -1
    sequence: int = 0
    op_id: str = ""
    event: str = ""
    """The id of the event in the database, or of the subscription."""
    cloudevent_id: str = ""
    """The id of the CloudEvent."""
    name: str = ""
    consumer: str = ""
    source: str = ""
    action: str = ""
    """create, update, delete, or resync."""
    is_deleting: bool = False
    detail: str = ""
    repeats: int = 0
    """How many equal records follow that are left out."""

    @property
    def stage(self) -> int:
        """The stage it belongs to; 0 for none."""
        return _STAGES[self.kind]


def count_of(records: Iterable[LogRecord]) -> int:
    """Return how many records there are, with those that are left out."""
    return sum(1 + record.repeats for record in records)


RecordRow = tuple[int, float, int, int, int, int, int, int, int, int, int]
"""Kind, time, line, offset, resource, version, sequence, operation, event, name, details; texts by their numbers."""
RecordDetails = tuple[str, str, str, str, bool, str]
"""The CloudEvent's id, consumer, source, action, whether it is deleting, detail: few differ between records."""


class TextNumbers(dict[bytes, int]):
    """Numbers for texts, in the order in which these were met; 0 is the empty one."""

    def __missing__(self, text: bytes) -> int:
        number = self[text] = len(self)
        return number


class RecordTable:
    """Many records, as columns of numbers; each text is stored once. Columns are read-only for others."""

    def __init__(self) -> None:
        self.kinds = array("B")
        self.files = array("I")
        self.times = array("d")
        self.lines = array("I")
        self.offsets = array("Q")
        self.resources = array("I")
        self.versions = array("i")
        self.sequences = array("q")
        self.operations = array("I")
        self.events = array("I")
        self.names = array("I")
        self.details = array("I")
        self.is_partial = False
        """Whether records of other resources are missing, because only some were searched."""
        self.ids = TextNumbers({b"": 0})
        self._texts: list[bytes] = []
        self._details_numbers: dict[RecordDetails, int] = {}
        self._details: list[RecordDetails] = []

    def __len__(self) -> int:
        return len(self.times)

    def row(self, record: LogRecord) -> RecordRow:
        number = self.number
        details = self.details_number(record)
        # A damaged record may have a number of any length.
        version = record.version if record.version < LARGEST_VERSION else -1
        sequence = record.sequence if record.sequence < LARGEST_SEQUENCE else 0
        return (int(record.kind), record.at, record.line, record.offset, number(record.resource), version, sequence,
                number(record.op_id), number(record.event), number(record.name), details)  # fmt: skip

    def add(self, record: LogRecord) -> None:
        self.extend([self.row(record)], file=record.file)

    def extend(self, rows: Sequence[RecordRow], *, file: int) -> None:
        if rows:
            self.extend_columns(tuple(zip(*rows, strict=True)), count=len(rows), file=file)

    def extend_columns(self, values: Sequence[Sequence[Any]], *, count: int, file: int) -> None:
        """Append rows of one file, given as columns in the order of a row."""
        if any(len(added) != count for added in values):
            raise ValueError("columns of one table have one length")
        for column, added in zip(self._columns(), values, strict=True):
            if isinstance(added, list):
                column.fromlist(added)
            else:
                column.extend(added)
        self.files.extend(array("I", [file]) * count)

    def keep(self, wanted: Sequence[bool]) -> None:
        for column in self.columns():
            kept = [value for value, is_wanted in zip(column, wanted, strict=True) if is_wanted]
            del column[:]
            column.fromlist(kept)

    def columns(self) -> "tuple[array[Any], ...]":
        return (*self._columns(), self.files)

    def __reduce__(self) -> tuple[Any, ...]:
        # Between processes texts are sent as a list: pickle would fill a dict subclass item by item.
        return partial(RecordTable.restored, texts=list(self.ids), details=self._details), (
            [column.tobytes() for column in self.columns()],
        )

    @classmethod
    def restored(
        cls, columns: Sequence[bytes | memoryview], *, texts: Sequence[bytes], details: Sequence[RecordDetails]
    ) -> "RecordTable":
        table = cls()
        for column, data in zip(table.columns(), columns, strict=True):
            column.frombytes(data)
        table.ids = TextNumbers(zip(texts, range(len(texts)), strict=True))
        table._details = list(details)
        table._details_numbers = {entry: number for number, entry in enumerate(details)}
        return table

    def _columns(self) -> "tuple[array[Any], ...]":
        return (self.kinds, self.times, self.lines, self.offsets, self.resources, self.versions, self.sequences,
                self.operations, self.events, self.names, self.details)  # fmt: skip

    def number(self, text: str) -> int:
        return self.ids[text.encode("utf-8", "surrogatepass")] if text else 0

    def text(self, number: int) -> str:
        if number >= len(self._texts):
            self._texts = list(self.ids)
        return self._texts[number].decode("utf-8", "surrogatepass")

    def details_number(self, record: LogRecord) -> int:
        return self.add_details(
            (record.cloudevent_id, record.consumer, record.source, record.action, record.is_deleting, record.detail)
        )

    def all_details(self) -> Sequence[RecordDetails]:
        return self._details

    def add_details(self, details: RecordDetails) -> int:
        number = self._details_numbers.get(details)
        if number is None:
            number = self._details_numbers[details] = len(self._details)
            self._details.append(details)
        return number

    def details_of(self, index: int) -> RecordDetails:
        return self._details[self.details[index]]

    def details_at(self, number: int) -> RecordDetails:
        """Return what few records differ in, behind its number."""
        return self._details[number]

    def __getitem__(self, index: int) -> LogRecord:
        if len(self._texts) < len(self.ids):
            self._texts = list(self.ids)
        texts = self._texts
        resource, op_id = self.resources[index], self.operations[index]
        event, name = self.events[index], self.names[index]
        cloudevent_id, consumer, source, action, is_deleting, detail = self._details[self.details[index]]
        return LogRecord(
            _KINDS_BY_NUMBER[self.kinds[index]],
            self.times[index],
            self.files[index],
            self.lines[index],
            self.offsets[index],
            # Most records have one or two of these four.
            texts[resource].decode("utf-8", "surrogatepass") if resource else "",
            self.versions[index],
            self.sequences[index],
            texts[op_id].decode("utf-8", "surrogatepass") if op_id else "",
            texts[event].decode("utf-8", "surrogatepass") if event else "",
            cloudevent_id,
            texts[name].decode("utf-8", "surrogatepass") if name else "",
            consumer,
            source,
            action,
            is_deleting,
            detail,
        )

    def __iter__(self) -> Iterator[LogRecord]:
        return (self[index] for index in range(len(self)))

    def join(self, other: "RecordTable", *, files: int, lines: int = 0) -> None:
        """Append another table; shift its file numbers by `files` and the line numbers of its first file by `lines`."""
        ids = self.ids
        numbers = [ids[text] for text in other.ids]
        details = [self.add_details(entry) for entry in other._details]
        self.kinds.extend(other.kinds)
        self.times.extend(other.times)
        begun = other.files.count(0) if lines else 0
        self.lines.extend(array("I", [line + lines for line in other.lines[:begun]]))
        self.lines.extend(other.lines[begun:])
        self.offsets.extend(other.offsets)
        self.versions.extend(other.versions)
        self.sequences.extend(other.sequences)
        alone = not any(other.files)  # as in every part of a file
        count = len(other.files)
        self.files.extend(array("I", [files]) * count if alone else array("I", [file + files for file in other.files]))
        if count:
            for own, added in ((self.resources, other.resources), (self.operations, other.operations),
                                 (self.events, other.events), (self.names, other.names)):  # fmt: skip
                own.fromlist(list(_picked(numbers, added)))
            self.details.fromlist(list(_picked(details, other.details)))

    def cut(self, length: int) -> None:
        for column in self._columns():
            del column[length:]
        del self.files[length:]

    def renumber(self, files: Mapping[int, int]) -> None:
        """Give files other numbers; those without one have no rows."""
        self.files = array("I", [files[file] for file in self.files])

    def runs(self, *kinds: RecordKind) -> Iterator[range]:
        """Return the index ranges of records of some kinds; records read together are adjacent."""
        letters = b"".join(re.escape(bytes([kind])) for kind in kinds)
        pattern = letters if len(kinds) == 1 else b"[%b]" % letters
        # A pattern that starts with a literal is searched much faster than one that starts with a repetition.
        return (range(*match.span()) for match in re.finditer(pattern + pattern + b"*", self.kinds.tobytes()))

    def indices(self, *kinds: RecordKind) -> Iterator[int]:
        return chain.from_iterable(self.runs(*kinds))

    def select(self, *kinds: RecordKind) -> Iterator[LogRecord]:
        return (self[index] for index in self.indices(*kinds))


def _picked(values: Sequence[int], indices: Sequence[int]) -> tuple[int, ...]:
    """Return the values at some indices."""
    return itemgetter(*indices)(values) if len(indices) > 1 else (values[indices[0]],)
