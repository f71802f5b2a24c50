"""Decide when to evict an AppliedManifestWork whose work the agent does not know.

The work may be gone, or its spec event has not arrived yet. So the eviction start time is set first and the
AppliedManifestWork is deleted after a grace period, never before the server has answered a spec resync in this run: an
agent that restarts while the server is away knows no work at all and must not delete everything. For the same reason
nothing is evicted while the server is away: it has to say again, shortly before, that it does not have the work.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from maestropy.agent.decide import ownership
from maestropy.wire import errors, json_types, timestamps
from maestropy.wire.json_types import Object

DISABLED_SECONDS = 100 * 365 * 24 * 3600
"""From this grace period on, nothing is evicted."""
CONFIRMATION_SECONDS = 60.0
"""How long ago the server may have answered the spec resync that an eviction relies on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionPolicy:
    """When to evict."""

    identity: ownership.AgentIdentity
    grace_seconds: int
    resynced_at: timestamps.Timestamp | None
    """When the server first answered a spec resync since the agent started; None if it has not."""
    is_absence_confirmed: bool
    """Whether the server has said just now that it does not have the work; see `is_absence_confirmed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAppliedWork:
    """Nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchEvictionStart:
    """Patch the eviction start time: the grace period begins or is cancelled."""

    patch: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForGracePeriod:
    """Decide again at this time."""

    at: timestamps.Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmAbsence:
    """The grace period is over; ask the server whether it still does not have the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictAppliedWork:
    """Delete the AppliedManifestWork; its finalizer deletes its objects."""


Verdict = KeepAppliedWork | PatchEvictionStart | WaitForGracePeriod | ConfirmAbsence | EvictAppliedWork


def decide(applied_work: Object, *, is_work_known: bool, policy: EvictionPolicy, now: timestamps.Timestamp) -> Verdict:
    """Decide about one AppliedManifestWork."""
    if not ownership.is_of_agent(applied_work, policy.identity):
        return KeepAppliedWork()
    if json_types.text_at(applied_work, "metadata", "deletionTimestamp"):
        return KeepAppliedWork()
    started = json_types.text_at(applied_work, "status", "evictionStartTime")
    is_of_this_hub = json_types.text_at(applied_work, "metadata", "name").startswith(policy.identity.hub_hash)
    if policy.grace_seconds >= DISABLED_SECONDS or (is_work_known and is_of_this_hub):
        return _patch_eviction_start(applied_work, None) if started else KeepAppliedWork()
    if policy.resynced_at is None:
        return KeepAppliedWork()
    if not started:
        return _patch_eviction_start(applied_work, now.rfc3339_seconds())
    # The time of an earlier run, in which the agent could not learn of the work, does not count.
    since = max(_parsed_start(started, now=now), policy.resynced_at)
    due = timestamps.Timestamp(since.seconds + policy.grace_seconds, since.nanos)
    if now < due:
        return WaitForGracePeriod(at=due)
    return EvictAppliedWork() if policy.is_absence_confirmed else ConfirmAbsence()


def is_absence_confirmed(answers: Iterable[float], *, is_connected: bool, now: float, arrival_seconds: float) -> bool:
    """Return whether works that the agent does not have are absent in the server, given when it answered resyncs.

    An answer counts when the works that it announces have had the time to arrive, and for a minute.
    """
    return is_connected and any(arrival_seconds <= now - answer <= CONFIRMATION_SECONDS for answer in answers)


def _parsed_start(started: str, *, now: timestamps.Timestamp) -> timestamps.Timestamp:
    try:
        return timestamps.parse(started)
    except errors.MalformedMessage:
        # An invalid start time counts as now.
        return now


def _patch_eviction_start(applied_work: Object, started: str | None) -> PatchEvictionStart:
    metadata = json_types.object_at(applied_work, "metadata")
    guard: dict[str, Any] = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return PatchEvictionStart(patch={"metadata": guard, "status": {"evictionStartTime": started}})
