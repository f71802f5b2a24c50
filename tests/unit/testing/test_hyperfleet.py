from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from maestropy.aio.clock import Clock
from maestropy.testing import FakeHyperFleet, hyperfleet_rules
from maestropy.testing.hyperfleet import judge

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def status(generation: Any = 5, time: str = "2026-01-01T00:00:01Z", available: str = "True") -> dict[str, Any]:
    conditions = [{"type": "Applied", "status": "True"}, {"type": "Available", "status": available}]
    health = {"type": "Health", "status": "True"}
    return {
        "adapter": "a",
        "observed_generation": generation,
        "observed_time": time,
        "conditions": [*conditions, health],
    }


@pytest.mark.parametrize(
    ("sent", "stored", "status_code"),
    [
        pytest.param(status(), None, 201, id="first"),
        pytest.param(status(available="Unknown"), None, 201, id="first-unknown"),
        pytest.param(status(available="Unknown"), status(), 204, id="later-unknown"),
        pytest.param(status(6), None, 204, id="future-generation"),
        pytest.param(status(4), status(), 204, id="older-generation"),
        pytest.param(status(time="2026-01-01T00:00:00Z"), status(), 204, id="older-time"),
        pytest.param(status("5"), None, 400, id="string-generation"),
        pytest.param(status() | {"conditions": []}, None, 400, id="no-conditions"),
        pytest.param(status(6) | {"conditions": []}, None, 204, id="discarded-before-it-is-checked"),
        pytest.param(status() | {"observed_time": ""}, None, 204, id="no-time"),
    ],
)
def test_status_is_stored_or_discarded_as_by_hyperfleet(
    sent: dict[str, Any], stored: dict[str, Any] | None, status_code: int
) -> None:
    assert judge(sent, resource={"generation": 5}, stored=stored) == status_code


def with_conditions(*conditions: dict[str, str]) -> dict[str, Any]:
    return status() | {"conditions": list(conditions)}


@pytest.mark.parametrize(
    ("sent", "detail"),
    [
        (status() | {"adapter": ""}, "adapter is required"),
        (status(0), "observed_generation must be >= 1"),
        (with_conditions({"type": "", "status": "True"}), "condition type cannot be empty at index 0"),
        (
            with_conditions({"type": "A", "status": "True"}, {"type": "A", "status": "True"}),
            "duplicate condition type 'A' at index 1",
        ),
        (
            with_conditions({"type": "A", "status": "yes"}),
            "invalid status value 'yes' for condition at index 0 (type: A): must be 'True', 'False', or 'Unknown'",
        ),
        (status(time="2026-01-01T00:06:00Z"), "observed_time must not be more than 5m0s in the future"),
        (status(time="2025-12-31T23:29:00Z"), "observed_time must not be more than 30m0s in the past"),
        (
            with_conditions({"type": "Available", "status": "True"}, {"type": "Applied", "status": "True"}),
            "missing mandatory condition 'Health': all adapters must report Available, Applied, and Health",
        ),
    ],
)
def test_a_rejected_status_gets_the_sentence_of_the_api(sent: dict[str, Any], detail: str) -> None:
    answer = hyperfleet_rules.answer(sent, resource={"generation": 5}, stored=None, now=NOW)
    assert (answer.code, answer.detail) == (400, detail)


def reported(is_reconciled: bool, *, seconds: float, generation: int = 5) -> dict[str, Any]:
    moment = (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    state = "True" if is_reconciled else "False"
    return {"status": state, "observed_generation": generation, "last_updated_time": moment}


@pytest.mark.parametrize(
    ("generation", "condition", "reason"),
    [
        pytest.param(1, None, "new resource", id="new"),
        pytest.param(2, None, "generation mismatch", id="changed-before-the-first-status"),
        pytest.param(6, reported(True, seconds=1), "generation mismatch", id="changed"),
        pytest.param(5, reported(True, seconds=1800), "", id="reconciled"),
        pytest.param(5, reported(True, seconds=1801), "reconciled and stale", id="stale"),
        pytest.param(5, reported(False, seconds=10), "", id="debounced"),
        pytest.param(5, reported(False, seconds=11), "not reconciled", id="not-reconciled"),
    ],
)
def test_when_the_sentinel_sends(generation: int, condition: dict[str, Any] | None, reason: str) -> None:
    assert hyperfleet_rules.due({"generation": generation}, condition, now=NOW) == reason


def test_a_resource_is_reconciled_when_all_required_adapters_are_available_at_its_generation() -> None:
    api = FakeHyperFleet()
    api.clock = Clock(epoch=NOW.timestamp)
    api.required_adapters = ("a", "b")
    api.put("Cluster", "abc", spec={})
    assert [event["type"] for event in api.due_events()] == ["com.redhat.hyperfleet.cluster.reconcile"]
    first = status(1, time="2025-12-31T23:59:55Z")
    api.statuses["abc"] = {"a": first}
    assert api.reconciled("abc") == {
        "type": "Reconciled",
        "status": "False",
        "reason": "ReconciledMissingAdapters",
        "observed_generation": 1,
        "last_updated_time": "2025-12-31T23:59:55Z",
    }
    assert api.due_events() == []
    assert len(api.due_events(NOW + timedelta(seconds=6))) == 1
    api.statuses["abc"]["b"] = status(1, time="2026-01-01T00:00:00Z")
    condition = api.reconciled("abc")
    assert condition
    assert (condition["status"], condition["last_updated_time"]) == ("True", "2025-12-31T23:59:55Z")
    assert api.due_events(NOW + timedelta(minutes=29)) == []
    assert len(api.due_events(NOW + timedelta(minutes=31))) == 1
    api.delete("abc")
    deleting = api.reconciled("abc")
    assert deleting
    assert deleting["status"] == "False"
