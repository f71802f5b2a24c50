"""What becomes of records whose work the agent does not know?

A record without a work may be a leftover, or the agent merely has not heard of the work yet. So it is marked, and only
deleted after a grace period, and never before the server has answered in this run: an agent that restarts while its
server is away knows no work at all, and must not take that for an order to delete everything.
"""

from dataclasses import dataclass
from typing import Any

from maestropy.agent.decide import ownership
from maestropy.wire import errors, instant, jsontypes
from maestropy.wire.jsontypes import Object

NEVER_SECONDS = 100 * 365 * 24 * 3600
"""A grace period from here on means that nothing is evicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """When to evict."""

    identity: ownership.Identity
    grace_seconds: int
    answered_at: instant.Timestamp | None
    """When the server first told, since the agent started, which works there are; None if it has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Patch the record's status: the grace period begins or is called off."""

    patch: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Look again at this time."""

    at: instant.Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict:
    """Delete the record; its objects follow."""


Verdict = Keep | Mark | Look | Evict


def judge(record: Object, *, is_work_known: bool, policy: Policy, now: instant.Timestamp) -> Verdict:
    """Return what becomes of one record."""
    if jsontypes.text_at(record, "spec", "agentID") != policy.identity.agent_id:
        return Keep()
    if jsontypes.text_at(record, "metadata", "deletionTimestamp"):
        return Keep()
    started = jsontypes.text_at(record, "status", "evictionStartTime")
    is_of_this_hub = jsontypes.text_at(record, "metadata", "name").startswith(policy.identity.hub_hash)
    if policy.grace_seconds >= NEVER_SECONDS or (is_work_known and is_of_this_hub):
        return _marked(record, None) if started else Keep()
    if policy.answered_at is None:
        return Keep()
    if not started:
        return _marked(record, now.rfc3339_seconds())
    # A mark of an earlier run must not count the time in which nobody could tell us of the work.
    since = max(_since(started, now=now), policy.answered_at)
    due = instant.Timestamp(since.seconds + policy.grace_seconds, since.nanos)
    return Evict() if now >= due else Look(at=due)


def _since(started: str, *, now: instant.Timestamp) -> instant.Timestamp:
    try:
        return instant.parse(started)
    except errors.Malformed:
        # Nobody knows when it began, so it begins now.
        return now


def _marked(record: Object, started: str | None) -> Mark:
    metadata = jsontypes.object_at(record, "metadata")
    guard: dict[str, Any] = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return Mark(patch={"metadata": guard, "status": {"evictionStartTime": started}})
