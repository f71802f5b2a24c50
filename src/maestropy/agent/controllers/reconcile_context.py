"""Hold what the reconciler, the pruner, the finalizer and the evictor share: dependencies, intervals and helpers.

Nothing here decides anything about a work.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from maestropy.agent.controllers.applier import Applier
from maestropy.agent.controllers.crd_watcher import CrdWatcher
from maestropy.agent.controllers.evaluation import Evaluator
from maestropy.agent.controllers.object_deleter import ObjectDeleter
from maestropy.agent.controllers.reporter import StatusReporter
from maestropy.agent.controllers.watcher import ObjectRef, ObjectWatcher
from maestropy.agent.decide import data_safety, executor, ownership
from maestropy.agent.decide.status import conditions
from maestropy.agent.state.applied_manifest_works import AppliedWorks
from maestropy.agent.state.data_safety import DataSafety
from maestropy.agent.state.work_cache import CachedWork, WorkCache
from maestropy.agent.telemetry.work_spans import WorkSpans
from maestropy.aio import clock as clocks
from maestropy.aio.keyed_queue import RequeueAfter
from maestropy.journal.emit import Journal
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import AgentPhrase
from maestropy.kube.objects import Json
from maestropy.wire import timestamps

PENDING_SECONDS = 5.0
"""How soon to check objects that are being deleted; the watch mostly reports their end earlier."""


RECHECK_PATIENCE_SECONDS = 30.0
"""For how long new works and changes are reconciled before works that are only checked again."""


class RetryLater(Exception):
    """The reconcile did not finish and has to be retried soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileIntervals:
    """How often a work is reconciled when no event arrives."""

    resync: timedelta = timedelta(minutes=4)
    poll: timedelta = timedelta(seconds=10)
    """Interval for objects that are not watched."""
    executor: timedelta = timedelta(seconds=executor.RETRY_SECONDS)
    """How long the result of an executor's access review is cached."""
    eviction_grace: timedelta = timedelta(minutes=60)
    spec_arrival: timedelta = timedelta(seconds=10)
    """How long after the first spec resync the works of its answer may take to arrive."""
    hold_poll: timedelta = timedelta(seconds=30)
    """How often an agent that holds works asks whether an operator has adopted the database."""
    json_raw_max_bytes: int = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileContext:
    """The dependencies of a reconcile."""

    works: WorkCache
    applied_works: AppliedWorks
    watcher: ObjectWatcher
    applier: Applier
    object_deleter: ObjectDeleter
    reporter: StatusReporter
    crd_watcher: CrdWatcher
    evaluator: Evaluator
    is_queue_busy: Callable[[], bool]
    """Whether other works are being reconciled or wait for it."""
    resynced_at: Callable[[], timestamps.Timestamp | None]
    """When the server first answered a spec resync since the agent started."""
    is_absence_confirmed: Callable[[], bool]
    """Whether the server is connected and has answered a spec resync just now."""
    request_resync: Callable[[], None]
    safety: DataSafety
    identity: ownership.AgentIdentity
    intervals: ReconcileIntervals
    clock: clocks.Clock
    jitter: Callable[[], float]
    journal: Journal
    spans: WorkSpans

    def now(self) -> timestamps.Timestamp:
        """Return the current time."""
        return timestamps.from_datetime(self.clock.now())

    def resync_seconds(self) -> float:
        """Return the time until the next full reconcile, with jitter."""
        return self.intervals.resync.total_seconds() * (1 + 0.5 * self.jitter())

    async def watch(
        self, key: str, refs: Sequence[ObjectRef], terminating: Sequence[ownership.AppliedResource]
    ) -> None:
        """Reconcile `key` when one of these objects changes or one of the terminating ones is gone."""
        terminating_refs = [await self.applier.ref_of(resource) for resource in terminating]
        self.watcher.track(key, [*refs, *terminating_refs])

    def hold(
        self, key: str, verdict: data_safety.Hold, *, cached: CachedWork | None, applied_work: Json | None
    ) -> None:
        """Hold a work: log it, and report it if the server has the work."""
        applied = data_safety.read_origin(applied_work)
        if self.safety.hold(key, verdict, applied=applied):
            fields = {LogKey.APPLIED_MANIFEST_WORK_NAME: key, LogKey.REASON: f"{verdict.reason}: {verdict.message}"}
            self.journal.warning(AgentPhrase.WORK_HELD, fields)
        if cached is not None:
            cached.is_held = True
            generation = cached.manifest_work.generation
            cached.status = cached.status.with_condition(
                conditions.work_rejected(verdict.message, generation=generation), now=self.now()
            ).with_condition(data_safety.held(verdict, generation=generation), now=self.now())
            self.reporter.report(cached)

    def release(self, key: str, cached: CachedWork | None) -> None:
        """End the hold of a work."""
        self.safety.release(key)
        if cached is not None:
            cached.is_held = False
            cached.status = data_safety.without_hold(cached.status)

    def unwatch(self, key: str) -> None:
        """Stop all watches of a work that has no objects left."""
        self.watcher.track(key, ())
        self.crd_watcher.watch_for(key, frozenset())


def recheck_after(seconds: float) -> RequeueAfter:
    """Reconcile a work again that needs nothing now; new works and changes go first."""
    return RequeueAfter(seconds, RECHECK_PATIENCE_SECONDS)


def owner_reference(applied_work: Json, *, is_owned: bool) -> ownership.OwnerReference:
    """Return the owner reference to an AppliedManifestWork, to be set or removed."""
    metadata = applied_work["metadata"]
    return ownership.OwnerReference(name=metadata["name"], uid=metadata["uid"], is_owned=is_owned)
