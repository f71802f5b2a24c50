"""What one log record says about a request, and a compact table of many such sayings.

A table keeps some fifty bytes per saying: all lines of a large fleet fit into memory, while their text stays in the
files. This module stores; it neither reads lines nor judges them.
"""

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple


class What(IntEnum):
    """The kinds of sayings; those that belong to a stage say so in `STAGE_OF`."""

    WISH = 1
    REFUSED = 2
    NO_OP = 3
    NOTIFIED = 4
    PUBLISHING = 5
    SENDING_SPEC = 6
    TO_AGENTS = 7
    PUBLISH_FAILED = 8
    PUBLISH_SKIPPED = 9
    OTHER_INSTANCE = 10
    HARD_DELETED = 11
    RECEIVED_SPEC = 12
    STORED = 13
    APPLIED = 14
    REMOVED = 15
    APPLY_FAILED = 16
    DECODE_FAILED = 17
    PENDING_DELETION = 18
    SENDING_STATUS = 19
    RECEIVED_STATUS = 20
    STATUS_TAKEN = 21
    NOT_OWNED = 22
    HANDLING = 23
    UPDATING = 24
    UPDATE_SENT = 25
    DELETE_SENT = 26
    STALE = 27
    UNCHANGED = 28
    STATUS_FAILED = 29
    STATUS_NOT_FOUND = 30
    BROADCAST = 31
    TO_CLIENTS = 32
    NO_CLIENTS = 33
    FANOUT_FAILED = 34
    REPUBLISHED = 35
    STATUS_REFUSED = 36
    DELETING = 37
    # About a component, not about one resource.
    STARTED = 50
    GRPC_BROKER = 51
    MESSAGE_BROKER = 52
    CLIENT_ON = 53
    CLIENT_OFF = 54
    AGENT_ON = 55
    AGENT_OFF = 56
    SUBSCRIBED = 57
    DISCONNECTED = 58
    RECONNECTED = 59
    LISTENER_LOST = 60
    STREAM_BROKEN = 61
    SLOW_CLIENT = 62
    FOREIGN_EVENT = 63
    UNAUTHORISED = 64
    STATUS_RESYNC = 65
    DATABASE = 66
    THROTTLED = 67
    WORKER = 68
    OTHER_CLUSTER = 69
    OTHER = 99

    # Millions of hits are looked up by their kind; the number is hash enough.
    __hash__ = int.__hash__


STAGE_OF = {
    What.WISH: 1,
    What.REFUSED: 2,
    What.NO_OP: 2,
    What.NOTIFIED: 2,
    What.PUBLISHING: 2,
    What.SENDING_SPEC: 2,
    What.TO_AGENTS: 2,
    What.PUBLISH_FAILED: 2,
    What.PUBLISH_SKIPPED: 2,
    What.OTHER_INSTANCE: 2,
    What.HARD_DELETED: 2,
    What.REPUBLISHED: 2,
    What.RECEIVED_SPEC: 3,
    What.STORED: 3,
    What.APPLIED: 4,
    What.DELETING: 4,
    What.REMOVED: 4,
    What.APPLY_FAILED: 4,
    What.DECODE_FAILED: 4,
    What.PENDING_DELETION: 4,
    What.SENDING_STATUS: 5,
    What.STATUS_REFUSED: 5,
    What.RECEIVED_STATUS: 6,
    What.STATUS_TAKEN: 6,
    What.NOT_OWNED: 6,
    What.HANDLING: 7,
    What.UPDATING: 7,
    What.UPDATE_SENT: 7,
    What.DELETE_SENT: 7,
    What.STALE: 7,
    What.UNCHANGED: 7,
    What.STATUS_FAILED: 7,
    What.STATUS_NOT_FOUND: 7,
    What.BROADCAST: 8,
    What.TO_CLIENTS: 9,
    What.NO_CLIENTS: 9,
    What.FANOUT_FAILED: 9,
}
LARGEST_VERSION = 1 << 31
LARGEST_SEQUENCE = 1 << 63
LARGE = "the event is large: "
"""What the detail of an event begins with that is larger than brokers usually take."""
AGENT_STAGES = frozenset({3, 4, 5})
_WHATS = {int(what): what for what in What}
_STAGES = [STAGE_OF.get(_WHATS[number], 0) if number in _WHATS else 0 for number in range(128)]


class Hit(NamedTuple):
    """One record's saying; fields that it leaves open are empty, 0 or -1."""

    what: What
    at: float
    """Seconds since 1970 by the writer's clock; 0 when the record has no readable time."""
    file: int
    line: int
    offset: int
    resource: str = ""
    """The resource ID, or the work name where an old agent knows nothing else."""
    version: int = -1
    sequence: int = 0
    op: str = ""
    event: str = ""
    """The id of the event in the database, or of the subscription."""
    ce: str = ""
    """The id of the CloudEvent."""
    name: str = ""
    consumer: str = ""
    source: str = ""
    action: str = ""
    """create, update, delete, or resync."""
    is_deleting: bool = False
    detail: str = ""

    @property
    def stage(self) -> int:
        """The stage it belongs to; 0 for none."""
        return _STAGES[self.what]


Row = tuple[int, float, int, int, int, int, int, int, int, int, int]
"""What, time, line, offset, resource, version, sequence, operation, event, name, rest: words by their numbers."""
Rest = tuple[str, str, str, str, bool, str]
"""The CloudEvent's id, consumer, source, action, whether it is deleting, detail: few differ between records."""


class Words(dict[bytes, int]):
    """Numbers for texts, in the order in which these were met; 0 is the empty one."""

    def __missing__(self, word: bytes) -> int:
        number = self[word] = len(self)
        return number


class Hits:
    """Many sayings, as columns of numbers; texts are kept once. Columns are for reading only."""

    def __init__(self) -> None:
        self.whats = array("B")
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
        self.rests = array("I")
        self.ids = Words({b"": 0})
        self._words: list[bytes] = []
        self._rest_ids: dict[Rest, int] = {}
        self._rest: list[Rest] = []

    def __len__(self) -> int:
        return len(self.times)

    def row(self, hit: Hit) -> Row:
        """Return a saying as a row of this table."""
        number = self.number
        rest = self.rest_number(hit)
        # Rubbish may have any number of digits.
        version = hit.version if hit.version < LARGEST_VERSION else -1
        sequence = hit.sequence if hit.sequence < LARGEST_SEQUENCE else 0
        return (int(hit.what), hit.at, hit.line, hit.offset, number(hit.resource), version, sequence,
                number(hit.op), number(hit.event), number(hit.name), rest)  # fmt: skip

    def add(self, hit: Hit) -> None:
        """Append a saying."""
        self.extend([self.row(hit)], file=hit.file)

    def extend(self, rows: Sequence[Row], *, file: int) -> None:
        """Append rows of one file."""
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

    def columns(self) -> "tuple[array[Any], ...]":
        """Return all columns."""
        return (*self._columns(), self.files)

    def __reduce__(self) -> tuple[Any, ...]:
        # Between processes, words travel as a list: a dictionary of our own would be filled one by one.
        return partial(Hits.restored, words=list(self.ids), rests=self._rest), (
            [each.tobytes() for each in self.columns()],
        )

    @classmethod
    def restored(
        cls, columns: Sequence[bytes | memoryview], *, words: Sequence[bytes], rests: Sequence[Rest]
    ) -> "Hits":
        """Return the table that has these columns."""
        table = cls()
        for column, data in zip(table.columns(), columns, strict=True):
            column.frombytes(data)
        table.ids = Words(zip(words, range(len(words)), strict=True))
        table._rest = list(rests)
        table._rest_ids = {rest: number for number, rest in enumerate(rests)}
        return table

    def _columns(self) -> "tuple[array[Any], ...]":
        return (self.whats, self.times, self.lines, self.offsets, self.resources, self.versions, self.sequences,
                self.operations, self.events, self.names, self.rests)  # fmt: skip

    def number(self, word: str) -> int:
        """Return the number that stands for a text."""
        return self.ids[word.encode("utf-8", "surrogatepass")] if word else 0

    def word(self, number: int) -> str:
        """Return the text behind a number."""
        if number >= len(self._words):
            self._words = list(self.ids)
        return self._words[number].decode("utf-8", "surrogatepass")

    def rest_number(self, hit: Hit) -> int:
        """Return the number that stands for what few records differ in, of a saying."""
        return self.rest((hit.ce, hit.consumer, hit.source, hit.action, hit.is_deleting, hit.detail))

    def all_rests(self) -> Sequence[Rest]:
        """Return all of them, by their numbers."""
        return self._rest

    def rest(self, rest: Rest) -> int:
        """Return the number that stands for what few records differ in."""
        number = self._rest_ids.get(rest)
        if number is None:
            number = self._rest_ids[rest] = len(self._rest)
            self._rest.append(rest)
        return number

    def rest_of(self, index: int) -> Rest:
        """Return what few records differ in, of one saying."""
        return self._rest[self.rests[index]]

    def rest_at(self, number: int) -> Rest:
        """Return what few records differ in, behind its number."""
        return self._rest[number]

    def __getitem__(self, index: int) -> Hit:
        if len(self._words) < len(self.ids):
            self._words = list(self.ids)
        words = self._words
        resource, op = self.resources[index], self.operations[index]
        event, name = self.events[index], self.names[index]
        ce, consumer, source, action, is_deleting, detail = self._rest[self.rests[index]]
        return Hit(
            _WHATS[self.whats[index]],
            self.times[index],
            self.files[index],
            self.lines[index],
            self.offsets[index],
            # Most sayings have one or two of these four.
            words[resource].decode("utf-8", "surrogatepass") if resource else "",
            self.versions[index],
            self.sequences[index],
            words[op].decode("utf-8", "surrogatepass") if op else "",
            words[event].decode("utf-8", "surrogatepass") if event else "",
            ce,
            words[name].decode("utf-8", "surrogatepass") if name else "",
            consumer,
            source,
            action,
            is_deleting,
            detail,
        )

    def __iter__(self) -> Iterator[Hit]:
        return (self[index] for index in range(len(self)))

    def join(self, other: "Hits", *, files: int, lines: int = 0) -> None:
        """Append another table, whose files come after `files` others, and the first one's lines after `lines`."""
        ids = self.ids
        numbers = [ids[word] for word in other.ids]
        rests = [self.rest(rest) for rest in other._rest]
        self.whats.extend(other.whats)
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
            for mine, theirs in ((self.resources, other.resources), (self.operations, other.operations),
                                 (self.events, other.events), (self.names, other.names)):  # fmt: skip
                mine.fromlist(list(_picked(numbers, theirs)))
            self.rests.fromlist(list(_picked(rests, other.rests)))

    def cut(self, length: int) -> None:
        """Forget all rows from one on."""
        for column in self._columns():
            del column[length:]
        del self.files[length:]

    def renumber(self, files: Mapping[int, int]) -> None:
        """Give files other numbers; those without one have no rows."""
        self.files = array("I", [files[file] for file in self.files])

    def runs(self, *whats: What) -> Iterator[range]:
        """Return where the sayings of some kinds are, neighbours together: what was read at once stands together."""
        letters = b"".join(re.escape(bytes([what])) for what in whats)
        wanted = letters if len(whats) == 1 else b"[%b]" % letters
        # A pattern that begins with a letter is searched much faster than one that begins with a repetition.
        return (range(*found.span()) for found in re.finditer(wanted + wanted + b"*", self.whats.tobytes()))

    def places(self, *whats: What) -> Iterator[int]:
        """Return where the sayings of some kinds are."""
        return chain.from_iterable(self.runs(*whats))

    def where(self, *whats: What) -> Iterator[Hit]:
        """Return the sayings of some kinds."""
        return (self[index] for index in self.places(*whats))


def _picked(values: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
    """Return the values at some places."""
    return itemgetter(*places)(values) if len(places) > 1 else (values[places[0]],)
