"""The state of the fleet as the console knows it, bounded in memory. Values in, values out: no I/O, no clock.

`collector` fills it, the pages read it. `generation` grows with every change, so that a page knows whether it is old.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from maestropy.console.rows import WorkRow
from maestropy.sdk.consumers import Consumer
from maestropy.sdk.history import HistoryEntry
from maestropy.trace import connections
from maestropy.trace.connections import Connections
from maestropy.trace.work.model import ConsumerPause, WorkHold

MOST_WORKS: Final = 250_000
"""So many works are kept; beyond that the console says so and shows these."""
_MOST_CHANGES: Final = 5_000
_MOST_ENTRIES: Final = 20_000
AgentState = Literal["connected", "away", "never", "unknown"]
"""Of an agent that never connected the history has no connection, and no work of its consumer a status."""
WINDOW_SECONDS: Final = 300.0
"""Rates and latencies are those of so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContact:
    """What the history tells of the connection of an agent."""

    is_connected: bool
    since: float
    address: str = ""
    instance: str = ""
    connections: Connections = field(default_factory=Connections)
    """What tells whether the end of a connection is that of the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a work, for the rates and latencies of the last minutes."""

    at: float
    kind: str
    resource_id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOrigin:
    """The archive of `maestro diagnose` that a picture comes from."""

    name: str
    collected: float
    """When it was collected; ages count from then."""
    missing: tuple[str, ...] = ()
    """What it does not hold, and why; one sentence each."""
    is_anonymised: bool = False


@dataclass(slots=True, kw_only=True)
class Source:
    """Where the picture comes from, and whether it can still be read."""

    description: str
    problem: str = ""
    """Why the API cannot be read now; empty if it can."""
    problem_since: float = 0.0
    read_at: float = 0.0
    """When the picture was last brought up to date."""
    history: str = "unknown"
    """`yes`, or why there is no history of everything: `unsupported`, `denied` or `unknown`."""
    loaded: int = 0
    total: int = 0
    """Works that were read and that there are, while the picture is first loaded."""
    is_complete: bool = False
    left_out: int = 0
    """Works beyond `MOST_WORKS`."""
    log_problem: str = ""
    """Why the logs cannot be followed; empty if they can, or none are given."""
    archive: ArchiveOrigin | None = None
    """The archive that the picture comes from; None for a Maestro that runs."""


class Picture:
    """All works, consumers, agents and holds that the API has told of."""

    def __init__(self, description: str) -> None:
        self.source = Source(description=description)
        self.works: dict[str, WorkRow] = {}
        self.consumers: dict[str, Consumer] = {}
        self.holds: Mapping[str, WorkHold] = {}
        self.pauses: Mapping[str, ConsumerPause] = {}
        self.agents: dict[str, AgentContact] = {}
        self.reporting: set[str] = set()
        """The consumers of whose works a status was seen: they have had an agent, whatever the history knows."""
        self.origins: dict[str, str] = {}
        """The sources of works by their IDs, as far as the history named them."""
        self.changes: deque[Change] = deque(maxlen=_MOST_CHANGES)
        self.generation = 0
        self._seen: deque[str] = deque(maxlen=_MOST_ENTRIES)
        self._seen_ids: set[str] = set()

    def touch(self) -> None:
        """Note that something changed."""
        self.generation += 1

    def put(self, rows: Iterable[WorkRow]) -> None:
        """Add or replace works."""
        for row in rows:
            if row.observed:
                self.reporting.add(row.consumer)
            known = self.works.get(row.id)
            if known is None and len(self.works) >= MOST_WORKS:
                self.source.left_out += 1
            elif known != row:
                self.works[row.id] = row
                self.touch()

    def remove(self, ids: Iterable[str]) -> None:
        """Forget works that do not exist any more."""
        for work_id in ids:
            self.origins.pop(work_id, None)
            if self.works.pop(work_id, None) is not None:
                self.touch()

    def put_consumers(
        self,
        consumers: Mapping[str, Consumer],
        holds: Mapping[str, WorkHold],
        pauses: Mapping[str, ConsumerPause],
    ) -> None:
        """Replace consumers, holds and pauses."""
        if (consumers, holds, pauses) != (self.consumers, self.holds, self.pauses):
            self.consumers, self.holds, self.pauses = dict(consumers), holds, pauses
            self.agents = {name: agent for name, agent in self.agents.items() if name in self.consumers}
            self.touch()

    def agent_state(self, consumer: str) -> AgentState:
        """Return whether the agent of a consumer is connected; behind a message broker nothing is known of that."""
        agent = self.agents.get(consumer)
        if agent is not None:
            return "connected" if agent.is_connected else "away"
        # If others report and none of them has a connection in the history, agents use a message broker.
        has_connections = bool(self.agents) or not self.reporting
        if self.source.history != "yes" or not has_connections or consumer in self.reporting:
            return "unknown"
        # Also of a new consumer whose work was read before the list of consumers.
        return "never" if consumer else "unknown"

    def away_consumers(self) -> list[str]:
        """Return the consumers whose agents were connected and are not."""
        return sorted(name for name, agent in self.agents.items() if not agent.is_connected)

    def is_new(self, entry: HistoryEntry) -> bool:
        """Return whether an entry of the history was not taken before, and remember it."""
        if entry.id in self._seen_ids:
            return False
        if len(self._seen) == self._seen.maxlen:
            self._seen_ids.discard(self._seen[0])
        self._seen.append(entry.id)
        self._seen_ids.add(entry.id)
        return True

    def take(self, entry: HistoryEntry, *, at: float) -> None:
        """Take a new entry of the history: the connection of an agent, or a change of a work."""
        if entry.kind in connections.KINDS:
            self._take_connection(entry, at=at)
        elif entry.kind.startswith("work."):
            if entry.source:
                self.origins[entry.resource_id] = entry.source
            reported = entry.detail.get("observed_version")
            version = reported if entry.kind == "work.status" and isinstance(reported, int) else entry.version
            self.changes.append(Change(at=at, kind=entry.kind, resource_id=entry.resource_id, version=version))

    def _take_connection(self, entry: HistoryEntry, *, at: float) -> None:
        known = self.agents.get(entry.consumer)
        before = known.connections if known else Connections()
        after = before.after(entry.kind, at, seen=connections.last_seen(entry.detail))
        if known is not None and after == before:
            return
        # The end of an older connection says nothing about where the agent is now.
        is_of_older = known is not None and after.is_connected and entry.kind == connections.DISCONNECTED
        self.agents[entry.consumer] = AgentContact(
            is_connected=after.is_connected,
            since=after.since,
            address=known.address if known and is_of_older else entry.address,
            instance=known.instance if known and is_of_older else str(entry.detail.get("instance") or ""),
            connections=after,
        )
        self.touch()

    def due(self, now: float) -> list[str]:
        """Return the works whose verdict changes because of the time."""
        return [row.id for row in self.works.values() if 0 < row.due <= now]

    def fail(self, problem: str, *, now: float) -> None:
        """Note that the API cannot be read."""
        if self.source.problem != problem:
            self.source.problem_since = self.source.problem_since or self.source.read_at or now
            self.source.problem = problem
            self.touch()

    def succeed(self, *, now: float) -> None:
        """Note that the picture is up to date."""
        self.source.read_at = now
        if self.source.problem:
            self.source.problem, self.source.problem_since = "", 0.0
            self.touch()


class FleetReader(Protocol):
    """Keeps a picture up to date: from a REST API that is read again and again, or once from an archive."""

    def want(self) -> None:
        """Note that somebody looks."""

    async def ids_of_source(self, source: str) -> set[str]:
        """Return the IDs of the works of a source."""


@dataclass(slots=True)
class ConsumerCounts:
    """What the works of one consumer add up to."""

    works: int = 0
    severities: dict[str, int] = field(default_factory=lambda: {"error": 0, "warn": 0, "info": 0})
    deleting: int = 0
    behind: int = 0
    """Works whose newest version the agent has not reported."""
    oldest_behind: float = 0.0
    last_status: float = 0.0


def count_by_consumer(picture: Picture) -> dict[str, ConsumerCounts]:
    """Return the counts of every consumer, also of those without works."""
    counts: dict[str, ConsumerCounts] = {name: ConsumerCounts() for name in picture.consumers}
    for row in picture.works.values():
        counted = counts.get(row.consumer)
        if counted is None:
            counted = counts[row.consumer] = ConsumerCounts()
        # A hundred thousand times: no calls for what most works need, such as max().
        counted.works += 1
        counted.severities[row.severity] += 1
        if row.reported > counted.last_status:  # noqa: PLR1730  the comment above is the reason
            counted.last_status = row.reported
        if row.deleted:
            counted.deleting += 1
        elif row.observed < row.version:
            counted.behind += 1
            # A status does not move `updated` of a work that waits for one: it is when the version was stored.
            since = row.updated if row.observed == 0 else max(row.updated, row.created)
            counted.oldest_behind = min(counted.oldest_behind or since, since)
    return counts


def recent(changes: Iterable[Change], *, now: float) -> list[Change]:
    """Return the changes of the last five minutes."""
    return [change for change in changes if change.at >= now - WINDOW_SECONDS]
