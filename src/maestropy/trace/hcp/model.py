"""Values of an HCP report: facts with their age, hops with their state, contradictions, and the verdict."""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.identity import KnownIds
from maestropy.trace.hcp.query import CommandFlags, Document, HopQuery, HopQueryResult, QueryOutcome, Snapshot, Topic
from maestropy.trace.output import Evidence, Exit

ALL_HOPS = (
    "frontend",
    "backend",
    "clusters-service",
    "shard",
    "maestro",
    "agent",
    "works",
    "hosted-cluster",
    "control-plane",
    "managed-cluster",
    "node-pools",
)
"""The names of the hops, in the order of the walk."""


class HopState(StrEnum):
    """How a hop is."""

    OK = "ok"
    BEHIND = "behind"
    """Not there yet: it works on it, or it waits for a later hop."""
    BAD = "bad"
    """It will not get there by itself."""
    UNKNOWN = "unknown"
    """It could not be seen. Never a reproach."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact about a hop."""

    name: str
    value: str
    _: KW_ONLY
    since: datetime | None = None
    """Since when it is so, or when it was written."""
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HopReport:
    """What is known of one hop."""

    name: str
    state: HopState = HopState.OK
    reason: str = ""
    """One sentence."""
    code: str = ""
    """Of the reason, empty if all is well."""
    waits: bool = False
    """Whether it only waits for a later hop, so that the cause is there."""
    facts: tuple[Fact, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()
    """Worth telling, without being the reason."""

    def unknown(self, reason: str) -> "HopReport":
        return replace(self, state=HopState.UNKNOWN, reason=reason)

    def behind(self, code: str, reason: str, *, waits: bool = False, evidence: Iterable[Evidence] = ()) -> "HopReport":
        return self._with(HopState.BEHIND, code, reason, waits=waits, evidence=evidence)

    def bad(self, code: str, reason: str, *, waits: bool = False, evidence: Iterable[Evidence] = ()) -> "HopReport":
        return self._with(HopState.BAD, code, reason, waits=waits, evidence=evidence)

    def _with(
        self, state: HopState, code: str, reason: str, *, waits: bool, evidence: Iterable[Evidence]
    ) -> "HopReport":
        own = tuple(evidence) or self.evidence
        return replace(self, state=state, code=code, reason=reason, waits=waits, evidence=own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two hops that cannot both be right, or were not seen at the same time."""

    code: str
    says: str
    between: tuple[str, ...]
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreation:
    """A component that would re-create an object if it were deleted now."""

    who: str
    what: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HcpVerdict:
    """Where it hangs, and why."""

    hop: str
    state: HopState
    code: str
    reason: str
    evidence: tuple[Evidence, ...]
    deleting: bool
    contradictions: tuple[Contradiction, ...]
    recreations: tuple[Recreation, ...]
    next: tuple[str, ...]
    """Commands ready to paste."""
    exit: Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkContext:
    """Everything that was learnt, for hops to judge by."""

    known: KnownIds
    results: Mapping[HopQuery, HopQueryResult]
    snapshot: Snapshot
    flags: CommandFlags = field(default_factory=CommandFlags)

    def documents(self, topic: Topic) -> tuple[Document, ...]:
        """Return all documents of a topic, without duplicates."""
        unique: dict[object, Document] = {}
        for result in self.about(topic):
            for document in result.documents:
                unique.setdefault(_key(document), document)
        return tuple(unique.values())

    def about(self, topic: Topic) -> list[HopQueryResult]:
        return [result for query, result in self.results.items() if query.topic is topic]

    def outcome(self, topic: Topic) -> QueryOutcome:
        """Return how asking about a topic ended; something found counts more than something not seen."""
        outcomes = {result.outcome for result in self.about(topic)}
        return next((outcome for outcome in _RANKED if outcome in outcomes), QueryOutcome.UNKNOWN)

    def why(self, topic: Topic, *, unasked: str) -> str:
        return next((result.why for result in self.about(topic) if result.why), unasked)

    def age(self, since: datetime | None) -> timedelta | None:
        return self.snapshot.now - since if since else None

    def is_older(self, since: datetime | None, minutes: int) -> bool:
        return since is not None and self.snapshot.now - since > timedelta(minutes=minutes)

    def notes(self, *topics: Topic) -> tuple[str, ...]:
        results = [result for topic in topics for result in self.about(topic)]
        return tuple(dict.fromkeys(note for result in results for note in (*result.notes, *result.disagreements)))


_RANKED = (QueryOutcome.FOUND, QueryOutcome.UNKNOWN, QueryOutcome.ABSENT)


def _key(document: Document) -> object:
    """Return what identifies a document within its topic; two queries may return the same one."""
    value = document.value
    named = (lookup.namespace(value), lookup.name(value), *(lookup.text(value, key) for key in ("id", "resourceID")))
    return named if any(named) else id(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A finished walk."""

    context: WalkContext
    hops: tuple[HopReport, ...]
    verdict: HcpVerdict

    def hop(self, name: str) -> HopReport:
        return next(hop for hop in self.hops if hop.name == name)


def since_text(age: timedelta | None) -> str:
    """Write how long something has been so: `46s`, `3m`, `2h10m`, `87d`."""
    if age is None:
        return ""
    seconds = int(age.total_seconds())
    if seconds < 0:
        return "in the future"
    if seconds < 60:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 60:
        return f"{minutes}m"
    if hours < 48:
        return f"{hours}h{minutes % 60:02d}m"
    return f"{days}d"
