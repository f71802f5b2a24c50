"""What one log record says about a request, and a compact table of many such sayings.

A table keeps some fifty bytes per saying: all lines of a large fleet fit into memory, while their text stays in the
files. This module stores; it neither reads lines nor judges them.
"""

from array import array
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple


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


class Hits:
    """Many sayings, as columns of numbers; texts are kept once. Columns are for reading only."""

    def __init__(self) -> None:
        self.whats = array("B")
        self.files = array("H")
        self.resources = array("I")
        self.events = array("I")
        self._times = array("d")
        self._lines = array("I")
        self._offsets = array("Q")
        self._versions = array("i")
        self._sequences = array("q")
        self._operations = array("I")
        self._rests = array("I")
        self._ids: dict[str, int] = {"": 0}
        self._words: list[str] = [""]
        self._rest_ids: dict[tuple[object, ...], int] = {}
        self._rest: list[tuple[str, str, str, str, str, bool, str]] = []

    def __len__(self) -> int:
        return len(self._times)

    def add(self, hit: Hit) -> None:
        """Append a saying."""
        what, at, file, line, offset, resource, version, sequence, op, event, *_ = hit
        self.whats.append(what)
        self._times.append(at)
        self.files.append(file)
        self._lines.append(line)
        self._offsets.append(offset)
        self._versions.append(version)
        self._sequences.append(sequence)
        self.resources.append(self.number(resource))
        self._operations.append(self.number(op))
        self.events.append(self.number(event))
        rest = hit[10:]
        number = self._rest_ids.get(rest)
        if number is None:
            number = self._rest_ids[rest] = len(self._rest)
            self._rest.append(rest)
        self._rests.append(number)

    def number(self, word: str) -> int:
        """Return the number that stands for a text."""
        if not word:
            return 0
        found = self._ids.get(word)
        if found is None:
            found = self._ids[word] = len(self._words)
            self._words.append(word)
        return found

    def word(self, number: int) -> str:
        """Return the text behind a number."""
        return self._words[number]

    def __getitem__(self, index: int) -> Hit:
        words = self._words
        return Hit(
            _WHATS[self.whats[index]],
            self._times[index],
            self.files[index],
            self._lines[index],
            self._offsets[index],
            words[self.resources[index]],
            self._versions[index],
            self._sequences[index],
            words[self._operations[index]],
            words[self.events[index]],
            *self._rest[self._rests[index]],
        )

    def __iter__(self) -> Iterator[Hit]:
        return (self[index] for index in range(len(self)))

    def extend(self, other: "Hits", *, files: int) -> None:
        """Append another table, whose files come after `files` others."""
        numbers = [self.number(word) for word in other._words]
        rests = []
        for rest in other._rest:
            number = self._rest_ids.get(rest)
            if number is None:
                number = self._rest_ids[rest] = len(self._rest)
                self._rest.append(rest)
            rests.append(number)
        self.whats.extend(other.whats)
        self._times.extend(other._times)
        self._lines.extend(other._lines)
        self._offsets.extend(other._offsets)
        self._versions.extend(other._versions)
        self._sequences.extend(other._sequences)
        self.files.extend(file + files for file in other.files)
        self.resources.extend(map(numbers.__getitem__, other.resources))
        self._operations.extend(map(numbers.__getitem__, other._operations))
        self.events.extend(map(numbers.__getitem__, other.events))
        self._rests.extend(map(rests.__getitem__, other._rests))

    def where(self, *whats: What) -> Iterator[Hit]:
        """Return the sayings of some kinds."""
        wanted = {int(what) for what in whats}
        return (self[index] for index, what in enumerate(self.whats) if what in wanted)
