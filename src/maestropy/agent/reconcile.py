"""Stage: one work at a time, from what is wanted to what is said about it.

Keys are names of records. One turn looks at the work and its record as they are now, does what the plan or the deletion
asks for, and hands the status over. Nothing else writes a work's status, so nothing can undo a deletion.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from maestropy.agent.apply import Outcome, Task
from maestropy.agent.cleanup import Leftovers
from maestropy.agent.decide import conditions, deletion, identity, matching, ownership, plan, reporting
from maestropy.agent.departure import Departure
from maestropy.agent.observe import Place
from maestropy.agent.strays import Strays
from maestropy.agent.turn import PENDING_SECONDS, NotYet, Parts, owner_of
from maestropy.agent.works import Held
from maestropy.aio.keyed import Again
from maestropy.journal.fields import Key, Logger
from maestropy.kube import freshness, objects
from maestropy.kube.objects import Json
from maestropy.kube.roster import Sighting
from maestropy.wire import options, status, work

_LISTING_SECONDS = 1.0
_LISTING_PATIENCE_SECONDS = 5.0
"""For how long works that nobody has heard of yet come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unlisted:
    """A new work that was applied and of which is told; only its record does not list it yet."""

    wanted: work.ManifestWork
    owner: str
    """The uid of the record that the objects name."""
    resources: tuple[ownership.AppliedResource, ...]
    seen: tuple[tuple[Place, Sighting], ...]


class Reconciler:
    """Takes turns."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._unlisted: dict[str, _Unlisted] = {}
        """What is to be listed when there is time."""
        self._departure = Departure(parts)
        self._strays = Strays(parts)

    @property
    def put_off(self) -> int:
        """How many works are still to be listed."""
        return len(self._unlisted)

    async def turn(self, key: str) -> Again | None:
        """Look at the work and the record behind `key`, and do what is due."""
        record = self._parts.records.get(key)
        held = self._work_of(key)
        unlisted = self._unlisted.pop(key, None)
        if held is None and (record is None or not self._is_ours(record)):
            self._parts.rest(key)
            return None
        if (held is not None and held.is_leaving) or (record is not None and objects.is_terminating(record)):
            return await self._departure.leave(key, held, record)
        if held is None:
            assert record is not None
            return await self._strays.judge(record)
        if unlisted is not None and record is not None and self._is_so(held, record, unlisted):
            return await self._list(held, record, unlisted)
        # Once is enough, however often its objects change meanwhile.
        return await self._apply(key, held, may_put_off=unlisted is None)

    def _is_ours(self, record: Json) -> bool:
        """Whether a record is this agent's to look after; others may live on the same cluster."""
        return (record.get("spec") or {}).get("agentID") == self._parts.identity.agent_id

    def _work_of(self, key: str) -> Held | None:
        prefix = f"{self._parts.identity.hub_hash}-"
        return self._parts.works.named(key[len(prefix) :]) if key.startswith(prefix) else None

    async def _apply(self, key: str, held: Held, *, may_put_off: bool) -> Again | None:
        wanted = held.wanted
        if held.problem:
            self._refuse(held, held.problem)
            return None
        wish = held.wish()
        served = await self._parts.applier.serves(plan.kinds_of(wish))
        unread = [each.problem for each in served.values() if isinstance(each, plan.NotServed)]
        if unread and held.status.manifests:
            # What was said of these kinds before is truer than that nobody knows them.
            raise NotYet(unread[0])
        match plan.plan(wish.with_status(held.status), served=served):
            case plan.Refused(problem=problem):
                self._refuse(held, problem)
                return None
            case plan.Frozen():
                return await self._look_only(held)
            case plan.Plan() as planned:
                return await self._carry_out(key, held, planned, wanted=wanted, may_put_off=may_put_off)

    def _refuse(self, held: Held, problem: str) -> None:
        moment = self._moment(held)
        refused = conditions.work_refused(problem, generation=moment.generation)
        held.status = held.status.with_condition(refused, now=moment.now)
        self._parts.reporter.report(held)

    async def _carry_out(
        self, key: str, held: Held, planned: plan.Plan, *, wanted: work.ManifestWork, may_put_off: bool
    ) -> Again:
        """Apply all manifests of one wish, write down what is there, and say so."""
        if held.followed is not wanted:
            # What cannot be told yet need not be done yet: what it takes is better spent on those already done.
            await self._parts.reporter.keep_pace()
        if held.wanted is not wanted:
            return Again(0)
        created = [step.meta for step in planned.steps if step.meta.resource and step.is_owned and _writes(step)]
        coming = [_entry(meta, uid="") for meta in created]
        record = await self._strays.welcome(await self._parts.records.ensure(wanted, coming=coming))
        if objects.is_terminating(record):
            # What it lists is to go first; a new record will own what is created then.
            return Again(0)
        await self._expect(key, planned)
        listed = {each.key for each in ownership.read_resources(record)}
        if held.followed is not wanted:
            record = await self._announce(record, coming)
        context = self._context(held)
        may_wait = held.followed is wanted and self._parts.clock.monotonic() < held.followed_until
        outcomes = [
            await self._parts.applier.apply(
                Task(
                    step=step,
                    owner=owner_of(record, is_wanted=step.is_owned),
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
        is_new = may_put_off and held.followed is None and not listed
        is_well = all(outcome.is_well for outcome in outcomes)
        if is_new and is_well and self._parts.is_crowded() and _is_announced(record, coming):
            # Nothing is lost if the list waits until those have been served of whom nothing has been said yet. The
            # wish does not count as followed until then: should another one come, what was announced has to go.
            self._unlisted[key] = _unlisted(wanted, record, outcomes)
            return Again(_LISTING_SECONDS * (1 + self._parts.jitter()), _LISTING_PATIENCE_SECONDS)
        announced = ownership.read_announced(record) if held.followed is None else ()
        left = await self._record(record, outcomes, name=wanted.name, context=context, announced=announced)
        await self._parts.watch(key, _places(outcomes), left.resources)
        if held.wanted is not wanted:
            return Again(0)
        if not may_wait:
            self._is_followed(held)
        if any(outcome.should_retry for outcome in outcomes) or left.problems:
            raise NotYet(_problems(outcomes, left))
        return Again(self._next(held, outcomes, is_pending=bool(left.resources)))

    def _is_so(self, held: Held, record: Json, unlisted: _Unlisted) -> bool:
        """Whether wish, record and objects are still as they were when it was applied."""
        is_same = held.wanted is unlisted.wanted and objects.uid(record) == unlisted.owner
        is_current = self._parts.observer.is_current
        return is_same and all(is_current(place, shown) for place, shown in unlisted.seen)

    async def _list(self, held: Held, record: Json, unlisted: _Unlisted) -> Again:
        """Write down what a new work has; all else was done when it was applied."""
        await self._parts.records.list_resources(record, unlisted.resources)
        self._is_followed(held)
        return Again(max(0.0, held.followed_until - self._parts.clock.monotonic()))

    def _is_followed(self, held: Held) -> None:
        held.followed = held.wanted
        held.followed_until = self._parts.clock.monotonic() + self._parts.resync_seconds()

    async def _announce(self, record: Json, coming: Sequence[ownership.AppliedResource]) -> Json:
        """Write down what is about to be created: whatever happens then, it will be found and ended with the work."""
        previous = ownership.read_resources(record)
        known = {each.key for each in [*previous, *ownership.read_announced(record)]}
        news = [each for each in coming if each.key not in known]
        return await self._parts.records.list_resources(record, [*previous, *news]) if news else record

    async def _expect(self, key: str, planned: plan.Plan) -> None:
        """Open the eyes before anything is written, so that nothing that happens afterwards is missed."""
        found = [await self._parts.applier.place(step.meta) for step in planned.steps]
        self._parts.observer.expect(key, [place for place in found if place is not None])
        unknown = frozenset(step.meta.group for step in planned.steps if step.meta.kind and not step.meta.resource)
        self._parts.arrivals.wait(key, unknown - {""})

    async def _look_only(self, held: Held) -> Again:
        """Report on a work that is complete: nothing is written any more."""
        entries = []
        moment, configs = self._moment(held), held.wish().manifest_configs
        for entry in held.status.manifests:
            place = await self._parts.applier.place(entry.resource_meta)
            live = await self._parts.applier.look(place) if place is not None else None
            observation = reporting.Observation(live=live)
            treatment = matching.treatment(configs, entry.resource_meta)
            entries.append(
                reporting.observed(
                    entry,
                    observation,
                    treatment=treatment,
                    moment=moment,
                    json_raw_max_bytes=self._parts.rhythm.json_raw_max_bytes,
                )
            )
        held.status = reporting.after_looking(held.status, entries, moment=moment)
        self._parts.reporter.report(held)
        return Again(self._parts.resync_seconds())

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
                    json_raw_max_bytes=self._parts.rhythm.json_raw_max_bytes,
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
        if objects.is_terminating(record):
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
            owner=owner_of(record, is_wanted=False),
            reason=deletion.reason_untracked(name),
            context=context,
        )
        await self._parts.records.list_resources(record, [*current, *doubtful, *left.resources])
        return left

    def _next(self, held: Held, outcomes: Sequence[Outcome], *, is_pending: bool) -> float:
        seconds = max(0.0, held.followed_until - self._parts.clock.monotonic())
        if is_pending:
            seconds = min(seconds, PENDING_SECONDS)
        if any(outcome.is_denied for outcome in outcomes):
            seconds = min(seconds, self._parts.rhythm.executor.total_seconds())
        seconds = min([seconds, *(outcome.wait_seconds for outcome in outcomes if outcome.wait_seconds)])
        watched = (self._parts.observer.look(place).is_watched for place in _places(outcomes))
        if not all(watched):
            seconds = min(seconds, self._parts.rhythm.poll.total_seconds() * (1 + 0.9 * self._parts.jitter()))
        return seconds

    def _moment(self, held: Held) -> reporting.Moment:
        return reporting.Moment(generation=held.wanted.generation, now=self._parts.now())

    def _context(self, held: Held) -> dict[str, object]:
        prefix = work.TRACING_PREFIX
        tracing = {name.removeprefix(prefix): value for name, value in held.wanted.tracing.items()}
        return {Key.LOGGER: Logger.WORK, Key.MANIFEST_WORK_NAME: held.name, **tracing}


def _unlisted(wanted: work.ManifestWork, record: Json, outcomes: Sequence[Outcome]) -> _Unlisted:
    return _Unlisted(
        wanted=wanted,
        owner=objects.uid(record),
        resources=tuple(_recorded(each) for each in outcomes),
        seen=tuple((each.place, freshness.sighting(each.live)) for each in outcomes if each.place and each.live),
    )


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
