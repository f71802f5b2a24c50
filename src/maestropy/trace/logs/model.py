"""The result of a trace: what is known of each request and each of its stages. Values only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Literal, NamedTuple

from maestropy.trace.findings.codes import CODES, Entry
from maestropy.trace.logs.log_records import LogRecord

Confidence = Literal["certain", "likely", "possible"]


class StageState(StrEnum):
    """What the logs show of a stage."""

    OK = "ok"
    FAILED = "failed"
    MISSING = "missing"
    PENDING = "pending"
    SKIPPED = "skipped"
    LEGIT_ABSENT = "legit-absent"
    UNKNOWN = "unknown"
    NOT_OBSERVABLE = "not-observable"


class RequestVerdict(StrEnum):
    """The verdict on a request."""

    COMPLETE = "complete"
    FAILED = "failed"
    INCOMPLETE = "incomplete"
    PENDING = "pending"
    SUPERSEDED = "superseded"
    NO_OP = "no-op"
    UNKNOWN = "unknown"


PROBLEMS = frozenset({RequestVerdict.FAILED, RequestVerdict.INCOMPLETE})
SETTLED = frozenset({RequestVerdict.COMPLETE, RequestVerdict.NO_OP, RequestVerdict.SUPERSEDED})
"""Verdicts on requests that need no attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """One stage of one request."""

    number: int
    state: StageState
    records: tuple[LogRecord, ...] = ()
    first: float = 0.0
    last: float = 0.0
    hop: float | None = None
    """Seconds since the last earlier stage that was seen."""
    via: str = "direct"
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFinding:
    """A code that applies to a request, with what supports it."""

    code: str
    confidence: Confidence
    detail: str = ""
    evidence: tuple[LogRecord, ...] = ()

    @property
    def entry(self) -> Entry:
        """The code's explanation."""
        return CODES[self.code]


class RequestKey(NamedTuple):
    """Which request this is."""

    resource: str
    work_name: str
    consumer: str
    source: str
    action: str
    version: int
    op_id: str
    cloudevent_id: str
    db_event: str
    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedStatusUpdate:
    """One status update that reports on the request."""

    sequence: int
    version: int
    handled_by: str
    skipped_by: int
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDetails:
    """The stages and status updates behind a verdict."""

    stages: tuple[StageResult, ...]
    status_updates: tuple[TracedStatusUpdate, ...] = ()


def all_done(moments: Sequence[float]) -> TraceDetails:
    """Return the nine stages of a complete request, without their records."""
    before = (None, *moments)
    return TraceDetails(
        stages=tuple(
            StageResult(number=number, state=StageState.OK, first=at, last=at, hop=None if last is None else at - last)
            for number, (at, last) in enumerate(zip(moments, before, strict=False), start=1)
        )
    )


class LazyDetails:
    """The details of a trace, computed on access: most are never shown. They are kept unless there are too many."""

    __slots__ = ("_is_kept", "_made", "_make")

    def __init__(self, make: Callable[[], TraceDetails], *, is_kept: bool = True) -> None:
        self._make: Callable[[], TraceDetails] | None = make
        self._made: TraceDetails | None = None
        self._is_kept = is_kept

    @property
    def value(self) -> TraceDetails:
        """The stages with their records."""
        if self._made is None:
            assert self._make is not None
            if not self._is_kept:
                return self._make()
            self._made, self._make = self._make(), None
        return self._made


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One request, judged."""

    key: RequestKey
    verdict: RequestVerdict
    details: LazyDetails = field(compare=False)
    moments: tuple[float, ...]
    """When each of the nine stages was first seen to be done; 0 where it was not."""
    findings: tuple[RequestFinding, ...] = ()
    failed_stage: int | None = None
    confidence: Confidence = "certain"
    superseded_by: str = ""
    start: float = 0.0
    end: float = 0.0

    @property
    def stages(self) -> tuple[StageResult, ...]:
        """The nine stages."""
        return self.details.value.stages

    @property
    def status_updates(self) -> tuple[TracedStatusUpdate, ...]:
        """The status updates that report on it."""
        return self.details.value.status_updates

    @property
    def duration(self) -> float:
        """Seconds from its first to its last record that counts."""
        return max(0.0, self.end - self.start)

    @property
    def main_finding(self) -> RequestFinding | None:
        """The finding that explains where it stopped, or why its outcome is not known."""
        if self.verdict is RequestVerdict.UNKNOWN:
            # What hides the outcome: the findings are in order of their severity.
            unshown = [finding for finding in self.findings if finding.code == "MT-416"]
            return next(iter([*unshown, *self.findings]), None)
        if self.failed_stage is None:
            return None
        here = [finding for finding in self.findings if finding.entry.stage == self.failed_stage]
        errors = [finding for finding in self.findings if finding.entry.severity == "error"]
        return next(iter([*here, *errors]), None)

    def without_records(self) -> "Trace":
        """Return the trace without the records behind its stages, for reports that do not show them."""
        if all(self.moments):
            return replace(self, details=LazyDetails(partial(all_done, self.moments)))
        stages = tuple(replace(stage, records=()) for stage in self.stages)
        records = TraceDetails(stages=stages, status_updates=self.status_updates)
        return replace(self, details=LazyDetails(lambda: records))

    @property
    def timeline(self) -> list[LogRecord]:
        """All records in order of time."""
        return sorted(
            (record for stage in self.stages for record in stage.records), key=lambda record: (record.at, record.stage)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How strictly to judge."""

    stage_timeout: float = 30.0
    """Seconds after which a stage without a record is missing instead of pending."""
    broker: str = "auto"
    subscription: str = "auto"
    expected_instances: int = 0
    """The minimum number of server instances: stages of a server without logs are not observable."""
    are_clocks_compared: bool = True
    """Whether clocks that are provably off are corrected."""
    clocks: tuple[tuple[str, float], ...] = ()
    """Pods, and by how many seconds the clock of each is known to be ahead."""
