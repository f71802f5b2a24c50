"""Decide whether the logs could show a stage at all. This must be known before a stage counts as missing. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from maestropy.trace.logs.judge import lifecycles
from maestropy.trace.logs.judge.lifecycles import clock
from maestropy.trace.logs.judge.request_context import RequestContext
from maestropy.trace.logs.log_records import LogRecord, RecordKind
from maestropy.trace.logs.match.spec_requests import TracedRequest
from maestropy.trace.logs.model import Confidence, RequestFinding
from maestropy.trace.logs.read.log_writers import Environment, LogWriter
from maestropy.trace.stages import AGENT_STAGES, Stage

_VERBOSE = 2
_NEEDS_VERBOSITY = frozenset({3, 5})
_REPORTED_AFTER = 1.0
_OFTEN_ELSEWHERE = frozenset({1, 2, 6, 7, 9})


class NotObservable(NamedTuple):
    """Why a stage cannot be seen: a finding's code, and a sentence."""

    code: str
    why: str
    confidence: Confidence = "certain"
    evidence: tuple[LogRecord, ...] = ()

    @property
    def finding(self) -> RequestFinding:
        return RequestFinding(self.code, self.confidence, detail=self.why, evidence=self.evidence)


def not_observable_reason(stage: int, context: RequestContext, *, moment: float) -> NotObservable | None:
    """Return why `stage` could not be seen around `moment`; nothing when it could."""
    if stage == Stage.AGENT_HANDLES and deletion_reports(context.request):
        return None
    return (_agent if stage in AGENT_STAGES else _server)(stage, context, moment=moment)


def _server(stage: int, context: RequestContext, *, moment: float) -> NotObservable | None:
    request, environment, servers = context.request, context.environment, context.environment.servers
    if not servers:
        return NotObservable("MT-001", "no server logs")
    if any(server.is_cut_off for server in servers):
        return NotObservable("MT-006", "records of the servers are cut off; the record of this stage may be among them")
    if not any(server.covers(moment) for server in servers) or _begins_later(stage, request, servers):
        return NotObservable("MT-002", "the server logs do not cover this time")
    if stage in (2, 6) and not environment.shows(stage) and not any(server.is_ours for server in servers):
        unwritten = _unwritten(stage, environment)
        if unwritten:
            return NotObservable("MT-003", unwritten)
    if stage == 7 and request.action == "delete" and all(server.generation in ("G0", "G1") for server in servers):
        return NotObservable("MT-003", "servers of this generation do not say what they do with a deletion's status")
    owner = silent_owner(context) if stage == Stage.SERVER_HANDLES_STATUS else ""
    if owner:
        return NotObservable("MT-002", f"the other servers left the status to {owner}, whose log does not show it")
    # Every Go server logs each broadcast; a server of this project logs it only where clients are connected.
    is_elsewhere = stage in _OFTEN_ELSEWHERE or (stage == 8 and all(server.is_ours for server in servers))
    if is_elsewhere and environment.lacks_instances:
        return NotObservable("MT-004", environment.missing_instances)
    return None


def _unwritten(stage: int, environment: Environment) -> str:
    """Return why servers that have no line of a stage may write none; empty when they would."""
    if environment.broker == "grpc":
        return "servers behind the gRPC broker write no such line below -v=4"
    if not any(environment.shows(number) for number in range(stage + 1, 10)):
        return ""
    if environment.broker == "unknown" and not environment.lacks_instances:
        return "no server wrote such a line; behind the gRPC broker they write none below -v=4"
    if all(server.generation in ("G0", "G1") for server in environment.servers):
        return "servers of this generation write no such line below -v=4"
    is_export = all(server.format == "csv" for server in environment.servers)
    return "the export of the servers' logs has no such line" if is_export else ""


def _begins_later(stage: int, request: TracedRequest, servers: Sequence[LogWriter]) -> bool:
    """Say whether all servers' logs begin after the agent received the request, so that they cannot have a stage."""
    received = min((record.at for record in request.stage(Stage.AGENT_RECEIVES)), default=0.0)
    is_before = stage in (Stage.SERVER_RECEIVES, Stage.SERVER_PUBLISHES)
    return is_before and bool(received) and all(server.first > received for server in servers)


def cut_log(stage: int, context: RequestContext, *, until: float) -> NotObservable | None:
    """Return the log that is cut within a line before a stage, which it could show, had to happen."""
    logs = context.agent_logs if stage in AGENT_STAGES else context.environment.servers
    cut = next((log for log in logs if log.torn_line and log.last <= until), None)
    if cut is None:
        return None
    where = f"{cut.path} is cut within line {cut.torn_line:,}, at {clock(cut.last)}"
    return NotObservable("MT-006", f"{where}; what {cut.pod} logged after that is not known")


def silent_owner(context: RequestContext) -> str:
    """Return the servers whose logs lack a status that all others left to another one; they may have handled it."""
    received = context.request.stage(Stage.SERVER_RECEIVES_STATUS)
    if not any(record.kind is RecordKind.NOT_OWNED for record in received):
        return ""
    shown = {context.writer(record).pod for record in received}
    return ", ".join(sorted({server.pod for server in context.environment.servers} - shown))


def deletion_reports(request: TracedRequest) -> list[LogRecord]:
    """Return the records of statuses by which the agent reports that it is deleting, and not yet done."""
    if request.action != "delete" or any(update.confirms_deletion for update in request.status_updates):
        return []
    return [update.records[0] for update in request.status_updates if update.is_deleting]


def unsure_clock(context: RequestContext) -> RequestFinding | None:
    """Return that the clock of the consumer's agent was set in a way that cannot be corrected."""
    log = next((log for log in context.agent_logs if log.is_clock_unsure), None)
    if log is None:
        return None
    detail = f"the clock of {log.pod} was set more than once, or by how much is not shown; its times prove nothing"
    return RequestFinding("MT-005", "likely", detail=detail)


def ended_agent(context: RequestContext, *, moment: float) -> lifecycles.Interruption | None:
    """Return how the agent of the consumer ended before `moment`; None if it may run.

    An agent that has reported any status since its log ends runs: only the collection of its log has ended.
    """
    logs = context.agent_logs
    last = max((log.last for log in logs), default=0.0)
    if context.environment.reported.get(context.consumer, 0.0) > last + _REPORTED_AFTER:
        return None
    return lifecycles.has_ended(logs, moment=moment, end=context.environment.end)


def _uncovered(logs: Sequence[LogWriter], moment: float) -> str:
    """Return how the agent's logs end or start around a moment they do not cover."""
    before = max((log.last for log in logs if log.last < moment), default=0.0)
    after = min((log.first for log in logs if log.first > moment), default=0.0)
    ends = f"the agent's log ends at {clock(before)}" if before else ""
    starts = f"the agent's log starts at {clock(after)}" if after else ""
    return "; ".join(filter(None, (ends, starts))) or "the agent's logs do not cover this time"


def _agent(stage: int, context: RequestContext, *, moment: float) -> NotObservable | None:
    logs = context.agent_logs
    if not logs:
        consumer = context.consumer
        return NotObservable("MT-001", f"no logs of the agent of {consumer}" if consumer else "no agent logs")
    if any(log.is_cut_off for log in logs):
        return NotObservable("MT-006", "records of the agent are cut off; the record of this stage may be among them")
    covering = [log for log in logs if log.covers(moment, slack=5.0)]
    if not covering:
        # A running agent would have logged the event; a stopped one is the cause, not a gap of the logs. One that has
        # reported a status since runs, whatever its log shows.
        is_verbose = max(log.verbosity for log in logs) >= _VERBOSE and not context.request.status_updates
        has_ended = is_verbose and ended_agent(context, moment=moment) is not None
        return None if has_ended else NotObservable("MT-002", _uncovered(logs, moment))
    # Queries for the phrases of stages 3 and 5 leave out all records about objects.
    if stage == Stage.AGENT_HANDLES and all(log.format == "csv" and not log.stages[stage] for log in covering):
        return NotObservable("MT-003", "the export of the agent's log has only lines about events, none about objects")
    if stage in _NEEDS_VERBOSITY and not any(log.stages[stage] for log in covering):
        if max(log.verbosity for log in covering) < 2:
            return NotObservable("MT-003", "the agent's verbosity is below 2")
        if any(log.generation in ("G0", "G1", "G2") and log.verbosity < 4 for log in covering):
            return NotObservable("MT-003", "agents of this generation need -v=4")
    return None
