"""The result of a trace: what is known of each request, stage by stage, and what to do about it. Values only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Literal, NamedTuple

from maestropy.trace.request.codes import CODES, Code
from maestropy.trace.request.hits import Hit

Confidence = Literal["certain", "likely", "possible"]


class State(StrEnum):
    """What the logs show of a stage."""

    OK = "ok"
    FAILED = "failed"
    MISSING = "missing"
    PENDING = "pending"
    SKIPPED = "skipped"
    LEGIT_ABSENT = "legit-absent"
    UNKNOWN = "unknown"
    NOT_OBSERVABLE = "not-observable"


class Verdict(StrEnum):
    """What became of a request."""

    COMPLETE = "complete"
    FAILED = "failed"
    INCOMPLETE = "incomplete"
    PENDING = "pending"
    SUPERSEDED = "superseded"
    NO_OP = "no-op"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of one request."""

    number: int
    state: State
    hits: tuple[Hit, ...] = ()
    first: float = 0.0
    last: float = 0.0
    hop: float | None = None
    """Seconds since the last earlier stage that was seen."""
    via: str = "direct"
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A code that applies to a request, with what supports it."""

    code: str
    confidence: Confidence
    detail: str = ""
    evidence: tuple[Hit, ...] = ()

    @property
    def entry(self) -> Code:
        """The code's explanation."""
        return CODES[self.code]


class Key(NamedTuple):
    """Which request this is."""

    resource: str
    work_name: str
    consumer: str
    source: str
    action: str
    version: int
    op: str
    ce: str
    db_event: str
    life: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusUpdate:
    """One status that answered the request."""

    sequence: int
    version: int
    handled_by: str
    skipped_by: int
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What stands behind a verdict."""

    stages: tuple[Stage, ...]
    status_updates: tuple[StatusUpdate, ...] = ()


def all_done(moments: Sequence[float]) -> Records:
    """Return the nine stages of a request that went all the way, without their records."""
    before = (None, *moments)
    return Records(
        stages=tuple(
            Stage(number=number, state=State.OK, first=at, last=at, hop=None if last is None else at - last)
            for number, (at, last) in enumerate(zip(moments, before, strict=False), start=1)
        )
    )


class Course:
    """How a request went, stage by stage; worked out when somebody asks, for of most requests nobody does."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Records]) -> None:
        self._make: Callable[[], Records] | None = make
        self._made: Records | None = None

    @property
    def records(self) -> Records:
        """The stages with their records."""
        if self._made is None:
            assert self._make is not None
            self._made, self._make = self._make(), None
        return self._made


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One request, judged."""

    key: Key
    verdict: Verdict
    course: Course = field(compare=False)
    moments: tuple[float, ...]
    """When each of the nine stages was first seen to be done; 0 where it was not."""
    findings: tuple[Finding, ...] = ()
    failed_stage: int | None = None
    confidence: Confidence = "certain"
    superseded_by: str = ""
    start: float = 0.0
    end: float = 0.0

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The nine stages."""
        return self.course.records.stages

    @property
    def status_updates(self) -> tuple[StatusUpdate, ...]:
        """The statuses that answered it."""
        return self.course.records.status_updates

    @property
    def duration(self) -> float:
        """Seconds from its first to its last record that counts."""
        return max(0.0, self.end - self.start)

    @property
    def main_finding(self) -> Finding | None:
        """The finding that explains where it stopped."""
        if self.failed_stage is None:
            return None
        here = [each for each in self.findings if each.entry.stage == self.failed_stage]
        errors = [each for each in self.findings if each.entry.severity == "error"]
        return next(iter([*here, *errors]), None)

    def without_records(self) -> "Trace":
        """Return the trace without the records behind its stages, for reports that do not show them."""
        if all(self.moments):
            return replace(self, course=Course(partial(all_done, self.moments)))
        stages = tuple(replace(stage, hits=()) for stage in self.stages)
        records = Records(stages=stages, status_updates=self.status_updates)
        return replace(self, course=Course(lambda: records))

    @property
    def timeline(self) -> list[Hit]:
        """All records in order of time."""
        return sorted((hit for stage in self.stages for hit in stage.hits), key=lambda hit: (hit.at, hit.stage))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How strictly to judge."""

    stage_timeout: float = 30.0
    """After how many seconds a stage that has not come is missing and not merely pending."""
    broker: str = "auto"
    subscription: str = "auto"
    expected_instances: int = 0
    """How many servers there are at least, whatever the logs show: what a server without logs did, nobody can see."""
    are_clocks_compared: bool = True
    """Whether clocks that are provably off are corrected."""
    clocks: tuple[tuple[str, float], ...] = ()
    """Pods, and by how many seconds the clock of each is known to be ahead."""
