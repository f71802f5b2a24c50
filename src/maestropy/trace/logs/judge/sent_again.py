"""Judge a delivery whose request is not in the logs: a resync, a resend, a resumption or a restart sent it again. Pure.

An agent that has the version already applies nothing and reports nothing, so its silence shows no failure. Errors that
it logs are of this delivery, and stay.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from maestropy.trace.logs.log_records import RecordKind
from maestropy.trace.logs.match.traced_request import CHANGES, TracedRequest
from maestropy.trace.logs.model import (
    LazyDetails,
    RequestFinding,
    RequestVerdict,
    StageResult,
    StageState,
    Trace,
    TraceDetails,
)
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.stages import Stage

CODE: Final = "MT-214"
_SILENCE: Final = frozenset({"MT-412", "MT-503"})
_BY_AGENT: Final = range(Stage.SERVER_PUBLISHES, Stage.SERVER_HANDLES_STATUS)
_WAITING: Final = frozenset({StageState.MISSING, StageState.PENDING})
_NOT_HERE: Final = "the request itself is not in these logs; an agent that has the version already is silent"


def silence(
    request: TracedRequest, environment: Environment, findings: Sequence[RequestFinding]
) -> RequestFinding | None:
    """Return the finding about a delivery that the agent only received, and had perhaps handled before; else None."""
    if request.arrival is not None or not request.is_change or environment.lacks_instances:
        return None
    published = [record for record in request.records if record.stage == Stage.SERVER_PUBLISHES]
    # The first event of a resource is about a new row: then it was not delivered before.
    is_first = any(record.kind is RecordKind.PUBLISHING and record.action == "create" for record in published)
    stopped = [finding for finding in findings if finding.entry.severity == "error"]
    if not published or is_first or not stopped or any(finding.code not in _SILENCE for finding in stopped):
        return None
    return RequestFinding(code=CODE, confidence="likely", detail=_NOT_HERE, evidence=tuple(published[-1:]))


def is_without_request(trace: Trace) -> bool:
    """Say whether a change is known from its delivery only, and the logs do not show that the agent handled it."""
    is_open = trace.verdict in (RequestVerdict.INCOMPLETE, RequestVerdict.PENDING) and trace.failed_stage in _BY_AGENT
    is_silent = trace.verdict is RequestVerdict.UNKNOWN and any(finding.code == CODE for finding in trace.findings)
    return not trace.moments[0] and trace.key.action in CHANGES and trace.key.version > 0 and (is_open or is_silent)


def applied(trace: Trace, *, version: int) -> Trace:
    """Return such a trace as complete: the stored status says that the agent has applied this version, or a later."""
    detail = f"the request itself is not in these logs; the stored status says that version {version} is applied"
    return _settled(trace, RequestVerdict.COMPLETE, detail=detail, state=StageState.LEGIT_ABSENT)


def unknown(trace: Trace) -> Trace:
    """Return such a trace as unknown: nothing shows that the agent failed, nor that it has the version."""
    return _settled(trace, RequestVerdict.UNKNOWN, detail=_NOT_HERE, state=StageState.UNKNOWN)


def _settled(trace: Trace, verdict: RequestVerdict, *, detail: str, state: StageState) -> Trace:
    main = trace.main_finding
    found = RequestFinding(code=CODE, confidence="likely", detail=detail, evidence=main.evidence if main else ())
    others = (item for item in trace.findings if item.entry.severity != "error" and item.code != CODE)
    before = trace.details

    def details() -> TraceDetails:
        return replace(before.value, stages=tuple(without_gaps(before.value.stages, state)))

    return replace(trace, verdict=verdict, failed_stage=None, findings=(found, *others), details=LazyDetails(details))


def without_gaps(
    stages: Iterable[StageResult], state: StageState = StageState.UNKNOWN, *, note: str = "sent again"
) -> list[StageResult]:
    """Return the stages with a state in the place of those that are missing or awaited."""
    return [replace(one, state=state, note=note) if one.state in _WAITING else one for one in stages]
