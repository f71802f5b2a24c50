"""Finalize deleted works: delete the AppliedManifestWork, its objects, then its finalizer.

Objects that other finalizers keep are named in the `Deleting` condition. `Deleted` is reported only when no object is
pending.
"""

from collections.abc import Sequence

from maestropy.agent.controllers.object_deleter import finalizers_of
from maestropy.agent.controllers.reconcile_context import PENDING_SECONDS, ReconcileContext, RetryLater, owner_reference
from maestropy.agent.decide import data_safety, deletion, ownership
from maestropy.agent.state.applied_manifest_works import APPLIED_MANIFEST_WORKS
from maestropy.agent.state.work_cache import CachedWork
from maestropy.aio.keyed_queue import RequeueAfter
from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import AgentPhrase
from maestropy.kube import objects
from maestropy.kube.objects import Json


class Finalizer:
    """Finalizes works and AppliedManifestWorks that are being deleted."""

    def __init__(self, context: ReconcileContext) -> None:
        self._context = context
        self._fully_listed: set[str] = set()
        """UIDs of terminating AppliedManifestWorks whose status lists every object."""

    async def finalize(self, key: str, cached: CachedWork | None, applied_work: Json | None) -> RequeueAfter | None:
        """Carry out the next step of a deletion."""
        if applied_work is None or objects.is_terminating(applied_work):
            self._context.release(key, cached)
        if applied_work is not None and applied_work["metadata"]["uid"] not in self._fully_listed:
            applied_work = await self._list_announced(applied_work)
        match deletion.next_step(applied_work):
            case deletion.ReportDeleted():
                self._context.unwatch(key)
                if cached is not None and cached.is_deleting:
                    self._report_deleted(cached)
                return None
            case deletion.DeleteAppliedWork():
                assert applied_work is not None
                if cached is not None and self._is_held(key, cached, applied_work):
                    return RequeueAfter(self._context.intervals.hold_poll.total_seconds())
                self._report_deleting(cached)
                await self._context.applied_works.delete(applied_work)
                return RequeueAfter(0)
            case deletion.DeleteAppliedResources(resources=resources):
                assert applied_work is not None
                return await self._delete_objects(key, cached, applied_work, resources=resources)
            case deletion.RemoveFinalizer(patch=patch):
                assert applied_work is not None
                return await self._remove_finalizer(key, cached, applied_work, patch=dict(patch))

    def _is_held(self, key: str, cached: CachedWork, applied_work: Json) -> bool:
        """Whether the deletion comes from another database or is meant for an older incarnation."""
        origin = data_safety.read_origin(applied_work)
        match self._context.safety.deletion_verdict(key, origin, cached.origin):
            case data_safety.Hold() as verdict:
                self._context.hold(key, verdict, cached=cached, applied_work=applied_work)
                return True
            case data_safety.Proceed():
                return False

    async def _list_announced(self, applied_work: Json) -> Json:
        """List the announced objects in the status, so that finalizing waits for them too."""
        announced = ownership.announced_resources(applied_work)
        if announced:
            listed = ownership.applied_resources(applied_work)
            applied_work = await self._context.applied_works.set_applied_resources(applied_work, [*listed, *announced])
        self._fully_listed.add(applied_work["metadata"]["uid"])
        return applied_work

    async def _remove_finalizer(
        self, key: str, cached: CachedWork | None, applied_work: Json, *, patch: Json
    ) -> RequeueAfter:
        """Remove our finalizer; the AppliedManifestWork is gone unless other finalizers keep it."""
        if patch:
            applied_work = await self._context.applied_works.patch(applied_work, patch)
        other_finalizers = finalizers_of(applied_work)
        if not other_finalizers:
            self._fully_listed.discard(applied_work["metadata"]["uid"])
            self._context.applied_works.forget(key)
            return RequeueAfter(0)
        applied_work_entry = ownership.AppliedResource(
            group=ownership.GROUP, resource=APPLIED_MANIFEST_WORKS.plural, name=key
        )
        self._report_deleting(
            cached, blockers=[deletion.DeletionBlocker(resource=applied_work_entry, finalizers=tuple(other_finalizers))]
        )
        return RequeueAfter(PENDING_SECONDS)

    async def _delete_objects(
        self, key: str, cached: CachedWork | None, applied_work: Json, *, resources: Sequence[ownership.AppliedResource]
    ) -> RequeueAfter:
        name = str((applied_work.get("spec") or {}).get("manifestWorkName") or key)
        await self._context.watch(key, (), resources)
        pending = await self._context.object_deleter.delete_all(
            resources,
            owner=owner_reference(applied_work, is_owned=False),
            reason=deletion.terminating_reason(name),
            base_fields={LogKey.LOGGER: Logger.APPLIED_WORK_FINALIZER, LogKey.APPLIED_MANIFEST_WORK_NAME: key},
        )
        if not pending.resources:
            return await self._remove_finalizer(
                key, cached, applied_work, patch=ownership.finalizer_patch(applied_work, is_set=False) or {}
            )
        await self._context.applied_works.set_applied_resources(applied_work, pending.resources)
        self._context.journal.info(AgentPhrase.PENDING_DELETION, {LogKey.NUM_OF_RESOURCES: len(pending.resources)}, v=4)
        self._report_deleting(cached, blockers=pending.blockers)
        if pending.problems:
            raise RetryLater("; ".join(pending.problems[:3]))
        return RequeueAfter(PENDING_SECONDS)

    def _report_deleting(self, cached: CachedWork | None, *, blockers: Sequence[deletion.DeletionBlocker] = ()) -> None:
        if cached is None or not cached.is_deleting:
            return
        condition = deletion.deleting(generation=cached.manifest_work.generation, blockers=blockers)
        cached.status = cached.status.with_condition(condition, now=self._context.now())
        self._context.reporter.report(cached)

    def _report_deleted(self, cached: CachedWork) -> None:
        condition = deletion.deleted(consumer=cached.manifest_work.namespace)
        cached.status = cached.status.with_condition(condition, now=self._context.now())
        self._context.reporter.report(cached)
