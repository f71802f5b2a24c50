"""Say whether an agent of the consumer could receive a request: by the logs, and by the history. Pure."""

import math
from collections.abc import Sequence
from typing import Final

from maestropy.trace.logs.judge import lifecycles, observability
from maestropy.trace.logs.judge.request_context import Gap, between
from maestropy.trace.logs.log_records import RecordKind
from maestropy.trace.logs.model import RequestFinding
from maestropy.trace.logs.read.log_writers import SubscriptionPeriod

_SLACK: Final = 1.0
_VERBOSE: Final = 2
_ANNOUNCED_WITHIN: Final = 5.0


def absent_agent(gap: Gap) -> RequestFinding | None:
    """Return a finding when the logs show that no agent of the consumer could receive the request."""
    if not gap.consumer:
        return None
    if gap.environment.broker == "grpc":
        return _unsubscribed_agent(gap)
    logs = observability.logs_of_agent(gap.consumer, gap.environment)
    ended = observability.ended_agent(gap.consumer, gap.environment, moment=gap.since)
    is_verbose = max((log.verbosity for log in logs), default=0) >= _VERBOSE
    # An agent that logs little is silent for long; only one that logs every event must have ended.
    if ended is not None and (ended.confidence == "certain" or is_verbose):
        state = "does not run" if ended.confidence != "possible" else "may not run"
        return gap.finding("MT-301", ended.confidence, f"the agent of {gap.consumer} {state}: {ended.text}")
    return None


def _unsubscribed_agent(gap: Gap) -> RequestFinding | None:
    consumer, environment = gap.consumer, gap.environment
    own = [period for period in environment.agents if period.name == consumer]
    if any(period.until > gap.since and period.since <= max(gap.since, environment.end) for period in own):
        return None
    if not own and (left := _departure(gap)):
        detail = f"no agent of {consumer} was subscribed; by the history the last one has disconnected at {left}"
        return gap.finding("MT-301", "certain", detail)
    if not own and not any(server.started for server in environment.servers):
        return _not_on_any_instance(gap)  # it may have connected before the logs start
    if own and not any(period.is_start_shown for period in own) and _may_be_back(gap, own):
        return None
    is_sure = any(period.is_start_shown for period in own) or (
        lifecycles.are_from_start(environment.servers) and not environment.lacks_instances
    )
    last = f"; the last one has disconnected at {lifecycles.clock(max(period.until for period in own))}" if own else ""
    return gap.finding("MT-301", "certain" if is_sure else "likely", f"no agent of {consumer} was subscribed{last}")


def _departure(gap: Gap) -> str:
    """Return when the last agent left, by what is known besides the logs; empty if one may be connected."""
    left = gap.environment.departures.get(gap.consumer, math.inf)
    has_reported = gap.environment.reported.get(gap.consumer, 0.0) > left + _SLACK
    return lifecycles.clock(left) if left <= gap.since and not has_reported else ""


def _may_be_back(gap: Gap, own: Sequence[SubscriptionPeriod]) -> bool:
    """Say whether an agent may be connected of which only an end is shown: by another stream, or another instance.

    A stream that replaces a broken one may be older than the log; a status since then shows that there is one.
    """
    left = max(period.until for period in own)
    return gap.environment.lacks_instances or gap.environment.reported.get(gap.consumer, 0.0) > left + _SLACK


def _not_on_any_instance(gap: Gap) -> RequestFinding | None:
    """Return a finding when every instance says, at this time, that no agent is connected to it for an event."""
    own = (record for record in gap.request.records if record.kind is RecordKind.NO_AGENT_HERE)
    near = between(gap.components, gap.since, gap.since + _ANNOUNCED_WITHIN)
    said = [*own, *(record for record in near if record.kind is RecordKind.NO_AGENT_HERE)]
    pods = {gap.environment.writers[record.file].pod for record in said}
    if not said or gap.environment.lacks_instances or pods != {server.pod for server in gap.environment.servers}:
        return None
    detail = f"no server instance processed the event: no agent of {gap.consumer} is connected to any of them"
    return gap.finding("MT-301", "likely", detail, *said[:3])


def silent_agent(gap: Gap) -> RequestFinding | None:
    """Return a finding when nothing of the agent is in the logs: neither its own log nor any status."""
    consumer, environment = gap.consumer, gap.environment
    has_logs = any(consumer in log.consumers or not log.consumers for log in environment.agent_logs)
    if not consumer or has_logs or consumer in environment.reporting:
        return None
    detail = (
        f"no agent of {consumer} has reported anything in these logs; one with --consumer-name {consumer} should have "
        f"subscribed to sources/maestro/consumers/{consumer}/sourceevents"
        if environment.broker != "grpc"
        else f"no agent of {consumer} has reported anything in these logs"
    )
    return gap.finding("MT-301", "likely", detail)
