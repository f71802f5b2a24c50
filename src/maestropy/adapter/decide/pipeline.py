"""Reconcile the resource of one event: choose the effects and their order, and end with an outcome.

A generator: it yields effects, is sent their results and is thrown their failures. It reads no clock, opens no
connection and can be replayed.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from maestropy.adapter.decide import author_results, conditions, object_status, outcomes, ownership
from maestropy.adapter.decide.adapter_status import AdapterStatus
from maestropy.adapter.decide.effects import (
    Apply,
    Await,
    CallAuthor,
    Delete,
    Effect,
    EffectResult,
    Fetch,
    Locate,
    PutStatus,
    Query,
)
from maestropy.adapter.decide.failure import Failure, classify
from maestropy.adapter.desired_state import (
    DesiredState,
    Handler,
    NotReady,
    ObservedState,
    StatusReport,
    availability_of_works,
)
from maestropy.adapter.errors import DidNotReturn, Interrupted, NotYet, StaleGeneration, UnreadableFeedback
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.sdk.errors import AlreadyExists, Conflict, MaestroError, NotFound
from maestropy.sdk.work import Work
from maestropy.wire.works.status import TRUE

_ATTEMPTS_ON_CONFLICT = 3

Returned = TypeVar("Returned")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOutcome:
    """The result of one event."""

    status: AdapterStatus | None
    """The status, whether or not it was reported; None if the resource is gone."""
    failure: Failure | None = None
    is_skipped: bool = False
    """Whether nothing was to be done: the resource is gone, or a precondition is missing."""
    notes: tuple[str, ...] = ()
    """What the author of the adapter should know, such as an expression whose data was missing."""

    @property
    def is_retryable(self) -> bool:
        """Whether the event should be delivered again."""
        return self.failure is not None and self.failure.is_transient


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """The adapter, its handler and its timeouts."""

    adapter: str
    handler: Handler
    wait_seconds: float = 0.0
    """How long to wait for Available, or for the end of a deletion; 0 reports the current state."""
    settle_seconds: float = 3.0
    """How long to wait for Applied of a work that was just sent, if `wait_seconds` is 0."""
    reports_transient: bool = False
    """Whether a transient failure is reported too, because the event is not delivered again."""


Step = Effect | CallAuthor
Pipeline = Generator[Step, EffectResult, EventOutcome]


def run(event: Event, options: PipelineOptions) -> Pipeline:
    """Reconcile the resource of one event."""
    resource: Resource | None = None
    try:
        fetched = yield Fetch(event)
        if fetched is None:
            return EventOutcome(status=None, is_skipped=True)
        assert isinstance(fetched, Resource)
        resource = fetched
        outcome = yield from (
            _finalize(resource, options) if resource.is_deleting else _reconcile(event, resource, options)
        )
    except Exception as error:  # noqa: BLE001 - every failure, also of the adapter's own code, is classified
        failure = classify(error)
        if resource is None:
            failure = replace(failure, phase="preconditions")
        status = (
            outcomes.of_failure(options.adapter, resource, failure=failure)
            if resource
            else outcomes.of_unread_resource(options.adapter, event, failure=failure)
        )
        target = resource or Resource(id=event.resource_id, kind=event.kind, generation=event.generation)
        outcome = EventOutcome(status=status, failure=failure)
        # A process that is asked to stop must not wait for the API, and has nothing to report.
        if failure.is_transient and (isinstance(error, Interrupted) or not options.reports_transient):
            return outcome
        return (yield from _put_status(event, target, outcome))
    return (yield from _put_status(event, resource, outcome))


def _put_status(event: Event, resource: Resource, outcome: EventOutcome) -> Pipeline:
    """Report the status; a status that could not be reported is a failure of its own."""
    status, failure = outcome.status, outcome.failure
    assert status
    try:
        yield PutStatus(event, resource, status)
    except NotFound:
        # The resource was deleted meanwhile; its works were deleted with it.
        return outcome
    except Exception as error:  # noqa: BLE001 - classified like any other failure
        unreported = replace(classify(error), phase="post_actions")
        if failure is not None and not unreported.is_transient:
            return outcome
        if failure is not None:
            message = f"{unreported.message}; the status tells of an earlier failure: {failure.message}"
            unreported = replace(unreported, message=message)
        # A status that was not reported must be retried, also if the first failure was final.
        return EventOutcome(status=status, failure=unreported)
    return outcome


def _reconcile(event: Event, resource: Resource, options: PipelineOptions) -> Pipeline:
    result = yield from _call(options.handler, partial(author_results.desired, options.handler, event, resource))
    if isinstance(result, NotReady):
        return EventOutcome(status=outcomes.of_not_ready(options.adapter, resource, result), is_skipped=True)
    if isinstance(result, StatusReport):
        return EventOutcome(status=outcomes.of_status_report(options.adapter, resource, works=(), report=result))
    desired_state = result
    desired = [
        ownership.with_ownership(object_status.with_generation_rules(work), adapter=options.adapter, resource=resource)
        for work in desired_state.all_works
    ]
    labels = ownership.labels_of(options.adapter, resource)
    stored = yield from _query(Query(labels=labels))
    # Before the first write: an old event must neither roll works back, nor delete those of a newer desired state.
    stale = ownership.newer_work(stored, resource)
    if stale:
        return _refused(resource, options, StaleGeneration(stale))
    default_consumer = yield from _choose_consumer(desired_state, desired, stored=stored, resource=resource)
    applied: list[Work] = []
    for work in desired:
        consumer = next(
            (stored_work.consumer for stored_work in stored if stored_work.name == work.name), default_consumer
        )
        existing = next((stored_work for stored_work in stored if stored_work.name == work.name), None)
        try:
            ensured = yield from _ensure(work, stored=existing, consumer=consumer)
        except (MaestroError, StaleGeneration) as error:
            if classify(error).is_transient:
                raise
            return _refused(resource, options, error)
        if isinstance(ensured, ownership.OwnedByAnother):
            status = outcomes.of_owned_by_another(options.adapter, resource, work=work.name, foreign=ensured)
            return EventOutcome(status=status)
        applied.append(ensured)
    yield from _prune(stored, desired)
    try:
        works, is_interrupted = yield from _wait_until(labels, applied, options=options, desired_state=desired_state)
    except DidNotReturn as error:
        return _failed_read(resource, options, works=applied, failure=classify(error))
    return (
        yield from _concluded(
            resource, options, works=works, desired_state=desired_state, is_interrupted=is_interrupted
        )
    )


def _prune(stored: Sequence[Work], desired: Sequence[Work]) -> Generator[Effect, EffectResult, None]:
    names = {work.name for work in desired}
    for work in stored:
        if work.name not in names and not work.is_deleting:
            yield Delete(name=work.name, consumer=work.consumer, reason="it is no longer in the desired state")


def _refused(resource: Resource, options: PipelineOptions, error: Exception) -> EventOutcome:
    """Return the outcome of a work that was not accepted: this generation is not applied."""
    failure = classify(error)
    return EventOutcome(status=outcomes.of_rejected_work(options.adapter, resource, failure=failure), failure=failure)


def _concluded(
    resource: Resource,
    options: PipelineOptions,
    *,
    works: Sequence[Work],
    desired_state: DesiredState,
    is_interrupted: bool,
) -> Pipeline:
    """Return the outcome that the works and the adapter's `read` give."""
    try:
        report = yield from _call(desired_state.read, partial(_status_report, works, desired_state))
        if is_interrupted and report.health is None:
            report = replace(report, health=outcomes.interrupted())
        status = outcomes.of_status_report(options.adapter, resource, works=works, report=report)
    except Exception as error:  # noqa: BLE001 - the adapter's own code may raise anything
        return _failed_read(resource, options, works=works, failure=classify(error))
    return EventOutcome(status=status)


def _failed_read(
    resource: Resource, options: PipelineOptions, *, works: Sequence[Work], failure: Failure
) -> EventOutcome:
    status = outcomes.of_failed_read(options.adapter, resource, works=works, failure=failure)
    return EventOutcome(status=status, failure=failure)


def _call(author: Callable[..., Any] | None, function: Callable[[], Returned]) -> Generator[CallAuthor, Any, Returned]:
    """Call a function that calls one of the adapter's author; None means that there is none, and nothing to block."""
    if author is None:
        return function()
    returned: Returned = yield CallAuthor(function=function, author=author)
    return returned


def _finalize(resource: Resource, options: PipelineOptions) -> Pipeline:
    """Delete all works of this adapter for the resource; Finalized is True when a query finds none."""
    labels = ownership.labels_of(options.adapter, resource)
    remaining = yield from _query(Query(labels=labels))
    for work in remaining:
        if not work.is_deleting:
            yield Delete(name=work.name, consumer=work.consumer, reason=f"{resource.kind} {resource.id} is deleted")
    if remaining:
        seconds = options.wait_seconds or options.settle_seconds
        remaining, is_interrupted = yield from _await(
            Await(labels=labels, until=lambda works: not works, seconds=seconds), before=remaining
        )
        if is_interrupted and remaining:
            status = outcomes.of_deletion(options.adapter, resource, remaining=remaining)
            return EventOutcome(status=replace(status, health=outcomes.interrupted()))
    return EventOutcome(status=outcomes.of_deletion(options.adapter, resource, remaining=remaining))


def _choose_consumer(
    desired_state: DesiredState, desired: Sequence[Work], *, stored: Sequence[Work], resource: Resource
) -> Generator[Effect, EffectResult, str]:
    """Return the consumer of new works: that of the existing works, so that all works stay together."""
    if not desired or all(any(stored_work.name == work.name for stored_work in stored) for work in desired):
        return ""
    if stored:
        return ownership.newest(stored).consumer
    if desired_state.consumer:
        return desired_state.consumer
    consumer = yield Locate(resource)
    assert isinstance(consumer, str)
    return consumer


def _ensure(
    desired: Work, *, stored: Work | None, consumer: str
) -> Generator[Effect, EffectResult, Work | ownership.OwnedByAnother]:
    for _ in range(_ATTEMPTS_ON_CONFLICT - 1):
        action = ownership.decide(stored, desired)
        try:
            return (yield from _carry_out(action, desired, stored=stored, consumer=consumer))
        except (AlreadyExists, Conflict):
            if isinstance(action, ownership.WaitForDeletion):
                raise
        # Another writer, or our own previous attempt, has written it: read it and decide again.
        stored = next(iter((yield from _query(Query(consumer=consumer, name=desired.name)))), None)
    return (yield from _carry_out(ownership.decide(stored, desired), desired, stored=stored, consumer=consumer))


def _carry_out(
    action: ownership.WorkAction, desired: Work, *, stored: Work | None, consumer: str
) -> Generator[Effect, EffectResult, Work | ownership.OwnedByAnother]:
    match action:
        case ownership.OwnedByAnother():
            return action
        case ownership.SkipWork():
            assert stored
            return stored
        case ownership.RefuseStale(reason):
            raise StaleGeneration(reason)
        case ownership.CreateWork():
            return _work((yield Apply(work=desired, consumer=consumer, reason="it does not exist yet")))
        case ownership.PatchWork(reason):
            assert stored
            change = ownership.patch_for(desired)
            return _work(
                (yield Apply(work=desired, consumer=consumer, patch=change, version=stored.version, reason=reason))
            )
        case ownership.WaitForDeletion():
            raise Conflict(
                "an earlier work of this name is still being deleted",
                doing=f"create work {consumer}/{desired.name}",
                advice="it is created after the agent has confirmed that deletion",
            )


def _wait_until(
    labels: Mapping[str, str], applied: Sequence[Work], *, options: PipelineOptions, desired_state: DesiredState
) -> Generator[Step, EffectResult, tuple[list[Work], bool]]:
    """Wait for Available, or for Applied; returns the works, and whether the wait was interrupted."""
    seconds = options.wait_seconds or options.settle_seconds
    is_reached = _is_available if options.wait_seconds > 0 else _is_settled
    author = desired_state.read if options.wait_seconds > 0 else None
    if not applied or seconds <= 0 or (yield from _call(author, partial(is_reached, applied, desired_state))):
        return list(applied), False
    names = [work.name for work in applied]

    def until(works: Sequence[Work]) -> bool:
        chosen = _chosen(works, names)
        return len(chosen) == len(names) and is_reached(chosen, desired_state)

    effect = Await(labels=labels, until=until, seconds=seconds, author=author)
    observed, is_interrupted = yield from _await(effect, before=applied)
    works = _chosen(observed, names)
    return works if len(works) == len(names) else list(applied), is_interrupted


def _await(effect: Await, *, before: Sequence[Work]) -> Generator[Effect, EffectResult, tuple[list[Work], bool]]:
    """Wait; when the process is asked to stop, return the works as they are, and that the wait was interrupted."""
    try:
        return _works((yield effect)), False
    except Interrupted:
        pass
    try:
        return (yield from _query(Query(labels=effect.labels))), True
    except (Interrupted, MaestroError):
        return list(before), True


def _chosen(works: Sequence[Work], names: Sequence[str]) -> list[Work]:
    by_name = {work.name: work for work in works}
    return [by_name[name] for name in names if name in by_name]


def _is_available(works: Sequence[Work], desired_state: DesiredState) -> bool:
    try:
        return conditions.available(_status_report(works, desired_state)).status == TRUE
    except Exception:  # noqa: BLE001 - the wait ends; the same failure is then reported with the state of the works
        return True


def _is_settled(works: Sequence[Work], _: DesiredState) -> bool:
    # An agent may first report a missing kind or namespace that is about to appear: it retries at once.
    return conditions.applied(works).status == TRUE


def _status_report(works: Sequence[Work], desired_state: DesiredState) -> StatusReport:
    """Call the adapter's `read`, once the status of all works and of their objects describes the current version."""
    outdated = next((work for work in works if not conditions.is_current(work)), None)
    if outdated is not None:
        return StatusReport(reason=conditions.NOT_SYNCED, message=conditions.applied([outdated]).message)
    unhandled = object_status.outdated(works) if desired_state.read else ""
    if unhandled:
        return StatusReport(reason=conditions.STATUS_OUTDATED, message=unhandled)
    try:
        return author_results.report(desired_state.read or availability_of_works, ObservedState(works))
    except NotYet as error:
        return StatusReport(reason=conditions.NOT_SYNCED, message=str(error))
    except UnreadableFeedback as error:
        return StatusReport(reason="FeedbackUnreadable", message=str(error))


def _query(effect: Query) -> Generator[Effect, EffectResult, list[Work]]:
    return _works((yield effect))


def _works(result: Any) -> list[Work]:
    return list(result or ())


def _work(result: Any) -> Work:
    assert isinstance(result, Work)
    return result
