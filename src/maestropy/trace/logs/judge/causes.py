"""Find the cause of a failed or missing stage, as a finding.

Records of the request itself decide first, then records of components near the gap, then the plain absence. Pure.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from maestropy.trace.findings.apply_errors import (
    code_of_apply_error,
    code_of_connection_error,
    is_reason_told,
    of_certificate,
)
from maestropy.trace.logs.judge import apply_outcome, lifecycles, observability, subscribers
from maestropy.trace.logs.judge.observability import NotObservable
from maestropy.trace.logs.judge.request_context import Gap, RequestContext
from maestropy.trace.logs.log_records import APPLIED_AND_GONE, LARGE, NOT_APPLIED, LogRecord, RecordKind, says_applied
from maestropy.trace.logs.match.spec_requests import TracedRequest
from maestropy.trace.logs.model import Confidence, RequestFinding
from maestropy.trace.logs.read.log_writers import Environment, LogWriter, by_pod
from maestropy.trace.stages import AGENT_STAGES, Stage

ABSENCE_CODES: Final = {
    1: "MT-101", 2: "MT-209", 3: "MT-306", 4: "MT-412", 5: "MT-503", 6: "MT-603", 7: "MT-708", 8: "MT-803", 9: "MT-905",
}  # fmt: skip
_NEARBY_CODES: Final[dict[int, tuple[tuple[RecordKind, str, str], ...]]] = {
    1: ((RecordKind.UNAUTHORISED, "server", "MT-102"),),
    2: (
        (RecordKind.PUBLISH_FAILED, "server", "MT-204"),
        (RecordKind.LISTENER_LOST, "server", "MT-203"),
        (RecordKind.DISCONNECTED, "server", "MT-204"),
    ),
    3: (
        (RecordKind.OTHER_CLUSTER, "agent", "MT-302"),
        (RecordKind.DISCONNECTED, "agent", "MT-301"),
        (RecordKind.FOREIGN_EVENT, "agent", "MT-305"),
    ),
    5: ((RecordKind.DISCONNECTED, "agent", "MT-501"),),
    6: ((RecordKind.DISCONNECTED, "server", "MT-601"), (RecordKind.DISCONNECTED, "agent", "MT-501")),
    7: ((RecordKind.DATABASE, "server", "MT-707"),),
    8: ((RecordKind.PUBLISH_FAILED, "server", "MT-802"), (RecordKind.LISTENER_LOST, "server", "MT-801")),
    9: ((RecordKind.STREAM_BROKEN, "server", "MT-903"), (RecordKind.SLOW_CLIENT, "server", "MT-904")),
}
_OF_CERTIFICATES = frozenset({"MT-420", "MT-423"})
_BEFORE = 60.0
_MOST_NAMED = 5
_MOST_PANICS = 3
_OF_STATUS_EVENTS = ("status event", "failed to get resource")
_TOO_LARGE = ("too large", "larger than max", "max_packet_size", "maximum packet size")
_REJECTIONS = (
    ("unauthorized to ", "MT-102"),
    ("failed to authorize", "MT-102"),
    ("failed to parse cloud event type", "MT-103"),
    ("unsupported action", "MT-103"),
    ("unsupported cloudevents data type", "MT-103"),
)
_SLACK = 1.0
_ANNOUNCED_WITHIN = 5.0
_LAST_LINES = 1.0
_LOST_WITHIN = 5.0
_GOES_ON = 5.0
_MANY_PAUSES = 40
_TOO_SHORT = 5.0
_DELETION_SECONDS = 3600.0
"""A deletion that waits for longer is stuck; `trace work` uses the same limit (MW-107, MW-008)."""
_PAUSE = "pause"
_DELIVERY_ACTIONS = (_PAUSE, "resume")


def of_failure(stage: int, records: Sequence[LogRecord]) -> RequestFinding:
    """Return what explicit errors of the request at `stage` mean."""
    last = apply_outcome.last_readable(records)
    detail = last.detail.removeprefix(NOT_APPLIED)
    confidence: Confidence = "certain"
    if stage == 2:
        code = "MT-207" if last.kind is RecordKind.HARD_DELETED else "MT-303" if _is_too_large(detail) else "MT-204"
    elif last.kind is RecordKind.DECODE_FAILED:
        code = "MT-401"
    elif stage == 4:
        code = code_of_apply_error(detail)
        confidence = "certain" if is_reason_told(detail) else "likely"
        detail = "; ".join(filter(None, (of_certificate(detail) if code in _OF_CERTIFICATES else "", detail)))
    elif stage == 5:
        code = "MT-501"
    elif stage == 7:
        code = _of_status_error(detail) if last.kind is RecordKind.STATUS_FAILED else "MT-701"
    else:
        code = "MT-905"
    return RequestFinding(code, confidence, detail=detail, evidence=tuple(records[-3:]))


def of_rejection(reason: str) -> str:
    """Return the code of a server's rejection."""
    if _is_too_large(reason):
        return "MT-303"
    return next((code for text, code in _REJECTIONS if text in reason), "MT-201")


def _of_status_error(detail: str) -> str:
    if "unmatched consumer name" in detail:
        return "MT-702"
    return "MT-602" if "original source" in detail else "MT-707"


def of_absence(gap: Gap) -> RequestFinding:
    """Return the most likely reason why a stage is missing."""
    for cause in (*_CAUSES.get(gap.stage, ()), _nearby):
        finding = cause(gap)
        if finding is not None:
            return finding
    if gap.stage == Stage.AGENT_RECEIVES and gap.environment.broker != "grpc" and (large := _large_event(gap)):
        return large
    is_early = gap.environment.end < gap.since + _TOO_SHORT
    confidence: Confidence = "possible" if gap.stage in (1, 2) or is_early else "likely"
    unknown = _unknown_consumer(gap) if gap.stage == Stage.SERVER_PUBLISHES else ""
    return gap.finding(ABSENCE_CODES[gap.stage], confidence, "; ".join(filter(None, (_end_of_logs(gap), unknown))))


def _end_of_logs(gap: Gap) -> str:
    """Say that the logs end, where they end before the stage counts as missing."""
    logs = gap.context.agent_logs if gap.stage in AGENT_STAGES else gap.environment.servers
    last = max(logs, key=lambda log: log.last, default=None)
    if last is None or last.last >= gap.until:
        return ""
    after = last.last - gap.since
    return f"the log of {last.pod} ends at {lifecycles.clock(last.last)}, {after:.1f} s after the stage before"


def _nearby(gap: Gap) -> RequestFinding | None:
    for kind, role, code in _NEARBY_CODES.get(gap.stage, ()):
        near = [record for record in gap.around(kind) if _writer(gap, record).role == role and _concerns(record, gap)]
        if near:
            return gap.finding(code, "likely", near[-1].detail, *near[-3:])
    return None


def _writer(gap: Gap, record: LogRecord) -> LogWriter:
    return gap.context.writer(record)


def _interruption(gap: Gap, logs: Sequence[LogWriter], *, since: float) -> lifecycles.Interruption | None:
    return lifecycles.interruption(logs, since=since, until=gap.until, end=gap.environment.end)


def _servers_of(gap: Gap, record: LogRecord) -> list[LogWriter]:
    """Return the logs of the server that wrote a record: a rotated log is several files."""
    pod = _writer(gap, record).pod
    return [server for server in gap.environment.servers if server.pod == pod]


def _interrupted_agent(gap: Gap) -> RequestFinding | None:
    logs = gap.context.agent_logs
    interruption = _interruption(gap, logs, since=gap.since)
    if interruption is None:
        return None
    code = "MT-301" if gap.stage == Stage.AGENT_RECEIVES else "MT-417"
    return _with_panic(gap, gap.finding(code, interruption.confidence, interruption.text), logs)


def _with_panic(gap: Gap, finding: RequestFinding, logs: Sequence[LogWriter]) -> RequestFinding:
    """Return a finding about a process that stopped, with the panic that its log shows at this time."""
    near = gap.context.between(gap.since - _SLACK, gap.until, RecordKind.PANIC)
    panics = [record for record in near if _writer(gap, record) in logs]
    if not panics:
        return finding
    first = panics[0]
    detail = f"{finding.detail}; it panicked at {lifecycles.clock(first.at)}: {first.detail}"
    return replace(finding, detail=detail, evidence=(*finding.evidence, *panics[:_MOST_PANICS]))


def _interrupted_server(gap: Gap) -> RequestFinding | None:
    arrival = gap.request.arrival
    if arrival is None:
        return None
    logs = _servers_of(gap, arrival)
    interruption = _interruption(gap, logs, since=arrival.at)
    if interruption is not None:
        found = gap.finding("MT-210", interruption.confidence, interruption.text, arrival)
        return _with_panic(gap, found, logs)
    last = max(log.last for log in logs)
    if last > arrival.at + _LAST_LINES:
        return None
    how = _lost_server if gap.environment.broker == "grpc" else _ends_with_request
    return how(gap, arrival, last=last)


def _lost_server(gap: Gap, arrival: LogRecord, *, last: float) -> RequestFinding | None:
    """Return a finding when the server's log ends with the request, and agents lose their connection to it then.

    Behind the gRPC broker the agents are connected to a server itself, and a server that runs accepts them again.
    """
    near = gap.context.between(last - _SLACK, last + _LOST_WITHIN, RecordKind.DISCONNECTED)
    lost = [record for record in near if _writer(gap, record).role == "agent"]
    others_go_on = any(server.last > last + _LOST_WITHIN for server in gap.environment.servers)
    if not lost or others_go_on:
        return None
    pod, agent = _writer(gap, arrival).pod, _writer(gap, lost[0]).pod
    times = f"ends at {lifecycles.clock(last)}, and {agent} lost its connection at {lifecycles.clock(lost[0].at)}"
    return gap.finding("MT-210", "likely", f"the log of {pod} {times}", arrival, lost[0])


def _ends_with_request(gap: Gap, arrival: LogRecord, *, last: float) -> RequestFinding | None:
    """Return a finding when the server's log ends with the request, and other logs go on.

    Nobody misses a server that was killed behind a message broker, so only its own log shows it. One that rejected the
    request and was idle afterwards looks the same.
    """
    end, writer = gap.environment.end, _writer(gap, arrival)
    if end - last < max(_GOES_ON, _MANY_PAUSES * lifecycles.usual_pause(writer)):
        return None  # a server that rejects a request, or is not notified of it, is silent for a while too
    detail = (
        f"the log of {writer.pod} ends with this request at {lifecycles.clock(last)}, others go on until "
        f"{lifecycles.clock(end)}: it was killed, or it rejected the request and has logged nothing since"
    )
    return gap.finding("MT-210", "possible", detail, arrival)


def _interrupted_handler(gap: Gap) -> RequestFinding | None:
    """Return a finding when a server that took the status stopped, or its log ends, before it stored it."""
    received = gap.request.stage(Stage.SERVER_RECEIVES_STATUS)
    passed = {record.file for record in received if record.kind is RecordKind.NOT_OWNED}
    handled = gap.request.stage(Stage.SERVER_HANDLES_STATUS)
    for record in (record for record in (*handled, *received) if record.file not in passed):
        logs = _servers_of(gap, record)
        interruption = _interruption(gap, logs, since=record.at)
        interruption = interruption or lifecycles.ends_with(logs, record.at, end=gap.environment.end)
        if interruption is not None:
            return gap.finding("MT-709", interruption.confidence, interruption.text, record)
    return None


def _interrupted_receivers(gap: Gap) -> RequestFinding | None:
    """Return a finding when all servers stopped or restarted as the status was sent: one that ran would have it."""
    how = [_interruption(gap, logs, since=gap.since) for logs in by_pod(gap.environment.servers)]
    texts = [interruption.text for interruption in how if interruption is not None]
    if not texts or len(texts) < len(how) or gap.environment.lacks_instances:
        return None
    sent = f"the status was sent at {lifecycles.clock(gap.since)}"
    return gap.finding("MT-601", "likely", f"{sent}; {'; '.join(texts[:_MOST_NAMED])}")


def not_announced(gap: Gap) -> RequestFinding | None:
    """Return a finding when the database announced no event: the request was rejected, or changed nothing."""
    environment, request, kind = gap.environment, gap.request, RecordKind.NOTIFIED
    if environment.lacks_instances or not all(
        any(server.kinds[kind] for server in parts) for parts in by_pod(environment.servers)
    ):
        return None
    own = [record for record in request.records if record.kind is kind]
    announced = gap.context.between(gap.since, gap.since + _ANNOUNCED_WITHIN, kind)
    is_followed = request.arrival is None or _writer(gap, request.arrival).last > request.arrival.at
    if own or announced or not is_followed or gap.until > environment.end + _BEFORE:
        return None
    detail = "the database announced no event for it"
    if request.action == "create":
        # A create always changes something.
        return gap.finding("MT-201", "likely", "; ".join(filter(None, (detail, _unknown_consumer(gap)))))
    if request.action == "delete" and not request.version:
        return gap.finding("MT-202", "likely", f"{detail}: there is no such resource, or the server rejected it")
    return gap.finding("MT-212", "likely", f"{detail}: it changes nothing, or the server rejected it")


def _unknown_consumer(gap: Gap) -> str:
    """Say that the logs do not show whether the consumer exists, where nothing else is of it."""
    environment, consumer = gap.environment, gap.context.consumer
    known = environment.reporting | {period.name for period in environment.agents}
    known |= {name for log in environment.agent_logs for name in log.consumers} | environment.consumers
    if not consumer or consumer in known:
        return ""
    unknown = f"whether consumer {consumer} exists and had an agent connected, these logs do not show"
    return f"{unknown} (maestro consumer list)"


def _paused(gap: Gap) -> RequestFinding | None:
    """Return a finding when an operator paused the delivery to the consumer before the gap, and did not resume it."""
    consumer = gap.context.consumer
    actions = (one for one in gap.context.components if one.kind is RecordKind.OPERATOR_ACTION)
    switched = [one for one in actions if one.consumer == consumer and one.action in _DELIVERY_ACTIONS]
    last = switched[-1] if consumer and switched else None
    if last is None or last.action != _PAUSE or last.at > gap.since + _SLACK:
        return None
    detail = f"delivery to {consumer} was paused at {lifecycles.clock(last.at)} {last.detail}".rstrip()
    return gap.finding("MT-213", "likely", detail, last)


def _undeleted(gap: Gap) -> RequestFinding | None:
    remaining = undeleted_objects(gap.request, gap.environment)
    is_old = gap.environment.end - gap.request.at >= _DELETION_SECONDS
    code = "MT-425" if is_old else "MT-411"
    if not remaining and (reported := observability.deletion_reports(gap.request)):
        detail = "the agent reported that the work is being deleted, and not that its objects are gone"
        return gap.finding(code, "likely", detail, reported[-1])
    if not remaining:
        return None
    names = ", ".join(dict.fromkeys(record.detail for record in remaining[:_MOST_NAMED]))
    confidence: Confidence = "certain" if remaining[-1].kind is RecordKind.PENDING_DELETION else "likely"
    return gap.finding(code, confidence, f"still there: {names}", *remaining[-3:])


def _unreachable_api_server(gap: Gap) -> RequestFinding | None:
    """Return a finding when the agent's requests to its API server fail or hang at this time."""
    logs = gap.context.agent_logs
    failing = [
        record
        for record in gap.context.between(gap.since - _SLACK, gap.until, RecordKind.API_SERVER_FAILED)
        if _writer(gap, record) in logs and code_of_connection_error(record.detail)
    ]
    if failing:
        return gap.finding(code_of_connection_error(failing[-1].detail), "likely", failing[-1].detail, *failing[-3:])
    hanging = lifecycles.hangs(logs, since=gap.since, until=gap.until)
    return gap.finding("MT-409", "likely", hanging) if hanging else None


def _too_large(gap: Gap) -> RequestFinding | None:
    """Return a finding when a connection broke because of a message's size."""
    around = gap.around(RecordKind.DISCONNECTED)
    near = [record for record in around if record.at >= gap.since - _SLACK and _is_too_large(record.detail)]
    return gap.finding("MT-303", "likely", near[-1].detail, *near[-3:]) if near else None


def _large_event(gap: Gap) -> RequestFinding | None:
    """Return a finding when the log shows the whole event, and it is larger than brokers usually accept."""
    large = [record for record in gap.request.records if record.stage in (1, 2) and record.detail.startswith(LARGE)]
    return gap.finding("MT-303", "likely", large[-1].detail, large[-1]) if large else None


def _topic_mismatch(gap: Gap) -> RequestFinding | None:
    consumer = gap.context.consumer
    topics = [
        record
        for record in gap.context.components
        if record.kind is RecordKind.SUBSCRIBED
        and "/consumers/" in record.detail
        and _writer(gap, record).role == "agent"
    ]
    if not topics or not consumer or any(f"/consumers/{consumer}/" in record.detail for record in topics):
        return None
    return gap.finding("MT-302", "likely", topics[-1].detail, topics[-1])


_CAUSES: Final[dict[int, tuple[Callable[[Gap], RequestFinding | None], ...]]] = {
    Stage.SERVER_PUBLISHES: (_paused, _interrupted_server, _too_large, not_announced),
    Stage.AGENT_RECEIVES: (
        subscribers.absent_agent,
        _topic_mismatch,
        subscribers.silent_agent,
        _interrupted_agent,
        _too_large,
    ),
    Stage.AGENT_HANDLES: (_undeleted, _interrupted_agent, _unreachable_api_server),
    Stage.AGENT_PUBLISHES_STATUS: (_interrupted_agent, _unreachable_api_server),
    Stage.SERVER_RECEIVES_STATUS: (_interrupted_receivers,),
    Stage.SERVER_HANDLES_STATUS: (_interrupted_handler,),
    Stage.SERVER_BROADCASTS_STATUS: (subscribers.no_client,),
    Stage.SERVER_SENDS_STATUS: (subscribers.no_client,),
}
"""What explains the absence of a stage, the surest first; records of components near the gap come after it."""


def _is_too_large(error: str) -> bool:
    lower = error.lower()
    return any(text in lower for text in _TOO_LARGE)


def undeleted_objects(request: TracedRequest, environment: Environment) -> list[LogRecord]:
    """Return the records of objects whose deletion was requested and is not shown to be done."""
    if request.action != "delete":
        return []
    removed = {record.detail: record.at for record in request.stage(4) if record.kind is RecordKind.REMOVED}
    if gone_objects(request):
        return []
    # Our agent logs nothing for objects that are deleted at once; a later status "deleting" shows that some remain.
    still = max((update.at for update in request.status_updates if update.has(RecordKind.UPDATE_SENT)), default=0.0)
    requested = [
        record
        for record in request.stage(4)
        if record.kind is RecordKind.DELETING
        and removed.get(record.detail, 0.0) < record.at
        and (record.at < still or not environment.writers[record.file].is_ours)
    ]
    pending = [record for record in request.stage(4) if record.kind is RecordKind.PENDING_DELETION]
    return requested or (pending if pending and pending[-1].at > max(removed.values(), default=0.0) else [])


def gone_objects(request: TracedRequest) -> list[LogRecord]:
    """Return the records of the last status about the objects, if it says that none exists any more."""
    said = [record for update in request.status_updates for record in update.records if says_applied(record.detail)]
    return said[-1:] if said and said[-1].detail == APPLIED_AND_GONE else []


def _concerns(record: LogRecord, gap: Gap) -> bool:
    """Say whether a record of a component may explain this stage."""
    if record.kind is RecordKind.PUBLISH_FAILED:
        is_of_status = any(text in record.detail for text in _OF_STATUS_EVENTS)
        return record.at >= gap.since and is_of_status is (gap.stage == 8)
    if record.kind is RecordKind.OTHER_CLUSTER:
        return record.consumer == gap.context.consumer
    return gap.stage != 8 or "status_events" in record.detail or not record.detail


def handled_elsewhere(context: RequestContext, *, since: float) -> NotObservable | None:
    """Return why a published event may not be in these logs: a server left an event to one whose log is not given."""
    if context.environment.broker == "grpc":
        return None  # behind this broker every instance logs when no agent of the consumer is connected
    left = context.between(since, since + context.options.stage_timeout, RecordKind.OTHER_INSTANCE)
    why = "another instance handled an event of this time, and its log is not here"
    return NotObservable("MT-205", why, "possible", tuple(left[:3])) if left else None
