"""Show records near a request that nothing ties to it: errors, which never are its cause, and applied objects. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from maestropy.trace.logs.judge.request_context import RequestContext
from maestropy.trace.logs.log_records import LogRecord, RecordKind
from maestropy.trace.logs.model import RequestFinding, RequestVerdict, StageResult
from maestropy.trace.logs.read.log_writers import LogWriter

STOPPED: Final = frozenset({RequestVerdict.FAILED, RequestVerdict.INCOMPLETE, RequestVerdict.PENDING})
_WAITS: Final = "MT-411"
_BEFORE: Final = 5.0
_MOST: Final = 5
_NAMED: Final = 2


def is_explained(findings: Iterable[RequestFinding]) -> bool:
    """Say whether it is certain why the request stopped or waits, so that nobody has to look around."""
    certain = [one for one in findings if one.confidence == "certain"]
    return any(one.entry.severity == "error" or one.code == _WAITS for one in certain)


def untied_objects(context: RequestContext, since: float, until: float) -> list[LogRecord]:
    """Return the applied objects of a time, in logs of the request's agent, that nothing ties to a work."""
    skew, own = _agent(context)
    return [record for record in context.untied.applied(since + skew, until + skew) if record.file in own]


def untied_failures(context: RequestContext, since: float, until: float) -> RequestFinding | None:
    """Return the failed attempts of a time, in logs of the request's agent, that nothing ties to a work."""
    skew, own = _agent(context)
    failed = [
        record
        for record in context.untied.errors(since + skew, until + skew)
        if record.file in own and record.kind is RecordKind.APPLY_FAILED
    ]
    if not failed:
        return None
    detail = f"while the agent handled it, it logged an error that names no work: {failed[-1].detail}"
    return RequestFinding("MT-010", "possible", detail=detail, evidence=tuple(failed[-_MOST:]))


def _agent(context: RequestContext) -> tuple[float, set[int]]:
    """Return by how much the clock of the request's agent is ahead, and its files."""
    logs = context.agent_logs
    return max((log.skew for log in logs), default=0.0), _files(context, logs)


def _files(context: RequestContext, logs: Sequence[LogWriter]) -> set[int]:
    own = {id(log) for log in logs}
    return {file for file, writer in enumerate(context.environment.writers) if id(writer) in own}


def untied_note(untied: Sequence[LogRecord]) -> str:
    """Say that objects were applied, and that no line shows of which work they are."""
    names = ", ".join(dict.fromkeys(record.detail.removeprefix("INFO: ").split("\n")[0] for record in untied[:_NAMED]))
    more = f", and {len(untied) - _NAMED} more" if len(untied) > _NAMED else ""
    return f"the agent logged objects without their work in this time: {names}{more}"


def finding(
    context: RequestContext, stages: Sequence[StageResult], known: Iterable[RequestFinding]
) -> RequestFinding | None:
    """Return the errors around the last stage that was reached, each text once; None where there are none."""
    timeout = context.options.stage_timeout
    moment = max((stage.first for stage in stages if stage.first), default=context.request.at)
    cited = {(record.file, record.offset, record.line) for one in known for record in one.evidence}
    files = _files(context, (*context.environment.servers, *context.agent_logs))
    distinct: dict[tuple[int, str], LogRecord] = {}
    for record in context.untied.errors(moment - _BEFORE, moment + timeout):
        if record.file in files and (record.file, record.offset, record.line) not in cited:
            distinct.setdefault((record.kind, record.detail), record)
    if not distinct:
        return None
    nearest = sorted(distinct.values(), key=lambda record: abs(record.at - moment))[:_MOST]
    shown = tuple(sorted(nearest, key=lambda record: record.at))
    more = f", and {len(distinct) - len(shown)} more" if len(distinct) > len(shown) else ""
    errors = "1 error" if len(shown) == 1 else f"{len(shown)} different errors"
    detail = f"{errors}{more} within {timeout:.0f} s of its last stage; nothing ties them to it"
    return RequestFinding("MT-010", "possible", detail=detail, evidence=shown)
