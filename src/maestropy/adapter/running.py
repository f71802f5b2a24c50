"""Deal with one event, within its time: the part that a Job and a service share. And what a Job's exit code says."""

import asyncio
import logging
from dataclasses import dataclass, replace

from maestropy.adapter import perform, pipeline, reports
from maestropy.adapter.definition import Adapter
from maestropy.adapter.errors import UnknownKind
from maestropy.adapter.event import Event
from maestropy.adapter.failure import judge
from maestropy.adapter.perform import Performs
from maestropy.adapter.pipeline import Outcome, Part
from maestropy.adapter.resource import Resource
from maestropy.sdk.errors import ConfigError

DONE = 0
"""The report is out, and says whatever it says."""
FAILED = 1
"""Trying again cannot help; the report says why."""
MISUSED = 2
"""A setting is missing or wrong, as for every command."""
AGAIN = 75
"""It may work later, or is not available yet: run it again (EX_TEMPFAIL of sysexits.h)."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long one event may take."""

    event_seconds: float = 120.0
    """For everything but the wait for a condition."""
    wait_seconds: float = 0.0
    """For available, or for the end of a deletion; 0 reports what is seen now."""
    settle_seconds: float = 3.0
    """For what was just sent to be applied, where nobody waits for available."""


async def deal(
    adapter: Adapter, event: Event, *, world: Performs, patience: Patience, tells_transient: bool = False
) -> Outcome:
    """Do all that an event asks for and return how it ended; nothing is raised."""
    about = Resource(id=event.resource_id, kind=event.kind, generation=event.generation)
    try:
        event = replace(event, kind=adapter.kind_named(event.kind))
        part = Part(
            adapter=adapter.name,
            handler=adapter.handler(event.kind),
            wait_seconds=patience.wait_seconds,
            settle_seconds=patience.settle_seconds,
            tells_transient=tells_transient,
        )
        async with asyncio.timeout(patience.event_seconds + patience.wait_seconds):
            outcome = await perform.drive(pipeline.run(event, part), world)
    except (TimeoutError, UnknownKind) as error:
        failure = judge(error)
        outcome = Outcome(report=reports.of_failure(adapter.name, about, failure=failure), failure=failure)
    if outcome.failure is not None:
        word = "comes again" if outcome.comes_again else "failed"
        _log.warning("event of %s %s %s: %s", event.kind, event.resource_id, word, outcome.failure.message)
    return outcome


def exit_code(outcome: Outcome, *, is_awaited: bool) -> int:
    """Return how a Job ends; `is_awaited` says that it was to wait for success."""
    if outcome.failure is not None:
        if outcome.failure.reason == ConfigError.__name__:
            return MISUSED
        return AGAIN if outcome.comes_again else FAILED
    if outcome.report is None:
        return DONE
    if outcome.report.health.status != "True":
        return FAILED
    return AGAIN if is_awaited and not outcome.report.is_success else DONE
