"""The state of a work in one sentence."""

from typing import Any

import pytest

from maestropy.sdk._operations import summary
from maestropy.sdk.work import Work


def work(*, version: int = 1, observed: int = 1, **conditions: str) -> Work:
    reported = [{"type": name, "status": status, "message": f"about {name}"} for name, status in conditions.items()]
    body: dict[str, Any] = {"id": "1", "version": version, "consumer_name": "c1", "manifests": []}
    status = {"ObservedVersion": observed, "conditions": reported} if reported else {}
    return Work.from_resource_bundle({**body, "status": status})


@pytest.mark.parametrize(
    ("existing", "condition_type", "sentence"),
    [
        pytest.param(None, "Available", "no status event was received", id="no-event"),
        pytest.param(work(), "Available", "the agent has not reported on it yet", id="not-reported"),
        pytest.param(work(version=2, Applied="True"), "Applied", "has reported only on version 1", id="stale-version"),
        pytest.param(work(Applied="False"), "Available", "Applied is False: about Applied", id="not-applied"),
        pytest.param(
            work(Applied="True"), "Available", "has not reported the condition Available yet", id="condition-missing"
        ),
        pytest.param(
            work(Applied="True", Available="True"),
            "Ready",
            "has not reported the condition Ready yet",
            id="unknown-condition",
        ),
        pytest.param(
            work(Applied="True", Available="True"),
            "Aplied",
            "has not reported the condition Aplied yet; did you mean Applied?",
            id="misspelt",
        ),
        pytest.param(
            work(Applied="True", Available="False"),
            "Aplied",
            "Available is False: about Available; the agent has not reported the condition Aplied yet; did you mean",
            id="misspelt-and-not-available",
        ),
        pytest.param(
            work(Applied="True", Available="False"),
            "Available",
            "Available is False: about Available",
            id="condition-false",
        ),
    ],
)
def test_missing_condition_is_explained(existing: Work | None, condition_type: str, sentence: str) -> None:
    assert sentence in summary.missing(existing, condition_type)


def test_hold_is_named_also_while_the_work_is_being_deleted() -> None:
    held = work(DataSafetyHold="True", Applied="False")
    assert summary.sentence(held).startswith("its agent keeps it as it is: data-safety hold")
    deleting = Work.wrap(held.manifest_work.with_metadata(deletionTimestamp="2026-01-02T10:00:00Z"))
    assert summary.sentence(deleting).startswith("its deletion was requested, but its agent keeps it as it is")


def test_applied_work_with_reservations_names_them() -> None:
    assert (
        summary.sentence(work(Applied="True", Available="True", Done="False")) == "version 1 is applied and available"
    )
    unknown = work(Applied="True", Available="True", Complete="Unknown", StatusFeedbackSynced="False")
    assert summary.sentence(unknown) == (
        "version 1 is applied and available, but Complete is Unknown: about Complete; "
        "StatusFeedbackSynced is False: about StatusFeedbackSynced"
    )
