from dataclasses import replace

import pytest

from maestropy.adapter.decide import adapter_status
from maestropy.adapter.decide.failure import Failure
from maestropy.adapter.decide.pipeline import EventOutcome
from maestropy.adapter.runner import AGAIN, DONE, FAILED, MISUSED, exit_code

TRANSIENT = Failure(reason="Unavailable", message="away", is_transient=True)
PERMANENT = Failure(reason="Invalid", message="bad", is_transient=False)
UNCONFIGURED = Failure(reason="ConfigError", message="api_url is not set", is_transient=False)
STATUS = adapter_status.failed("a", 5, reason="R", message="m")
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
