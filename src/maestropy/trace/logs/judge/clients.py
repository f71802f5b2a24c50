"""Say whether clients were subscribed for a status, and whether it reached them. Pure."""

from collections.abc import Sequence
from typing import Final

from maestropy.trace.logs.judge import lifecycles
from maestropy.trace.logs.judge.request_context import RequestContext, between
from maestropy.trace.logs.log_records import LogRecord, RecordKind
from maestropy.trace.logs.model import RequestFinding
from maestropy.trace.logs.read.log_writers import Environment

BREAKS_WITHIN: Final = 1.0
"""A server logs that it sends a status, and then the error of sending it."""


def is_subscribed(source: str, environment: Environment, *, at: float) -> bool:
    """Return whether the logs show a client of `source`, or any client if it is empty, that is subscribed at `at`."""
    periods = [period for period in environment.clients if period.since <= at + 1 and period.until >= at]
    return any(not source or period.name == source for period in periods)


def no_client_subscribed(source: str, environment: Environment, *, at: float) -> RequestFinding | None:
    """Return a finding when the logs show that no client of `source` was subscribed at `at`."""

    if is_subscribed(source, environment, at=at):
        return None
    present = [period for period in environment.clients if period.since <= at + 1 and period.until >= at]
    if not lifecycles.are_from_start(environment.servers, at=at) and not environment.clients:
        return None  # a client may have subscribed before the logs start
    if environment.lacks_instances:
        return None  # or to a server whose log is not given
    left = [period for period in environment.clients if source and period.name == source and period.until < at]
    if left:
        last = max(left, key=lambda period: period.until)
        detail = (
            f"the client of {source} unsubscribed at {lifecycles.clock(last.until)}, and no other has subscribed since"
        )
        return RequestFinding(code="MT-901", confidence="certain", detail=detail)
    if present:
        others = ", ".join(sorted({period.name for period in present}))
        return RequestFinding(code="MT-902", confidence="likely", detail=f"request of {source}, clients of {others}")
    return RequestFinding(code="MT-901", confidence="likely", detail=f"no client of {source} was subscribed")


def broken_stream(sent: Sequence[LogRecord], context: RequestContext) -> RequestFinding | None:
    """Return a finding when the stream to the last subscriber broke as the status was sent, so that it has none of it.

    A client that is back asks for the statuses again, and another record shows that they are sent.
    """
    environment, source = context.environment, context.request.first("source")
    broken: list[LogRecord] = []
    for record in sent:
        pod = environment.writers[record.file].pod
        near = [
            one
            for one in between(context.components, record.at, record.at + BREAKS_WITHIN)
            if one.kind is RecordKind.STREAM_BROKEN and environment.writers[one.file].pod == pod
        ]
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
