"""Evict AppliedManifestWorks whose work the agent does not know.

`decide.eviction` says when; this controller sets the eviction start time and deletes them.
"""

from dataclasses import replace

from maestropy.agent.controllers.reconcile_context import ReconcileContext
from maestropy.agent.decide import data_safety, eviction
from maestropy.aio.keyed_queue import RequeueAfter
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import AgentPhrase
from maestropy.kube.objects import Json
from maestropy.wire import timestamps


class Evictor:
    """Evicts unknown AppliedManifestWorks, and cancels the eviction when the work arrives."""

    def __init__(self, context: ReconcileContext) -> None:
        self._context = context

    async def evict(self, applied_work: Json) -> RequeueAfter | None:
        """Carry out the next eviction step of an AppliedManifestWork whose work is unknown."""
        key = applied_work["metadata"]["name"]
        grace = self._context.intervals.eviction_grace
        now = self._context.now()
        if self._context.resynced_at() is None:
            # The server has not said which works it has.
            return RequeueAfter(self._context.resync_seconds())
        wait = self._seconds_until_settled(now)
        if wait > 0:
            return RequeueAfter(wait)
        origin = data_safety.read_origin(applied_work)
        safety = self._context.safety
        if safety.is_adopted(key):
            # Recorded first: the agent may restart during the grace period.
            origin = replace(origin or data_safety.SpecOrigin(), database=safety.database, is_adopted=True)
            applied_work = await self._context.applied_works.record(applied_work, origin)
        match safety.eviction_verdict(origin):
            case data_safety.Hold() as verdict:
                self._context.hold(key, verdict, cached=None, applied_work=applied_work)
                await self.cancel_eviction(applied_work)
                return RequeueAfter(self._context.intervals.hold_poll.total_seconds())
            case data_safety.Proceed():
                self._context.safety.await_eviction(key, applied=origin)
        match eviction.decide(applied_work, is_work_known=False, policy=self._policy(), now=now):
            case eviction.PatchEvictionStart(patch=patch):
                await self._context.applied_works.patch_status(applied_work, dict(patch))
                safety.note_countdown(key, since=now, deadline=_after(now, grace.total_seconds()))
                return RequeueAfter(min(grace.total_seconds(), self._context.resync_seconds()))
            case eviction.WaitForGracePeriod(at=at):
                safety.note_countdown(key, since=_after(at, -grace.total_seconds()), deadline=at)
                return RequeueAfter(max(0.5, at.seconds - now.seconds))
            case eviction.ConfirmAbsence():
                # What the agent does not know it does not delete: the server may be away, or may have the work by now.
                self._context.request_resync()
                return RequeueAfter(max(1.0, self._context.intervals.spec_arrival.total_seconds()))
            case eviction.EvictAppliedWork():
                self._context.journal.info(
                    AgentPhrase.EVICTED,
                    {
                        LogKey.AGENT_ID: self._context.identity.agent_id,
                        LogKey.APPLIED_MANIFEST_WORK_NAME: key,
                        LogKey.MANIFEST_WORK_NAME: str((applied_work.get("spec") or {}).get("manifestWorkName") or ""),
                    },
                )
                await self._context.applied_works.delete(applied_work)
                return RequeueAfter(0)
            case _:
                return RequeueAfter(self._context.resync_seconds())

    def _seconds_until_settled(self, now: timestamps.Timestamp) -> float:
        """Return how long works of the last spec resync may still arrive: until then their absence means nothing."""
        arrival = self._context.intervals.spec_arrival.total_seconds()
        resynced_at = self._context.resynced_at()
        wait = resynced_at.seconds + arrival - now.seconds if resynced_at is not None else 0.0
        orphan_seen_at = self._context.safety.orphan_seen_at
        if orphan_seen_at is not None:
            # More orphans may follow, and too many would not be evicted.
            wait = max(wait, orphan_seen_at + arrival - self._context.clock.monotonic())
        return wait

    async def cancel_eviction(self, applied_work: Json) -> Json:
        """Cancel the eviction of an AppliedManifestWork whose work is known."""
        match eviction.decide(applied_work, is_work_known=True, policy=self._policy(), now=self._context.now()):
            case eviction.PatchEvictionStart(patch=patch):
                return await self._context.applied_works.patch_status(applied_work, dict(patch))
            case _:
                return applied_work

    def _policy(self) -> eviction.EvictionPolicy:
        return eviction.EvictionPolicy(
            identity=self._context.identity,
            grace_seconds=int(self._context.intervals.eviction_grace.total_seconds()),
            resynced_at=self._context.resynced_at(),
            is_absence_confirmed=self._context.is_absence_confirmed(),
        )


def _after(time: timestamps.Timestamp, seconds: float) -> timestamps.Timestamp:
    return timestamps.Timestamp(time.seconds + int(seconds))
