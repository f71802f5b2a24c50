"""What is known around a request, and around a stage of it that is missing. Values only."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from maestropy.trace.logs.log_records import LogRecord
from maestropy.trace.logs.match.spec_requests import TracedRequest
from maestropy.trace.logs.match.untied_records import UntiedRecords
from maestropy.trace.logs.model import Confidence, Options, RequestFinding
from maestropy.trace.logs.read.log_writers import Environment

_BEFORE: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """A request and what is known around it."""

    request: TracedRequest
    environment: Environment
    components: Sequence[LogRecord]
    options: Options
    untied: UntiedRecords


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A stage that is missing, and what surrounds it."""

    stage: int
    request: TracedRequest
    environment: Environment
    components: Sequence[LogRecord]
    since: float
    until: float

    @property
    def consumer(self) -> str:
        """The consumer of the request."""
        return self.request.first("consumer")

    @property
    def around(self) -> Sequence[LogRecord]:
        """The records of components a while before and during the gap."""
        return between(self.components, self.since - _BEFORE, self.until)

    def finding(self, code: str, confidence: Confidence, detail: str, *evidence: LogRecord) -> RequestFinding:
        """Return a finding about this gap."""
        return RequestFinding(code=code, confidence=confidence, detail=detail, evidence=evidence)


def between(components: Sequence[LogRecord], since: float, until: float) -> Sequence[LogRecord]:
    """Return the records of components of a time; they are in order of time."""
    begin = bisect_left(components, since, key=lambda record: record.at)
    return components[begin : bisect_right(components, until, key=lambda record: record.at)]
