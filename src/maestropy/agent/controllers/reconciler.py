"""Reconcile one work at a time: apply its manifests, prune old objects, report its status.

Keys are names of AppliedManifestWorks. A reconcile reads the work and its AppliedManifestWork as they are now and
carries out the plan or the deletion. No other module writes the status of a work, so no late write can undo a deletion.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from maestropy.agent.controllers.applier import ApplyOutcome, ApplyTask
from maestropy.agent.controllers.evaluation import Evaluation
from maestropy.agent.controllers.evictor import Evictor
from maestropy.agent.controllers.finalizer import Finalizer
from maestropy.agent.controllers.object_deleter import PendingDeletions
from maestropy.agent.controllers.pruner import Pruner, applied_resource, resource_entry
from maestropy.agent.controllers.reconcile_context import (
    PENDING_SECONDS,
    ReconcileContext,
    RetryLater,
    owner_reference,
    recheck_after,
)
from maestropy.agent.controllers.watcher import ObjectRef
from maestropy.agent.decide import (
    agent_records,
    data_safety,
    manifest_configs,
    manifest_identity,
    ownership,
    plan,
)
from maestropy.agent.decide.status import conditions, work_status
from maestropy.agent.state.applied_manifest_works import UnrecordableWork
from maestropy.agent.state.work_cache import CachedWork
from maestropy.aio.keyed_queue import RequeueAfter
from maestropy.journal.fields import Logger, LogKey
from maestropy.kube import freshness, objects
from maestropy.kube.objects import Json
from maestropy.kube.watch_changes import ObjectVersion
from maestropy.wire.works import options, status, work

_DEFERRED_LIST_SECONDS = 1.0
_DEFERRED_LIST_PATIENCE_SECONDS = 5.0
"""For how long works without a first status are reconciled before deferred lists are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeferredList:
    """A new work that is applied and reported; only its AppliedManifestWork does not list the objects yet."""

    manifest_work: work.ManifestWork
    owner: str
    """The UID of the AppliedManifestWork that owns the objects."""
    resources: tuple[ownership.AppliedResource, ...]
    sightings: tuple[tuple[ObjectRef, ObjectVersion], ...]


class Reconciler:
    """Reconciles works and AppliedManifestWorks."""

    def __init__(self, context: ReconcileContext) -> None:
        self._context = context
        self._deferred: dict[str, _DeferredList] = {}
        """Lists to be written when the queue has room."""
        self._finalizer = Finalizer(context)
        self._evictor = Evictor(context)
        self._pruner = Pruner(context)

    @property
    def deferred_count(self) -> int:
        """How many lists are still to be written."""
        return len(self._deferred)

    async def reconcile(self, key: str) -> RequeueAfter | None:
        """Reconcile the work and the AppliedManifestWork behind `key`."""
        spans, clock = self._context.spans, self._context.clock
        cached = self._cached_work(key) if spans.is_on else None
        if cached is None or not spans.is_new(cached.id):
            return await self._reconcile(key)
        started, is_deleting, error = clock.epoch(), cached.is_deleting, "cancelled"
        try:
            requeue, error = await self._reconcile(key), ""
        except Exception as failure:
            error = str(failure)
            raise
        finally:
            spans.reconciled(cached.id, is_deleting=is_deleting, start=started, now=clock.epoch(), error=error)
        return requeue

    async def _reconcile(self, key: str) -> RequeueAfter | None:
        await self._context.applied_works.refresh(key)
        applied_work = self._context.applied_works.get(key)
        cached = self._cached_work(key)
        deferred = self._deferred.pop(key, None)
        if cached is None and (applied_work is None or not self._is_own(applied_work)):
            self._context.unwatch(key)
            self._context.safety.release(key)
            return None
        if (cached is not None and cached.is_deleting) or (
            applied_work is not None and objects.is_terminating(applied_work)
        ):
            return await self._finalizer.finalize(key, cached, applied_work)
        if cached is None:
            assert applied_work is not None
            return await self._evictor.evict(applied_work)
        if deferred is not None and applied_work is not None and self._is_still_current(cached, applied_work, deferred):
            return self._until_evaluation(key, await self._write_deferred_list(cached, applied_work, deferred))
        # A list is deferred only once, however often the objects change meanwhile.
        return self._until_evaluation(key, await self._apply(key, cached, may_defer_list=deferred is None))

    def _until_evaluation(self, key: str, requeue: RequeueAfter | None) -> RequeueAfter | None:
        """Reconcile again when the pause of the work's expressions ends."""
        pause = self._context.evaluator.pause_seconds(key)
        return RequeueAfter(pause) if requeue is not None and 0 < pause < requeue.seconds else requeue

    def _is_own(self, applied_work: Json) -> bool:
        """Whether this agent manages an AppliedManifestWork; several agents may share a cluster."""
        name = applied_work["metadata"]["name"]
        is_of_agent = ownership.is_of_agent(applied_work, self._context.identity)
        return is_of_agent and not self._context.applied_works.is_of_other_consumer(name)

    def _cached_work(self, key: str) -> CachedWork | None:
        prefix = f"{self._context.identity.hub_hash}-"
        return self._context.works.by_name(key[len(prefix) :]) if key.startswith(prefix) else None

    async def _apply(self, key: str, cached: CachedWork, *, may_defer_list: bool) -> RequeueAfter | None:
        manifest_work = cached.manifest_work
        if self._is_held(key, cached):
            return RequeueAfter(self._context.resync_seconds())
        if cached.problem:
            self._report_rejected(cached, cached.problem)
            return None
        manifest_work_with_spec = cached.with_spec()
        served = await self._context.applier.served_kinds(plan.gvks_of(manifest_work_with_spec))
        undiscovered = [result.problem for result in served.values() if isinstance(result, plan.DiscoveryFailed)]
        if undiscovered and cached.status.manifests:
            # The status reported before is more accurate than "unknown kind".
            raise RetryLater(undiscovered[0])
        match plan.plan_work(manifest_work_with_spec.with_status(cached.status), served=served):
            case plan.InvalidWork(problem=problem):
                self._report_rejected(cached, problem)
                return None
            case plan.AlreadyComplete():
                return await self._report_complete(key, cached)
            case plan.ApplyPlan() as planned:
                try:
                    return await self._carry_out(
                        key, cached, planned, manifest_work=manifest_work, may_defer_list=may_defer_list
                    )
                except UnrecordableWork as error:
                    # No retry helps before the source changes the work.
                    self._report_rejected(cached, str(error))
                    return RequeueAfter(self._context.resync_seconds())

    def _is_held(self, key: str, cached: CachedWork) -> bool:
        """Whether the spec comes from another database, or from an older copy of the one that was applied."""
        applied_work = self._context.applied_works.get(key)
        origin = data_safety.read_origin(applied_work)
        match self._context.safety.spec_verdict(key, origin, cached.origin):
            case data_safety.Hold() as verdict:
                self._context.hold(key, verdict, cached=cached, applied_work=applied_work)
                return True
            case data_safety.Proceed():
                return False

    def _problem_with(self, key: str, incoming: data_safety.SpecOrigin, live: Json) -> str:
        """Return why a work may not change an object: it belongs to a work that another database gave."""
        owners = ownership.owners_of(live, hub=self._context.identity.hub_hash)
        for name in owners if key not in owners else ():
            applied_work = self._context.applied_works.get(name)
            work_name = str(((applied_work or {}).get("spec") or {}).get("manifestWorkName") or name)
            problem = data_safety.object_problem(work_name, data_safety.read_origin(applied_work), incoming)
            if problem and not self._context.safety.is_adopted(name):
                return problem
        return ""

    def _report_rejected(self, cached: CachedWork, problem: str) -> None:
        evaluation = self._status_context(cached)
        rejected = conditions.work_rejected(problem, generation=evaluation.generation)
        cached.status = cached.status.with_condition(rejected, now=evaluation.now)
        self._context.reporter.report(cached)

    async def _carry_out(
        self,
        key: str,
        cached: CachedWork,
        planned: plan.ApplyPlan,
        *,
        manifest_work: work.ManifestWork,
        may_defer_list: bool,
    ) -> RequeueAfter:
        """Apply all manifests of one generation, update the AppliedManifestWork and report the status."""
        if cached.reconciled is not manifest_work:
            # While many status updates are unsent, applying more works would only delay those that are applied.
            await self._context.reporter.wait_for_capacity()
        if cached.manifest_work is not manifest_work:
            return RequeueAfter(0)
        created = [step.meta for step in planned.steps if step.meta.resource and step.is_owned and _is_written(step)]
        planned_resources = [resource_entry(meta, uid="") for meta in created]
        origin = cached.origin
        applied_work = await self._evictor.cancel_eviction(
            await self._context.applied_works.ensure(manifest_work, planned=planned_resources, origin=origin)
        )
        if objects.is_terminating(applied_work) or self._is_held(key, cached):
            # Its objects must be deleted first; a new AppliedManifestWork will own the new ones. Or it existed, with
            # another origin, and the watch had not shown it yet.
            return RequeueAfter(0)
        cached.status = data_safety.without_hold(cached.status)
        await self._watch_before_writing(key, planned)
        listed = {resource.key for resource in ownership.applied_resources(applied_work)}
        if cached.reconciled is not manifest_work:
            applied_work = await self._pruner.announce(applied_work, planned_resources)
        log_fields = self._log_fields(cached)
        evaluation = self._context.evaluator.begin(key, spec=_spec_of(cached), log_fields=log_fields)
        reported = cached.status.manifests
        may_defer = cached.reconciled is manifest_work and self._context.clock.monotonic() < cached.reconciled_until
        outcomes = [
            await self._context.applier.apply(
                ApplyTask(
                    step=step,
                    owner=owner_reference(applied_work, is_owned=step.is_owned),
                    executor=planned.executor,
                    generation=manifest_work.generation,
                    may_defer=may_defer,
                    is_new=manifest_identity.key_of(step.meta) not in listed,
                    log_fields=log_fields,
                    evaluation=evaluation,
                    previous=_applied_condition(reported, step.meta),
                    problem_with=functools.partial(self._problem_with, key, origin),
                )
            )
            for step in planned.steps
        ]
        # The work may have changed during the writes; this status would then belong to an old generation.
        if cached.manifest_work is manifest_work:
            await self._report_status(cached, outcomes, evaluation=evaluation)
        evaluation.finish()
        # After the status, which does not wait for it, and before anything is pruned.
        applied_work = await self._context.applied_works.record(applied_work, origin)
        self._context.release(key, cached)
        is_new = may_defer_list and cached.reconciled is None and not listed
        is_healthy = all(outcome.is_healthy for outcome in outcomes)
        if (
            is_new
            and is_healthy
            and self._context.is_queue_busy()
            and ownership.announces(applied_work, planned_resources)
        ):
            # The list may wait until works without a first status are served. The generation does not count as
            # reconciled until the list is written: if the spec changes before, the announced objects have to be pruned.
            self._deferred[key] = _deferred(manifest_work, applied_work, outcomes)
            return RequeueAfter(_DEFERRED_LIST_SECONDS * (1 + self._context.jitter()), _DEFERRED_LIST_PATIENCE_SECONDS)
        announced = ownership.announced_resources(applied_work) if cached.reconciled is None else ()
        pending = await self._pruner.record_and_prune(
            applied_work, outcomes, name=manifest_work.name, log_fields=log_fields, announced=announced
        )
        await self._context.watch(key, _refs(outcomes), pending.resources)
        if cached.manifest_work is not manifest_work:
            return RequeueAfter(0)
        if not may_defer:
            self._mark_reconciled(cached)
        if any(outcome.should_retry for outcome in outcomes) or pending.problems:
            raise RetryLater(_retry_message(outcomes, pending))
        return recheck_after(self._next_seconds(cached, outcomes, has_pending_deletions=bool(pending.resources)))

    def _is_still_current(self, cached: CachedWork, applied_work: Json, deferred: _DeferredList) -> bool:
        """Whether work, AppliedManifestWork and objects are unchanged since the manifests were applied."""
        is_same = cached.manifest_work is deferred.manifest_work and objects.uid(applied_work) == deferred.owner
        is_current = self._context.watcher.is_current
        return is_same and all(is_current(ref, shown) for ref, shown in deferred.sightings)

    async def _write_deferred_list(
        self, cached: CachedWork, applied_work: Json, deferred: _DeferredList
    ) -> RequeueAfter:
        """List the objects of a new work; everything else was done when it was applied."""
        await self._context.applied_works.set_applied_resources(applied_work, deferred.resources)
        self._mark_reconciled(cached)
        return recheck_after(max(0.0, cached.reconciled_until - self._context.clock.monotonic()))

    def _mark_reconciled(self, cached: CachedWork) -> None:
        cached.reconciled = cached.manifest_work
        cached.reconciled_until = self._context.clock.monotonic() + self._context.resync_seconds()

    async def _watch_before_writing(self, key: str, planned: plan.ApplyPlan) -> None:
        """Start the watches before the first write, so that no change is missed."""
        refs = [await self._context.applier.ref_of_meta(step.meta) for step in planned.steps]
        self._context.watcher.expect(key, [ref for ref in refs if ref is not None])
        unknown = frozenset(step.meta.group for step in planned.steps if step.meta.kind and not step.meta.resource)
        self._context.crd_watcher.watch_for(key, unknown - {""})

    async def _report_complete(self, key: str, cached: CachedWork) -> RequeueAfter:
        """Report the status of a complete work; nothing is applied any more."""
        manifest_work = cached.manifest_work
        context = self._status_context(cached)
        configs = manifest_configs.ConfigIndex(cached.with_spec().manifest_configs)
        evaluation = self._context.evaluator.begin(key, spec=_spec_of(cached), log_fields=self._log_fields(cached))
        observations = []
        executor, applier = cached.with_spec().executor, self._context.applier
        for entry in cached.status.manifests:
            meta = entry.resource_meta
            ref = await applier.ref_of_meta(meta)
            denial = agent_records.problem(meta) or await applier.read_denial(
                meta, executor, generation=context.generation
            )
            live = await applier.read(ref) if ref is not None and not denial else None
            observation = work_status.ObservedObject(live=live, denial=denial)
            observations.append((entry, observation, configs.effective(meta)))
        entries = await self._observe(observations, context=context, evaluation=evaluation)
        updated = work_status.with_observations(cached.status, entries, context=context)
        await self._report_observed(cached, manifest_work, updated, evaluation=evaluation)
        evaluation.finish()
        seconds = self._context.resync_seconds()
        if any(observation.denial for _, observation, _ in observations):
            seconds = min(seconds, self._context.intervals.executor.total_seconds())
        return recheck_after(seconds)

    async def _report_status(
        self, cached: CachedWork, outcomes: Sequence[ApplyOutcome], *, evaluation: Evaluation
    ) -> None:
        manifest_work, context = cached.manifest_work, self._status_context(cached)
        applied = work_status.with_apply_results(
            cached.status, [outcome.result for outcome in outcomes], context=context
        )
        by_ordinal = {outcome.step.meta.ordinal: outcome for outcome in outcomes}
        observed = [(entry, by_ordinal[entry.resource_meta.ordinal]) for entry in applied.manifests]
        entries = await self._observe(
            [(entry, outcome.observation, outcome.step.config) for entry, outcome in observed],
            context=context,
            evaluation=evaluation,
        )
        updated = work_status.with_observations(applied, entries, context=context)
        await self._report_observed(cached, manifest_work, updated, evaluation=evaluation)

    async def _report_observed(
        self,
        cached: CachedWork,
        manifest_work: work.ManifestWork,
        updated: status.WorkStatus,
        *,
        evaluation: Evaluation,
    ) -> None:
        """Report the status of one generation of a work, unless there is a newer one by now."""
        if updated.body == cached.status.body:
            # Its hash is known.
            updated = cached.status
        await evaluation.hash(updated)
        # Other tasks may have run during the evaluation.
        if cached.manifest_work is manifest_work:
            cached.status = updated
            self._context.reporter.report(cached)

    async def _observe(
        self,
        observations: Sequence[
            tuple[status.ManifestStatus, work_status.ObservedObject, manifest_configs.EffectiveConfig]
        ],
        *,
        context: work_status.EvaluationContext,
        evaluation: Evaluation,
    ) -> list[status.ManifestStatus]:
        """Return the status entries of all manifests; a work that is evaluated for long lets others run in between."""
        return await evaluation.run(
            functools.partial(
                work_status.observe_manifest,
                entry,
                observation,
                config=config,
                context=context,
                budget=evaluation.budget,
                json_raw_max_bytes=self._context.intervals.json_raw_max_bytes,
            )
            for entry, observation, config in observations
        )

    def _next_seconds(
        self, cached: CachedWork, outcomes: Sequence[ApplyOutcome], *, has_pending_deletions: bool
    ) -> float:
        seconds = max(0.0, cached.reconciled_until - self._context.clock.monotonic())
        if has_pending_deletions:
            seconds = min(seconds, PENDING_SECONDS)
        if any(outcome.is_denied or outcome.read_denial for outcome in outcomes):
            seconds = min(seconds, self._context.intervals.executor.total_seconds())
        seconds = min([seconds, *(outcome.backoff_seconds for outcome in outcomes if outcome.backoff_seconds)])
        watched = (self._context.watcher.read(ref).is_watched for ref in _refs(outcomes))
        if not all(watched):
            seconds = min(seconds, self._context.intervals.poll.total_seconds() * (1 + 0.9 * self._context.jitter()))
        return seconds

    def _status_context(self, cached: CachedWork) -> work_status.EvaluationContext:
        return work_status.EvaluationContext(generation=cached.manifest_work.generation, now=self._context.now())

    def _log_fields(self, cached: CachedWork) -> dict[str, object]:
        prefix = work.TRACING_PREFIX
        tracing = {name.removeprefix(prefix): value for name, value in cached.manifest_work.tracing.items()}
        return {LogKey.LOGGER: Logger.WORK, LogKey.MANIFEST_WORK_NAME: cached.name, **tracing}


def _deferred(manifest_work: work.ManifestWork, applied_work: Json, outcomes: Sequence[ApplyOutcome]) -> _DeferredList:
    return _DeferredList(
        manifest_work=manifest_work,
        owner=objects.uid(applied_work),
        resources=tuple(applied_resource(outcome) for outcome in outcomes),
        sightings=tuple(
            (outcome.ref, freshness.version_of(outcome.live)) for outcome in outcomes if outcome.ref and outcome.live
        ),
    )


def _spec_of(cached: CachedWork) -> tuple[int, bytes]:
    """Return what identifies the spec of a work."""
    return cached.manifest_work.generation, cached.spec


def _applied_condition(entries: Sequence[status.ManifestStatus], meta: status.ResourceMeta) -> status.Condition | None:
    """Return the condition `Applied` that was reported last for a manifest."""
    if meta.ordinal >= len(entries) or entries[meta.ordinal].resource_meta != meta:
        return None
    conditions = entries[meta.ordinal].conditions
    return next((condition for condition in conditions if condition.type == status.APPLIED), None)


def _is_written(step: plan.ApplyStep) -> bool:
    return not step.problem and step.config.update_strategy.type != options.READ_ONLY


def _refs(outcomes: Sequence[ApplyOutcome]) -> list[ObjectRef]:
    return [outcome.ref for outcome in outcomes if outcome.ref is not None]


def _retry_message(outcomes: Sequence[ApplyOutcome], pending: PendingDeletions) -> str:
    messages = [outcome.condition.message for outcome in outcomes if outcome.should_retry]
    return "; ".join([*messages, *pending.problems][:3])
