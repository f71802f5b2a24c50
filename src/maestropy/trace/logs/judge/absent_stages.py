"""Decide the state of a stage that no record shows: proven later, not needed, not observable, pending, missing.

A stage is not needed if the request was superseded, a status settled it, or nobody had subscribed. Pure.
"""

from dataclasses import replace

from maestropy.trace.logs.judge import causes, nearby, observability, subscribers
from maestropy.trace.logs.judge.request_context import Gap, RequestContext
from maestropy.trace.logs.judge.stage_evidence import StageEvidence
from maestropy.trace.logs.log_records import LogRecord, RecordKind
from maestropy.trace.logs.match.spec_requests import TracedRequest
from maestropy.trace.logs.model import Confidence, RequestFinding, StageResult, StageState
from maestropy.trace.stages import Stage
from maestropy.wire import source_ids

KNOWN = "the status was known"
"""The note of a stage that a status which the server had already makes unnecessary."""
_COMMAND_LINE = "the command line does not subscribe"
_MERGED = "clients got a later status in its place"
_MOST_MERGED = 100
"""Among so many later requests the one is searched whose status clients got."""
_NO_OBJECT = "no line of an applied object and no error is tied to it"
_UNTOLD = (
    "the agent reported that it has this version, with the conditions of the one before; whether it applied it since, "
    "only its log shows"
)
_AWAITED = frozenset({"MT-213", "MT-411"})
"""Findings that say what a request waits for, however long the logs go on."""
_REPEATED = "nothing to change: the same manifests were applied before"
JudgedStage = tuple[StageResult, list[RequestFinding]]
"""A stage, and what explains its state."""


def absent_stage(stage: StageResult, context: RequestContext, proofs: StageEvidence) -> JudgedStage:
    """Return the state of a stage without a record of its success or failure, and what explains it."""
    request, number = context.request, stage.number
    moment = proofs.moment(number)
    not_observable = _not_observable_reason(number, context, proofs, moment=moment)
    if number > 1 and (request.rejection or request.no_op):
        return _rejected_or_no_op(stage, request)
    if request.is_surely_rejected or proofs.last_proven > number or (number <= 3 and proofs.is_on_agent):
        return _proven_later(stage, context, proofs, not_observable)
    is_hidden = not_observable is not None and _may_be_hidden(number, context, not_observable)
    is_observable = not_observable is None or not_observable.why == subscribers.UNSEEN
    excuse = None if is_hidden else _legitimate_absence(stage, context, proofs, moment=moment, is_shown=is_observable)
    if excuse is None and number > Stage.AGENT_PUBLISHES_STATUS:
        excuse = _untold(stage, context, proofs)
    if excuse is not None:
        return excuse
    has_stopped = _has_stopped(number, context, proofs)
    without_agent = None if has_stopped or number not in (2, 3) else _without_agent(number, context, moment=moment)
    if without_agent is not None:
        if number == 2:
            return stage.absent(StageState.LEGIT_ABSENT, "no agent to send it to"), []
        return missing_stage(stage, without_agent, Gap(context, number, moment))
    if not_observable is not None:
        findings = [] if has_stopped else [not_observable.finding]
        return stage.absent(StageState.NOT_OBSERVABLE, not_observable.why), findings
    if has_stopped:
        # The request stopped at an earlier stage; later stages are not missing by themselves.
        return stage.absent(StageState.PENDING), []
    return _unexplained(stage, context, proofs, moment=moment)


def _untold(stage: StageResult, context: RequestContext, proofs: StageEvidence) -> JudgedStage | None:
    """Return the state of a stage after the apply, where the agent reported only that it has the version.

    Without its log nothing shows whether it applied it since, and had something to report.
    """
    early = proofs.untried
    if not early or _not_observable_reason(Stage.AGENT_HANDLES, context, proofs, moment=early[-1].at) is None:
        return None
    if context.environment.end < early[-1].at + context.options.stage_timeout:
        return stage.absent(StageState.PENDING, _UNTOLD), []
    findings = [RequestFinding("MT-416", "certain", detail=_UNTOLD, evidence=(early[-1].records[-1],))]
    return stage.absent(StageState.UNKNOWN, _UNTOLD), findings


def _unexplained(stage: StageResult, context: RequestContext, proofs: StageEvidence, *, moment: float) -> JudgedStage:
    """Return a stage whose absence nothing excuses."""
    if stage.number == Stage.AGENT_HANDLES and (untied := _untied_objects(context, proofs, moment=moment)):
        # One of them may be its own: then the agent applied it, and only its status is missing.
        return stage.absent(StageState.UNKNOWN, nearby.untied_note(untied)), []
    gap = Gap(context, stage.number, moment)
    return missing_stage(stage, _cause_of_absence(gap, proofs), gap)


def _untied_objects(context: RequestContext, proofs: StageEvidence, *, moment: float) -> list[LogRecord]:
    """Return applied objects of no known work, logged after a create was received that nothing else explains."""
    if context.request.action != "create" or not proofs[3]:
        return []
    gap = Gap(context, Stage.AGENT_HANDLES, moment)
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


def _may_be_hidden(number: int, context: RequestContext, not_observable: observability.NotObservable) -> bool:
    """Say whether a stage may well have a record that is not given, so that nothing excuses its absence."""
    request, servers = context.request, context.environment.servers
    if not_observable.why == subscribers.UNSEEN:
        return False  # nothing has to be told where nobody is known to listen
    # A later request supersedes what was not done; a status that is stored is sent to clients all the same.
    results = {update.result for update in request.status_updates}
    is_stored = bool(results & {"sent", "nochange"}) and number in (8, 9)
    # Each server of this project handles each status: the one that is late finds it stale, and another has stored it.
    is_late = bool(results & {"stale", "duplicate"}) and all(server.is_ours for server in servers)
    is_elsewhere = not_observable.code == "MT-004" and (is_stored or is_late)
    is_sent = number > Stage.AGENT_PUBLISHES_STATUS and any(
        record.kind is RecordKind.SENDING_STATUS for record in request.stage(Stage.AGENT_PUBLISHES_STATUS)
    )
    return not_observable.code == "MT-006" or is_elsewhere or (is_sent and not_observable.code in ("MT-001", "MT-002"))


def missing_stage(stage: StageResult, finding: RequestFinding, gap: Gap) -> JudgedStage:
    """Return a stage that is missing, or pending if it is too early; a proven cause needs no waiting."""
    cut = observability.cut_log(stage.number, gap.context, until=gap.until)
    if cut is not None and finding.confidence != "certain":
        return stage.absent(StageState.PENDING, cut.why), [cut.finding]
    is_early = gap.environment.end < gap.until and not (finding.code == "MT-301" and finding.confidence == "certain")
    is_awaited = is_early or finding.code in _AWAITED
    return stage.absent(StageState.PENDING if is_awaited else StageState.MISSING, finding.detail), [finding]


def _has_stopped(number: int, context: RequestContext, proofs: StageEvidence) -> bool:
    """Say whether an earlier stage explains the absence of this one."""
    if number not in proofs.stops:
        before = number > 1 and _has_stopped(number - 1, context, proofs)
        proofs.stops[number] = before or (number > 1 and _is_stopped_at(number - 1, context, proofs))
    return proofs.stops[number]


def _is_stopped_at(number: int, context: RequestContext, proofs: StageEvidence) -> bool:
    if proofs.failures(number):
        return True
    if number == Stage.SERVER_BROADCASTS_STATUS and subscribers.unreached_client(proofs[number], context) is not None:
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
    gap = Gap(context, number, moment)
    if number == 2 and causes.not_announced(gap) is not None:
        return None  # there was nothing to send
    return subscribers.absent_agent(gap) or (subscribers.silent_agent(gap) if number == 3 else None)


def _not_observable_reason(
    number: int, context: RequestContext, proofs: StageEvidence, *, moment: float
) -> observability.NotObservable | None:
    not_observable = proofs.not_observable_reason(number, moment=moment)
    if not_observable is None and number == 2:
        return causes.handled_elsewhere(context, since=moment)
    if not_observable is None and number in (8, 9) and _has_unseen_client(context, moment=moment):
        return observability.NotObservable("MT-002", subscribers.UNSEEN)
    return not_observable


def _has_unseen_client(context: RequestContext, *, moment: float) -> bool:
    """Say whether nothing shows that a client was to be told, nor that anything went wrong with telling it."""
    return subscribers.is_client_unseen(context, at=moment) and all(
        causes.of_absence(Gap(context, number, moment)).code == causes.ABSENCE_CODES[number]
        for number in (Stage.SERVER_BROADCASTS_STATUS, Stage.SERVER_SENDS_STATUS)
    )


def _rejected_or_no_op(stage: StageResult, request: TracedRequest) -> JudgedStage:
    if request.no_op:
        finding = RequestFinding("MT-202", "certain", detail=request.no_op)
        return stage.absent(StageState.SKIPPED, "no change"), [finding] if stage.number == 2 else []
    if stage.number > 2:
        return stage.absent(StageState.SKIPPED), []
    kinds = (RecordKind.REQUEST_REJECTED, RecordKind.REQUEST_RECEIVED)
    finding = RequestFinding(
        causes.of_rejection(request.rejection),
        "certain" if request.is_surely_rejected else "likely",
        detail=request.rejection,
        evidence=tuple(record for record in request.records if record.kind in kinds),
    )
    return stage.absent(StageState.FAILED, "rejected"), [finding]


def _proven_later(
    stage: StageResult,
    context: RequestContext,
    proofs: StageEvidence,
    not_observable: observability.NotObservable | None,
) -> JudgedStage:
    if not_observable is not None:
        note = f"{not_observable.why}; a later stage proves it"
        return stage.absent(StageState.NOT_OBSERVABLE, note), [not_observable.finding]
    if stage.number == Stage.AGENT_HANDLES:
        until = min(proofs[later][0].at for later in range(stage.number + 1, 10) if proofs[later])
        received = proofs[3][0].at if proofs[3] else context.request.at
        untied = nearby.untied_objects(context, received, until)
        note = nearby.untied_note(untied) if untied else _NO_OBJECT
        note = _REPEATED if proofs.outcome.is_repeat else note
        return stage.absent(StageState.UNKNOWN if proofs.is_doubtful else StageState.LEGIT_ABSENT, note), []
    if stage.number == 8:
        return stage.absent(StageState.LEGIT_ABSENT, "sent by a resync"), []
    return stage.absent(StageState.UNKNOWN, "no line, but a later stage proves it"), []


def _legitimate_absence(
    stage: StageResult, context: RequestContext, proofs: StageEvidence, *, moment: float, is_shown: bool
) -> JudgedStage | None:
    """Return the state of a stage that is legitimately absent; None otherwise.

    A later request takes the place of a stage only where these logs would show the stage (`is_shown`).
    """
    request, number, following = context.request, stage.number, context.request.next_request
    if number == Stage.AGENT_HANDLES and proofs.failures(Stage.AGENT_PUBLISHES_STATUS):
        # It had a status only after handling the request.
        return stage.absent(StageState.LEGIT_ABSENT, "the agent had its status to publish"), []
    skipped = tuple(record for record in request.records if record.kind is RecordKind.PUBLISH_SKIPPED)
    # Without a subscribed client the request ends with the stored status, even if a later request follows.
    if number in (8, 9) and any(update.result == "sent" for update in request.status_updates):
        alone = _without_clients(stage, context, moment=moment)
        if alone is not None:
            return alone
    if number in (8, 9) and _is_merged(context, proofs):
        return stage.absent(StageState.LEGIT_ABSENT, _MERGED), []
    if following is not None and request.action != "delete" and is_shown:
        finding = RequestFinding("MT-206", "certain", evidence=skipped)
        note = f"superseded by {following.action} v{following.version}"
        is_explained = following.action == "delete" and number == 2
        return stage.absent(StageState.SKIPPED, note), [finding] if is_explained else []
    if number >= 2 and skipped and not proofs[2]:
        is_delete = request.action == "delete"
        code, note = ("MT-703", "the resource was gone") if is_delete else ("MT-206", "superseded by a delete")
        finding = RequestFinding(code, "certain", evidence=skipped)
        return stage.absent(StageState.SKIPPED, note), [finding] if number == 2 else []
    return _settled_by_status(stage, request, proofs) if number >= 7 else None


def _is_merged(context: RequestContext, proofs: StageEvidence) -> bool:
    """Say whether clients got the status of a later request instead of one that a server had stored.

    A server of this project sends what is stored by the time it sends: the request was done, and nobody missed it.
    """
    servers = context.environment.servers
    if not any(update.result == "sent" for update in proofs.reports) or not all(server.is_ours for server in servers):
        return False
    following = context.request.next_request
    for _ in range(_MOST_MERGED):
        if following is None:
            return False
        if any(record.kind is RecordKind.SENT_TO_CLIENTS for record in following.stage(Stage.SERVER_SENDS_STATUS)):
            return True
        following = following.next_request
    return False


def _settled_by_status(stage: StageResult, request: TracedRequest, proofs: StageEvidence) -> JudgedStage | None:
    """Return the state of a server stage that the result of a status update makes unnecessary."""
    results = {update.result for update in proofs.reports}
    if results & {"stale", "duplicate"} and "sent" not in results:
        return stage.absent(StageState.SKIPPED, "stale status"), []
    gone = tuple(record for record in request.stage(7) if record.kind is RecordKind.STATUS_NOT_FOUND)
    if gone:
        findings = [RequestFinding("MT-703", "certain", evidence=gone)]
        return stage.absent(StageState.LEGIT_ABSENT, "the resource was gone"), findings
    handled = tuple(record for record in request.stage(7) if record.kind is RecordKind.HANDLING)
    if "nochange" in results or (request.version > 1 and handled and results == {"unknown"}):
        # A Go server logs nothing more for a status that it has already; the first status of a resource is always new.
        confidence: Confidence = "certain" if "nochange" in results else "likely"
        findings = [RequestFinding("MT-706", confidence, evidence=handled)]
        return stage.absent(StageState.LEGIT_ABSENT, KNOWN), findings
    return None


def _without_clients(stage: StageResult, context: RequestContext, *, moment: float) -> JudgedStage | None:
    request, environment, source = context.request, context.environment, context.source
    if source == source_ids.COMMAND_LINE and not subscribers.is_subscribed(source, environment, at=moment):
        return stage.absent(StageState.SKIPPED, _COMMAND_LINE), []
    nobody = subscribers.no_client_subscribed(context, at=moment)
    nobody = nobody if nobody is not None and nobody.code == "MT-901" else None
    silent = tuple(record for record in request.stage(9) if record.kind is RecordKind.NO_CLIENTS)
    expected = {context.writer(record).pod for record in request.stage(8)}
    expected |= subscribers.subscribed_pods(source, environment, at=moment)
    is_everywhere = expected <= {context.writer(record).pod for record in silent} and not environment.lacks_instances
    if stage.number == 9 and silent and is_everywhere:
        why = nobody.detail if nobody is not None else "no clients on any instance"
        nobody = RequestFinding("MT-901", "certain", detail=why, evidence=silent)
    return (stage.absent(StageState.SKIPPED, "no client connected"), [nobody]) if nobody is not None else None
