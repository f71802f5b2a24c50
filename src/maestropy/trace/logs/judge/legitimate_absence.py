"""Decide whether a stage without a record is legitimately absent: superseded, settled by a status, or without clients.

Pure.
"""

from maestropy.trace.logs.judge import clients
from maestropy.trace.logs.judge.request_context import RequestContext
from maestropy.trace.logs.judge.stage_evidence import StageEvidence
from maestropy.trace.logs.log_records import RecordKind
from maestropy.trace.logs.match.spec_requests import TracedRequest
from maestropy.trace.logs.model import Confidence, RequestFinding, StageResult, StageState
from maestropy.trace.stages import Stage
from maestropy.wire import source_ids

_COMMAND_LINE = "the command line does not subscribe"
KNOWN = "the status was known"
"""The note of a stage that a status which the server had already makes unnecessary."""


def legitimate_absence(
    stage: StageResult, context: RequestContext, evidence: StageEvidence, *, moment: float
) -> tuple[StageResult, list[RequestFinding]] | None:
    """Return the state of a stage that is legitimately absent; None otherwise."""
    request, number = context.request, stage.number
    if number == Stage.AGENT_HANDLES and evidence.failures(Stage.AGENT_PUBLISHES_STATUS):
        # It had a status only after handling the request.
        return stage.absent(StageState.LEGIT_ABSENT, "the agent had its status to publish"), []
    skipped = [record for record in request.records if record.kind is RecordKind.PUBLISH_SKIPPED]
    # Without a subscribed client the request ends with the stored status, even if a later request follows.
    if number in (8, 9) and any(update.result == "sent" for update in request.status_updates):
        alone = _without_clients(stage, context, moment=moment)
        if alone is not None:
            return alone
    if _is_superseded(request):
        next_request = request.next_request
        assert next_request is not None
        code = ["MT-206"] if next_request.action == "delete" and number == 2 else []
        findings = [RequestFinding(code=item, confidence="certain", evidence=tuple(skipped)) for item in code]
        note = f"superseded by {next_request.action} v{next_request.version}"
        return stage.absent(StageState.SKIPPED, note), findings
    if number >= 2 and skipped and not evidence[2]:
        is_delete = request.action == "delete"
        reason, note = ("MT-703", "the resource was gone") if is_delete else ("MT-206", "superseded by a delete")
        findings = [RequestFinding(code=reason, confidence="certain", evidence=tuple(skipped))] if number == 2 else []
        return stage.absent(StageState.SKIPPED, note), findings
    return _settled_by_status(stage, context, evidence) if number >= 7 else None


def _settled_by_status(
    stage: StageResult, context: RequestContext, evidence: StageEvidence
) -> tuple[StageResult, list[RequestFinding]] | None:
    """Return the state of a server stage that the result of a status update makes unnecessary."""
    request = context.request
    results = {update.result for update in evidence.reports}
    if results & {"stale", "duplicate"} and "sent" not in results:
        return stage.absent(StageState.SKIPPED, "stale status"), []
    gone = tuple(record for record in request.stage(7) if record.kind is RecordKind.STATUS_NOT_FOUND)
    if gone:
        findings = [RequestFinding(code="MT-703", confidence="certain", evidence=gone)]
        return stage.absent(StageState.LEGIT_ABSENT, "the resource was gone"), findings
    handled = tuple(record for record in request.stage(7) if record.kind is RecordKind.HANDLING)
    if "nochange" in results or (request.version > 1 and handled and results == {"unknown"}):
        # A Go server logs nothing more for a status that it has already; the first status of a resource is always new.
        confidence: Confidence = "certain" if "nochange" in results else "likely"
        findings = [RequestFinding(code="MT-706", confidence=confidence, evidence=handled)]
        return stage.absent(StageState.LEGIT_ABSENT, KNOWN), findings
    return None


def _without_clients(
    stage: StageResult, context: RequestContext, *, moment: float
) -> tuple[StageResult, list[RequestFinding]] | None:
    request = context.request
    source = request.arrival.source if request.arrival else ""
    if source == source_ids.COMMAND_LINE and not clients.is_subscribed(source, context.environment, at=moment):
        return stage.absent(StageState.SKIPPED, _COMMAND_LINE), []
    silent = tuple(record for record in request.stage(9) if record.kind is RecordKind.NO_CLIENTS)
    environment = context.environment
    broadcasting = {environment.writers[record.file].pod for record in request.stage(8)}
    expected = broadcasting | clients.subscribed_pods(source, environment, at=moment)
    is_everywhere = expected <= {environment.writers[record.file].pod for record in silent}
    is_everywhere = is_everywhere and not environment.lacks_instances
    nobody = clients.no_client_subscribed(source, environment, at=moment)
    if stage.number == 9 and silent and is_everywhere:
        why = nobody.detail if nobody is not None and nobody.code == "MT-901" else "no clients on any instance"
        finding = RequestFinding(code="MT-901", confidence="certain", detail=why, evidence=silent)
        return stage.absent(StageState.SKIPPED, "no client connected"), [finding]
    if nobody is not None and nobody.code == "MT-901":
        return stage.absent(StageState.SKIPPED, "no client connected"), [nobody]
    return None


def _is_superseded(request: TracedRequest) -> bool:
    """Say whether a later request replaced this one before it was completed."""
    return request.next_request is not None and request.action != "delete"
