"""The position of a write in the write-ahead log of the database, as servers and clients exchange it.

A server with a read replica sends the position after a write. A client that sends it back with a list sees that write,
wherever the list is read. Positions of different databases, and of different timelines of one, cannot be compared.
"""

import re
from dataclasses import dataclass
from typing import Final, Self

from maestropy.wire import errors

HEADER: Final = "Maestro-Position"
"""The header of REST responses and requests."""
METADATA: Final = HEADER.lower()
"""The metadata of gRPC responses."""

_FORM: Final = re.compile(r"([0-9a-f]{16})-([0-9a-f]{8})-([0-9a-f]{16})")


class PositionAhead(errors.WireError):
    """A client sent a position that the database has not reached: no server can have given it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A position in the write-ahead log of one PostgreSQL."""

    system: int
    """The system identifier of the PostgreSQL, which its physical replicas share."""
    timeline: int
    """Another one after every promotion."""
    lsn: int

    def __str__(self) -> str:
        return f"{self.system:016x}-{self.timeline:08x}-{self.lsn:016x}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a position; raises `MalformedMessage`."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise errors.MalformedMessage(
                f"{HEADER} is not a position of this server; send what a response to a write had, or leave it out"
            )
        system, timeline, lsn = (int(part, 16) for part in found.groups())
        return cls(system=system, timeline=timeline, lsn=lsn)

    def is_comparable(self, other: "Position") -> bool:
        """Return whether both are of one history."""
        return (self.system, self.timeline) == (other.system, other.timeline)


class Seen:
    """The highest position that a client was given, as long as it covers all writes of the client.

    A write without a position (a Go server, a lost response) is covered by none: the client then forgets, and its next
    list is as new as the database.
    """

    def __init__(self) -> None:
        self._position: Position | None = None
        self._uncovered = 0

    def __str__(self) -> str:
        """Return what to send; empty if there is nothing."""
        return "" if self._position is None else str(self._position)

    def begin(self) -> int:
        """Return what `end` needs to know of a write that begins now."""
        return self._uncovered

    def end(self, begun: int, text: str) -> None:
        """Note the end of a write: `text` is the position that came with the response, empty without one."""
        try:
            position = Position.parse(text)
        except errors.MalformedMessage:
            self._uncovered += 1
            self._position = None
            return
        # A response that was under way when another write ended without a position may be older than that write.
        if begun != self._uncovered:
            return
        known = self._position
        if known is None or not known.is_comparable(position) or position.lsn > known.lsn:
            self._position = position
