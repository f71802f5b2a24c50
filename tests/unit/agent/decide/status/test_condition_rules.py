"""Conditions from condition rules: type, status, reason and message."""

from typing import Any

import pytest

from maestropy.agent.decide.status import condition_rules
from maestropy.agent.expressions.budget import Budget
from maestropy.wire.works import options


def cel(*expressions: str, message: str = "", message_expression: str = "") -> options.ConditionRule:
    return options.ConditionRule(
        condition="Complete",
        type=options.CEL,
        cel_expressions=expressions,
        message=message,
        message_expression=message_expression,
    )


def well_known(condition: str = "Complete", **overrides: Any) -> options.ConditionRule:
    return options.ConditionRule(condition=condition, type=options.WELL_KNOWN_CONDITIONS, **overrides)


def job(active: int = 0, **conditions: str) -> dict[str, object]:
    status_conditions = [{"type": name, "status": value} for name, value in conditions.items()]
    return {"apiVersion": "batch/v1", "kind": "Job", "status": {"active": active, "conditions": status_conditions}}


def pod(phase: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Pod", "status": {"phase": phase}}


ACTIVE = "object.status.active == 1"


@pytest.mark.parametrize(
    ("rule", "live", "expected"),
    [
        pytest.param(
            well_known(),
            job(active=1),
            ("False", "ConditionRuleEvaluated", "Job is not finished"),
            id="job-running",
        ),
        pytest.param(
            well_known(),
            job(Complete="True"),
            ("True", "ConditionRuleEvaluated", "Job is finished"),
            id="job-complete",
        ),
        pytest.param(
            well_known(), job(Failed="True"), ("True", "ConditionRuleEvaluated", "Job is finished"), id="job-failed"
        ),
        pytest.param(
            well_known(),
            job(Suspended="True"),
            ("False", "ConditionRuleEvaluated", "Job is not finished"),
            id="job-suspended",
        ),
        pytest.param(
            well_known(),
            {"apiVersion": "batch/v1", "kind": "Job"},
            ("False", "ConditionRuleExpressionError", "no such key: status"),
            id="job-without-status",
        ),
        pytest.param(
            well_known(message_expression="'job says ' + (result ? 'yes' : 'no')"),
            job(),
            ("False", "ConditionRuleEvaluated", "job says no"),
            id="message-expression-overrides-built-in",
        ),
        pytest.param(
            well_known(),
            pod("Running"),
            ("False", "ConditionRuleEvaluated", "Pod is in phase Running"),
            id="pod-running",
        ),
        pytest.param(
            well_known(),
            pod("Succeeded"),
            ("True", "ConditionRuleEvaluated", "Pod is in phase Succeeded"),
            id="pod-succeeded",
        ),
        pytest.param(
            cel(ACTIVE, message_expression="result ? 'One pod is active' : 'There is not only one pod active'"),
            job(active=2),
            ("False", "ConditionRuleEvaluated", "There is not only one pod active"),
            id="cel-expression-false",
        ),
        pytest.param(
            cel(ACTIVE, message_expression="result ? 'One pod is active' : 'There is not only one pod active'"),
            job(active=1),
            ("True", "ConditionRuleEvaluated", "One pod is active"),
            id="cel-expression-true",
        ),
        pytest.param(
            cel(ACTIVE), job(active=1), ("True", "ConditionRuleEvaluated", "Manifest is Complete"), id="plain-true"
        ),
        pytest.param(
            cel(ACTIVE), job(), ("False", "ConditionRuleEvaluated", "Manifest is not Complete"), id="plain-false"
        ),
        pytest.param(
            cel(ACTIVE, message="fixed message"),
            job(),
            ("False", "ConditionRuleEvaluated", "fixed message"),
            id="fixed-message",
        ),
        pytest.param(
            cel(ACTIVE, message="fixed message", message_expression="''"),
            job(),
            ("False", "ConditionRuleEvaluated", "fixed message"),
            id="empty-message-expression-falls-back",
        ),
        pytest.param(
            cel("true", "false", "object.missing"),
            job(),
            ("False", "ConditionRuleEvaluated", "Manifest is not Complete"),
            id="stops-at-the-first-false",
        ),
        pytest.param(
            cel("object.missing"),
            job(),
            ("False", "ConditionRuleExpressionError", "no such key: missing"),
            id="missing-key",
        ),
        pytest.param(
            cel("'x'"),
            job(),
            ("False", "ConditionRuleExpressionError", "expected bool result, got string"),
            id="not-a-boolean",
        ),
        pytest.param(
            cel("badcel"),
            job(),
            (
                "False",
                "ConditionRuleExpressionError",
                "ERROR: <input>:1:1: undeclared reference to 'badcel' (in container '')\n | badcel\n | ^",
            ),
            id="bad-expression",
        ),
        pytest.param(
            cel("true", message_expression="badcel"),
            job(),
            (
                "True",
                "ConditionRuleEvaluated",
                "ERROR: <input>:1:1: undeclared reference to 'badcel' (in container '')",
            ),
            id="broken-message-expression-keeps-the-status",
        ),
        pytest.param(
            cel("true", message_expression="object.missing"),
            job(),
            ("True", "ConditionRuleEvaluated", "no such key: missing"),
            id="failing-message-expression-keeps-the-status",
        ),
        pytest.param(
            cel("true", message_expression="1"),
            job(),
            ("True", "ConditionRuleEvaluated", "expected message expression to have a string result, got int64"),
            id="message-is-not-string",
        ),
        pytest.param(
            options.ConditionRule(condition="Complete", type="Later"),
            job(),
            ("Unknown", "ConditionRuleInvalid", "unrecognized condition rule type Later"),
            id="unknown-rule-type",
        ),
    ],
)
def test_condition_of_rule(
    rule: options.ConditionRule, live: dict[str, object], expected: tuple[str, str, str]
) -> None:
    (condition,) = condition_rules.evaluate([rule], live, generation=7, budget=Budget())
    assert (condition.status, condition.reason, condition.message) == expected
    assert (condition.type, condition.observed_generation) == ("Complete", 7)


@pytest.mark.parametrize(
    ("rule", "live"),
    [
        pytest.param(well_known("Progressing"), job(), id="unknown-condition"),
        pytest.param(well_known(), {"apiVersion": "apps/v1", "kind": "Deployment"}, id="kind-without-rule"),
        pytest.param(well_known(), {"apiVersion": "batch/v2", "kind": "Job"}, id="other-version"),
    ],
)
def test_missing_well_known_rule_sets_no_condition(rule: options.ConditionRule, live: dict[str, object]) -> None:
    assert condition_rules.evaluate([rule], live, generation=1, budget=Budget()) == ()


def test_exceeded_budget_gives_condition() -> None:
    (condition,) = condition_rules.evaluate([cel(ACTIVE)], job(active=1), generation=1, budget=Budget(1))
    assert (condition.status, condition.reason) == ("Unknown", "ConditionRuleBudgetExceeded")
    assert condition.message.startswith("CEL evaluation budget exceeded: the expressions of the work take more than")
    assert condition.message.endswith("split the work")
