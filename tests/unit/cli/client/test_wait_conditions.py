"""`wait --for`: what it accepts, and when a goal is reached."""

from typing import Any

import pytest

from maestropy.cli.client.bundles import wait_conditions
from maestropy.cli.client.bundles.wait_conditions import WaitGoal
from maestropy.cli.errors import UsageError


def bundle(*, observed: int = 2, applied: str = "True") -> dict[str, Any]:
    conditions = [{"type": "Applied", "status": applied, "reason": "r", "message": "m"}]
    return {
        "id": "55c61e54-a3f6-563d-9fec-b1fe297bdfdb",
        "consumer_name": "c1",
        "version": 2,
        "metadata": {"name": "hello"},
        "manifests": [],
        "status": {"ObservedVersion": observed, "conditions": conditions},
    }


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("condition=Applied", WaitGoal(kind="condition", name="Applied", value="True")),
        ("condition=Degraded=false", WaitGoal(kind="condition", name="Degraded", value="False")),
        ("delete", WaitGoal(kind="delete")),
        ("jsonpath={.version}=2", WaitGoal(kind="jsonpath", name="{.version}", value="2")),
        (
            'jsonpath={.a[?(@.b=="c")].d}=e',
            WaitGoal(kind="jsonpath", name='{.a[?(@.b=="c")].d}', value="e"),
        ),
    ],
)
def test_goal_is_parsed(text: str, goal: WaitGoal) -> None:
    assert wait_conditions.parse(text) == goal


@pytest.mark.parametrize("text", ["", "Applied", "condition=", "condition=X=", "jsonpath={.a}", "jsonpath=", "deleted"])
def test_mistake_names_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match="write condition=TYPE"):
        wait_conditions.parse(text)


@pytest.mark.parametrize(
    ("text", "state", "is_met"),
    [
        pytest.param("condition=Applied", bundle(), True, id="condition"),
        pytest.param("condition=applied", bundle(), True, id="lower-case"),
        pytest.param("condition=Applied", bundle(observed=1), False, id="status-of-an-older-version"),
        pytest.param("condition=Applied", bundle(applied="False"), False, id="condition-is-false"),
        pytest.param("condition=Applied=False", bundle(applied="False"), True, id="false-is-awaited"),
        pytest.param("condition=Available", bundle(), False, id="condition-is-missing"),
        pytest.param("jsonpath={.version}=2", bundle(), True, id="jsonpath"),
        pytest.param("jsonpath={.version}=3", bundle(), False, id="another-value"),
        pytest.param("delete", bundle(), False, id="still-there"),
    ],
)
def test_goal_is_met(text: str, state: dict[str, Any], is_met: bool) -> None:
    goal = wait_conditions.parse(text)
    assert goal.is_met(state) is is_met
    assert is_met or goal.missing(state)


@pytest.mark.parametrize(
    ("text", "state", "why"),
    [
        pytest.param("condition=Available", bundle(applied="False"), "Applied is False: m", id="cause-is-applied"),
        pytest.param(
            "condition=Aplied",
            bundle(),
            "the agent has not reported the condition Aplied yet; did you mean Applied?",
            id="misspelt",
        ),
        pytest.param(
            "condition=Ready=False",
            bundle(),
            "the agent has not reported the condition Ready yet; its conditions are Applied",
            id="unknown",
        ),
        pytest.param(
            "delete",
            bundle(),
            "nobody has requested its deletion; do so with `maestro resourcebundle delete`",
            id="nobody-deletes-it",
        ),
        pytest.param(
            "delete",
            {**bundle(), "deleted_at": "2026-01-01T00:00:00Z"},
            "check that its agent runs",
            id="deletion-requested",
        ),
        pytest.param(
            "delete",
            {
                **bundle(),
                "deleted_at": "2026-01-01T00:00:00Z",
                "status": {
                    "conditions": [{"type": "Deleting", "status": "True", "message": "waiting for configmaps a"}]
                },
            },
            "waiting for configmaps a",
            id="deletion-blocked",
        ),
    ],
)
def test_missing_goal_is_explained(text: str, state: dict[str, Any], why: str) -> None:
    assert wait_conditions.parse(text).missing(state) == why
