"""Show errors near the moment at which a request stopped, which nothing ties to it. They never are its cause. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from maestropy.trace.logs.judge import observability
from maestropy.trace.logs.log_records import LogRecord
from maestropy.trace.logs.match.spec_requests import TracedRequest
from maestropy.trace.logs.match.untied_errors import UntiedErrors
from maestropy.trace.logs.model import RequestFinding, RequestVerdict, StageResult
from maestropy.trace.logs.read.log_writers import Environment

STOPPED: Final = frozenset({RequestVerdict.FAILED, RequestVerdict.INCOMPLETE, RequestVerdict.PENDING})
_BEFORE: Final = 5.0
_MOST: Final = 5


def is_explained(findings: Iterable[RequestFinding]) -> bool:
    """Say whether a certain error explains why the request stopped, so that nobody has to look around."""
    return any(one.confidence == "certain" and one.entry.severity == "error" for one in findings)


def finding(
    request: TracedRequest,
    environment: Environment,
    untied: UntiedErrors,
    *,
    stages: Sequence[StageResult],
    known: Iterable[RequestFinding],
    timeout: float,
) -> RequestFinding | None:
    """Return the errors around the last stage that was reached, each text once; None where there are none."""
    moment = max((stage.first for stage in stages if stage.first), default=request.at)
    cited = {(record.file, record.offset, record.line) for one in known for record in one.evidence}
    logs = (*environment.servers, *observability.logs_of_agent(request.first("consumer"), environment))
    files = {file for file, writer in enumerate(environment.writers) if any(writer is log for log in logs)}
    distinct: dict[tuple[int, str], LogRecord] = {}
    for record in untied.between(moment - _BEFORE, moment + timeout):
        if record.file in files and (record.file, record.offset, record.line) not in cited:
            distinct.setdefault((record.kind, record.detail), record)
    if not distinct:
        return None
    nearest = sorted(distinct.values(), key=lambda record: abs(record.at - moment))[:_MOST]
    shown = tuple(sorted(nearest, key=lambda record: record.at))
    more = f", and {len(distinct) - len(shown)} more" if len(distinct) > len(shown) else ""
    errors = "1 error" if len(shown) == 1 else f"{len(shown)} different errors"
    detail = f"{errors}{more} within {timeout:.0f} s of its last stage; nothing ties them to it"
    return RequestFinding(code="MT-010", confidence="possible", detail=detail, evidence=shown)
