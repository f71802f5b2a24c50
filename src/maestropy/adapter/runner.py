"""Handle one event within its timeout, for a Job and for a service; choose the exit code of a Job."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from maestropy.adapter import author_code
from maestropy.adapter.decide import effects, outcomes
from maestropy.adapter.decide.effects import CallAuthor, Effect, EffectResult, Fetch
from maestropy.adapter.decide.failure import classify
from maestropy.adapter.decide.pipeline import EventOutcome, PipelineOptions
from maestropy.adapter.definition import Adapter
from maestropy.adapter.errors import DidNotReturn, UnknownKind
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.adapter.transports.performer import Performer, drive
from maestropy.sdk.errors import ConfigError

DONE = 0
"""The status was reported, whatever it is."""
FAILED = 1
"""A retry cannot help; the reported status gives the reason."""
MISUSED = 2
"""A setting is missing or wrong, as for every command."""
AGAIN = 75
"""A retry may help, or the resource is not available yet: run it again (EX_TEMPFAIL of sysexits.h)."""

_REPORT_SECONDS = 10.0
"""For the report of the status after a function of the adapter did not return in the time for the event."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeouts:
    """Timeouts of one event."""

    event_seconds: float = 120.0
    """For everything except the wait for a condition."""
    wait_seconds: float = 0.0
    """For Available, or for the end of a deletion; 0 reports the current state."""
    settle_seconds: float = 3.0
    """For Applied of a work that was just sent, if `wait_seconds` is 0."""


async def handle(
    adapter: Adapter, event: Event, *, performer: Performer, timeouts: EventTimeouts, reports_transient: bool = False
) -> EventOutcome:
    """Reconcile the resource of an event and return the outcome; raises nothing."""
    observer = _ResourceObserver(performer)
    try:
        event = replace(event, kind=adapter.declared_kind(event.kind))
        options = PipelineOptions(
            adapter=adapter.name,
            handler=adapter.handler(event.kind),
            wait_seconds=timeouts.wait_seconds,
            settle_seconds=timeouts.settle_seconds,
            reports_transient=reports_transient,
        )
        async with asyncio.timeout(timeouts.event_seconds + timeouts.wait_seconds) as limit:
            outcome = await drive(adapter.steps(event, options), observer, call=_within(limit))
    except (TimeoutError, UnknownKind) as error:
        failure = classify(error, doing=observer.doing)
        status = (
            outcomes.of_failure(adapter.name, observer.resource, failure=failure)
            if observer.resource
            else outcomes.of_unread_resource(adapter.name, event, failure=failure)
        )
        outcome = EventOutcome(status=status, failure=failure)
    for note in outcome.notes:
        _log.warning("event of %s %s: %s", event.kind, event.resource_id, note)
    if outcome.failure is not None:
        ending = "will be retried" if outcome.is_retryable else "failed"
        # The traceback of the adapter's own code is long: it is logged when the user asks for details.
        trace = outcome.failure.error if _log.isEnabledFor(logging.DEBUG) else None
        _log.warning(
            "event of %s %s %s: %s", event.kind, event.resource_id, ending, outcome.failure.message, exc_info=trace
        )
    return outcome


class _ResourceObserver:
    """Passes effects on, and keeps the resource that was read: a timeout ends the pipeline, which knows it."""

    def __init__(self, inner: Performer) -> None:
        self._inner = inner
        self.resource: Resource | None = None
        self.doing = ""
        """The last effect that has begun and not ended."""

    async def perform(self, effect: Effect) -> EffectResult:
        """Carry one effect out and return its result."""
        self.doing = effects.doing(effect)
        result = await self._inner.perform(effect)
        self.doing = ""
        if isinstance(effect, Fetch) and isinstance(result, Resource):
            self.resource = result
        return result


def _within(limit: asyncio.Timeout) -> Callable[[CallAuthor], Awaitable[Any]]:
    """Return a call of author's functions that ends when `limit` would, and then leaves time for the report."""
    deadline = limit.when()
    assert deadline is not None

    async def call(step: CallAuthor) -> Any:
        limit.reschedule(deadline + _REPORT_SECONDS)
        try:
            return await author_code.run(step, deadline=deadline)
        except DidNotReturn:
            is_over.set()
            raise
        finally:
            if not is_over.is_set() and not limit.expired():
                limit.reschedule(deadline)

    is_over = asyncio.Event()
    return call


def exit_code(outcome: EventOutcome, *, is_awaited: bool) -> int:
    """Return the exit code of a Job; `is_awaited` says that it had to wait for success."""
    if outcome.failure is not None:
        if outcome.failure.reason == ConfigError.__name__:
            return MISUSED
        return AGAIN if outcome.is_retryable else FAILED
    if outcome.status is None:
        return DONE
    if outcome.status.health.status != "True":
        return FAILED
    return AGAIN if is_awaited and not outcome.status.is_success else DONE
