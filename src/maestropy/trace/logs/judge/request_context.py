"""What is known around a request, and around a stage of it that is missing. Values only."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from maestropy.trace.logs.log_records import LogRecord, RecordKind
from maestropy.trace.logs.match.spec_requests import TracedRequest
from maestropy.trace.logs.match.untied_records import UntiedRecords
from maestropy.trace.logs.model import Confidence, Options, RequestFinding
from maestropy.trace.logs.read.log_writers import Environment, LogWriter

_BEFORE: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """A request and what is known around it."""

    request: TracedRequest
    environment: Environment
    components: Sequence[LogRecord]
    """The records about whole components, in order of time."""
    options: Options
    untied: UntiedRecords

    @property
    def consumer(self) -> str:
        return self.request.first("consumer")

    @property
    def source(self) -> str:
        """The source of the request, where its arrival is shown."""
        return self.request.arrival.source if self.request.arrival else ""

    @property
    def agent_logs(self) -> list[LogWriter]:
        """The logs of the agent of the consumer."""
        return self.environment.logs_of_agent(self.consumer)

    def writer(self, record: LogRecord) -> LogWriter:
        return self.environment.writers[record.file]

    def between(self, since: float, until: float, *kinds: RecordKind) -> list[LogRecord]:
        """Return the records of components of a time, of some kinds if any are named."""
        begin = bisect_left(self.components, since, key=lambda record: record.at)
        end = bisect_right(self.components, until, key=lambda record: record.at)
        return [record for record in self.components[begin:end] if not kinds or record.kind in kinds]


@dataclass(frozen=True, slots=True)
class Gap:
    """A stage that is missing since the last one before it was done."""

    context: RequestContext
    stage: int
    since: float

    @property
    def until(self) -> float:
        """When the stage counts as missing."""
        return self.since + self.context.options.stage_timeout

    @property
    def request(self) -> TracedRequest:
        return self.context.request

    @property
    def environment(self) -> Environment:
        return self.context.environment

    def around(self, *kinds: RecordKind) -> list[LogRecord]:
        """Return the records of components a while before and during the gap."""
        return self.context.between(self.since - _BEFORE, self.until, *kinds)

    def finding(self, code: str, confidence: Confidence, detail: str, *evidence: LogRecord) -> RequestFinding:
        return RequestFinding(code, confidence, detail=detail, evidence=evidence)
