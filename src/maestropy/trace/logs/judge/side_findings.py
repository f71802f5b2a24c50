"""Find what was unusual on the way of a request, and does not decide its verdict. Pure."""

from collections.abc import Sequence

from maestropy.trace.logs.judge import apply_outcome, lifecycles, stage_evidence, subscribers
from maestropy.trace.logs.judge.request_context import RequestContext
from maestropy.trace.logs.log_records import (
    APPLIED,
    APPLIED_AND_GONE,
    NOT_APPLIED,
    NOT_AVAILABLE,
    LogRecord,
    RecordKind,
    count_of,
    says_applied,
)
from maestropy.trace.logs.match.spec_requests import TracedRequest
from maestropy.trace.logs.model import Confidence, RequestFinding, StageResult, StageState
from maestropy.trace.logs.read.log_writers import LogWriter
from maestropy.trace.stages import Stage

_LATE = 10.0
_NOTABLE = 1.0
_LONGEST_AWAY = 3600.0
_MOST_NAMED = 5
_OF_PUBLISHING = frozenset({RecordKind.APPLY_FAILED, RecordKind.CONTROLLER_FAILED, RecordKind.STATUS_REJECTED})
_BACK = frozenset({RecordKind.RECONNECTED, RecordKind.SUBSCRIBED, RecordKind.STARTED})
_TELL_OF_BROKER = frozenset({"MT-211", "MT-304"})


def of_attempts(outcome: apply_outcome.ApplyOutcome) -> list[RequestFinding]:
    """Return what the agent's other attempts show, which do not decide the verdict."""
    findings = []
    for code, records in (("MT-415", outcome.earlier), ("MT-414", outcome.later)):
        if records:
            detail = apply_outcome.last_readable(records).detail.removeprefix(NOT_APPLIED)
            findings.append(RequestFinding(code, "certain", detail=detail, evidence=records[-3:]))
    return findings


def of_availability(request: TracedRequest, outcome: apply_outcome.ApplyOutcome) -> list[RequestFinding]:
    """Return that the last status says that the objects are applied, but not available."""
    said = apply_outcome.statements(request)
    is_last = bool(said) and request.next_request is None  # what was replaced or deleted need not be available
    if not is_last or outcome.failures or not says_applied(said[-1].detail) or said[-1].detail == APPLIED:
        return []
    detail = said[-1].detail.removeprefix(NOT_AVAILABLE)
    text = "none of the objects exists on the cluster" if detail == APPLIED_AND_GONE else detail
    return [RequestFinding("MT-421", "certain", detail=text, evidence=(said[-1],))]


def of_delivery(context: RequestContext, stages: Sequence[StageResult]) -> list[RequestFinding]:
    """Return what was unusual about deliveries: late, overtaken, to several agents, or statuses that came too late."""
    request = context.request
    findings = [*_of_publishing(request, stages), *_several_agents(context), *_foreign_statuses(context)]
    late = [record for record in request.records if record.kind is RecordKind.REPUBLISHED]
    delivery = stages[2]
    is_delivered = any(stage.state is StageState.OK for stage in stages[2:])
    if (late and is_delivered) or (delivery.via == "resync" and (delivery.hop or 0) > _LATE):
        why, evidence = _disconnection(context, stages), tuple(late or delivery.records[:1])
        findings.append(RequestFinding("MT-304", "certain", detail=why, evidence=evidence))
    delays, away = _delays(context, stages), _times_away(context, stages)
    if any(finding.code in _TELL_OF_BROKER for finding in findings):
        away = []
    if delays or away:
        # That a component had no connection explains a wait; that this was the only reason, nothing shows.
        confidence: Confidence = "likely" if away else "certain"
        detail = "; ".join((*delays, *dict.fromkeys(away)))
        findings.append(RequestFinding("MT-011", confidence, detail=detail))
    overtaken = _received_out_of_order(request)
    if overtaken:
        detail = f"it had version {overtaken[0].version} already"
        findings.append(RequestFinding("MT-402", "certain", detail=detail, evidence=overtaken))
    stale = [update for update in request.status_updates if update.result in ("stale", "duplicate")]
    if stale:
        evidence = tuple(record for update in stale for record in update.records if record.kind is RecordKind.STALE)
        code = "MT-705" if any(record.detail == "sequence" for record in evidence) else "MT-704"
        findings.append(RequestFinding(code, "certain", evidence=evidence))
    return findings


def _of_publishing(request: TracedRequest, stages: Sequence[StageResult]) -> list[RequestFinding]:
    failed = stage_evidence.overcome_failures(request)
    if not failed or stages[1].state is StageState.FAILED:
        return []
    first, last = lifecycles.clock(failed[0].at), lifecycles.clock(failed[-1].at)
    # A server logs the error of one attempt once or twice.
    attempts = [
        record
        for record in request.stage(Stage.SERVER_PUBLISHES)
        if record.kind is RecordKind.PUBLISHING and record.at <= failed[-1].at
    ]
    count = count_of(attempts) or count_of(failed)
    times = f"1 attempt failed at {first}" if count == 1 else f"{count} attempts failed, {first} to {last}"
    evidence = (failed[0], *failed[-2:]) if len(failed) > 2 else tuple(failed)
    detail = f"{times}: {failed[-1].detail}"
    return [RequestFinding("MT-211", "certain", detail=detail, evidence=evidence)]


def _several_agents(context: RequestContext) -> list[RequestFinding]:
    """Return that agents of several pods received the same message, each by itself."""
    received: dict[tuple[int, str], dict[float, LogRecord]] = {}
    for record in context.request.stage(Stage.AGENT_RECEIVES):
        if record.kind is RecordKind.RECEIVED_SPEC and record.action != "resync":
            # A record with the same time is a copy of the same line.
            received.setdefault((record.version, record.action), {}).setdefault(record.at, record)
    for copies in received.values():
        by_pod = {context.writer(record).pod: record for record in copies.values()}
        if len(by_pod) > 1:
            detail = f"{', '.join(sorted(by_pod))} received the same request of {context.consumer}"
            evidence = tuple(by_pod.values())[:_MOST_NAMED]
            return [RequestFinding("MT-307", "certain", detail=detail, evidence=evidence)]
    return []


def _delays(context: RequestContext, stages: Sequence[StageResult]) -> list[str]:
    """Return what made a request wait on its way: restarts of its agent or of servers, statuses that nobody took."""
    began, first = context.request.at, [stage.first for stage in stages]
    spans = (
        (context.environment.servers, began, first[1]),
        (context.agent_logs, began, first[4]),
        (context.environment.servers, first[4], first[8]),
    )
    restarts = [
        f"{log.pod} restarted at {lifecycles.clock(at)}"
        for logs, since, until in spans
        if since and until - since > _NOTABLE
        for log in logs
        for at in log.started
        if since < at <= until
    ]
    unusual = (_unpublished(context.request, stages), _unowned(context, stages), _sent_again(stages))
    return [*dict.fromkeys(restarts), *filter(None, unusual)]


def _unpublished(request: TracedRequest, stages: Sequence[StageResult]) -> str:
    """Return since and until when the agent could not publish the status of the request."""
    sent = stages[4].first
    errors = [
        record
        for record in (*request.stage(Stage.AGENT_HANDLES), *request.stage(Stage.AGENT_PUBLISHES_STATUS))
        if record.kind in _OF_PUBLISHING and record.at < sent and _is_of_publishing(record)
    ]
    if not errors or stages[4].state is not StageState.OK or sent - errors[0].at <= _NOTABLE:
        return ""
    times = f"from {lifecycles.clock(errors[0].at)} to {lifecycles.clock(sent)}"
    return f"the agent could not publish its status {times}: {errors[-1].detail}"


def _is_of_publishing(record: LogRecord) -> bool:
    return record.kind is RecordKind.STATUS_REJECTED or apply_outcome.NOT_PUBLISHED in record.detail


def _sent_again(stages: Sequence[StageResult]) -> str:
    """Return that the stream to a client broke as the status was sent, and when that was sent again."""
    last = stages[8]
    is_again = last.state is StageState.OK and last.note.startswith(subscribers.BROKE)
    return f"{last.note}; it was sent again at {lifecycles.clock(last.first)}" if is_again else ""


def _times_away(context: RequestContext, stages: Sequence[StageResult]) -> list[str]:
    """Return which components of its way had no connection to the broker, where the request waited for long."""
    first, agents = [stage.first for stage in stages], context.agent_logs
    publishers, receivers = _writers(stages[1], context), _writers(stages[5], context)
    spans = (
        (publishers, first[0], first[1]),
        ([*publishers, *agents], first[1], first[2]),
        (agents, first[3], first[4]),
        ([*receivers, *agents], first[4], first[5]),
    )
    return [
        f"{pod} was disconnected from {lifecycles.clock(lost)} to {lifecycles.clock(back)}"
        for logs, since, until in spans
        if since and until - since > _LATE
        for pod in dict.fromkeys(log.pod for log in logs)
        for lost, back in _disconnections(pod, context, since=since, until=until)
    ]


def _writers(stage: StageResult, context: RequestContext) -> list[LogWriter]:
    return [context.environment.writers[file] for file in dict.fromkeys(record.file for record in stage.records)]


def _disconnections(pod: str, context: RequestContext, *, since: float, until: float) -> list[tuple[float, float]]:
    """Return since and until when a pod had no connection; only times whose end, within the wait, is logged."""
    lost = 0.0
    away: list[tuple[float, float]] = []
    for record in context.between(since - _LONGEST_AWAY, until + _NOTABLE, RecordKind.DISCONNECTED, *_BACK):
        if context.writer(record).pod != pod:
            continue
        if record.kind is RecordKind.DISCONNECTED:
            lost = lost or record.at
        else:
            if lost and record.at > since:
                away.append((lost, record.at))
            lost = 0.0
    return [(begun, ended) for begun, ended in away if begun < until and ended - begun > _NOTABLE]


def _unowned(context: RequestContext, stages: Sequence[StageResult]) -> str:
    """Return that all servers left a status to another one, and that a later one was taken."""
    request, handled = context.request, stages[6].first
    # Below -v=2 the line of one that left a status to another does not show which status it was.
    taken = request.stage(Stage.SERVER_HANDLES_STATUS)
    left = [
        update
        for update in request.status_updates
        if update.has(RecordKind.NOT_OWNED)
        and not update.has(RecordKind.HANDLING, RecordKind.UPDATING, RecordKind.UPDATE_SENT)
        and update.at < handled - _NOTABLE
        and not any(abs(record.at - update.at) <= _NOTABLE for record in taken)
    ]
    if not left:
        return ""
    resyncs = context.between(left[0].at, handled, RecordKind.STATUS_RESYNC)
    again = f"; statuses were requested again at {lifecycles.clock(resyncs[0].at)}" if resyncs else ""
    times = f"the status of {lifecycles.clock(left[0].at)}{again}; one was taken at {lifecycles.clock(handled)}"
    return f"no server instance took {times}"


def _disconnection(context: RequestContext, stages: Sequence[StageResult]) -> str:
    """Return since and until when the agent was disconnected while it waited for the request; empty if it was not."""
    published, received = stages[1].first or context.request.at, stages[2].first
    logs = {id(log) for log in context.agent_logs}
    kinds = (RecordKind.DISCONNECTED, RecordKind.RECONNECTED)
    near = context.between(published - _LONGEST_AWAY, received, *kinds)
    own = [record for record in near if id(context.writer(record)) in logs]
    lost = [record.at for record in own if record.kind is RecordKind.DISCONNECTED]
    back = [record.at for record in own if record.kind is RecordKind.RECONNECTED]
    before = max((at for at in back if at <= published), default=0.0)
    since = min((at for at in lost if at > before), default=0.0)
    if not since:
        return ""
    until = min((at for at in back if at > max(since, published)), default=received)
    return f"the agent was disconnected from {lifecycles.clock(since)} to {lifecycles.clock(until)}"


def _foreign_statuses(context: RequestContext) -> list[RequestFinding]:
    """Return that agents of other consumers reported on the resource: such a status shows nothing about the request."""
    handled = context.request.stage(Stage.SERVER_HANDLES_STATUS)
    foreign = tuple(record for record in handled if apply_outcome.is_foreign(record, context.request))[:3]
    if not foreign:
        return []
    detail = f"a status of consumer {foreign[0].consumer} is about this resource of {context.consumer}"
    return [RequestFinding("MT-702", "certain", detail=detail, evidence=foreign)]


def _received_out_of_order(request: TracedRequest) -> tuple[LogRecord, ...]:
    """Return how an agent received a newer version and then this one, which it passes over in silence."""
    received = [
        record for record in request.stage(3) if record.kind is RecordKind.RECEIVED_SPEC and not record.is_deleting
    ]
    if not received or not request.is_change or request.stage(4):
        return ()
    next_request = request.next_request
    while next_request is not None:
        for record in next_request.stage(3):
            is_newer = record.version > received[0].version > 0 and record.file == received[0].file
            if record.kind is RecordKind.RECEIVED_SPEC and is_newer and record.at < received[0].at:
                return record, received[0]
        next_request = next_request.next_request
    return ()
