"""Say whether clients were subscribed for a status, and whether it reached them. Pure."""

from collections.abc import Sequence
from typing import Final

from maestropy.trace.logs.judge import lifecycles
from maestropy.trace.logs.judge.request_context import RequestContext, between
from maestropy.trace.logs.log_records import LogRecord, RecordKind
from maestropy.trace.logs.match.traced_request import TracedRequest
from maestropy.trace.logs.model import Confidence, RequestFinding
from maestropy.trace.logs.read.log_writers import Environment

BREAKS_WITHIN: Final = 1.0
"""A server logs that it sends a status, and then the error of sending it."""
BROKE: Final = "the stream to the client broke as the status was sent"
UNSEEN: Final = "whether a client was subscribed, the servers' logs do not show: they begin after the servers' start"
"""Why it is not known whether a status reached a client."""
_BROADCASTS_WITHIN: Final = 5.0
_LISTENER_BROKE: Final = 60.0


def is_subscribed(source: str, environment: Environment, *, at: float) -> bool:
    """Return whether the logs show a client of `source`, or any client if it is empty, that is subscribed at `at`."""
    periods = [period for period in environment.clients if period.since <= at + 1 and period.until >= at]
    return any(not source or period.name == source for period in periods)


def no_client_subscribed(source: str, environment: Environment, *, at: float) -> RequestFinding | None:
    """Return a finding when the logs show that no client of `source` was subscribed at `at`."""

    if is_subscribed(source, environment, at=at):
        return None
    if environment.lacks_instances:
        return None  # one may have subscribed to a server whose log is not given
    present = [period for period in environment.clients if period.since <= at + 1 and period.until >= at]
    left = [period for period in environment.clients if source and period.name == source and period.until < at]
    if left:
        last = max(left, key=lambda period: period.until)
        detail = (
            f"the client of {source} unsubscribed at {lifecycles.clock(last.until)}, and no other has subscribed since"
        )
        confidence: Confidence = "certain" if last.is_start_shown else "likely"
        return RequestFinding(code="MT-901", confidence=confidence, detail=detail)
    is_any_start_shown = any(period.is_start_shown for period in environment.clients)
    if not is_any_start_shown and not lifecycles.are_from_start(environment.servers, at=at):
        return None  # or before the logs start
    if present:
        others = ", ".join(sorted({period.name for period in present}))
        return RequestFinding(code="MT-902", confidence="likely", detail=f"request of {source}, clients of {others}")
    return RequestFinding(code="MT-901", confidence="likely", detail=f"no client of {source} was subscribed")


def is_unseen(request: TracedRequest, environment: Environment, *, at: float) -> bool:
    """Return whether the logs cannot show if a stored status had anybody to be sent to.

    A server of this project logs nothing of a status that no client has subscribed to, and a client may have subscribed
    before the logs start. One to whom another status was sent had done so.
    """
    if not environment.servers or not all(server.is_ours for server in environment.servers):
        return False
    is_stored = any(update.result == "sent" for update in request.status_updates)
    source = request.arrival.source if request.arrival else ""
    is_told = source in environment.told if source else bool(environment.told)
    if not is_stored or is_told or request.stage(8) or request.stage(9):
        return False
    is_known = is_subscribed(source, environment, at=at) or no_client_subscribed(source, environment, at=at) is not None
    return not is_known


def unreached_client(broadcast: Sequence[LogRecord], context: RequestContext) -> RequestFinding | None:
    """Return a finding when no instance on which clients of the source are subscribed broadcast the status.

    Every Go server logs each broadcast, and one of this project where it has clients. What other instances say, that no
    client is registered with them, shows nothing about these.
    """
    environment, request = context.environment, context.request
    source = request.arrival.source if request.arrival else ""
    if not source or not broadcast or request.next_request is not None:
        return None
    at = broadcast[0].at
    reached = {environment.writers[record.file].pod for record in broadcast}
    pods = subscribed_pods(source, environment, at=at)
    end = min((max(log.last for log in environment.writers if log.pod == pod) for pod in pods), default=0.0)
    if not pods or pods & reached or end < at + _BROADCASTS_WITHIN:
        return None
    lost = [
        record
        for record in between(context.components, at - _LISTENER_BROKE, at + _LISTENER_BROKE)
        if record.kind is RecordKind.LISTENER_LOST
        and environment.writers[record.file].pod in pods
        and ("status_events" in record.detail or not record.detail)
    ]
    names = ", ".join(sorted(pods))
    detail = (
        f"{names}, where a client of {source} is subscribed, did not broadcast it; {', '.join(sorted(reached))} did"
    )
    return RequestFinding(code="MT-801", confidence="likely", detail=detail, evidence=(*broadcast[:1], *lost[:2]))


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
    writers = context.environment.writers
    return [
        one
        for one in between(context.components, record.at, record.at + BREAKS_WITHIN)
        if one.kind is RecordKind.STREAM_BROKEN and writers[one.file].pod == writers[record.file].pod
    ]


def _sent_with(record: LogRecord, sent: Sequence[LogRecord], context: RequestContext) -> list[LogRecord]:
    writers = context.environment.writers
    return [
        one
        for one in sent
        if abs(one.at - record.at) <= BREAKS_WITHIN and writers[one.file].pod == writers[record.file].pod
    ]


def broken_stream(sent: Sequence[LogRecord], context: RequestContext) -> RequestFinding | None:
    """Return a finding when the stream to the last subscriber broke as the status was sent, so that it has none of it.

    A client that is back asks for the statuses again, and another record shows that they are sent.
    """
    environment, source = context.environment, context.request.first("source")
    broken: list[LogRecord] = []
    for record in sent:
        near = _breaks(record, context)
        if not near:
            return None
        broken += near[:1]
    last = max(sent, key=lambda record: record.at)
    subscribed = [
        period
        for period in environment.clients
        if period.since <= last.at + BREAKS_WITHIN and period.until >= last.at and period.name in (source, "")
    ]
    ended = [period for period in subscribed if period.until <= last.at + BREAKS_WITHIN]
    if len(ended) < len(subscribed) or (environment.clients and not subscribed):
        return None
    return RequestFinding(
        code="MT-903",
        confidence="certain" if ended else "likely",
        detail="; ".join(
            filter(None, (broken[0].detail, "no other client of the source was subscribed" if ended else ""))
        ),
        evidence=(last, broken[-1]),
    )
