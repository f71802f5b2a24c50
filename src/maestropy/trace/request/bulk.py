"""Read many records of one message at once, as columns.

Records of one message have the same keys in the same order, so that all of them, put behind each other and cut at their
quotes, are a table already; their extensions, put behind each other, are one JSON document. Every cut is checked by
counting: one record of another structure spoils the count, and the whole lot is refused; `swift` then reads it one by
one. Nothing else is decided here. Pure.
"""

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from maestropy.journal.fields import Accept, Deliver, Fanout
from maestropy.trace.request.hits import LARGEST_SEQUENCE, LARGEST_VERSION, Hits, What, Words
from maestropy.trace.request.swift import APPLYING, EVENTS, KINDS, PUBLISHING, STEPS, Swift

_LATELY: Final = 4096
_NEXT: Final = ",\n"
"""Between two documents: no text within one can go on behind it."""


class Columns(NamedTuple):
    """Rows of a table that say the same, without their places."""

    what: int
    resources: Sequence[int]
    versions: Sequence[int]
    sequences: Sequence[int]
    operations: Sequence[int]
    events: Sequence[int]
    names: Sequence[int]
    rests: Sequence[int]


class _Near(dict[bytes, int]):
    """The numbers of the words lately met: so few stay in the processor's cache, those of all words do not."""

    def __init__(self, words: Words) -> None:
        super().__init__()
        self._words = words

    def __missing__(self, word: bytes) -> int:
        if len(self) >= _LATELY:
            self.clear()
        number = self[word] = self._words[word]
        return number


class Bulk:
    """Readers of the frequent messages of one file, many records at a time."""

    def __init__(self, hits: Hits, swift: Swift) -> None:
        self._ids = _Near(hits.ids)
        self._swift = swift
        self.readers: dict[bytes, Callable[[Sequence[bytes]], Columns | None]] = {
            Fanout.NO_CLIENTS.encode(): self._bare,
            Fanout.BROADCAST.encode(): self._broadcasts,
            **{message: self._steps(what) for message, what in STEPS.items()},
            **{message: self._publishing(action) for message, action in PUBLISHING.items()},
            **{message: self._applied(what) for message, what in APPLYING.items()},
            **{message: self._events(message) for message in EVENTS},
        }
        """By message; each takes what follows the message's closing quote, record by record."""

    def _bare(self, rests: Sequence[bytes]) -> Columns:
        return self._columns(
            What.NO_CLIENTS, len(rests), rests=_same("I", self._swift.rest_of(What.NO_CLIENTS), len(rests))
        )

    def _columns(self, what: int, count: int, *, rests: Sequence[int], resources: Sequence[int] = (),
                 operations: Sequence[int] = (), events: Sequence[int] = ()) -> Columns:  # fmt: skip
        return Columns(what, resources or _same("I", 0, count), _same("i", -1, count),
                       _same("q", 0, count), operations or _same("I", 0, count), events or _same("I", 0, count),
                       _same("I", 0, count), rests)  # fmt: skip

    def _numbers(self, table: "_Table", key: bytes) -> Sequence[int]:
        column = table.get(key)
        ids = self._ids
        return [ids[word] for word in column] if column else ()

    def _steps(self, what: int) -> Callable[[Sequence[bytes]], Columns | None]:
        def read(rests: Sequence[bytes]) -> Columns | None:
            table = _table(rests)
            if b"resourceID" not in table:
                return None
            return self._columns(
                what, len(rests), rests=_same("I", self._swift.rest_of(what), len(rests)),
                resources=self._numbers(table, b"resourceID"), operations=self._numbers(table, b"op-id"),
            )  # fmt: skip

        return read

    def _publishing(self, action: str) -> Callable[[Sequence[bytes]], Columns | None]:
        def read(rests: Sequence[bytes]) -> Columns | None:
            table = _table(rests)
            if b"resourceID" not in table or b"event" not in table:
                return None
            return self._columns(
                What.PUBLISHING, len(rests), rests=_same("I", self._swift.rest_of(What.PUBLISHING, action), len(rests)),
                resources=self._numbers(table, b"resourceID"), operations=self._numbers(table, b"op-id"),
                events=self._numbers(table, b"event"),
            )  # fmt: skip

        return read

    def _broadcasts(self, rests: Sequence[bytes]) -> Columns | None:
        table = _table(rests)
        if not {b"resourceID", b"status_event", b"instanceID", b"source", b"statusEventType"} <= table.keys():
            return None
        if b"" in table[b"status_event"]:
            return None
        said = table[b"statusEventType"], table[b"source"], table[b"instanceID"]
        return self._columns(
            What.BROADCAST, len(rests), rests=_mapped(said, self._swift.broadcast_rest),
            resources=self._numbers(table, b"resourceID"), events=self._numbers(table, b"status_event"),
        )  # fmt: skip

    def _applied(self, what: int) -> Callable[[Sequence[bytes]], Columns | None]:
        def read(rests: Sequence[bytes]) -> Columns | None:
            table = _table(rests)
            if not {b"manifestWorkName", b"gvr", b"resourceNamespace", b"resourceName"} <= table.keys():
                return None
            objects = table[b"gvr"], table[b"resourceNamespace"], table[b"resourceName"]
            return self._columns(
                what, len(rests), rests=_mapped(objects, partial(self._swift.applied_rest, what)),
                resources=self._numbers(table, b"manifestWorkName"), operations=self._numbers(table, b"op-id"),
            )  # fmt: skip

        return read

    def _events(self, message: bytes) -> Callable[[Sequence[bytes]], Columns | None]:
        whats, is_sending = EVENTS[message], message == Deliver.SENDING.encode()
        is_wish = message == Accept.RECEIVED.encode()

        def read(rests: Sequence[bytes]) -> Columns | None:
            count = len(rests)
            told = _events(rests)
            if told is None:
                return None
            table = _table(told.heads, end=b" extensions=")
            if b"eventType" not in table or b"op-id" not in table or b"" in table[b"op-id"]:
                return None
            types = table[b"eventType"]
            kinds = {each: KINDS.get(each, ("", "")) for each in _distinct(types)}
            halves = {half for half, _ in kinds.values()}
            what = {"spec": whats.spec, "status": whats.status}.get(halves.pop(), 0)
            if halves or not what:
                return None
            actions = [kinds[types[0]][1]] * count if len(kinds) == 1 else [kinds[each][1] for each in types]
            sources = table.get(b"eventSource") or [b""] * count
            if is_wish:
                ces = table.get(b"eventID") or [b""] * count
                wished = zip(ces, told.consumers, sources, actions, strict=True)
                rest_numbers: Sequence[int] = [self._swift.wish_rest(*each) for each in wished]
            else:
                said = told.consumers, sources, actions
                rest_numbers = _mapped(said, partial(self._swift.event_rest, what))
            has_event = is_sending and what == What.SENDING_SPEC and b"event" in table
            ids = self._ids
            named = _same("I", 0, count) if told.names == told.resources else [
                0 if name == resource else ids[name]
                for name, resource in zip(told.names, told.resources, strict=True)
            ]  # fmt: skip
            return Columns(
                what, [ids[resource] for resource in told.resources], told.versions, told.sequences,
                self._numbers(table, b"op-id"),
                self._numbers(table, b"event") if has_event else _same("I", 0, count), named, rest_numbers,
            )  # fmt: skip

        return read


def _mapped(said: Sequence[Sequence[Any]], number: Callable[..., int]) -> Sequence[int]:
    """Return the number of what each row of some columns says, of which few are different."""
    if all(len(_distinct(column)) == 1 for column in said):
        return _same("I", number(*(column[0] for column in said)), len(said[0]))
    rows = list(zip(*said, strict=True))
    numbers = {row: number(*row) for row in set(rows)}
    return [numbers[row] for row in rows]


def _distinct(column: Sequence[Any]) -> set[Any]:
    """Return the values of a column; most have one, and comparing is quicker than hashing."""
    return {column[0]} if column.count(column[0]) == len(column) else set(column)


def _same(kind: str, value: int, count: int) -> "array[int]":
    """Return a column of one value, which a table takes without looking at it."""
    return array(kind, [value]) * count


_Table = dict[bytes, list[bytes]]


def _table(rests: Sequence[bytes], *, end: bytes = b"") -> _Table:
    """Return the values of each key of ` key="value"` texts that all have the same keys, and this end, or nothing."""
    count = len(rests)
    flat = (b'"'.join(rests)).split(b'"')
    width, over = divmod(len(flat), count)
    if over or width % 2 == 0 or flat[width - 1 :: width].count(end) != count:
        return {}
    table: _Table = {}
    for at in range(0, width - 1, 2):
        key = flat[at]
        if key[:1] != b" " or key[-1:] != b"=" or key[1:-1] in table or flat[at::width].count(key) != count:
            return {}
        table[key[1:-1]] = flat[at + 1 :: width]
    return table


class _Extensions(msgspec.Struct, gc=False):
    """Those of a CloudEvent that tell something."""

    clustername: str
    metadata: str
    resourceid: str
    resourceversion: int
    sequenceid: int = 0
    deletiontimestamp: object = msgspec.UNSET


class _Metadata(msgspec.Struct, gc=False):
    name: str
    deletionTimestamp: object = msgspec.UNSET  # noqa: N815 - as Kubernetes spells it


class _Events(NamedTuple):
    heads: Sequence[bytes]
    """What stands before the extensions."""
    resources: list[bytes]
    versions: list[int]
    sequences: list[int]
    consumers: list[str]
    names: list[bytes]


_read_extensions: Final = msgspec.json.Decoder(
    list[_Extensions], strict=False
).decode  # sequences are numbers in quotes
_read_metadata: Final = msgspec.json.Decoder(list[_Metadata]).decode


def _events(rests: Sequence[bytes]) -> _Events | None:
    """Return what CloudEvents say; nothing when one of them is unusual, or leaves."""
    cuts = [rest.split(b"{", 1) for rest in rests]
    try:
        extensions = _read_extensions(b"[{%b]" % b",\n{".join([document for _, document in cuts]))
        metadata = _read_metadata(f"[{_NEXT.join([each.metadata for each in extensions])}]")
        found = _Events(
            heads=[head for head, _ in cuts],
            resources=[each.resourceid.encode() for each in extensions],
            versions=[each.resourceversion for each in extensions],
            sequences=[each.sequenceid for each in extensions],
            consumers=[each.clustername for each in extensions],
            names=[each.name.encode() for each in metadata],
        )
    except (msgspec.MsgspecError, ValueError):
        return None
    is_usual = (
        len(found.resources) == len(found.names) == len(rests)
        and b"" not in found.resources
        and all(each.deletiontimestamp is msgspec.UNSET for each in extensions)
        and all(each.deletionTimestamp is msgspec.UNSET for each in metadata)
        and 0 <= min(found.versions) <= max(found.versions) < LARGEST_VERSION
        and 0 <= min(found.sequences) <= max(found.sequences) < LARGEST_SEQUENCE
    )
    return found if is_usual else None
