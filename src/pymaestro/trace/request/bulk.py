"""Read many records of one message at once, as columns.

Records of one message have the same keys in the same order, so that all of them, put behind each other and cut at their
quotes, are a table already. Every cut is checked by counting: one record of another structure spoils the count, and the
whole lot is refused; `swift` then reads it one by one. Nothing else is decided here. Pure.
"""

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter, methodcaller
from typing import Any, Final, NamedTuple

from pymaestro.journal.fields import Accept, Deliver, Fanout
from pymaestro.trace.request.hits import LARGEST_SEQUENCE, LARGEST_VERSION, Hits, What
from pymaestro.trace.request.swift import APPLYING, EVENTS, KINDS, PUBLISHING, STEPS, Swift

_CUT: Final = b'","'
_SEQUENCE: Final = b',"sequenceid":"'
_before_escape: Final = methodcaller("partition", b"\\")
_first: Final = itemgetter(0)


class Columns(NamedTuple):
    """Rows of a table without their places."""

    whats: Sequence[int]
    resources: Sequence[int]
    versions: Sequence[int]
    sequences: Sequence[int]
    operations: Sequence[int]
    events: Sequence[int]
    names: Sequence[int]
    rests: Sequence[int]


class Bulk:
    """Readers of the frequent messages of one file, many records at a time."""

    def __init__(self, hits: Hits, swift: Swift) -> None:
        self._ids = hits.ids
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
        return Columns(_same("B", what, count), resources or _same("I", 0, count), _same("i", -1, count),
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
        said = zip(table[b"statusEventType"], table[b"source"], table[b"instanceID"], strict=True)
        return self._columns(
            What.BROADCAST, len(rests), rests=_mapped(list(said), self._swift.broadcast_rest),
            resources=self._numbers(table, b"resourceID"), events=self._numbers(table, b"status_event"),
        )  # fmt: skip

    def _applied(self, what: int) -> Callable[[Sequence[bytes]], Columns | None]:
        def read(rests: Sequence[bytes]) -> Columns | None:
            table = _table(rests)
            if not {b"manifestWorkName", b"gvr", b"resourceNamespace", b"resourceName"} <= table.keys():
                return None
            objects = zip(table[b"gvr"], table[b"resourceNamespace"], table[b"resourceName"], strict=True)
            return self._columns(
                what, len(rests), rests=_mapped(list(objects), partial(self._swift.applied_rest, what)),
                resources=self._numbers(table, b"manifestWorkName"), operations=self._numbers(table, b"op-id"),
            )  # fmt: skip

        return read

    def _events(self, message: bytes) -> Callable[[Sequence[bytes]], Columns | None]:
        whats, is_sending = EVENTS[message], message == Deliver.SENDING.encode()
        is_wish = message == Accept.RECEIVED.encode()

        def read(rests: Sequence[bytes]) -> Columns | None:
            count = len(rests)
            attributes = _attributes(rests)
            if attributes is None:
                return None
            heads, resources, versions, sequences, names = attributes
            # What stands before the extensions, and the first of these up to its value.
            table = _table(heads, end=b' extensions={"clustername":"')
            if b"eventType" not in table or b"op-id" not in table:
                return None
            kinds = {kind: KINDS.get(kind) for kind in set(table[b"eventType"])}
            halves = {kind[0] if kind else "" for kind in kinds.values()}
            what = {"spec": whats.spec, "status": whats.status}.get(halves.pop(), 0)
            if halves or not what:
                return None
            actions = [kinds[kind][1] for kind in table[b"eventType"]]  # type: ignore[index]  # none is unknown
            sources = table.get(b"eventSource") or [b""] * count
            if is_wish:
                ces = table.get(b"eventID") or [b""] * count
                told = zip(ces, table[b""], sources, actions, strict=True)
                rest_numbers: Sequence[int] = [self._swift.wish_rest(*each) for each in told]
            else:
                said = zip(table[b""], sources, actions, strict=True)
                rest_numbers = _mapped(list(said), partial(self._swift.event_rest, what))
            has_event = is_sending and what == What.SENDING_SPEC and b"event" in table
            ids = self._ids
            named = _same("I", 0, count) if names == resources else [
                0 if name == resource else ids[name] for name, resource in zip(names, resources, strict=True)
            ]  # fmt: skip
            return Columns(
                _same("B", what, count), [ids[resource] for resource in resources], versions, sequences,
                self._numbers(table, b"op-id"),
                self._numbers(table, b"event") if has_event else _same("I", 0, count), named, rest_numbers,
            )  # fmt: skip

        return read


def _mapped(said: Sequence[tuple[Any, ...]], number: Callable[..., int]) -> Sequence[int]:
    """Return the number of each saying, of which few are different."""
    numbers = {each: number(*each) for each in set(said)}
    return _same("I", numbers[said[0]], len(said)) if len(numbers) == 1 else [numbers[each] for each in said]


def _same(kind: str, value: int, count: int) -> "array[int]":
    """Return a column of one value, which a table takes without looking at it."""
    return array(kind, [value]) * count


_Table = dict[bytes, list[bytes]]


def _table(rests: Sequence[bytes], *, end: bytes = b"") -> _Table:
    """Return the values of each key of ` key="value"` texts that all have the same keys; nothing when they do not.

    With `end`, every text ends in the value that follows it, which is given for the empty key.
    """
    count = len(rests)
    tail = end.count(b'"')
    flat = (b'"'.join(rests)).split(b'"')
    width, over = divmod(len(flat), count)
    if over or (width - tail) % 2 == 0:
        return {}
    pairs = (width - tail) // 2
    table: _Table = {}
    for at in range(0, 2 * pairs, 2):
        key = flat[at]
        if key[:1] != b" " or key[-1:] != b"=" or key[1:-1] in table or flat[at::width].count(key) != count:
            return {}
        table[key[1:-1]] = flat[at + 1 :: width]
    if not tail:
        return table if flat[2 * pairs :: width].count(b"") == count else {}
    for at, part in enumerate(end.split(b'"')[:-1], start=2 * pairs):
        if flat[at::width].count(part) != count:
            return {}
    table[b""] = flat[width - 1 :: width]
    return table


_Attributes = tuple[list[bytes], list[bytes], list[int], list[int], list[bytes]]


def _attributes(rests: Sequence[bytes]) -> _Attributes | None:
    """Return what stands before the extensions' second, and their resource ids, versions, sequences and names."""
    count = len(rests)
    flat = _CUT.join(rests).split(_CUT)
    width, over = divmod(len(flat), count)
    if over or width not in (6, 7):
        return None
    resources = _after(flat[4::width], b'resourceid":"')
    states = _after(flat[5::width], b'resourceversion":')
    metadata = _after(flat[2::width], b'metadata":"{\\"name\\":\\"')
    if resources is None or states is None or metadata is None or b"deletion" in b"".join(metadata):
        return None
    if b"" in resources or _after(flat[1::width], b'logtracing":"') is None:
        return None
    names = list(map(_first, map(_before_escape, metadata)))
    try:
        if any(text[-1:] != b"}" for text in flat[width - 1 :: width]):
            return None  # it is cut off
        if width == 6:
            versions, sequences = [int(state[:-1]) for state in states], [0] * count
        else:
            split = _SEQUENCE.join(states).split(_SEQUENCE)
            if len(split) != 2 * count:
                return None
            versions, sequences = list(map(int, split[0::2])), list(map(int, split[1::2]))
    except ValueError:
        return None
    if max(versions) >= LARGEST_VERSION or max(sequences) >= LARGEST_SEQUENCE:
        return None
    return flat[0::width], resources, versions, sequences, names


def _after(texts: Sequence[bytes], start: bytes) -> list[bytes] | None:
    """Return what follows `start`, with which all of them have to begin."""
    found = (b"\n" + b"\n".join(texts)).split(b"\n" + start)
    return found[1:] if len(found) == len(texts) + 1 and not found[0] else None
