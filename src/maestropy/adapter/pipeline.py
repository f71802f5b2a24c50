"""From an event to a report: which effects, in which order. A generator, so that it runs on anything, or on nothing.

It yields effects, is sent their answers and is thrown their failures; it ends with an outcome. It reads no clock, opens
no connection and can be replayed.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.adapter import conditions, reports, stamping
from maestropy.adapter.effects import Answer, Apply, Await, Delete, Effect, Fetch, Locate, Query, Tell
from maestropy.adapter.errors import NotYet, Unreadable
from maestropy.adapter.event import Event
from maestropy.adapter.failure import Failure, judge
from maestropy.adapter.report import Report
from maestropy.adapter.resource import Resource
from maestropy.adapter.wish import Handler, Hold, Reading, Seen, Wish, available_by_itself
from maestropy.sdk.errors import AlreadyExists, Conflict, NotFound
from maestropy.sdk.work import Work
from maestropy.wire.status import TRUE

_TRIES_AMONG_OTHERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an event ended."""

    report: Report | None
    """What was told; None if there was nobody left to tell it about."""
    failure: Failure | None = None

    @property
    def comes_again(self) -> bool:
        """Whether the event should be brought again."""
        return self.failure is not None and self.failure.is_transient


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Who is doing this, and with how much patience."""

    adapter: str
    handler: Handler
    wait_seconds: float = 0.0
    """How long to wait for available, or for the end of a deletion; 0 reports what is seen now."""
    settle_seconds: float = 3.0
    """How long to wait, if not for available, for what was just sent to be applied."""
    tells_transient: bool = False
    """Whether a failure that may pass is reported, because nobody will bring the event again."""


Pipeline = Generator[Effect, Answer, Outcome]


def run(event: Event, part: Part) -> Pipeline:
    """Do all that one event asks for."""
    resource: Resource | None = None
    try:
        found = yield Fetch(event)
        if found is None:
            return Outcome(report=None)
        assert isinstance(found, Resource)
        resource = found
        report = yield from (_removal(resource, part) if resource.is_deleting else _wish(event, resource, part))
    except Exception as error:  # noqa: BLE001 - whatever failed, in the world or in the adapter's code, is judged
        failure = judge(error)
        about = resource or Resource(id=event.resource_id, kind=event.kind, generation=event.generation)
        report = reports.of_failure(part.adapter, about, failure=failure)
        if failure.is_transient and not part.tells_transient:
            return Outcome(report=report, failure=failure)
        return (yield from _told(event, about, report=report, failure=failure))
    return (yield from _told(event, resource, report=report, failure=None))


def _told(event: Event, resource: Resource, *, report: Report, failure: Failure | None) -> Pipeline:
    """Send the report; a report that nobody took is a failure of its own."""
    try:
        yield Tell(event, resource, report)
    except NotFound:
        # The resource went while we worked; the works of a resource that is gone go with its deletion.
        return Outcome(report=report, failure=failure)
    except Exception as error:  # noqa: BLE001 - judged like any other
        unheard = judge(error)
        # What nobody heard must come again, also when it was to be told only once.
        return Outcome(report=report, failure=unheard if unheard.is_transient else failure or unheard)
    return Outcome(report=report, failure=failure)


def _wish(event: Event, resource: Resource, part: Part) -> Generator[Effect, Answer, Report]:
    answer = part.handler(event, resource)
    if isinstance(answer, Hold):
        return reports.of_hold(part.adapter, resource, answer)
    if isinstance(answer, Reading):
        return reports.of_reading(part.adapter, resource, works=(), reading=answer)
    wish = answer if isinstance(answer, Wish) else Wish(answer)
    wanted = [stamping.stamped(each, adapter=part.adapter, resource=resource) for each in wish.all_works]
    labels = stamping.labels_of(part.adapter, resource)
    stored = yield from _query(Query(labels=labels))
    place = yield from _place(wish, wanted, stored=stored, resource=resource)
    applied: list[Work] = []
    for each in wanted:
        where = next((known.consumer for known in stored if known.name == each.name), place)
        found = next((known for known in stored if known.name == each.name), None)
        ensured = yield from _ensure(each, stored=found, consumer=where)
        if isinstance(ensured, stamping.Foreign):
            return reports.of_foreign(part.adapter, resource, work=each.name, foreign=ensured)
        applied.append(ensured)
    names = {each.name for each in wanted}
    for each in stored:
        if each.name not in names and not each.is_deleting:
            yield Delete(name=each.name, consumer=each.consumer, reason="the adapter no longer wants it")
    seconds = part.wait_seconds or part.settle_seconds
    is_reached = _is_available if part.wait_seconds > 0 else _is_settled
    if applied and seconds > 0 and not is_reached(applied, wish):
        applied = yield from _awaited(
            labels, applied, is_reached=lambda works: is_reached(works, wish), seconds=seconds
        )
    return reports.of_reading(part.adapter, resource, works=applied, reading=_reading(applied, wish=wish))


def _removal(resource: Resource, part: Part) -> Generator[Effect, Answer, Report]:
    """Remove everything this adapter ever made for the resource; finalized only when it is seen to be gone."""
    labels = stamping.labels_of(part.adapter, resource)
    left = yield from _query(Query(labels=labels))
    for each in left:
        if not each.is_deleting:
            yield Delete(name=each.name, consumer=each.consumer, reason=f"{resource.kind} {resource.id} is deleted")
    if left:
        seconds = part.wait_seconds or part.settle_seconds
        left = _works((yield Await(labels=labels, until=lambda found: not found, seconds=seconds)))
    return reports.of_removal(part.adapter, resource, left=left)


def _place(
    wish: Wish, wanted: Sequence[Work], *, stored: Sequence[Work], resource: Resource
) -> Generator[Effect, Answer, str]:
    """Return the cluster for new works: where their siblings are, so that a choice made once is kept."""
    if not wanted or all(any(known.name == each.name for known in stored) for each in wanted):
        return ""
    if stored:
        return stamping.newest(stored).consumer
    if wish.consumer:
        return wish.consumer
    found = yield Locate(resource)
    assert isinstance(found, str)
    return found


def _ensure(wanted: Work, *, stored: Work | None, consumer: str) -> Generator[Effect, Answer, Work | stamping.Foreign]:
    for _ in range(_TRIES_AMONG_OTHERS - 1):
        verdict = stamping.verdict(stored, wanted)
        try:
            return (yield from _carried_out(verdict, wanted, stored=stored, consumer=consumer))
        except (AlreadyExists, Conflict):
            if isinstance(verdict, stamping.Wait):
                raise
        # Somebody was faster, or our own try of a moment ago was: look whose it is and decide again.
        stored = next(iter((yield from _query(Query(consumer=consumer, name=wanted.name)))), None)
    return (yield from _carried_out(stamping.verdict(stored, wanted), wanted, stored=stored, consumer=consumer))


def _carried_out(
    verdict: stamping.Verdict, wanted: Work, *, stored: Work | None, consumer: str
) -> Generator[Effect, Answer, Work | stamping.Foreign]:
    match verdict:
        case stamping.Foreign():
            return verdict
        case stamping.Skip():
            assert stored
            return stored
        case stamping.Create():
            return _work((yield Apply(work=wanted, consumer=consumer, reason="there is none yet")))
        case stamping.Patch(reason):
            assert stored
            change = stamping.patch_for(wanted)
            return _work(
                (yield Apply(work=wanted, consumer=consumer, patch=change, version=stored.version, reason=reason))
            )
        case stamping.Wait():
            raise Conflict(
                "an earlier one is still being deleted",
                doing=f"create work {consumer}/{wanted.name}",
                advice="it is made when the agent has confirmed the end of the other",
            )


def _awaited(
    labels: Mapping[str, str], applied: Sequence[Work], *, is_reached: Callable[[Sequence[Work]], bool], seconds: float
) -> Generator[Effect, Answer, list[Work]]:
    names = [each.name for each in applied]

    def until(found: Sequence[Work]) -> bool:
        mine = _chosen(found, names)
        return len(mine) == len(names) and is_reached(mine)

    found = _chosen(_works((yield Await(labels=labels, until=until, seconds=seconds))), names)
    return found if len(found) == len(names) else list(applied)


def _chosen(found: Sequence[Work], names: Sequence[str]) -> list[Work]:
    by_name = {each.name: each for each in found}
    return [by_name[name] for name in names if name in by_name]


def _is_available(works: Sequence[Work], wish: Wish) -> bool:
    return conditions.available(_reading(works, wish=wish)).status == TRUE


def _is_settled(works: Sequence[Work], _: Wish) -> bool:
    # An agent's first answer may be that a kind or a namespace is missing, which is on its way: it tries again at once.
    return conditions.applied(works).status == TRUE


def _reading(works: Sequence[Work], *, wish: Wish) -> Reading:
    """Ask the adapter what it reads, once the cluster has spoken about what is wanted now."""
    old = next((each for each in works if not conditions.is_current(each)), None)
    if old is not None:
        return Reading(reason=conditions.NOT_SYNCED, message=conditions.applied([old]).message)
    try:
        return (wish.read or available_by_itself)(Seen(works))
    except NotYet as error:
        return Reading(reason=conditions.NOT_SYNCED, message=str(error))
    except Unreadable as error:
        return Reading(reason="FeedbackUnreadable", message=str(error))


def _query(effect: Query) -> Generator[Effect, Answer, list[Work]]:
    return _works((yield effect))


def _works(answer: Any) -> list[Work]:
    return list(answer or ())


def _work(answer: Any) -> Work:
    assert isinstance(answer, Work)
    return answer
