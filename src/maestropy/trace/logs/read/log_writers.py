"""Describe each writer of logs (one pod in one file): its role, the time it covers, its verbosity.

A missing record proves nothing unless the logs of its writer are given, cover the time and are verbose enough. Pure.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from maestropy.trace.logs.log_records import STAGE_OF, LogRecord, RecordKind, RecordTable
from maestropy.trace.logs.read import record_reader
from maestropy.trace.logs.read.lines import RawRecord, RecordClock
from maestropy.trace.logs.read.record_reader import ParsedRecord
from maestropy.trace.stages import AGENT_STAGES

_CUT_OFF_SHARE = 50
_START = 5.0
"""Seconds within which several records are about the same start."""
_POD = re.compile(r"(?:^|/)(?:\d+_)?([a-z0-9][a-z0-9.-]*?)(?:[._](?:log|txt|gz|csv|\d+)|[._-]previous)*$")


@dataclass(slots=True, kw_only=True)
class LogWriter:
    """One pod in one file, as its records show it; filled while the file is read."""

    path: str
    pod: str
    origin: Path | None = None
    """The plain file it is, where it is one."""
    is_export: bool = False
    """Whether its records stand for the spans of an OTLP export."""
    copies: list[str] = field(default_factory=list)
    """Other files of the same content, which are not read."""
    format: str = "text"
    lines: int = 0
    bytes: int = 0
    first: float = 0.0
    last: float = 0.0
    verbosity: int = 0
    is_ours: bool = False
    is_truncated: bool = False
    torn_line: int = 0
    """The number of its last line if that has no end: the log is cut there."""
    cut_off: int = 0
    """Records about events that end before they name their resource."""
    record_count: int = 0
    unstamped: int = 0
    """Rows of an export whose time cannot be read."""
    is_year_guessed: bool = False
    """Whether its year is only that of the file."""
    started: list[float] = field(default_factory=list)
    stopped: list[float] = field(default_factory=list)
    """When it logged that it shuts down."""
    subscribes_to_topic: bool = False
    """Whether it subscribes to a topic of a message broker."""
    progress: list[float] = field(default_factory=list)
    """When its controllers reconciled works, at most once a second: a process may go on logging while these hang."""
    generations: Counter[str] = field(default_factory=Counter)
    roles: Counter[str] = field(default_factory=Counter)
    stages: Counter[int] = field(default_factory=Counter)
    kinds: Counter[RecordKind] = field(default_factory=Counter)
    consumers: set[str] = field(default_factory=set)
    instances: set[str] = field(default_factory=set)
    """The names under which it broadcasts itself."""
    ring: set[str] = field(default_factory=set)
    """The instances that it knows."""
    skew: float = 0.0
    """Seconds by which its clock is ahead of the servers', or that of one server ahead of the others'."""
    steps: list[tuple[float, float]] = field(default_factory=list)
    """When its clock, or the servers', was set, and by how many seconds; its times are corrected."""

    is_clock_unsure: bool = False
    """Whether its clock was set in a way that cannot be corrected."""

    def take(self, raw: RawRecord, clock: RecordClock, records: RecordTable, *, file: int) -> ParsedRecord | None:
        """Read a record in full and add it to the table; a record that is not relevant only extends the coverage."""
        parsed = record_reader.read(raw, clock, file=file)
        if parsed is None:
            at = clock.at(raw)
            self.extend_coverage(at, at)
            return None
        self.note(parsed)
        if parsed.record.kind is not RecordKind.PROGRESS:
            records.add(parsed.record)
        return parsed

    def note(self, parsed: ParsedRecord) -> None:
        """Update the description of the writer from one record."""
        self.note_again(parsed, 1)
        self.verbosity = max(self.verbosity, parsed.verbosity)
        self._note_process(parsed.record)
        self.extend_coverage(parsed.record.at, parsed.record.at)

    def note_again(self, parsed: ParsedRecord, count: int) -> None:
        """Update the description from records that are like one that was noted, without their times."""
        stage = parsed.record.stage
        is_of_request = bool(stage and parsed.record.resource)
        self._count(parsed.record.kind, count, parsed.phrase.role or (_role(stage) if is_of_request else ""))
        if parsed.generation:
            self.generations[parsed.generation] += count
        self.cut_off += count * (parsed.is_cut_off and bool(stage))

    def note_many(self, kind: RecordKind, count: int, *, verbosity: int) -> None:
        """Update the description of the writer from frequent records of one kind, without their times."""
        self._count(kind, count, _role(STAGE_OF.get(kind, 0)))
        self.generations["G4"] += count
        self.verbosity = max(self.verbosity, verbosity)

    def _count(self, kind: RecordKind, count: int, role: str) -> None:
        self.record_count += count
        self.stages[STAGE_OF.get(kind, 0)] += count
        self.kinds[kind] += count
        if role:
            self.roles[role] += count

    def _note_process(self, record: LogRecord) -> None:
        """Update what is known of its process: whose agent it is, how it is connected, when it started and stopped."""
        kind, at = record.kind, record.at
        if record.stage in AGENT_STAGES and record.consumer:
            self.consumers.add(record.consumer)
        elif kind is RecordKind.BROADCAST and record.detail:
            self.instances.add(record.detail)
        elif kind is RecordKind.SUBSCRIBED:
            self.subscribes_to_topic = self.subscribes_to_topic or "/consumers/" in record.detail
        elif kind is RecordKind.INSTANCES:
            self.ring |= set(record.detail.split())
        elif kind is RecordKind.STARTED and (not self.started or at > self.started[-1] + _START):
            self.started.append(at)
        elif kind is RecordKind.STOPPED:
            self.stopped.append(at)
        elif kind is RecordKind.PROGRESS and (not self.progress or at >= self.progress[-1] + 1.0):
            self.progress.append(at)

    def merge(self, other: "LogWriter") -> None:
        self.torn_line = self.lines + other.torn_line if other.torn_line else 0
        self.lines += other.lines
        self.bytes += other.bytes
        self.record_count += other.record_count
        self.cut_off += other.cut_off
        self.is_year_guessed = self.is_year_guessed and other.is_year_guessed
        self.verbosity = max(self.verbosity, other.verbosity)
        self.started += other.started
        self.stopped += other.stopped
        self.subscribes_to_topic = self.subscribes_to_topic or other.subscribes_to_topic
        self.progress += other.progress
        self.generations += other.generations
        self.roles += other.roles
        self.stages += other.stages
        self.kinds += other.kinds
        self.consumers |= other.consumers
        self.instances |= other.instances
        self.ring |= other.ring
        self.extend_coverage(other.first, other.last)

    def extend_coverage(self, first: float, last: float) -> None:
        self.last = max(self.last, last)
        if first and (first < self.first or not self.first):
            self.first = first

    def corrected(self) -> "LogWriter":
        """Return it with times by the clock that most others agree with."""
        if not self.skew:
            return self
        skew = self.skew
        return replace(
            self,
            first=self.first and self.first - skew,
            last=self.last and self.last - skew,
            started=[at - skew for at in self.started],
            stopped=[at - skew for at in self.stopped],
            progress=[at - skew for at in self.progress],
        )

    @property
    def role(self) -> str:
        """Server or agent, by its records; by the pod name if there are none; else unknown."""
        if self.roles:
            return self.roles.most_common(1)[0][0]
        if "agent" in self.pod:
            return "agent"
        return "server" if self.pod.startswith("maestro") else "unknown"

    @property
    def generation(self) -> str:
        return self.generations.most_common(1)[0][0] if self.generations else "unknown"

    @property
    def is_cut_off(self) -> bool:
        """Say whether so many records are cut off that any record may be missing; the last line often is."""
        return self.cut_off > 1 and self.cut_off * _CUT_OFF_SHARE > self.record_count

    def covers(self, moment: float, *, slack: float = 1.0) -> bool:
        return self.first - slack <= moment <= self.last + slack


def _role(stage: int) -> str:
    return "agent" if stage in AGENT_STAGES else "server"


def by_pod(logs: Iterable[LogWriter]) -> list[list[LogWriter]]:
    """Return the logs of each pod: a rotated log is several files."""
    pods: dict[str, list[LogWriter]] = {}
    for log in logs:
        pods.setdefault(log.pod, []).append(log)
    return list(pods.values())


def pod_of(name: str) -> str:
    """Return the pod that a file is named after."""
    base = name.rsplit("/", 1)[-1]
    match = _POD.search(base)
    return match.group(1) if match else base


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the logs show of the whole system."""

    writers: tuple[LogWriter, ...]
    broker: str
    subscription: str
    instances: int
    """The number of server instances, by their logs and by the instances that these name."""
    missing: tuple[str, ...] = ()
    """Instances that other servers name, and whose logs are not given."""
    reported: Mapping[str, float] = field(default_factory=dict)
    """When the agents of each consumer last reported any status."""
    consumers: frozenset[str] = frozenset()
    """Consumers that are known to exist, whatever the logs show."""
    departures: Mapping[str, float] = field(default_factory=dict)
    """When the last agent of a consumer is known to have left the gRPC broker."""
    told: frozenset[str] = frozenset()
    """Sources to whose clients any status was sent."""
    clients: tuple["SubscriptionPeriod", ...] = ()
    agents: tuple["SubscriptionPeriod", ...] = ()

    servers: tuple[LogWriter, ...] = field(init=False)
    """The servers' logs."""
    agent_logs: tuple[LogWriter, ...] = field(init=False)
    """The agents' logs."""
    lacks_instances: bool = field(init=False)
    """Whether the log of any server instance is not given."""
    end: float = field(init=False)
    """The time of the last record of any writer."""
    _shown: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        # Needed at every stage of every request.
        for name, role in (("servers", "server"), ("agent_logs", "agent")):
            object.__setattr__(self, name, tuple(writer for writer in self.writers if writer.role == role))
        object.__setattr__(self, "lacks_instances", len({server.pod for server in self.servers}) < self.instances)
        object.__setattr__(self, "end", max((writer.last for writer in self.writers), default=0.0))
        shown = (stage for writer in self.writers for stage, count in writer.stages.items() if count)
        object.__setattr__(self, "_shown", frozenset(shown))

    def shows(self, stage: int) -> bool:
        """Say whether any record of this stage is in the logs, for whichever request."""
        return stage in self._shown

    def logs_of_agent(self, consumer: str) -> list[LogWriter]:
        """Return the logs of the agent of a consumer; of all agents where it is not known whose they are."""
        return [log for log in self.agent_logs if not log.consumers or consumer in log.consumers or not consumer]

    @property
    def reporting(self) -> frozenset[str]:
        return frozenset(self.reported)

    @property
    def missing_instances(self) -> str:
        """Which server instances have no log, as a phrase."""
        names = f": none of {', '.join(self.missing)}" if self.missing else ""
        return f"logs of {len({server.pod for server in self.servers})} of {self.instances} server instances{names}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionPeriod:
    """A client or an agent that was subscribed on a server for a while."""

    name: str
    file: int
    since: float
    """Negative infinite where only its end is shown: it began before the log."""
    until: float
    """Infinite while no record shows the end."""

    @property
    def is_start_shown(self) -> bool:
        return self.since > -math.inf


_OF_AGENTS_STREAMS = (RecordKind.AGENT_SUBSCRIBED, RecordKind.AGENT_UNSUBSCRIBED, RecordKind.SENT_TO_AGENTS)
"""Only servers that agents connect to write these."""


def broker_of(writers: tuple[LogWriter, ...]) -> str:
    """Return mqtt or grpc, by the startup records of servers, else by their other records and the agents' topics."""
    kinds: Counter[RecordKind] = Counter()
    for writer in writers:
        kinds.update(writer.kinds)
    if kinds[RecordKind.GRPC_BROKER] or any(kinds[kind] for kind in _OF_AGENTS_STREAMS):
        return "grpc"
    is_on_topic = any(writer.subscribes_to_topic for writer in writers)
    if kinds[RecordKind.MESSAGE_BROKER] or is_on_topic:
        return "mqtt"
    # Behind MQTT too, a Go server says that another instance handles an event.
    if kinds[RecordKind.NO_AGENT_HERE]:
        return "grpc"
    return "mqtt" if kinds[RecordKind.PUBLISHING] else "unknown"


def subscription_of(writers: tuple[LogWriter, ...]) -> str:
    """Return broadcast where servers pass over each other's statuses; shared where several never do."""
    servers = [writer for writer in writers if writer.role == "server"]
    if any(server.kinds[RecordKind.NOT_OWNED] for server in servers):
        return "broadcast"
    return (
        "shared"
        if len(servers) > 1 and any(server.kinds[RecordKind.STATUS_UPDATE_RECEIVED] for server in servers)
        else "unknown"
    )
