"""Stage: one work at a time, from what is wanted to what is said about it.

Keys are names of records. One turn looks at the work and its record as they are now, does what the plan or the deletion
asks for, and hands the status over. Nothing else writes a work's status, so nothing can undo a deletion.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from pymaestro.agent.apply import Applier, Outcome, Task
from pymaestro.agent.arrivals import Arrivals
from pymaestro.agent.cleanup import Cleaner, Leftovers, finalizers_of
from pymaestro.agent.decide import (
    conditions,
    deletion,
    eviction,
    executor,
    identity,
    matching,
    ownership,
    plan,
    reporting,
)
from pymaestro.agent.observe import Observer, Place
from pymaestro.agent.records import RECORDS, Records
from pymaestro.agent.report import Reporter
from pymaestro.agent.works import Held, Works
from pymaestro.aio import clock as clocks
from pymaestro.aio.keyed import Again
from pymaestro.journal.emit import Journal
from pymaestro.journal.fields import Agent as Phrase
from pymaestro.journal.fields import Key, Logger
from pymaestro.kube.objects import Json
from pymaestro.wire import instant, options, status, work

_PENDING_SECONDS = 5.0
_LISTING_SECONDS = 0.5


class NotYet(Exception):
    """Something did not work and should be tried again soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How often a work is looked at when nothing happens."""

    resync: timedelta = timedelta(minutes=4)
    poll: timedelta = timedelta(seconds=10)
    """Where the watch does not stand."""
    executor: timedelta = timedelta(seconds=executor.RETRY_SECONDS)
    """How long the cluster's answer about what an executor may do is believed."""
    eviction_grace: timedelta = timedelta(minutes=60)
    arrival: timedelta = timedelta(seconds=10)
    """How long after the server's first answer the works it sends may take to arrive."""
    json_raw_max_bytes: int = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a turn works with."""

    works: Works
    records: Records
    observer: Observer
    applier: Applier
    cleaner: Cleaner
    reporter: Reporter
    arrivals: Arrivals
    is_crowded: Callable[[], bool]
    """Whether many works wait for their turn."""
    answered_at: Callable[[], instant.Timestamp | None]
    """When the server first told, since the agent started, which works there are."""


class Reconciler:
    """Takes turns."""

    def __init__(
        self,
        parts: Parts,
        *,
        identity: ownership.Identity,
        rhythm: Rhythm,
        clock: clocks.Clock,
        jitter: Callable[[], float],
        journal: Journal,
    ) -> None:
        self._parts = parts
        self._identity = identity
        self._rhythm = rhythm
        self._clock = clock
        self._jitter = jitter
        self._journal = journal
        self._unfolded: set[str] = set()
        """The uids of leaving records that list all there is."""

    async def turn(self, key: str) -> Again | None:
        """Look at the work and the record behind `key`, and do what is due."""
        record = self._parts.records.get(key)
        held = self._work_of(key)
        if held is None and (record is None or not self._is_ours(record)):
            self._rest(key)
            return None
        if (held is not None and held.is_leaving) or (record is not None and _is_leaving(record)):
            return await self._leave(key, held, record)
        if held is None:
            assert record is not None
            return await self._judge_stray(record)
        return await self._apply(key, held)

    def _is_ours(self, record: Json) -> bool:
        """Whether a record is this agent's to look after; others may live on the same cluster."""
        return (record.get("spec") or {}).get("agentID") == self._identity.agent_id

    def _rest(self, key: str) -> None:
        """Nothing of this key's work is left to look at."""
        self._parts.observer.track(key, ())
        self._parts.arrivals.wait(key, frozenset())

    def _work_of(self, key: str) -> Held | None:
        prefix = f"{self._identity.hub_hash}-"
        return self._parts.works.named(key[len(prefix) :]) if key.startswith(prefix) else None

    async def _apply(self, key: str, held: Held) -> Again | None:
        wanted = held.wanted
        if held.problem:
            self._refuse(held, held.problem)
            return None
        served = await self._parts.applier.serves(plan.kinds_of(wanted))
        unread = [each.problem for each in served.values() if isinstance(each, plan.NotServed)]
        if unread and held.status.manifests:
            # What was said of these kinds before is truer than that nobody knows them.
            raise NotYet(unread[0])
        match plan.plan(wanted.with_status(held.status), served=served):
            case plan.Refused(problem=problem):
                self._refuse(held, problem)
                return None
            case plan.Frozen():
                return await self._look_only(held)
            case plan.Plan() as planned:
                return await self._carry_out(key, held, planned, wanted=wanted)

    def _refuse(self, held: Held, problem: str) -> None:
        moment = self._moment(held)
        refused = conditions.work_refused(problem, generation=moment.generation)
        held.status = held.status.with_condition(refused, now=moment.now)
        self._parts.reporter.report(held)

    async def _carry_out(self, key: str, held: Held, planned: plan.Plan, *, wanted: work.ManifestWork) -> Again:
        """Apply all manifests of one wish, write down what is there, and say so."""
        if held.wanted is not wanted:
            return Again(0)
        created = [step.meta for step in planned.steps if step.meta.resource and step.is_owned and _writes(step)]
        coming = [_entry(meta, uid="") for meta in created]
        record = await self._welcome(await self._parts.records.ensure(wanted, coming=coming))
        if _is_leaving(record):
            # What it lists is to go first; a new record will own what is created then.
            return Again(0)
        await self._expect(key, planned)
        listed = {each.key for each in ownership.read_resources(record)}
        if held.followed is not wanted:
            record = await self._announce(record, coming)
        context = self._context(held)
        may_wait = held.followed is wanted and self._clock.monotonic() < held.followed_until
        outcomes = [
            await self._parts.applier.apply(
                Task(
                    step=step,
                    owner=_owner(record, is_wanted=step.is_owned),
                    executor=planned.executor,
                    generation=wanted.generation,
                    may_wait=may_wait,
                    is_new=identity.key_of(step.meta) not in listed,
                    context=context,
                )
            )
            for step in planned.steps
        ]
        # The work may have changed or left while we wrote: what we say then belongs to a wish nobody has any more.
        if held.wanted is wanted:
            self._say(held, outcomes)
        is_first = held.followed is None and not listed
        if is_first and self._parts.is_crowded() and _is_announced(record, coming):
            # Nothing is lost if the list waits until those have been served who have not even been looked at.
            held.followed = wanted
            return Again(_LISTING_SECONDS * (1 + self._jitter()))
        announced = ownership.read_announced(record) if held.followed is None else ()
        left = await self._record(record, outcomes, name=wanted.name, context=context, announced=announced)
        await self._watch(key, _places(outcomes), left.resources)
        if held.wanted is not wanted:
            return Again(0)
        if not may_wait:
            held.followed, held.followed_until = wanted, self._clock.monotonic() + self._resync_seconds()
        if any(outcome.should_retry for outcome in outcomes) or left.problems:
            raise NotYet(_problems(outcomes, left))
        return Again(self._next(held, outcomes, is_pending=bool(left.resources)))

    async def _announce(self, record: Json, coming: Sequence[ownership.AppliedResource]) -> Json:
        """Write down what is about to be created: whatever happens then, it will be found and ended with the work."""
        previous = ownership.read_resources(record)
        known = {each.key for each in [*previous, *ownership.read_announced(record)]}
        news = [each for each in coming if each.key not in known]
        return await self._parts.records.list_resources(record, [*previous, *news]) if news else record

    async def _expect(self, key: str, planned: plan.Plan) -> None:
        """Open the eyes before anything is written, so that nothing that happens afterwards is missed."""
        found = [await self._parts.applier.place(step.meta) for step in planned.steps]
        self._parts.observer.track(key, [place for place in found if place is not None])
        unknown = frozenset(step.meta.group for step in planned.steps if step.meta.kind and not step.meta.resource)
        self._parts.arrivals.wait(key, unknown - {""})

    async def _watch(self, key: str, places: Sequence[Place], leaving: Sequence[ownership.AppliedResource]) -> None:
        """Be woken by what happens to these objects, and by the end of those."""
        ending = [await self._parts.applier.place_of(each) for each in leaving]
        self._parts.observer.track(key, [*places, *ending])

    async def _look_only(self, held: Held) -> Again:
        """Report on a work that is complete: nothing is written any more."""
        entries = []
        moment = self._moment(held)
        for entry in held.status.manifests:
            place = await self._parts.applier.place(entry.resource_meta)
            live = await self._parts.applier.look(place) if place is not None else None
            observation = reporting.Observation(live=live)
            treatment = matching.treatment(held.wanted.manifest_configs, entry.resource_meta)
            entries.append(
                reporting.observed(
                    entry,
                    observation,
                    treatment=treatment,
                    moment=moment,
                    json_raw_max_bytes=self._rhythm.json_raw_max_bytes,
                )
            )
        held.status = reporting.after_looking(held.status, entries, moment=moment)
        self._parts.reporter.report(held)
        return Again(self._resync_seconds())

    def _say(self, held: Held, outcomes: Sequence[Outcome]) -> None:
        moment = self._moment(held)
        applied = reporting.after_applying(held.status, [each.result for each in outcomes], moment=moment)
        by_ordinal = {each.step.meta.ordinal: each for each in outcomes}
        entries = []
        for entry in applied.manifests:
            outcome = by_ordinal[entry.resource_meta.ordinal]
            entries.append(
                reporting.observed(
                    entry,
                    outcome.observation,
                    treatment=outcome.step.treatment,
                    moment=moment,
                    json_raw_max_bytes=self._rhythm.json_raw_max_bytes,
                )
            )
        held.status = reporting.after_looking(applied, entries, moment=moment)
        self._parts.reporter.report(held)

    async def _record(
        self,
        record: Json,
        outcomes: Sequence[Outcome],
        *,
        name: str,
        context: dict[str, object],
        announced: Sequence[ownership.AppliedResource],
    ) -> Leftovers:
        """Write down which objects the work has, and end those it no longer wants."""
        if _is_leaving(record):
            return Leftovers()
        current = [_recorded(each) for each in outcomes if each.place is not None and each.live is not None]
        unresolved = [
            ownership.Unresolved(group=meta.group, namespace=meta.namespace, name=meta.name)
            for meta in (each.step.meta for each in outcomes if each.place is None or each.problem)
        ]
        previous = [*ownership.read_resources(record), *announced]
        # What is wanted and not there needs no cleaning up.
        wanted = {identity.key_of(each.step.meta) for each in outcomes if each.place is not None and not each.problem}
        previous = [each for each in previous if each.key not in wanted]
        gone = ownership.untracked(previous, current, unresolved=unresolved)
        doubtful = [each for each in previous if each not in gone]
        if gone:
            # Written down before anything is deleted: a crash in between must not forget an object.
            record = await self._parts.records.list_resources(record, [*current, *doubtful, *gone])
        left = await self._parts.cleaner.clean_up(
            gone,
            owner=_owner(record, is_wanted=False),
            reason=deletion.reason_untracked(name),
            context=context,
        )
        await self._parts.records.list_resources(record, [*current, *doubtful, *left.resources])
        return left

    async def _leave(self, key: str, held: Held | None, record: Json | None) -> Again | None:
        """Take the next step of a deletion."""
        if record is not None and record["metadata"]["uid"] not in self._unfolded:
            record = await self._unfold(record)
        match deletion.next_stage(record):
            case deletion.Finish():
                self._rest(key)
                if held is not None and held.is_leaving:
                    self._say_deleted(held)
                return None
            case deletion.DeleteRecord():
                assert record is not None
                self._say_deleting(held)
                await self._parts.records.delete(record)
                return Again(0)
            case deletion.CleanUp(resources=resources):
                assert record is not None
                return await self._clean_up(key, held, record, resources=resources)
            case deletion.ReleaseRecord(patch=patch):
                assert record is not None
                return await self._release(key, held, record, patch=dict(patch))

    async def _unfold(self, record: Json) -> Json:
        """List what the record only announced, so that its end waits for that too."""
        announced = ownership.read_announced(record)
        if announced:
            listed = ownership.read_resources(record)
            record = await self._parts.records.list_resources(record, [*listed, *announced])
        self._unfolded.add(record["metadata"]["uid"])
        return record

    async def _release(self, key: str, held: Held | None, record: Json, *, patch: Json) -> Again:
        """Let the record go; it is gone unless somebody else holds it."""
        if patch:
            record = await self._parts.records.patch(record, patch)
        holders = finalizers_of(record)
        if not holders:
            self._unfolded.discard(record["metadata"]["uid"])
            self._parts.records.forget(key)
            return Again(0)
        itself = ownership.AppliedResource(group=ownership.GROUP, resource=RECORDS.plural, name=key)
        self._say_deleting(held, blockers=[deletion.Blocker(resource=itself, finalizers=tuple(holders))])
        return Again(_PENDING_SECONDS)

    async def _clean_up(
        self, key: str, held: Held | None, record: Json, *, resources: Sequence[ownership.AppliedResource]
    ) -> Again:
        name = str((record.get("spec") or {}).get("manifestWorkName") or key)
        await self._watch(key, (), resources)
        left = await self._parts.cleaner.clean_up(
            resources,
            owner=_owner(record, is_wanted=False),
            reason=deletion.reason_terminating(name),
            context={Key.LOGGER: Logger.APPLIED_WORK_FINALIZER, Key.APPLIED_MANIFEST_WORK_NAME: key},
        )
        if not left.resources:
            return await self._release(
                key, held, record, patch=ownership.finalizer_patch(record, is_wanted=False) or {}
            )
        await self._parts.records.list_resources(record, left.resources)
        self._journal.info(Phrase.PENDING_DELETION, {Key.NUM_OF_RESOURCES: len(left.resources)}, v=4)
        self._say_deleting(held, blockers=left.blockers)
        if left.problems:
            raise NotYet("; ".join(left.problems[:3]))
        return Again(_PENDING_SECONDS)

    def _say_deleting(self, held: Held | None, *, blockers: Sequence[deletion.Blocker] = ()) -> None:
        if held is None or not held.is_leaving:
            return
        condition = deletion.deleting(generation=held.wanted.generation, blockers=blockers)
        held.status = held.status.with_condition(condition, now=self._now())
        self._parts.reporter.report(held)

    def _say_deleted(self, held: Held) -> None:
        condition = deletion.deleted(consumer=held.wanted.namespace)
        held.status = held.status.with_condition(condition, now=self._now())
        self._parts.reporter.report(held)

    async def _judge_stray(self, record: Json) -> Again | None:
        """Decide about a record whose work we do not know."""
        grace = self._rhythm.eviction_grace
        now = self._now()
        answered_at = self._parts.answered_at()
        due = answered_at.seconds + self._rhythm.arrival.total_seconds() if answered_at is not None else 0
        if due > now.seconds:
            return Again(due - now.seconds)
        match eviction.judge(record, is_work_known=False, policy=self._policy(), now=now):
            case eviction.Mark(patch=patch):
                await self._parts.records.mark(record, dict(patch))
                return Again(min(grace.total_seconds(), self._resync_seconds()))
            case eviction.Look(at=at):
                return Again(max(0.5, at.seconds - now.seconds))
            case eviction.Evict():
                self._journal.info(
                    "AppliedManifestWork evicted after eviction grace period", {"agentID": self._identity.agent_id}
                )
                await self._parts.records.delete(record)
                return Again(0)
            case _:
                return Again(self._resync_seconds())

    async def _welcome(self, record: Json) -> Json:
        """Call off the eviction of a record whose work is known after all."""
        match eviction.judge(record, is_work_known=True, policy=self._policy(), now=self._now()):
            case eviction.Mark(patch=patch):
                return await self._parts.records.mark(record, dict(patch))
            case _:
                return record

    def _policy(self) -> eviction.Policy:
        return eviction.Policy(
            identity=self._identity,
            grace_seconds=int(self._rhythm.eviction_grace.total_seconds()),
            answered_at=self._parts.answered_at(),
        )

    def _next(self, held: Held, outcomes: Sequence[Outcome], *, is_pending: bool) -> float:
        seconds = max(0.0, held.followed_until - self._clock.monotonic())
        if is_pending:
            seconds = min(seconds, _PENDING_SECONDS)
        if any(outcome.is_denied for outcome in outcomes):
            seconds = min(seconds, self._rhythm.executor.total_seconds())
        seconds = min([seconds, *(outcome.wait_seconds for outcome in outcomes if outcome.wait_seconds)])
        watched = (self._parts.observer.look(place).is_watched for place in _places(outcomes))
        if not all(watched):
            seconds = min(seconds, self._rhythm.poll.total_seconds() * (1 + 0.9 * self._jitter()))
        return seconds

    def _resync_seconds(self) -> float:
        return self._rhythm.resync.total_seconds() * (1 + 0.5 * self._jitter())

    def _moment(self, held: Held) -> reporting.Moment:
        return reporting.Moment(generation=held.wanted.generation, now=self._now())

    def _now(self) -> instant.Timestamp:
        return instant.from_datetime(self._clock.now())

    def _context(self, held: Held) -> dict[str, object]:
        prefix = work.TRACING_PREFIX
        tracing = {name.removeprefix(prefix): value for name, value in held.wanted.tracing.items()}
        return {Key.LOGGER: Logger.WORK, Key.MANIFEST_WORK_NAME: held.name, **tracing}


def _owner(record: Json, *, is_wanted: bool) -> ownership.Owner:
    metadata = record["metadata"]
    return ownership.Owner(name=metadata["name"], uid=metadata["uid"], is_wanted=is_wanted)


def _recorded(outcome: Outcome) -> ownership.AppliedResource:
    assert outcome.live is not None
    return _entry(outcome.step.meta, uid=outcome.live["metadata"]["uid"])


def _entry(meta: status.ResourceMeta, *, uid: str) -> ownership.AppliedResource:
    return ownership.AppliedResource(
        group=meta.group,
        version=meta.version,
        resource=meta.resource,
        namespace=meta.namespace,
        name=meta.name,
        uid=uid,
    )


def _is_announced(record: Json, coming: Sequence[ownership.AppliedResource]) -> bool:
    """Whether a record that lists nothing yet announces exactly what is coming."""
    return {each.key for each in ownership.read_announced(record)} == {each.key for each in coming}


def _writes(step: plan.Step) -> bool:
    return not step.problem and step.treatment.update_strategy.type != options.READ_ONLY


def _places(outcomes: Sequence[Outcome]) -> list[Place]:
    return [outcome.place for outcome in outcomes if outcome.place is not None]


def _problems(outcomes: Sequence[Outcome], left: Leftovers) -> str:
    told = [outcome.condition.message for outcome in outcomes if outcome.should_retry]
    return "; ".join([*told, *left.problems][:3])


def _is_leaving(record: Json) -> bool:
    return bool(record["metadata"].get("deletionTimestamp"))
