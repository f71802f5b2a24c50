import asyncio
from dataclasses import replace

import pytest

from maestropy.adapter import Adapter, StatusReport
from maestropy.adapter.decide import adapter_status
from maestropy.adapter.decide.effects import Effect, EffectResult, Fetch, PutStatus
from maestropy.adapter.decide.failure import Failure
from maestropy.adapter.decide.pipeline import EventOutcome
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.adapter.runner import AGAIN, DONE, FAILED, MISUSED, EventTimeouts, exit_code, handle
from maestropy.sdk import errors
from maestropy.sdk.retry import Retrier, RetryPolicy

TRANSIENT = Failure(reason="Unavailable", message="away", is_transient=True)
PERMANENT = Failure(reason="Invalid", message="bad", is_transient=False)
UNCONFIGURED = Failure(reason="ConfigError", message="api_url is not set", is_transient=False)
STATUS = adapter_status.failed("a", 5, reason="R", message="m", is_deleting=False)
HEALTHY = replace(
    STATUS, health=adapter_status.healthy(), available=adapter_status.condition("Available", "False", "Provisioning")
)


@pytest.mark.parametrize(
    ("outcome", "is_awaited", "code"),
    [
        (EventOutcome(status=None), False, DONE),
        (EventOutcome(status=STATUS, failure=TRANSIENT), False, AGAIN),
        (EventOutcome(status=STATUS, failure=PERMANENT), False, FAILED),
        (EventOutcome(status=STATUS), False, FAILED),
        (EventOutcome(status=STATUS, failure=UNCONFIGURED), False, MISUSED),
        (EventOutcome(status=HEALTHY), False, DONE),
        (EventOutcome(status=HEALTHY), True, AGAIN),
        (
            EventOutcome(status=replace(HEALTHY, available=adapter_status.condition("Available", "True", "R"))),
            True,
            DONE,
        ),
    ],
    ids=["gone", "transient", "permanent", "unhealthy", "unconfigured", "not-available", "wait-timed-out", "available"],
)
def test_exit_code_of_outcome(outcome: EventOutcome, *, is_awaited: bool, code: int) -> None:
    assert exit_code(outcome, is_awaited=is_awaited) == code


class Unreachable:
    """Reads a resource, and then retries for ever to reach a server that refuses connections."""

    async def perform(self, effect: Effect) -> EffectResult:
        if isinstance(effect, Fetch):
            return Resource(id="abc", kind="Cluster", generation=5, is_deleting=True)
        assert not isinstance(effect, PutStatus)
        attempts = 0

        async def call() -> EffectResult:
            nonlocal attempts
            attempts += 1
            if attempts > 2:
                await asyncio.Event().wait()
            raise errors.Unavailable("connection refused", doing="list works")

        return await Retrier(policy=RetryPolicy(attempts=9, base_seconds=0.001)).run(call)


async def test_timeout_of_an_event_names_the_last_error_and_the_deletion() -> None:
    adapter = Adapter("a")
    adapter.reconciles("Cluster")(lambda _, __: StatusReport(available=True))
    event = Event(resource_id="abc", kind="Cluster", generation=5)
    outcome = await handle(adapter, event, performer=Unreachable(), timeouts=EventTimeouts(event_seconds=1))
    assert outcome.status
    assert (outcome.status.health.reason, outcome.is_retryable) == ("Timeout", True)
    assert outcome.status.health.message.startswith(
        "the time for one event is over while finding works; the last error before that: "
        "cannot list works: connection refused"
    )
    assert outcome.status.finalized.reason == "Timeout"
