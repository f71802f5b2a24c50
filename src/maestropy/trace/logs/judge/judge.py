"""Judge one spec request: the state of each stage, the verdict and the findings.

For each stage in turn: is there a record of it, did it fail, does a later stage prove it, was it superseded, could the
logs show it, is it too early? Only a stage that none of these explains is missing. Pure.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from maestropy.trace.logs.judge import (
    absent_stages,
    apply_outcome,
    causes,
    lifecycles,
    nearby,
    observability,
    sent_again,
    side_findings,
    subscribers,
)
from maestropy.trace.logs.judge.absent_stages import JudgedStage
from maestropy.trace.logs.judge.request_context import Gap, RequestContext
from maestropy.trace.logs.judge.stage_evidence import StageEvidence
from maestropy.trace.logs.log_records import LogRecord, RecordKind, count_of
from maestropy.trace.logs.match.spec_requests import TracedRequest
from maestropy.trace.logs.match.status_updates import StatusUpdateRecords
from maestropy.trace.logs.model import (
    LazyDetails,
    RequestFinding,
    RequestKey,
    RequestVerdict,
    StageResult,
    StageState,
    Trace,
    TraceDetails,
    TracedStatusUpdate,
    blank_stage,
)
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.stages import Stage

_EARLY = (
    "the agent sent a status before it logged that it applied anything, and no later one: a Go agent reports a new "
    "version before it has applied it"
)
_BY_TIMES = frozenset({RequestVerdict.INCOMPLETE, RequestVerdict.SUPERSEDED})
_WAITS = frozenset({RequestVerdict.INCOMPLETE, RequestVerdict.PENDING})
_MOST_NAMED = 5
_OLDER = "the request is older than these logs"
_NOT_SHOWN = "a status came back; what it says is not in these logs, nor does an agent's log show it"


def judge(context: RequestContext) -> Trace:
    """Return the verdict on one request."""
    request = context.request
    proofs = StageEvidence(context)
    stages: list[StageResult] = []
    findings: list[RequestFinding] = []
    before = 0.0
    for number in range(1, 10):
        stage, new_findings = _stage(number, context, proofs, before=before)
        before = stage.first or before
        stages.append(stage)
        if new_findings:
            findings += [finding for finding in new_findings if finding.code not in {one.code for one in findings}]
    outcome = proofs.outcome
    codes = {finding.code for finding in findings}
    unusual = side_findings.of_delivery(context, stages)
    findings += [finding for finding in unusual if finding.code not in codes]
    findings += [*side_findings.of_attempts(outcome), *side_findings.of_availability(request, outcome)]
    verdict, failed = _verdict(request, stages)
    if failed == Stage.SERVER_PUBLISHES and any(one.code == "MT-202" for one in findings):
        # Nothing shows that there ever was such a resource, nor that there was none.
        verdict, failed = RequestVerdict.UNKNOWN, None
        stages[1] = replace(stages[1], state=StageState.UNKNOWN)
    if verdict in _BY_TIMES and (unsure := observability.unsure_clock(context)):
        # Records of this request may be among those that its times seem to exclude.
        findings = [unsure, *(finding for finding in findings if finding.entry.severity != "error")]
        stages = [replace(one, state=StageState.UNKNOWN) if one.number == failed else one for one in stages]
        verdict, failed = RequestVerdict.UNKNOWN, None
    if verdict is RequestVerdict.INCOMPLETE and (again := sent_again.silence(request, context.environment, findings)):
        findings = [again, *(finding for finding in findings if finding.entry.severity != "error")]
        stages, verdict, failed = sent_again.without_gaps(stages), RequestVerdict.UNKNOWN, None
    if request.action == "unknown" and verdict in _WAITS and (failed or 0) <= Stage.AGENT_RECEIVES:
        # It is known only by what followed it: a server has received and sent it before these logs begin.
        findings = [finding for finding in findings if finding.entry.severity != "error"]
        stages, verdict, failed = sent_again.without_gaps(stages, note=_OLDER), RequestVerdict.UNKNOWN, None
    if verdict is RequestVerdict.COMPLETE and request.action != "delete":
        early = _EARLY if proofs.is_doubtful and proofs[Stage.AGENT_PUBLISHES_STATUS] else ""
        if proofs.is_doubtful or not _is_applied(outcome, stages, context):
            verdict = RequestVerdict.UNKNOWN
            findings.append(RequestFinding("MT-416", "certain", detail=early or _NOT_SHOWN))
    if verdict in nearby.STOPPED and not outcome.failures and not nearby.is_explained(findings):
        near = nearby.finding(context, stages, findings)
        findings += [near] if near is not None else []
    rival = _rival_error(context, stages, outcome) if verdict is RequestVerdict.COMPLETE else None
    trace = _trace(context, verdict, tuple(stages), findings=(*findings, *([rival] if rival else ())), failed=failed)
    return replace(trace, confidence="likely") if rival else trace


def _rival_error(
    context: RequestContext, stages: Sequence[StageResult], outcome: apply_outcome.ApplyOutcome
) -> RequestFinding | None:
    """Return the agent's errors that name no work, logged while it handled this one: one may be of this one."""
    received, sent = stages[2].first, stages[4].first
    is_told = bool(apply_outcome.statements(context.request)) or not context.request.is_change
    if is_told or not received or not sent or outcome.earlier:
        return None
    return nearby.untied_failures(context, received, sent + apply_outcome.ERROR_FOLLOWS)


def _is_applied(outcome: apply_outcome.ApplyOutcome, stages: Sequence[StageResult], context: RequestContext) -> bool:
    """Say whether the logs show that it was applied: an agent logs every error, so its silence shows it too."""
    if outcome.is_shown or stages[3].state is StageState.SKIPPED:
        return True
    return stages[3].state is StageState.LEGIT_ABSENT and _is_covered_until_status(context)


def _is_covered_until_status(context: RequestContext) -> bool:
    """Say whether the agent's log reaches from the request to its first status: then it would have the errors."""
    request = context.request
    if any(record.kind is RecordKind.SENDING_STATUS for record in request.stage(Stage.AGENT_PUBLISHES_STATUS)):
        return True
    reported = min((update.at for update in request.status_updates), default=request.at)
    # An agent that logs the statuses it sends would have logged this one.
    silent = [log for log in context.agent_logs if not log.stages[Stage.AGENT_PUBLISHES_STATUS]]
    return any(log.covers(reported, slack=0.0) for log in silent)


def _trace(
    context: RequestContext,
    verdict: RequestVerdict,
    stages: tuple[StageResult, ...],
    *,
    findings: tuple[RequestFinding, ...],
    failed: int | None,
) -> Trace:
    request = context.request
    reached = [stage for stage in stages if stage.first]
    main = next((finding for finding in findings if failed and finding.entry.severity == "error"), None)
    by = request.next_request if verdict is RequestVerdict.SUPERSEDED else None
    updates = tuple(_update(update, context.environment) for update in request.status_updates)
    records = TraceDetails(stages=stages, status_updates=updates)
    return Trace(
        key=_key(request),
        verdict=verdict,
        details=LazyDetails(lambda: records),
        moments=tuple(stage.first if stage.state is StageState.OK else 0.0 for stage in stages),
        findings=_shared(tuple(sorted(findings, key=_severity))),
        failed_stage=failed,
        confidence=main.confidence if main else "certain",
        superseded_by=f"{by.action} v{by.version}" if by else "",
        start=request.at,
        end=max((stage.first for stage in reached), default=request.at),
    )


def _severity(finding: RequestFinding) -> int:
    return ("error", "warn", "info").index(finding.entry.severity)


def _shared(findings: tuple[RequestFinding, ...]) -> tuple[RequestFinding, ...]:
    """Return equal findings once: many requests stop alike, and have no record of their own that shows why."""
    return findings if any(finding.evidence for finding in findings) else _findings_once(findings)


@lru_cache(maxsize=1 << 12)
def _findings_once(findings: tuple[RequestFinding, ...]) -> tuple[RequestFinding, ...]:
    return findings


def _key(request: TracedRequest) -> RequestKey:
    told = (record for update in request.status_updates for record in update.records)
    broadcast = next((record.source for record in told if record.kind is RecordKind.BROADCAST), "")
    return RequestKey(
        resource=request.resource,
        work_name=request.first("name"),
        consumer=request.first("consumer"),
        source=request.arrival.source if request.arrival else broadcast,
        action=request.action,
        version=request.version,
        op_id=request.arrival.op_id if request.arrival else request.first("op_id"),
        cloudevent_id=request.arrival.cloudevent_id if request.arrival else "",
        db_event=next((record.event for record in request.records if record.stage == 2 and record.event), ""),
        incarnation=request.incarnation,
    )


def _update(update: StatusUpdateRecords, environment: Environment) -> TracedStatusUpdate:
    handled = next((record.file for record in update.records if record.stage == 7), None)
    return TracedStatusUpdate(
        sequence=update.sequence,
        version=update.version,
        handled_by="" if handled is None else environment.writers[handled].pod,
        skipped_by=sum(record.kind is RecordKind.NOT_OWNED for record in update.records),
        result=update.result,
    )


def _stage(number: int, context: RequestContext, proofs: StageEvidence, *, before: float) -> JudgedStage:
    proof, records = proofs[number], tuple(context.request.stage(number))
    sent_again = ""
    if number == Stage.SERVER_SENDS_STATUS and (arrived := subscribers.unbroken(proof, context)):
        sent_again = "" if arrived[0] is proof[0] else f"{subscribers.BROKE} at {lifecycles.clock(proof[0].at)}"
        proof = arrived
    failures = proofs.failures(number)
    is_tried_again = bool(failures) and number == Stage.AGENT_HANDLES
    if not records and not proof and not failures:
        return absent_stages.absent_stage(blank_stage(number, StageState.OK), context, proofs)
    first = proof[0].at if proof and not is_tried_again else failures[0].at if failures else 0.0
    base = StageResult(
        number=number,
        state=StageState.OK,
        records=records,
        first=first,
        last=proof[-1].at if proof else 0.0,
        hop=first - before if before and first else None,
        via=_via(number, proof) if proof else "direct",
        note=sent_again or (_stage_note(number, records, context.environment) if proof else ""),
    )
    if failures:
        finding = causes.of_failure(number, failures)
        if number == Stage.AGENT_HANDLES:
            finding = _of_attempts(finding, failures, context, proofs)
        attempts = count_of(failures)
        count = f"{attempts} times" if attempts > 1 else ""
        return replace(base, state=StageState.FAILED, last=failures[-1].at, note=count), [finding]
    if not proof:
        return absent_stages.absent_stage(base, context, proofs)
    if number == Stage.SERVER_BROADCASTS_STATUS and not proofs[Stage.SERVER_SENDS_STATUS]:
        unreached = subscribers.unreached_client(proof, context)
        if unreached is not None:
            return absent_stages.missing_stage(replace(base, note=""), unreached, Gap(context, number, base.first))
    broken = subscribers.broken_stream(proof, context) if number == Stage.SERVER_SENDS_STATUS else None
    if broken is not None:
        return replace(base, state=StageState.FAILED, note=broken.detail), [broken]
    return base, []


def _of_attempts(
    finding: RequestFinding, failures: Sequence[LogRecord], context: RequestContext, proofs: StageEvidence
) -> RequestFinding:
    """Return the finding about failed attempts to apply, as sure as the rest of the agent's log allows."""
    outcome = proofs.outcome
    ended = _end_of_agent(failures[-1], context)
    if not _is_of_version(failures, proofs):
        finding = replace(finding, confidence="likely")
    if outcome.applied_at:
        why = f"the agent recorded an applied object at {lifecycles.clock(outcome.applied_at)}, after the last error"
        finding = replace(finding, confidence="possible", detail=f"{finding.detail}; {why}")
    elif outcome.is_brief and not ended:
        why = "the agent's log ends within seconds of this error, and the agent tries again"
        finding = replace(finding, confidence="possible", detail=f"{finding.detail}; {why}")
    return replace(finding, detail=f"{finding.detail}; since then {ended}") if ended else finding


def _end_of_agent(last: LogRecord, context: RequestContext) -> str:
    """Return how the agent ended after its last error; empty if it may run, and go on trying."""
    if context.writer(last).role != "agent":
        return ""
    ended = observability.ended_agent(context, moment=context.environment.end)
    return ended.text if ended is not None and ended.confidence != "possible" else ""


def _is_of_version(failures: Sequence[LogRecord], proofs: StageEvidence) -> bool:
    """Say whether errors of the agent are surely about this version: its log shows that it received it, or a status."""
    received = {record.file for record in proofs[3]}
    return any(record.file in received or apply_outcome.is_denial(record) for record in failures)


def _via(number: int, proof: Sequence[LogRecord]) -> str:
    if number in (2, 3, 5, 6) and all(record.action == "resync" for record in proof if record.action):
        return "resync" if any(record.action == "resync" for record in proof) else "direct"
    return "direct"


def _stage_note(number: int, records: Sequence[LogRecord], environment: Environment) -> str:
    if number == 6:
        passed = sum(record.kind is RecordKind.NOT_OWNED for record in records)
        return f"{passed} not owned" if passed else ""
    if number in (2, 3):
        published = {record.event for record in records if record.kind is RecordKind.PUBLISHING and record.event}
        again = [lifecycles.clock(record.at) for record in records if record.kind is RecordKind.REPUBLISHED]
        attempts = f"{len(published)} attempts" if len(published) > 1 else ""
        republished = f"re-published at {', '.join(again[:_MOST_NAMED])}" if again else ""
        return "; ".join(filter(None, (attempts, republished)))
    if number == 8 and environment.instances > 1:
        return f"{len({record.file for record in records})} of {environment.instances} instances"
    return ""


def _verdict(request: TracedRequest, stages: Sequence[StageResult]) -> tuple[RequestVerdict, int | None]:
    if request.no_op:
        return RequestVerdict.NO_OP, None
    by_state = {state: [stage.number for stage in stages if stage.state is state] for state in StageState}
    if by_state[StageState.FAILED]:
        return RequestVerdict.FAILED, by_state[StageState.FAILED][0]
    if by_state[StageState.MISSING]:
        return RequestVerdict.INCOMPLETE, by_state[StageState.MISSING][0]
    if any(stage.note.startswith("superseded") for stage in stages):
        return RequestVerdict.SUPERSEDED, None
    if by_state[StageState.PENDING]:
        return RequestVerdict.PENDING, by_state[StageState.PENDING][0]
    if stages[6].first or stages[8].first or stages[7].first:
        return RequestVerdict.COMPLETE, None
    if stages[6].state is StageState.SKIPPED:
        return RequestVerdict.SUPERSEDED, None
    is_done = by_state[StageState.SKIPPED] or stages[6].note == absent_stages.KNOWN
    return RequestVerdict.COMPLETE if is_done else RequestVerdict.UNKNOWN, None
