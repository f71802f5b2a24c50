"""What is known about each writer of logs: its role, what its lines cover, how much it says.

A missing line means nothing unless its writer's logs are here, cover the time and are verbose enough. Pure.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from maestropy.trace.request.hits import AGENT_STAGES, STAGE_OF, What
from maestropy.trace.request.reading import Said

_POD = re.compile(r"(?:^|/)(?:\d+_)?([a-z0-9][a-z0-9.-]*?)(?:[._](?:previous|log|txt|gz|csv|\d+))*$")


@dataclass(slots=True, kw_only=True)
class Writer:
    """One pod in one file, as its records show it; filled while the file is read."""

    path: str
    pod: str
    origin: Path | None = None
    """The plain file it is, where it is one."""
    format: str = "text"
    lines: int = 0
    bytes: int = 0
    first: float = 0.0
    last: float = 0.0
    verbosity: int = 0
    is_ours: bool = False
    is_truncated: bool = False
    hits: int = 0
    unstamped: int = 0
    """Rows of an export whose time cannot be read."""
    is_year_guessed: bool = False
    """Whether its year is only that of the file."""
    started: list[float] = field(default_factory=list)
    generations: Counter[str] = field(default_factory=Counter)
    roles: Counter[str] = field(default_factory=Counter)
    stages: Counter[int] = field(default_factory=Counter)
    seen: Counter[What] = field(default_factory=Counter)
    consumers: set[str] = field(default_factory=set)
    instances: set[str] = field(default_factory=set)
    skew: float = 0.0
    """Seconds by which its clock is ahead of the servers'."""

    def note(self, said: Said) -> None:
        """Take what a record gives away about its writer."""
        hit, phrase, generation, verbosity = said
        what, at, stage = hit.what, hit.at, hit.stage
        self.hits += 1
        self.stages[stage] += 1
        self.seen[what] += 1
        if generation:
            self.generations[generation] += 1
        if phrase.role:
            self.roles[phrase.role] += 1
        elif stage and hit.resource:
            self.roles["agent" if stage in AGENT_STAGES else "server"] += 1
        self.verbosity = max(self.verbosity, verbosity)
        if stage in AGENT_STAGES and hit.consumer:
            self.consumers.add(hit.consumer)
        elif what is What.BROADCAST and hit.detail:
            self.instances.add(hit.detail)
        elif what is What.STARTED:
            self.started.append(at)
        self.reach(at, at)

    def note_many(self, counts: Mapping[int, int], *, verbosities: Mapping[What, int]) -> None:
        """Take what many usual records of today give away about their writer; their times are told apart."""
        for number, count in counts.items():
            what = What(number)
            stage = STAGE_OF.get(what, 0)
            self.hits += count
            self.stages[stage] += count
            self.seen[what] += count
            self.generations["G4"] += count
            self.roles["agent" if stage in AGENT_STAGES else "server"] += count
            self.verbosity = max(self.verbosity, verbosities.get(what, 0))

    def merge(self, other: "Writer") -> None:
        """Take what another part of the same file has shown."""
        self.lines += other.lines
        self.bytes += other.bytes
        self.hits += other.hits
        self.is_year_guessed = self.is_year_guessed and other.is_year_guessed
        self.verbosity = max(self.verbosity, other.verbosity)
        self.started += other.started
        self.generations += other.generations
        self.roles += other.roles
        self.stages += other.stages
        self.seen += other.seen
        self.consumers |= other.consumers
        self.instances |= other.instances
        self.reach(other.first, other.last)

    def reach(self, first: float, last: float) -> None:
        """Extend what it covers."""
        self.last = max(self.last, last)
        if first and (first < self.first or not self.first):
            self.first = first

    @property
    def role(self) -> str:
        """Server or agent, by what it says; by its name when it says nothing; unknown otherwise."""
        if self.roles:
            return self.roles.most_common(1)[0][0]
        if "agent" in self.pod:
            return "agent"
        return "server" if self.pod.startswith("maestro") else "unknown"

    @property
    def generation(self) -> str:
        """The generation most of its records have."""
        return self.generations.most_common(1)[0][0] if self.generations else "unknown"

    def covers(self, moment: float, *, slack: float = 1.0) -> bool:
        """Say whether its logs reach over `moment`."""
        return self.first - slack <= moment <= self.last + slack


def pod_of(name: str) -> str:
    """Return the pod that a file is named after."""
    base = name.rsplit("/", 1)[-1]
    found = _POD.search(base)
    return found.group(1) if found else base


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the logs show of the whole system."""

    writers: tuple[Writer, ...]
    broker: str
    subscription: str
    instances: int
    """How many server instances there are, by their logs and by what they say of each other."""
    clients: tuple["Presence", ...] = ()
    agents: tuple["Presence", ...] = ()

    servers: tuple[Writer, ...] = field(init=False)
    """The servers' logs."""
    agent_logs: tuple[Writer, ...] = field(init=False)
    """The agents' logs."""

    def __post_init__(self) -> None:
        # Asked for at every stage of every request.
        for name, role in (("servers", "server"), ("agent_logs", "agent")):
            object.__setattr__(self, name, tuple(each for each in self.writers if each.role == role))

    def shows(self, stage: int) -> bool:
        """Say whether any record of this stage is in the logs, for whichever request."""
        return any(each.stages[stage] for each in self.writers)

    @property
    def end(self) -> float:
        """The last moment anybody wrote."""
        return max((each.last for each in self.writers), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """A client or an agent that was subscribed on a server for a while."""

    name: str
    file: int
    since: float
    until: float
    """Infinite while nothing says that it ended."""


def broker_of(writers: tuple[Writer, ...]) -> str:
    """Return mqtt or grpc, by what servers say at their start, by their lines otherwise."""
    seen: Counter[What] = Counter()
    for each in writers:
        seen.update(each.seen)
    if seen[What.GRPC_BROKER] or seen[What.AGENT_ON] or seen[What.TO_AGENTS]:
        return "grpc"
    if seen[What.MESSAGE_BROKER] or seen[What.PUBLISHING]:
        return "mqtt"
    return "unknown"


def subscription_of(writers: tuple[Writer, ...]) -> str:
    """Return broadcast where servers pass over each other's statuses; shared where several never do."""
    servers = [each for each in writers if each.role == "server"]
    if any(each.seen[What.NOT_OWNED] for each in servers):
        return "broadcast"
    return "shared" if len(servers) > 1 and any(each.seen[What.STATUS_TAKEN] for each in servers) else "unknown"
