"""Say whether an agent could receive a request, whether clients were subscribed for its status, and got it. Pure."""

import math
from collections.abc import Sequence
from typing import Final

from maestropy.trace.logs.judge import lifecycles, observability
from maestropy.trace.logs.judge.request_context import Gap, RequestContext
from maestropy.trace.logs.log_records import LogRecord, RecordKind
from maestropy.trace.logs.model import Confidence, RequestFinding
from maestropy.trace.logs.read.log_writers import Environment, SubscriptionPeriod

BREAKS_WITHIN: Final = 1.0
"""A server logs that it sends a status, and then the error of sending it."""
BROKE: Final = "the stream to the client broke as the status was sent"
UNSEEN: Final = "whether a client was subscribed, the servers' logs do not show: they begin after the servers' start"
"""Why it is not known whether a status reached a client."""
_BROADCASTS_WITHIN: Final = 5.0
_LISTENER_BROKE: Final = 60.0
_SLACK: Final = 1.0
_VERBOSE: Final = 2
_ANNOUNCED_WITHIN: Final = 5.0


def absent_agent(gap: Gap) -> RequestFinding | None:
    """Return a finding when the logs show that no agent of the consumer could receive the request."""
    context, consumer = gap.context, gap.context.consumer
    if not consumer:
        return None
    if gap.environment.broker == "grpc":
        return _unsubscribed_agent(gap, consumer)
    ended = observability.ended_agent(context, moment=gap.since)
    is_verbose = max((log.verbosity for log in context.agent_logs), default=0) >= _VERBOSE
    # An agent that logs little is silent for long; only one that logs every event must have ended.
    if ended is not None and (ended.confidence == "certain" or is_verbose):
        state = "does not run" if ended.confidence != "possible" else "may not run"
        return gap.finding("MT-301", ended.confidence, f"the agent of {consumer} {state}: {ended.text}")
    return None


def _unsubscribed_agent(gap: Gap, consumer: str) -> RequestFinding | None:
    environment = gap.environment
    own = [period for period in environment.agents if period.name == consumer]
    if any(period.until > gap.since and period.since <= max(gap.since, environment.end) for period in own):
        return None
    if not own and (left := _departure(gap, consumer)):
        detail = f"no agent of {consumer} was subscribed; by the history the last one has disconnected at {left}"
        return gap.finding("MT-301", "certain", detail)
    if not own and not any(server.started for server in environment.servers):
        return _not_on_any_instance(gap, consumer)  # it may have connected before the logs start
    is_start_shown = any(period.is_start_shown for period in own)
    if own and not is_start_shown and _may_be_back(environment, consumer, own):
        return None
    is_sure = is_start_shown or (lifecycles.are_from_start(environment.servers) and not environment.lacks_instances)
    last = f"; the last one has disconnected at {lifecycles.clock(max(period.until for period in own))}" if own else ""
    return gap.finding("MT-301", "certain" if is_sure else "likely", f"no agent of {consumer} was subscribed{last}")


def _departure(gap: Gap, consumer: str) -> str:
    """Return when the last agent left, by what is known besides the logs; empty if one may be connected."""
    left = gap.environment.departures.get(consumer, math.inf)
    has_reported = gap.environment.reported.get(consumer, 0.0) > left + _SLACK
    return lifecycles.clock(left) if left <= gap.since and not has_reported else ""


def _may_be_back(environment: Environment, consumer: str, own: Sequence[SubscriptionPeriod]) -> bool:
    """Say whether an agent may be connected of which only an end is shown: by another stream, or another instance.

    A stream that replaces a broken one may be older than the log; a status since then shows that there is one.
    """
    left = max(period.until for period in own)
    return environment.lacks_instances or environment.reported.get(consumer, 0.0) > left + _SLACK


def _not_on_any_instance(gap: Gap, consumer: str) -> RequestFinding | None:
    """Return a finding when every instance says, at this time, that no agent is connected to it for an event."""
    environment, kind = gap.environment, RecordKind.NO_AGENT_HERE
    own = [record for record in gap.request.records if record.kind is kind]
    said = own + gap.context.between(gap.since, gap.since + _ANNOUNCED_WITHIN, kind)
    pods = {environment.writers[record.file].pod for record in said}
    if not said or environment.lacks_instances or pods != {server.pod for server in environment.servers}:
        return None
    detail = f"no server instance processed the event: no agent of {consumer} is connected to any of them"
    return gap.finding("MT-301", "likely", detail, *said[:3])


def silent_agent(gap: Gap) -> RequestFinding | None:
    """Return a finding when nothing of the agent is in the logs: neither its own log nor any status."""
    consumer, environment = gap.context.consumer, gap.environment
    has_logs = any(consumer in log.consumers or not log.consumers for log in environment.agent_logs)
    if not consumer or has_logs or consumer in environment.reporting:
        return None
    detail = f"no agent of {consumer} has reported anything in these logs"
    if environment.broker != "grpc":
        topic = f"sources/maestro/consumers/{consumer}/sourceevents"
        detail += f"; one with --consumer-name {consumer} should have subscribed to {topic}"
    return gap.finding("MT-301", "likely", detail)


def is_subscribed(source: str, environment: Environment, *, at: float) -> bool:
    """Return whether the logs show a client of `source`, or any client if it is empty, that is subscribed at `at`."""
    return any(not source or period.name == source for period in _present(environment, at))


def _present(environment: Environment, at: float) -> list[SubscriptionPeriod]:
    return [period for period in environment.clients if period.since <= at + 1 and period.until >= at]


def no_client(gap: Gap) -> RequestFinding | None:
    """Return a finding when the logs show that no client of the source was subscribed as the status was stored."""
    return no_client_subscribed(gap.context, at=gap.since)


def no_client_subscribed(context: RequestContext, *, at: float) -> RequestFinding | None:
    """Return a finding when the logs show that no client of the source was subscribed at `at`."""
    source, environment = context.source, context.environment
    # One may have subscribed to a server whose log is not given.
    if is_subscribed(source, environment, at=at) or environment.lacks_instances:
        return None
    left = [period for period in environment.clients if source and period.name == source and period.until < at]
    if left:
        last = max(left, key=lambda period: period.until)
        when = lifecycles.clock(last.until)
        detail = f"the client of {source} unsubscribed at {when}, and no other has subscribed since"
        confidence: Confidence = "certain" if last.is_start_shown else "likely"
        return RequestFinding("MT-901", confidence, detail=detail)
    is_any_start_shown = any(period.is_start_shown for period in environment.clients)
    if not is_any_start_shown and not lifecycles.are_from_start(environment.servers, at=at):
        return None  # or before the logs start
    if present := _present(environment, at):
        others = ", ".join(sorted({period.name for period in present}))
        return RequestFinding("MT-902", "likely", detail=f"request of {source}, clients of {others}")
    return RequestFinding("MT-901", "likely", detail=f"no client of {source} was subscribed")


def is_client_unseen(context: RequestContext, *, at: float) -> bool:
    """Return whether the logs cannot show if a stored status had anybody to be sent to.

    A server of this project logs nothing of a status that no client has subscribed to, and a client may have subscribed
    before the logs start. One to whom another status was sent had done so.
    """
    request, environment, source = context.request, context.environment, context.source
    if not environment.servers or not all(server.is_ours for server in environment.servers):
        return False
    is_stored = any(update.result == "sent" for update in request.status_updates)
    is_told = source in environment.told if source else bool(environment.told)
    if not is_stored or is_told or request.stage(8) or request.stage(9):
        return False
    return not is_subscribed(source, environment, at=at) and no_client_subscribed(context, at=at) is None


def unreached_client(broadcast: Sequence[LogRecord], context: RequestContext) -> RequestFinding | None:
    """Return a finding when no instance on which clients of the source are subscribed broadcast the status.

    Every Go server logs each broadcast, and one of this project where it has clients. What other instances say, that no
    client is registered with them, shows nothing about these.
    """
    environment, source = context.environment, context.source
    if not source or not broadcast or context.request.next_request is not None:
        return None
    at = broadcast[0].at
    reached = {context.writer(record).pod for record in broadcast}
    pods = subscribed_pods(source, environment, at=at)
    end = min((max(log.last for log in environment.writers if log.pod == pod) for pod in pods), default=0.0)
    if not pods or pods & reached or end < at + _BROADCASTS_WITHIN:
        return None
    lost = [
        record
        for record in context.between(at - _LISTENER_BROKE, at + _LISTENER_BROKE, RecordKind.LISTENER_LOST)
        if context.writer(record).pod in pods and ("status_events" in record.detail or not record.detail)
    ]
    names, others = ", ".join(sorted(pods)), ", ".join(sorted(reached))
    detail = f"{names}, where a client of {source} is subscribed, did not broadcast it; {others} did"
    return RequestFinding("MT-801", "likely", detail=detail, evidence=(*broadcast[:1], *lost[:2]))


def subscribed_pods(source: str, environment: Environment, *, at: float) -> set[str]:
    """Return the servers on which clients of a source are subscribed at a time."""
    own = (period for period in environment.clients if period.since <= at <= period.until and period.name == source)
    return {environment.writers[period.file].pod for period in own}


def unbroken(sent: Sequence[LogRecord], context: RequestContext) -> list[LogRecord]:
    """Return the records of a status that was sent and did not break, without those of streams that broke with it.

    A server logs one record for each client, and one for each stream that breaks; neither names the other.
    """
    return [record for record in sent if len(_breaks(record, context)) < len(_sent_with(record, sent, context))]


def _breaks(record: LogRecord, context: RequestContext) -> list[LogRecord]:
    near = context.between(record.at, record.at + BREAKS_WITHIN, RecordKind.STREAM_BROKEN)
    return [one for one in near if context.writer(one).pod == context.writer(record).pod]


def _sent_with(record: LogRecord, sent: Sequence[LogRecord], context: RequestContext) -> list[LogRecord]:
    near = (one for one in sent if abs(one.at - record.at) <= BREAKS_WITHIN)
    return [one for one in near if context.writer(one).pod == context.writer(record).pod]


def broken_stream(sent: Sequence[LogRecord], context: RequestContext) -> RequestFinding | None:
    """Return a finding when the stream to the last subscriber broke as the status was sent, so that it has none of it.

    A client that is back asks for the statuses again, and another record shows that they are sent.
    """
    environment, source = context.environment, context.request.first("source")
    broken = [_breaks(record, context)[:1] for record in sent]
    if not all(broken):
        return None
    last = max(sent, key=lambda record: record.at)
    subscribed = [
        period
        for period in environment.clients
        if period.since <= last.at + BREAKS_WITHIN and period.until >= last.at and period.name in (source, "")
    ]
    ended = [period for period in subscribed if period.until <= last.at + BREAKS_WITHIN]
    if len(ended) < len(subscribed) or (environment.clients and not subscribed):
        return None
    other = "no other client of the source was subscribed" if ended else ""
    return RequestFinding(
        "MT-903",
        "certain" if ended else "likely",
        detail="; ".join(filter(None, (broken[0][0].detail, other))),
        evidence=(last, broken[-1][0]),
    )
