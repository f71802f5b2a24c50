"""The status column of `maestro resourcebundle list`."""

from typing import Any

import pytest

from maestropy.cli.client import output

FAILED = {"type": "Applied", "status": "False", "message": "forbidden"}
APPLIED = {"type": "Applied", "status": "True"}
KEPT = {"type": "Applied", "status": "False", "message": "data-safety hold: the object belongs to work w"}
HOLD = {"type": "DataSafetyHold", "status": "True", "reason": "OtherDatabase"}
ENDED = {"type": "DataSafetyHold", "status": "False"}


@pytest.mark.parametrize(
    ("conditions", "is_deleting", "status"),
    [
        pytest.param([], False, "Unknown", id="not-reported"),
        pytest.param([APPLIED], False, "Applied", id="applied"),
        pytest.param([FAILED], False, "Failed", id="failed"),
        pytest.param([APPLIED, HOLD], False, "Held", id="held"),
        pytest.param([FAILED, HOLD], True, "Held", id="held-deletion"),
        pytest.param([KEPT], False, "Held", id="object-of-another-database"),
        pytest.param([APPLIED, ENDED], False, "Applied", id="hold-ended"),
        pytest.param([APPLIED], True, "Deleting", id="deleting"),
    ],
)
def test_status(conditions: list[dict[str, Any]], is_deleting: bool, status: str) -> None:
    row = {"status": {"conditions": conditions}, "deleted_at": "2026-01-01T00:00:00Z" if is_deleting else None}
    assert output.bundle_status(row) == status


@pytest.mark.parametrize(
    ("condition", "observed", "status"),
    [
        pytest.param(APPLIED, 1, "Pending", id="applied-in-an-older-version"),
        pytest.param(FAILED, 1, "Pending", id="failed-in-an-older-version"),
        pytest.param(APPLIED, 3, "Applied", id="applied"),
        pytest.param({**APPLIED, "observedGeneration": 1}, 3, "Pending", id="reported-before-it-is-applied"),
        pytest.param({**APPLIED, "observedGeneration": 3}, 3, "Applied", id="applied-in-this-generation"),
        pytest.param(HOLD, 1, "Held", id="held"),
    ],
)
def test_status_of_an_older_version_is_pending(condition: dict[str, Any], observed: int, status: str) -> None:
    row = {"version": 3, "status": {"ObservedVersion": observed, "conditions": [condition]}}
    assert output.bundle_status(row) == status
