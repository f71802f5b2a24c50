"""The result of a trace: what is known of each request and each of its stages. Values only."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from maestropy.trace.findings import placeholders
from maestropy.trace.findings.codes import CODES, Entry
from maestropy.trace.logs.log_records import LogRecord

_TERMINATING: Final = re.compile(r"in namespace \\*\"?(?P<name>[a-z0-9-]+)\\*\"? because it is being terminated")
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

    def absent(self, state: StageState, note: str = "") -> "StageResult":
        """Return this stage, which no record shows to be done, in a state."""
        return (
            replace(self, state=state, note=note)
            if self.records or self.first
            else blank_stage(self.number, state, note)
        )


# Requests that stop at the same stage have the same stages after it, and there may be a hundred thousand of them.
@lru_cache(maxsize=1 << 12)
def blank_stage(number: int, state: StageState, note: str = "") -> StageResult:
    """Return a stage without any record."""
    return StageResult(number=number, state=state, note=note)


@dataclass(frozen=True, slots=True)
class RequestFinding:
    """A code that applies to a request, with what supports it."""

    code: str
    confidence: Confidence
    _: KW_ONLY
    detail: str = ""
    evidence: tuple[LogRecord, ...] = ()

    @property
    def entry(self) -> Entry:
        """The code's explanation."""
        return CODES[self.code]

    def advice(self, key: "RequestKey") -> tuple[str, ...]:
        """Return what to do about a request, with its names in the place of placeholders."""
        namespace = _TERMINATING.search(self.detail)
        names = {"CONSUMER": key.consumer, "RESOURCE": key.resource, "NAME": namespace["name"] if namespace else ""}
        return placeholders.filled(self.entry.advice, names)


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

    __slots__ = ("_is_kept", "_made", "_make", "_outline")

    def __init__(
        self, make: Callable[[], TraceDetails], *, made: TraceDetails | None = None, is_kept: bool = True
    ) -> None:
        self._make = make
        self._made = made
        self._is_kept = is_kept
        self._outline: tuple[StageResult, ...] | None = None

    @property
    def value(self) -> TraceDetails:
        """The stages with their records."""
        if self._made is not None:
            return self._made
        made = self._make()
        if self._is_kept:
            self._made = made
        return made

    @property
    def outline(self) -> tuple[StageResult, ...]:
        """The stages, where their records do not matter: they may be there or not."""
        return self.value.stages if self._outline is None else self._outline

    def release(self) -> None:
        """Forget the records; whoever asks for them has them found again."""
        self._outline = tuple(replace(stage, records=()) if stage.records else stage for stage in self.outline)
        self._made, self._is_kept = None, False


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
    def outline(self) -> tuple[StageResult, ...]:
        """The nine stages for a report that does not show their records, which are not looked for."""
        return self.details.outline

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

    @property
    def timeline(self) -> list[LogRecord]:
        """All records in order of time."""
        return timeline(self.stages)


def timeline(stages: Iterable[StageResult]) -> list[LogRecord]:
    """Return the records of some stages in order of time."""
    return sorted(
        (record for stage in stages for record in stage.records), key=lambda record: (record.at, record.stage)
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
    consumers: frozenset[str] = frozenset()
    """Consumers that are known to exist, whatever the logs show."""
    departures: tuple[tuple[str, float], ...] = ()
    """Consumers whose agents are known to have left the gRPC broker, and when each did so for the last time."""
