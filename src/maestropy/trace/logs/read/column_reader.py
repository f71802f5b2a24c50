"""Read many log records with the same message at once, as columns: the fast path for frequent messages.

Records of one message have the same keys in the same order. So all of them are joined and split at their quotes, and
their extensions are decoded as one JSON document. Every split is verified by counting. If one record has another
structure, the whole group is rejected; `text_reader` divides it, and leaves what is still rejected to `record_reader`.
Both readers must return the same fields for a record. Pure.
"""

import re
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from maestropy.trace.logs.log_records import (
    LARGEST_SEQUENCE,
    LARGEST_VERSION,
    STAGE_OF,
    RecordKind,
    RecordTable,
    TextNumbers,
)
from maestropy.trace.logs.read import cloudevents, phrases, record_reader
from maestropy.trace.logs.read.log_writers import LogWriter
from maestropy.trace.stages import AGENT_STAGES

_RECENT_LIMIT: Final = 4096
_KEY: Final = re.compile(rb'(?: [A-Za-z_-]+=[^ "]+)* ([A-Za-z_-]+)=')
"""The key of a quoted value, after values without quotes, which no frequent record needs."""
_EXTENSIONS: Final = b" extensions="
_NEXT: Final = ",\n"
"""Separates two documents: no JSON string can continue after it."""


class RecordColumns(NamedTuple):
    """Rows of a table with the same record kind, without their positions."""

    kind: RecordKind
    resources: Sequence[int]
    versions: Sequence[int]
    sequences: Sequence[int]
    operations: Sequence[int]
    events: Sequence[int]
    names: Sequence[int]
    details: Sequence[int]


class _RecentNumbers(dict[bytes, int]):
    """Numbers of recently used texts: these few stay in the processor's cache, those of all texts do not."""

    def __init__(self, numbers: TextNumbers) -> None:
        super().__init__()
        self._numbers_of_all = numbers

    def __missing__(self, text: bytes) -> int:
        if len(self) >= _RECENT_LIMIT:
            self.clear()
        number = self[text] = self._numbers_of_all[text]
        return number


class ColumnReader:
    """Reads the frequent messages of one file, many records at a time."""

    def __init__(self, records: RecordTable, writer: LogWriter) -> None:
        self._ids = _RecentNumbers(records.ids)
        self._add_details = records.add_details
        self._writer = writer

    def read(self, phrase: phrases.Phrase, rests: Sequence[bytes]) -> RecordColumns | None:
        """Read the texts after the closing quote of a message; None when one of them is unusual."""
        if not _is_utf8(b"".join(rests)):
            return None
        return self._events(phrase, rests) if phrase.carries_event else _READERS[phrase.kind](self, phrase, rests)

    def _numbers(self, texts: Sequence[bytes] | None) -> Sequence[int]:
        ids = self._ids
        return [ids[text] for text in texts] if texts else ()

    def _details(self, columns: Sequence[Sequence[Any]], details_of: Callable[..., tuple[Any, ...]]) -> Sequence[int]:
        """Return the details number of each row; few rows differ."""
        if all(len(_distinct(column)) == 1 for column in columns):
            return _same("I", self._add_details(details_of(*(column[0] for column in columns))), len(columns[0]))
        rows = list(zip(*columns, strict=True))
        numbers = {row: self._add_details(details_of(*row)) for row in set(rows)}
        return [numbers[row] for row in rows]

    def _same_details(self, count: int, *, action: str = "") -> Sequence[int]:
        return _same("I", self._add_details(("", "", "", action, False, "")), count)

    def _bare(self, phrase: phrases.Phrase, rests: Sequence[bytes]) -> RecordColumns | None:
        return _columns(phrase.kind, len(rests), details=self._same_details(len(rests)))

    def _steps(self, phrase: phrases.Phrase, rests: Sequence[bytes]) -> RecordColumns | None:
        table = _table(rests)
        is_publishing = phrase.kind is RecordKind.PUBLISHING
        if b"resourceID" not in table or (is_publishing and b"event" not in table):
            return None
        return _columns(
            phrase.kind, len(rests), details=self._same_details(len(rests), action=phrase.action),
            resources=self._numbers(table[b"resourceID"]), operations=self._numbers(table.get(b"op-id")),
            events=self._numbers(table[b"event"]) if is_publishing else (),
        )  # fmt: skip

    def _broadcasts(self, phrase: phrases.Phrase, rests: Sequence[bytes]) -> RecordColumns | None:
        table = _table(rests)
        if not {b"resourceID", b"status_event", b"instanceID"} <= table.keys() or b"" in table[b"status_event"]:
            return None
        none = [b""] * len(rests)
        instances = table[b"instanceID"]
        self._writer.instances |= {instance.decode() for instance in _distinct(instances) if instance}
        columns = table.get(b"statusEventType", none), table.get(b"source", none), instances
        return _columns(
            phrase.kind, len(rests), details=self._details(columns, _broadcast_details),
            resources=self._numbers(table[b"resourceID"]), events=self._numbers(table[b"status_event"]),
        )  # fmt: skip

    def _applied(self, phrase: phrases.Phrase, rests: Sequence[bytes]) -> RecordColumns | None:
        table = _table(rests)
        works = _works(table, len(rests))
        if works is None or not {b"gvr", b"resourceNamespace", b"resourceName"} <= table.keys():
            return None
        objects = table[b"gvr"], table[b"resourceNamespace"], table[b"resourceName"]
        return _columns(
            phrase.kind, len(rests), details=self._details(objects, _object_details),
            resources=self._numbers(works), operations=self._numbers(table.get(b"op-id")),
        )  # fmt: skip

    def _events(self, phrase: phrases.Phrase, rests: Sequence[bytes]) -> RecordColumns | None:
        count = len(rests)
        events = _read_events(rests)
        table = _table(events.heads, end=_EXTENSIONS) if events is not None else {}
        if events is None or b"eventType" not in table:
            return None
        types = table[b"eventType"]
        parsed_types = {event_type: cloudevents.kind_of(event_type) for event_type in _distinct(types)}
        kinds = {record_reader.event_kind(phrase.kind, *parsed) for parsed in parsed_types.values()}
        kind, action = kinds.pop(), parsed_types[types[0]][1]
        operations: list[bytes] | None = table.get(b"op-id")
        if operations is None or b"" in operations:
            operations = _operations(events.extensions)
        if kinds or kind not in STAGE_OF or operations is None:
            return None
        if STAGE_OF[kind] in AGENT_STAGES:
            self._writer.consumers |= _distinct(events.consumers) - {""}
        none = [b""] * count
        columns = (
            table.get(b"eventID", none) if kind is RecordKind.REQUEST_RECEIVED else none,
            events.consumers,
            table.get(b"eventSource", none),
            [parsed_types[event_type][1] for event_type in types] if len(parsed_types) > 1 else [action] * count,
            *events.deletions,
        )
        has_event = kind in (RecordKind.SENDING_SPEC, RecordKind.SENT_TO_AGENTS) and b"event" in table
        ids = self._ids
        names: Sequence[int] = _same("I", 0, count) if events.names == events.resources else [
            0 if name == resource else ids[name] for name, resource in zip(events.names, events.resources, strict=True)
        ]  # fmt: skip
        return RecordColumns(
            kind, self._numbers(events.resources), events.versions, events.sequences, self._numbers(operations),
            self._numbers(table[b"event"]) if has_event else _same("I", 0, count), names,
            self._details(columns, _event_details),
        )  # fmt: skip


_READERS: Final[dict[RecordKind, Callable[[ColumnReader, phrases.Phrase, Sequence[bytes]], RecordColumns | None]]] = {
    **dict.fromkeys(record_reader.STEPS, ColumnReader._steps),
    **dict.fromkeys(record_reader.OF_OBJECTS, ColumnReader._applied),
    RecordKind.BROADCAST: ColumnReader._broadcasts,
    RecordKind.NO_CLIENTS: ColumnReader._bare,
}
FREQUENT: Final = {
    message: phrase
    for message, phrase in phrases.STRUCTURED.items()
    if (phrase.carries_event or phrase.kind in _READERS) and message != phrases.ACTION_OF_G3
}
"""The messages that are read as columns."""


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        return bool(text.decode())
    except UnicodeDecodeError:
        return False


def _event_details(cloudevent_id: bytes, consumer: str, source: bytes, *others: object) -> tuple[Any, ...]:
    return cloudevent_id.decode(), consumer, source.decode(), *others


def _broadcast_details(event_type: bytes, source: bytes, instance: bytes) -> tuple[Any, ...]:
    return "", "", source.decode(), "delete" if event_type == b"StatusDelete" else "update", False, instance.decode()


def _object_details(gvr: bytes, namespace: bytes, name: bytes) -> tuple[Any, ...]:
    return "", "", "", "", False, f"{gvr.decode()} {namespace.decode()}/{name.decode()}"


def _columns(kind: RecordKind, count: int, *, details: Sequence[int], resources: Sequence[int] = (),
             operations: Sequence[int] = (), events: Sequence[int] = ()) -> RecordColumns:  # fmt: skip
    zeros = _same("I", 0, count)
    return RecordColumns(kind, resources or zeros, _same("i", -1, count), _same("q", 0, count), operations or zeros,
                         events or zeros, zeros, details)  # fmt: skip


def _distinct(column: Sequence[Any]) -> set[Any]:
    """Return the values of a column; most have one, and comparing is quicker than hashing."""
    return {column[0]} if column.count(column[0]) == len(column) else set(column)


def _same(kind: str, value: int, count: int) -> "array[int]":
    """Return a column of one value, which a table can append without conversion."""
    return array(kind, [value]) * count


_Table = dict[bytes, list[bytes]]


def _table(rests: Sequence[bytes], *, end: bytes = b"") -> _Table:
    """Return the values of each key of ` key="value"` texts that all have the same keys, and this end, or nothing."""
    count = len(rests)
    joined = b'"'.join(rests)
    if b"\\" in joined:
        return {}  # an escape: a quote may belong to a value
    flat = joined.split(b'"')
    width, over = divmod(len(flat), count)
    if over or width % 2 == 0 or flat[width - 1 :: width].count(end) != count:
        return {}
    table: _Table = {}
    for at in range(0, width - 1, 2):
        match = _KEY.fullmatch(flat[at])
        if match is None or match.group(1) in table or flat[at::width].count(flat[at]) != count:
            return {}
        table[match.group(1)] = flat[at + 1 :: width]
    return table


def _works(table: _Table, count: int) -> list[bytes] | None:
    """Return the resources whose objects were applied or deleted; None where a record may show it elsewhere."""
    names = table.get(b"manifestWorkName")
    if names is not None:
        return None if b"" in names else names
    applied_works = table.get(b"appliedManifestWorkName", [b""] * count)
    matches = [record_reader.APPLIED_WORK.fullmatch(name.decode()) for name in applied_works]
    if None in matches and b"reason" in table:
        return None
    return [match.group(1).encode() if match else b"" for match in matches]


class _Extensions(msgspec.Struct, gc=False):
    """The extensions of a CloudEvent that the tracer needs."""

    clustername: str
    metadata: str
    resourceid: str
    resourceversion: int
    sequenceid: int = 0
    logtracing: str = ""
    deletiontimestamp: object = msgspec.UNSET


class _Metadata(msgspec.Struct, gc=False):
    name: str
    deletionTimestamp: object = msgspec.UNSET  # noqa: N815 - as Kubernetes spells it
    finalizers: object = None


class _Tracing(msgspec.Struct, gc=False):
    op_id: str = msgspec.field(name=cloudevents.OP_KEY, default="")


class _Events(NamedTuple):
    heads: Sequence[bytes]
    """The text before the extensions."""
    resources: list[bytes]
    versions: list[int]
    sequences: list[int]
    consumers: list[str]
    names: list[bytes]
    deletions: tuple[list[bool], list[str]]
    """Whether it is deleting, and the detail of a confirmed deletion."""
    extensions: list[_Extensions]


# Sequences are numbers in quotes.
_read_extensions: Final = msgspec.json.Decoder(list[_Extensions], strict=False).decode
_read_metadata: Final = msgspec.json.Decoder(list[_Metadata]).decode
_read_tracing: Final = msgspec.json.Decoder(list[_Tracing]).decode


def _read_events(rests: Sequence[bytes]) -> _Events | None:
    """Return the fields of CloudEvents; None when one of them is unusual."""
    cuts = [rest.partition(b"{") for rest in rests]
    heads = [head for head, _, _ in cuts]
    if not all(head.endswith(_EXTENSIONS) for head in heads):
        return None
    try:
        extensions = _read_extensions(b"[{%b]" % b",\n{".join([document for _, _, document in cuts]))
        metadata = _read_metadata(f"[{_NEXT.join([extension.metadata for extension in extensions])}]")
        if len(extensions) != len(rests) or len(metadata) != len(rests):
            return None
        events = _Events(
            heads=heads,
            resources=[extension.resourceid.encode() for extension in extensions],
            versions=[extension.resourceversion for extension in extensions],
            sequences=[extension.sequenceid for extension in extensions],
            consumers=[extension.clustername for extension in extensions],
            names=[document.name.encode() for document in metadata],
            extensions=extensions,
            deletions=_deletions(extensions, metadata),
        )
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    is_usual = (
        b"" not in events.resources
        and 0 <= min(events.versions) <= max(events.versions) < LARGEST_VERSION
        and 0 <= min(events.sequences) <= max(events.sequences) < LARGEST_SEQUENCE
    )
    return events if is_usual else None


def _deletions(extensions: Sequence[_Extensions], metadata: Sequence[_Metadata]) -> tuple[list[bool], list[str]]:
    unset, count = msgspec.UNSET, len(extensions)
    deleting = [
        extension.deletiontimestamp is not unset or document.deletionTimestamp is not unset
        for extension, document in zip(extensions, metadata, strict=True)
    ]
    if True not in deleting:
        return deleting, [""] * count
    are_final = [
        is_deleting and not document.finalizers for is_deleting, document in zip(deleting, metadata, strict=True)
    ]
    return deleting, ["final" if is_final else "" for is_final in are_final]


def _operations(extensions: Sequence[_Extensions]) -> list[bytes] | None:
    """Return the op-ids in the extensions of events."""
    try:
        documents = _read_tracing(f"[{_NEXT.join([extension.logtracing or '{}' for extension in extensions])}]")
    except (msgspec.MsgspecError, RecursionError):
        return None
    return [document.op_id.encode() for document in documents] if len(documents) == len(extensions) else None
