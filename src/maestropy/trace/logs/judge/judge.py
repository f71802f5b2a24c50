"""Judge one spec request: the state of each stage, the verdict and the findings.

For each stage in turn: is there a record of it, did it fail, does a later stage prove it, was it superseded, could the
logs show it, is it too early? Only a stage that none of these explains is missing. Pure.
"""

from collections.abc import Sequence
from dataclasses import replace

from maestropy.trace.logs.judge import (
    apply_outcome,
    causes,
    clients,
    legitimate_absence,
    lifecycles,
    nearby,
    observability,
    side_findings,
)
from maestropy.trace.logs.judge.request_context import Gap, RequestContext
from maestropy.trace.logs.judge.stage_evidence import StageEvidence
from maestropy.trace.logs.log_records import LogRecord, RecordKind
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
)
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.stages import Stage

_EARLY = (
    "the agent sent a status before it logged that it applied anything, and no later one: a Go agent reports a new "
    "version before it has applied it"
)
_MOST_NAMED = 5
_NO_OBJECT = "no line of an applied object and no error is tied to it"
_REPEATED = "nothing to change: the same manifests were applied before"
_NOT_SHOWN = "a status came back; what it says is not in these logs, nor does an agent's log show it"


def judge(context: RequestContext) -> Trace:
    """Return the verdict on one request."""
    request = context.request
    proofs = StageEvidence(request, context.environment)
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
    unusual = side_findings.of_delivery(request, stages, context.environment, context.components)
    findings += [finding for finding in unusual if finding.code not in codes]
    findings += [*side_findings.of_attempts(outcome), *side_findings.of_availability(request, outcome)]
    verdict, failed = _verdict(request, stages)
    if failed == Stage.SERVER_PUBLISHES and any(one.code == "MT-202" for one in findings):
        # Nothing shows that there ever was such a resource, nor that there was none.
        verdict, failed = RequestVerdict.UNKNOWN, None
        stages[1] = replace(stages[1], state=StageState.UNKNOWN)
    if verdict is RequestVerdict.COMPLETE and request.is_change:
        early = _EARLY if proofs.is_doubtful and proofs[Stage.AGENT_PUBLISHES_STATUS] else ""
        if proofs.is_doubtful or not _is_applied(outcome, stages, context):
            verdict = RequestVerdict.UNKNOWN
            findings.append(RequestFinding(code="MT-416", confidence="certain", detail=early or _NOT_SHOWN))
    if verdict in nearby.STOPPED and not outcome.failures and not nearby.is_explained(findings):
        findings += _nearby_errors(context, stages, findings)
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


def _nearby_errors(
    context: RequestContext, stages: Sequence[StageResult], known: Sequence[RequestFinding]
) -> list[RequestFinding]:
    near = nearby.finding(
        context.request,
        context.environment,
        context.untied,
        stages=stages,
        known=known,
        timeout=context.options.stage_timeout,
    )
    return [near] if near is not None else []


def _is_applied(outcome: apply_outcome.ApplyOutcome, stages: Sequence[StageResult], context: RequestContext) -> bool:
    """Say whether the logs show that it was applied: an agent logs every error, so its silence shows it too."""
    if outcome.is_shown or stages[3].state is StageState.SKIPPED:
        return True
    return stages[3].state is StageState.LEGIT_ABSENT and _is_covered_until_status(context)


def _is_covered_until_status(context: RequestContext) -> bool:
    """Say whether the agent's log reaches from the request to its first status: then it would have the errors."""
    request, environment = context.request, context.environment
    if any(record.kind is RecordKind.SENDING_STATUS for record in request.stage(Stage.AGENT_PUBLISHES_STATUS)):
        return True
    reported = min((update.at for update in request.status_updates), default=request.at)
    logs = observability.logs_of_agent(request.first("consumer"), environment)
    # An agent that logs the statuses it sends would have logged this one.
    silent = [log for log in logs if not log.stages[Stage.AGENT_PUBLISHES_STATUS]]
    return any(log.covers(reported + log.skew, slack=0.0) for log in silent)


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
        findings=tuple(sorted(findings, key=lambda finding: ("error", "warn", "info").index(finding.entry.severity))),
        failed_stage=failed,
        confidence=main.confidence if main else "certain",
        superseded_by=f"{by.action} v{by.version}" if by else "",
        start=request.at,
        end=max((stage.first for stage in reached), default=request.at),
    )


def _key(request: TracedRequest) -> RequestKey:
    source = (
        request.arrival.source
        if request.arrival
        else next(
            (
                record.source
                for update in request.status_updates
                for record in update.records
                if record.kind is RecordKind.BROADCAST
            ),
            "",
        )
    )
    return RequestKey(
        resource=request.resource,
        work_name=request.first("name"),
        consumer=request.first("consumer"),
        source=source,
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


def _stage(
    number: int, context: RequestContext, proofs: StageEvidence, *, before: float
) -> tuple[StageResult, list[RequestFinding]]:
    request = context.request
    proof, records = proofs[number], tuple(request.stage(number))
    failures = proofs.failures(number)
    is_tried_again = bool(failures) and number == Stage.AGENT_HANDLES
    first = proof[0].at if proof and not is_tried_again else failures[0].at if failures else 0.0
    base = StageResult(
        number=number,
        state=StageState.OK,
        records=records,
        first=first,
        last=proof[-1].at if proof else 0.0,
        hop=first - before if before and first else None,
        via=_via(number, proof) if proof else "direct",
        note=_stage_note(number, records, context.environment) if proof else "",
    )
    if failures:
        finding = causes.of_failure(number, failures)
        if number == Stage.AGENT_HANDLES:
            finding = _of_attempts(finding, failures, context, proofs)
        count = f"{len(failures)} times" if len(failures) > 1 else ""
        return replace(base, state=StageState.FAILED, last=failures[-1].at, note=count), [finding]
    broken = clients.broken_stream(proof, context) if proof and number == Stage.SERVER_SENDS_STATUS else None
    if broken is not None:
        return replace(base, state=StageState.FAILED, note=broken.detail), [broken]
    if proof:
        return base, []
    return _absent(base, context, proofs)


def _of_attempts(
    finding: RequestFinding,
    failures: Sequence[LogRecord],
    context: RequestContext,
    proofs: StageEvidence,
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
    environment = context.environment
    if environment.writers[last.file].role != "agent":
        return ""
    ended = observability.ended_agent(context.request.first("consumer"), environment, moment=environment.end)
    return ended.text if ended is not None and ended.confidence != "possible" else ""


def _is_of_version(failures: Sequence[LogRecord], proofs: StageEvidence) -> bool:
    """Say whether errors of the agent are surely about this version: its log shows that it received it, or a status."""
    received = {record.file for record in proofs[3]}
    return any(record.file in received or apply_outcome.is_denial(record) for record in failures)


def _absent(
    stage: StageResult, context: RequestContext, proofs: StageEvidence
) -> tuple[StageResult, list[RequestFinding]]:
    request, number = context.request, stage.number
    moment = proofs.moment(number)
    not_observable = _not_observable_reason(number, context, proofs, moment=moment)
    if number > 1 and (request.rejection or request.no_op):
        return _rejected_or_no_op(stage, request)
    if request.is_surely_rejected or proofs.last_proven > number:
        return _proven_later(stage, context, proofs, not_observable)
    is_hidden = not_observable is not None and _may_be_hidden(number, request, not_observable)
    excuse = None if is_hidden else legitimate_absence.legitimate_absence(stage, context, proofs, moment=moment)
    if excuse is not None:
        return excuse
    has_stopped = _has_stopped(number, context, proofs)
    without_agent = None if has_stopped or number not in (2, 3) else _without_agent(number, context, moment=moment)
    if without_agent is not None:
        if number == 2:
            return replace(stage, state=StageState.LEGIT_ABSENT, note="no agent to send it to"), []
        return _missing(stage, without_agent, context, until=moment + context.options.stage_timeout)
    if not_observable is not None:
        findings = [] if has_stopped else [not_observable.finding]
        return replace(stage, state=StageState.NOT_OBSERVABLE, note=not_observable.why), findings
    if has_stopped:
        # The request stopped at an earlier stage; later stages are not missing by themselves.
        return replace(stage, state=StageState.PENDING), []
    return _unexplained(stage, context, proofs, moment=moment)


def _unexplained(
    stage: StageResult, context: RequestContext, proofs: StageEvidence, *, moment: float
) -> tuple[StageResult, list[RequestFinding]]:
    """Return a stage whose absence nothing excuses."""
    if stage.number == Stage.AGENT_HANDLES and (untied := _untied_objects(context, proofs, moment=moment)):
        # One of them may be its own: then the agent applied it, and only its status is missing.
        return replace(stage, state=StageState.UNKNOWN, note=nearby.untied_note(untied)), []
    gap = _gap(stage.number, context, moment=moment)
    return _missing(stage, _cause_of_absence(gap, proofs), context, until=gap.until)


def _untied_objects(context: RequestContext, proofs: StageEvidence, *, moment: float) -> list[LogRecord]:
    """Return applied objects of no known work, logged after a create was received that nothing else explains."""
    if context.request.action != "create" or not proofs[3]:
        return []
    gap = _gap(Stage.AGENT_HANDLES, context, moment=moment)
    untied = nearby.untied_objects(context, gap.since, gap.until)
    is_unexplained = bool(untied) and causes.of_absence(gap).code == causes.ABSENCE_CODES[gap.stage]
    return untied if is_unexplained else []


def _cause_of_absence(gap: Gap, proofs: StageEvidence) -> RequestFinding:
    finding = causes.of_absence(gap)
    if gap.stage == Stage.AGENT_RECEIVES and not proofs[2]:
        detail = "whether a server published it, these logs cannot show"
        finding = replace(finding, confidence="possible", detail=detail)
    if gap.stage == Stage.AGENT_PUBLISHES_STATUS and not proofs[4]:
        detail = "the agent sent no status; whether it applied the work, these logs do not show"
        finding = replace(finding, confidence="possible", detail="; ".join(filter(None, (detail, finding.detail))))
    if gap.stage == Stage.SERVER_RECEIVES_STATUS and not any(proofs[earlier] for earlier in (3, 4, 5)):
        # Nothing shows that the agent ever had it: that is as likely as a status that got lost.
        detail = "no status came back; whether the agent received and handled it, these logs cannot show"
        finding = replace(finding, confidence="possible", detail=detail)
    return finding


def _may_be_hidden(number: int, request: TracedRequest, not_observable: observability.NotObservable) -> bool:
    """Say whether a stage may well have a record that is not given, so that nothing excuses its absence."""
    # A later request supersedes what was not done; a status that is stored is sent to clients all the same.
    is_stored = any(update.result in ("sent", "nochange") for update in request.status_updates)
    is_elsewhere = not_observable.code == "MT-004" and number in (8, 9) and is_stored
    is_sent = number > Stage.AGENT_PUBLISHES_STATUS and any(
        record.kind is RecordKind.SENDING_STATUS for record in request.stage(Stage.AGENT_PUBLISHES_STATUS)
    )
    return not_observable.code == "MT-006" or is_elsewhere or (is_sent and not_observable.code in ("MT-001", "MT-002"))


def _missing(
    stage: StageResult, finding: RequestFinding, context: RequestContext, *, until: float
) -> tuple[StageResult, list[RequestFinding]]:
    """Return a stage that is missing, or pending if it is too early; a proven cause needs no waiting."""
    cut = observability.cut_log(stage.number, context.request, context.environment, until=until)
    if cut is not None and finding.confidence != "certain":
        return replace(stage, state=StageState.PENDING, note=cut.why), [cut.finding]
    is_early = context.environment.end < until and not (finding.code == "MT-301" and finding.confidence == "certain")
    return replace(stage, state=StageState.PENDING if is_early else StageState.MISSING, note=finding.detail), [finding]


def _gap(number: int, context: RequestContext, *, moment: float) -> Gap:
    return Gap(
        stage=number,
        request=context.request,
        environment=context.environment,
        components=context.components,
        since=moment,
        until=moment + context.options.stage_timeout,
    )


def _has_stopped(number: int, context: RequestContext, proofs: StageEvidence) -> bool:
    """Say whether an earlier stage explains the absence of this one."""
    if number not in proofs.stops:
        before = number > 1 and _has_stopped(number - 1, context, proofs)
        proofs.stops[number] = before or (number > 1 and _is_stopped_at(number - 1, context, proofs))
    return proofs.stops[number]


def _is_stopped_at(number: int, context: RequestContext, proofs: StageEvidence) -> bool:
    if proofs.failures(number):
        return True
    if proofs.last_proven >= number:
        return False
    moment = proofs.moment(number)
    if number == Stage.AGENT_HANDLES and _untied_objects(context, proofs, moment=moment):
        return False
    absent = _without_agent(number, context, moment=moment) if number in (2, 3) else None
    if absent is not None:
        return number == 3  # the server had nobody to send it to, so the agent's stage is the one that is missing
    return _not_observable_reason(number, context, proofs, moment=moment) is None


def _without_agent(number: int, context: RequestContext, *, moment: float) -> RequestFinding | None:
    """Return a finding when the server could not send the request to any agent: then the agent's stage is missing."""
    if number == 2 and context.environment.broker != "grpc":
        return None  # other brokers take messages for agents that are not there
    gap = _gap(number, context, moment=moment)
    if number == 2 and causes.not_announced(gap) is not None:
        return None  # there was nothing to send
    return causes.absent_agent(gap) or (causes.silent_agent(gap) if number == 3 else None)


def _not_observable_reason(
    number: int, context: RequestContext, proofs: StageEvidence, *, moment: float
) -> observability.NotObservable | None:
    not_observable = proofs.not_observable_reason(number, moment=moment)
    if not_observable is None and number == 2:
        until = moment + context.options.stage_timeout
        return causes.handled_elsewhere(context.environment, context.components, since=moment, until=until)
    return not_observable


def _rejected_or_no_op(stage: StageResult, request: TracedRequest) -> tuple[StageResult, list[RequestFinding]]:
    if request.no_op:
        findings = (
            [RequestFinding(code="MT-202", confidence="certain", detail=request.no_op)] if stage.number == 2 else []
        )
        return replace(stage, state=StageState.SKIPPED, note="no change"), findings
    if stage.number > 2:
        return replace(stage, state=StageState.SKIPPED), []
    evidence = tuple(
        record
        for record in request.records
        if record.kind in (RecordKind.REQUEST_REJECTED, RecordKind.REQUEST_RECEIVED)
    )
    finding = RequestFinding(
        code=causes.of_rejection(request.rejection),
        confidence="certain" if request.is_surely_rejected else "likely",
        detail=request.rejection,
        evidence=evidence,
    )
    return replace(stage, state=StageState.FAILED, note="rejected"), [finding]


def _proven_later(
    stage: StageResult,
    context: RequestContext,
    proofs: StageEvidence,
    not_observable: observability.NotObservable | None,
) -> tuple[StageResult, list[RequestFinding]]:
    if not_observable is not None:
        return replace(stage, state=StageState.NOT_OBSERVABLE, note=f"{not_observable.why}; a later stage proves it"), [
            not_observable.finding
        ]
    if stage.number == Stage.AGENT_HANDLES:
        until = min(proofs[later][0].at for later in range(stage.number + 1, 10) if proofs[later])
        received = proofs[3][0].at if proofs[3] else context.request.at
        untied = nearby.untied_objects(context, received, until)
        note = nearby.untied_note(untied) if untied else _NO_OBJECT
        note = _REPEATED if proofs.outcome.is_repeat else note
        return replace(
            stage, state=StageState.UNKNOWN if proofs.is_doubtful else StageState.LEGIT_ABSENT, note=note
        ), []
    if stage.number == 8:
        return replace(stage, state=StageState.LEGIT_ABSENT, note="sent by a resync"), []
    return replace(stage, state=StageState.UNKNOWN, note="no line, but a later stage proves it"), []


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
    return RequestVerdict.COMPLETE if by_state[StageState.SKIPPED] or stages[
        6
    ].note == legitimate_absence.KNOWN else RequestVerdict.UNKNOWN, None
