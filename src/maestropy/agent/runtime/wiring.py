"""Wire the controllers of one agent: what triggers a reconcile, and in which order they start."""

import asyncio
import contextlib
import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from maestropy.agent import crds
from maestropy.agent.controllers.applier import Applier
from maestropy.agent.controllers.connection import ServerConnection
from maestropy.agent.controllers.crd_watcher import CrdWatcher
from maestropy.agent.controllers.evaluation import Evaluator
from maestropy.agent.controllers.inbox import InboxCallbacks, ServerInbox
from maestropy.agent.controllers.object_deleter import ObjectDeleter
from maestropy.agent.controllers.reconcile_context import (
    RECHECK_PATIENCE_SECONDS,
    ReconcileContext,
    ReconcileIntervals,
)
from maestropy.agent.controllers.reconciler import Reconciler
from maestropy.agent.controllers.reporter import StatusReporter
from maestropy.agent.controllers.watcher import ObjectWatcher, WatchCallbacks
from maestropy.agent.decide import data_safety, eviction, ownership, plan, slow_lanes
from maestropy.agent.expressions.budget import Limit
from maestropy.agent.state import applied_manifest_works
from maestropy.agent.state.access_reviews import ExecutorAccess
from maestropy.agent.state.data_safety import DataSafety
from maestropy.agent.state.drift_backoff import DriftBackoff
from maestropy.agent.state.expression_throttle import ExpressionThrottle
from maestropy.agent.state.slow_requests import SlowRequests
from maestropy.agent.state.work_cache import CachedWork, WorkCache
from maestropy.agent.telemetry.work_spans import WorkSpans
from maestropy.aio import backoff, checks, keyed_queue
from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import AgentPhrase
from maestropy.kube import errors, objects
from maestropy.kube.client import KubeClient
from maestropy.kube.discovery import Discovery
from maestropy.transport import port
from maestropy.wire import resync, timestamps
from maestropy.wire.events import event

_HOLD_REPORT_SECONDS = 1.0
_ANSWERS_REMEMBERED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDependencies:
    """The dependencies of an agent."""

    client: KubeClient
    transport: port.Transport
    journal: Journal
    jitter: Callable[[], float]
    clock: clocks.Clock
    new_id: Callable[[], str]
    meter: keyed_queue.QueueMeter | None = None
    """Counts reconciles."""
    on_status_resynced: Callable[[str, float], None] = lambda _source, _seconds: None
    """Called when a status resync request is answered, with its source and the duration in seconds."""
    on_budget_exceeded: Callable[[Limit], None] = lambda _limit: None
    """Called when the expressions of a work exceeded a limit."""
    on_database_time: Callable[[float], None] = lambda _seconds: None
    """Called with how far this host is ahead of the server's database, in seconds, when the server says the time."""
    spans: WorkSpans = field(default_factory=WorkSpans)
    on_held: Callable[[Mapping[data_safety.HoldReason, int]], None] = lambda _counts: None
    """Called with the number of held works by reason when it changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The configuration of an agent."""

    consumer: str
    client_id: str
    workers: int = 10
    intervals: ReconcileIntervals = field(default_factory=ReconcileIntervals)
    install_crds: bool = True
    orphan_limit_percent: int = data_safety.DEFAULT_LIMIT_PERCENT
    """More orphans than this share of all works, and more than a few, are not evicted."""


class Agent:
    """One agent for one consumer on one cluster."""

    def __init__(self, dependencies: AgentDependencies, config: AgentConfig) -> None:
        self._dependencies = dependencies
        self._config = config
        self._journal = dependencies.journal
        self._identity = _identity(dependencies.transport.address)
        self.works = WorkCache()
        self.data_safety = DataSafety(
            list_works=self._list_works,
            limit_percent=config.orphan_limit_percent,
            monotonic=dependencies.clock.monotonic,
            new_id=dependencies.new_id,
        )
        # A failing work is retried at least as often as a healthy one is resynced.
        backoff_after_failures = keyed_queue.Backoff(cap_seconds=config.intervals.resync.total_seconds())
        self._slow_requests = SlowRequests(lanes_of=self._lanes_of, monotonic=dependencies.clock.monotonic)
        self._queue: keyed_queue.KeyedQueue[str] = keyed_queue.KeyedQueue(
            self._reconcile,
            workers=config.workers,
            backoff=backoff_after_failures,
            on_error=self._on_error,
            meter=dependencies.meter,
            gate=self._slow_requests,
        )
        self.connection = ServerConnection(
            dependencies.transport,
            journal=dependencies.journal,
            on_event=self._receive,
            resync_request=self._spec_resync_request,
            delays=self._delays,
            on_resynced=self._on_resynced,
        )
        self._resynced_at: timestamps.Timestamp | None = None
        """When the server first answered a spec resync in this run; before that a missing work means nothing."""
        self._answers: deque[float] = deque(maxlen=_ANSWERS_REMEMBERED)
        """When the server answered spec resyncs over the current connection, by the monotonic clock."""
        self._reporter = StatusReporter(
            self.connection,
            client_id=config.client_id,
            clock=dependencies.clock,
            new_id=dependencies.new_id,
            on_deleted=self._forget,
            spans=dependencies.spans,
        )
        self._inbox = ServerInbox(
            self.works,
            consumer=config.consumer,
            journal=dependencies.journal,
            callbacks=InboxCallbacks(
                reconcile=self._reconcile_now,
                report_again=self._reporter.report_again,
                note_stored=self._note_stored,
                withdraw=self.connection.withdraw,
                on_orphan=self.data_safety.note_orphan,
                on_status_resynced=dependencies.on_status_resynced,
                resync=self.connection.request_resync,
            ),
            clock=dependencies.clock,
            spans=dependencies.spans,
        )
        self._applied_works = applied_manifest_works.AppliedWorks(
            dependencies.client,
            identity=self._identity,
            consumer=config.consumer,
            callbacks=applied_manifest_works.AppliedWorkCallbacks(
                changed=self._queue.add, recovered=self._queue.retry_failed
            ),
            jitter=dependencies.jitter,
            journal=dependencies.journal,
        )
        self._reconciler: Reconciler | None = None
        self._watcher: ObjectWatcher | None = None
        self._evaluator: Evaluator | None = None
        self._warned_of: frozenset[str] = frozenset()
        """The other consumers of this cluster that the log names."""

    @property
    def pending_count(self) -> int:
        """Number of works being reconciled or queued, and of lists not written yet."""
        return len(self._queue) + (self._reconciler.deferred_count if self._reconciler is not None else 0)

    @property
    def is_ready(self) -> bool:
        """Whether the AppliedManifestWorks are listed and the server is connected."""
        return self._applied_works.synced.is_set() and self.connection.is_connected

    def dependencies(self) -> list[checks.Check]:
        """Return the API server and the server or broker, each with the reason why it is missing."""
        cluster = checks.ok("cluster")
        if not self._applied_works.synced.is_set():
            problem = self._applied_works.problem or "not listed yet"
            cluster = checks.failed("cluster", f"AppliedManifestWorks: {problem}")
        connection = self.connection
        if connection.is_connected:
            return [cluster, checks.ok("server")]
        reason = connection.problem or connection.last_error or "not connected yet"
        return [cluster, checks.failed("server", reason)]

    def readiness_note(self) -> str:
        """Return what operators should know of an agent that is ready; empty if nothing."""
        return "; ".join(note for note in (self.data_safety.summary(), self._other_consumers_note()) if note)

    async def run(self) -> None:
        """Run until cancelled."""
        if self._config.install_crds:
            await self._install_crds()
        async with asyncio.TaskGroup() as group:
            self._reconciler = self._build(group)
            group.create_task(self._applied_works.run(), name="applied works")
            await self._applied_works.synced.wait()
            self._journal.info(AgentPhrase.CACHES_SYNCED)
            self._warn_of_others()
            self._warn_of_other_agents()
            group.create_task(self._queue.run(), name="reconcile")
            group.create_task(self.connection.run(), name="server connection")
            group.create_task(self._report_holds(), name="report data-safety holds")

    async def _install_crds(self) -> None:
        """Install the AppliedManifestWork CRD, with retries."""
        waits = self._delays()
        while True:
            try:
                await crds.install(self._dependencies.client, journal=self._journal)
            except errors.Forbidden as error:
                # An operator may install the CRD instead. Without it the watch of AppliedManifestWorks logs its
                # failures.
                self._journal.warning(AgentPhrase.CRD_FORBIDDEN, err=error)
            except errors.KubeError as error:
                self._journal.error(AgentPhrase.CRD_FAILED, err=error)
                await asyncio.sleep(next(waits))
                continue
            return

    def _build(self, group: asyncio.TaskGroup) -> Reconciler:
        dependencies = self._dependencies
        watcher = self._watcher = ObjectWatcher(
            dependencies.client,
            callbacks=WatchCallbacks(self._queue.add, unwatched=self._poll_soon, requesting=self._slow_requests.during),
            jitter=dependencies.jitter,
            journal=self._journal,
            group=group,
            is_ours=functools.partial(ownership.is_owned_by_hub, hub=self._identity.hub_hash),
        )
        intervals, monotonic = self._config.intervals, dependencies.clock.monotonic
        discovery = Discovery(dependencies.client, monotonic=monotonic)
        evaluator = self._evaluator = Evaluator(
            ExpressionThrottle(monotonic=monotonic, max_seconds=intervals.resync.total_seconds()),
            journal=self._journal,
            on_exceeded=dependencies.on_budget_exceeded,
        )
        applier = Applier(
            dependencies.client,
            discovery=discovery,
            watcher=watcher,
            executor_access=ExecutorAccess(
                dependencies.client, monotonic=monotonic, seconds=intervals.executor.total_seconds()
            ),
            drift_backoff=DriftBackoff(monotonic=monotonic, max_seconds=intervals.resync.total_seconds()),
            journal=self._journal,
        )

        def on_new_kind(key: str) -> None:
            discovery.invalidate()
            # The work waited for this kind; its earlier failures do not count.
            self._queue.forget(key)
            self._queue.add(key)

        crd_watcher = CrdWatcher(
            dependencies.client, on_new_kind=on_new_kind, jitter=dependencies.jitter, journal=self._journal, group=group
        )
        context = ReconcileContext(
            works=self.works,
            applied_works=self._applied_works,
            watcher=watcher,
            applier=applier,
            object_deleter=ObjectDeleter(applier, journal=self._journal),
            reporter=self._reporter,
            crd_watcher=crd_watcher,
            evaluator=evaluator,
            is_queue_busy=lambda: len(self._queue) > 1,
            resynced_at=lambda: self._resynced_at,
            is_absence_confirmed=self._is_absence_confirmed,
            request_resync=self.connection.request_resync,
            safety=self.data_safety,
            identity=self._identity,
            intervals=intervals,
            clock=dependencies.clock,
            jitter=dependencies.jitter,
            journal=self._journal,
            spans=dependencies.spans,
        )
        return Reconciler(context)

    def _receive(self, received: event.CloudEvent) -> None:
        previous = self.data_safety.database
        ends_resync = self.data_safety.receive(received)
        if previous and self.data_safety.database != previous:
            # An eviction that has begun for the previous database must not go on.
            for name in self._applied_works:
                self._queue.add(name)
            # A broker may deliver a spec of the previous database after the resync that would have named its work.
            self.connection.request_resync()
        adopted = self.data_safety.adopted_by(received)
        if adopted:
            fields = {LogKey.HOLD_ID: self.data_safety.hold_id, LogKey.COUNT: len(adopted)}
            self._journal.warning(AgentPhrase.HOLD_ADOPTED, fields)
        for name in adopted:
            self._queue.forget(name)
            self._queue.add(name)
        if ends_resync:
            self._inbox.note_resynced(received)
            self._judge_orphans()
        else:
            self._inbox.receive(received)

    def _note_stored(self, sequence_ids: Iterable[str], database_ms: int) -> None:
        dependencies = self._dependencies
        dependencies.on_database_time(dependencies.clock.epoch() - database_ms / 1000)
        ahead_ms = self._reporter.note_stored(sequence_ids, database_ms=database_ms)
        if ahead_ms:
            seconds = f"{ahead_ms / 1000:.0f} s ahead of the database; correct the clock"
            self._journal.warning(AgentPhrase.CLOCK_AHEAD, {LogKey.REASON: seconds})

    def _list_works(self) -> dict[str, bool]:
        return self._applied_works.own(lambda name: self.works.by_name(name) is not None)

    def _judge_orphans(self) -> None:
        """Decide about the works that the server does not have, now that its answer to a spec resync is complete."""
        orphans: dict[str, data_safety.SpecOrigin | None] = {}
        for name, has_work in self._list_works().items():
            applied_work = None if has_work else self._applied_works.get(name)
            if applied_work is not None and not objects.is_terminating(applied_work):
                orphans[name] = data_safety.read_origin(applied_work)
        self.data_safety.judge(orphans)

    async def _report_holds(self) -> None:
        """Report holds to the log, the metrics and the server, and ask whether an operator has ended them."""
        safety, poll = self.data_safety, self._config.intervals.hold_poll.total_seconds()
        reported = ""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(poll * (1 + 0.2 * self._dependencies.jitter()) if safety.must_ask else None):
                    await safety.changed.wait()
            if safety.changed.is_set():
                # One report for all works that are held at about the same time.
                await asyncio.sleep(_HOLD_REPORT_SECONDS)
            safety.changed.clear()
            self._dependencies.on_held(safety.counts())
            summary = safety.summary()
            if summary and summary != reported:
                self._journal.warning(AgentPhrase.HOLD, {LogKey.REASON: summary, LogKey.DATABASE_ID: safety.database})
            elif reported and not summary:
                self._journal.info(AgentPhrase.HOLD_ENDED)
            if safety.must_ask or summary != reported or safety.is_held_at_server:
                self.connection.request_resync()
            reported = summary

    def _reconcile_now(self, cached: CachedWork) -> None:
        key = self._key(cached)
        # Failures of the previous spec do not count for the new one.
        self._queue.forget(key)
        if cached.reconciled is None and not cached.is_deleting and self._is_applied(key, cached):
            self._queue.add_behind(key, max_delay_seconds=RECHECK_PATIENCE_SECONDS)
        else:
            self._queue.add(key)

    def _is_applied(self, key: str, cached: CachedWork) -> bool:
        """Whether this spec was applied before the agent started, so that it is only checked again."""
        applied_work = self._applied_works.get(key)
        if applied_work is None or not ownership.applied_resources(applied_work):
            return False
        return data_safety.is_same_spec(data_safety.read_origin(applied_work), cached.origin)

    async def _reconcile(self, key: str) -> keyed_queue.RequeueAfter | None:
        assert self._reconciler is not None
        return await self._reconciler.reconcile(key)

    def _key(self, cached: CachedWork) -> str:
        return self._applied_works.name_of(cached.name)

    def _lanes_of(self, key: str) -> slow_lanes.Lanes:
        """Return which objects a work needs requests about: those of its spec, and those that it tracks."""
        tracked = self._watcher.refs_of(key) if self._watcher is not None else ()
        cached = self.works.by_name(self._work_name(key))
        stated = plan.lanes_of(cached.with_spec()) if cached is not None and cached.reconciled is None else frozenset()
        return stated.union(ref.lane for ref in tracked)

    def _forget(self, cached: CachedWork) -> None:
        self.works.drop(cached)
        if self.works.by_name(cached.name) is None:
            self._queue.forget(self._key(cached))
            if self._evaluator is not None:
                self._evaluator.forget(self._key(cached))

    def _poll_soon(self, key: str) -> None:
        seconds = self._config.intervals.poll.total_seconds() * (1 + 0.9 * self._dependencies.jitter())
        self._queue.add_after(key, seconds, max_delay_seconds=RECHECK_PATIENCE_SECONDS)

    def _is_absence_confirmed(self) -> bool:
        return eviction.is_absence_confirmed(
            self._answers,
            is_connected=self.connection.is_connected,
            now=self._dependencies.clock.monotonic(),
            arrival_seconds=self._config.intervals.spec_arrival.total_seconds(),
        )

    def _warn_of_others(self) -> None:
        """Warn once of AppliedManifestWorks that this agent does not manage."""
        consumers = self._applied_works.other_consumers()
        if not consumers.keys() <= self._warned_of:
            fields = {LogKey.COUNT: sum(consumers.values()), LogKey.REASON: self._other_consumers_note()}
            self._journal.warning(AgentPhrase.OTHER_CONSUMERS, fields)
        self._warned_of |= consumers.keys()

    def _warn_of_other_agents(self) -> None:
        count = self._applied_works.other_agent_count()
        if count:
            reason = (
                "the identity is a hash of the server address as it is written; if it was written differently before, "
                "this agent neither holds nor evicts what it applied then"
            )
            self._journal.warning(AgentPhrase.OTHER_AGENTS, {LogKey.COUNT: count, LogKey.REASON: reason})

    def _other_consumers_note(self) -> str:
        consumers = self._applied_works.other_consumers()
        if not consumers:
            return ""
        names = ", ".join(f"{name} {count}" for name, count in sorted(consumers.items()))
        return f"AppliedManifestWorks of other consumers under this server address, left to their agents: {names}"

    def _on_resynced(self) -> None:
        self._warn_of_others()
        self._answers.append(self._dependencies.clock.monotonic())
        if self._resynced_at is None:
            self._resynced_at = self._now()
            for name in self._applied_works:
                self._queue.add_behind(name, max_delay_seconds=RECHECK_PATIENCE_SECONDS)

    def _on_error(self, key: str, error: Exception) -> None:
        # The error is in the conditions already; this record explains the retry.
        name = key.partition("-")[2]
        fields = {LogKey.LOGGER: Logger.WORK_UNHANDLED, LogKey.KEY: name}
        if isinstance(error, errors.Conflict):
            self._journal.info(AgentPhrase.SYNC_FAILED, {**fields, LogKey.REASON: str(error)}, v=2)
        else:
            self._journal.error(AgentPhrase.SYNC_FAILED, fields, err=error)

    def _spec_resync_request(self) -> event.CloudEvent:
        if not self.connection.is_connected:
            # The first request of a connection: what an earlier server answered does not count any more.
            self._answers.clear()
        request = resync.SpecResyncRequest(
            versions=self.works.versions(),
            event_ids=self.works.event_ids(),
            states_hold=self.data_safety.is_judged,
            hold=self.data_safety.report(self._work_name),
        )
        request_id = self._dependencies.new_id()
        self.data_safety.note_request(request_id)
        self._inbox.note_resync(request_id)
        return event.CloudEvent(
            id=request_id,
            source=self._config.client_id,
            type=event.SPEC_RESYNC_REQUEST,
            time=self._now(),
            extensions={event.CLUSTER_NAME: self._config.consumer, event.ORIGINAL_SOURCE: ""},
            data=resync.encode_request(request),
        )

    def _work_name(self, applied_work_name: str) -> str:
        return applied_work_name.removeprefix(f"{self._identity.hub_hash}-")

    def _now(self) -> timestamps.Timestamp:
        return timestamps.from_datetime(self._dependencies.clock.now())

    def _delays(self) -> Iterator[float]:
        return backoff.delays(base=0.5, factor=2, cap=15.0, jitter=self._dependencies.jitter)


def _identity(address: str) -> ownership.AgentIdentity:
    hub_hash = ownership.hub_hash(address)
    return ownership.AgentIdentity(hub_hash=hub_hash, agent_id=hub_hash)
