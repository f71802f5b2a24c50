"""Decide whether a read replica may answer a list.

Pure. How old a replica is follows from positions that were read on the primary: if the replica has replayed where the
primary was at some time, its data are at least of that time. Clocks of databases are not compared, and a primary
without writes does not make its replica look old.
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum, unique

from maestropy.wire import positions

_MOST_SAMPLES = 600


@unique
class Reason(Enum):
    """Why a list is read from the primary."""

    UNREACHABLE = "unreachable"
    """The replica does not respond."""
    NOT_A_STANDBY = "not-a-standby"
    """It was promoted, or is the primary itself."""
    OTHER_DATABASE = "other-database"
    """It does not replicate this database."""
    OTHER_TIMELINE = "other-timeline"
    """It has not followed the last promotion, or follows another primary."""
    LAG = "lag"
    """It is older than allowed."""
    POSITION = "position"
    """It has not reached the position of the request in time."""
    FAILED = "failed"
    """It failed while the list was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """What a read replica says of itself."""

    is_standby: bool
    system: int
    timeline: int
    replayed: int
    """The last position that it has replayed."""
    database_id: str
    """The identity that is stored in the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a replica is not used now; `text` is for operators."""

    reason: Reason
    text: str


class Freshness:
    """How old the data of a replica are at most."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=_MOST_SAMPLES)
        self._history: positions.Position | None = None

    def note(self, now: float, primary: positions.Position) -> None:
        """Note where the primary is now."""
        if self._history is not None and not self._history.is_comparable(primary):
            self._samples.clear()
        self._history = primary
        self._samples.append((now, primary.lsn))

    def age(self, now: float, replayed: int) -> float | None:
        """Return how old, in seconds, what was replayed is at most; None if nothing is known of that time."""
        reached = [time for time, lsn in self._samples if lsn <= replayed]
        if not reached:
            return None
        # Earlier samples are not needed any more: a replica does not go back.
        while self._samples and self._samples[0][0] < reached[-1]:
            self._samples.popleft()
        return now - reached[-1]


def identity_problem(replica: Replica, *, primary: positions.Position, database_id: str) -> Problem | None:
    """Return why a replica cannot be one of this database, or is not one any more."""
    if replica.system != primary.system:
        text = (
            f"it belongs to another PostgreSQL (system identifier {replica.system}, that of the primary is "
            f"{primary.system}): a copy by dump and restore is no replica"
        )
        return Problem(reason=Reason.OTHER_DATABASE, text=text)
    if replica.database_id != database_id:
        text = (
            f"it has another Maestro database (identity {replica.database_id or 'none'}, that of the primary is "
            f"{database_id})"
        )
        return Problem(reason=Reason.OTHER_DATABASE, text=text)
    if not replica.is_standby:
        return Problem(reason=Reason.NOT_A_STANDBY, text="it is no standby: it was promoted, or is the primary itself")
    if replica.timeline != primary.timeline:
        text = (
            f"it is on timeline {replica.timeline}, the primary on {primary.timeline}: it has not followed a promotion "
            "yet, or follows another primary"
        )
        return Problem(reason=Reason.OTHER_TIMELINE, text=text)
    return None


def lag_problem(age: float | None, *, limit: float) -> Problem | None:
    """Return why the data of a replica are too old."""
    if age is None:
        return Problem(reason=Reason.LAG, text="how far it is behind the primary is not known yet")
    if age > limit:
        return Problem(reason=Reason.LAG, text=f"it is {age:.1f} s behind the primary, and {limit:g} s are allowed")
    return None
