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
        return STAGE_OF.get(self.what, 0)


_TEXTS = ("resource", "op", "event", "ce", "name", "consumer", "source", "action", "detail")
_TEXT_AT = tuple(Hit._fields.index(field) for field in _TEXTS)


class Hits:
    """Many sayings, as columns of numbers; texts are kept once."""

    def __init__(self) -> None:
        self._numbers: list[array[int]] = [array("B"), array("H"), array("I"), array("Q"), array("i"), array("q")]
        self._flags = array("B")
        self._times = array("d")
        self._texts: list[array[int]] = [array("I") for _ in _TEXTS]
        self._ids: dict[str, int] = {"": 0}
        self._words: list[str] = [""]

    def __len__(self) -> int:
        return len(self._times)

    def add(self, hit: Hit) -> None:
        """Append a saying."""
        what, file, line, offset, version, sequence = self._numbers
        what.append(hit[0])
        self._times.append(hit[1])
        file.append(hit[2])
        line.append(hit[3])
        offset.append(hit[4])
        version.append(hit[6])
        sequence.append(hit[7])
        self._flags.append(hit[15])
        ids = self._ids
        for column, slot in zip(self._texts, _TEXT_AT, strict=True):
            word = str(hit[slot])
            number = ids.get(word) if word else 0
            if number is None:
                number = ids[word] = len(self._words)
                self._words.append(word)
            column.append(number)

    def __getitem__(self, index: int) -> Hit:
        what, file, line, offset, version, sequence = self._numbers
        resource, op, event, ce, name, consumer, source, action, detail = (
            self._words[column[index]] for column in self._texts
        )
        return Hit(
            What(what[index]),
            self._times[index],
            file[index],
            line[index],
            offset[index],
            resource,
            version[index],
            sequence[index],
            op,
            event,
            ce,
            name,
            consumer,
            source,
            action,
            bool(self._flags[index]),
            detail,
        )

    def __iter__(self) -> Iterator[Hit]:
        return (self[index] for index in range(len(self)))

    def by_resource(self) -> dict[str, list[int]]:
        """Return the places of the sayings about each resource, in the order of addition; under "" all others."""
        groups: dict[int, list[int]] = {}
        for index, resource in enumerate(self._texts[0]):
            groups.setdefault(resource, []).append(index)
        return {self._words[resource]: places for resource, places in groups.items()}
