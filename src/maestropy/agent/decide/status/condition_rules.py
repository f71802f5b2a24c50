"""Evaluate the condition rules of a work on one object.

A rule never raises: an expression that cannot be compiled or evaluated, or exceeds a limit, gives a condition with the
error.
"""

from collections.abc import Sequence
from dataclasses import replace

from maestropy.agent.decide import manifest_identity
from maestropy.agent.decide.status import well_known_status
from maestropy.agent.expressions import go_values
from maestropy.agent.expressions.budget import Budget, BudgetExceeded
from maestropy.agent.expressions.cel import interpreter, values
from maestropy.wire.json_types import Object
from maestropy.wire.works import options, status

REASON_PREFIX = "ConditionRule"
EVALUATED = "ConditionRuleEvaluated"
EXPRESSION_ERROR = "ConditionRuleExpressionError"
INVALID = "ConditionRuleInvalid"
BUDGET_EXCEEDED = "ConditionRuleBudgetExceeded"
DENIED = "ConditionRuleDenied"

_MESSAGE_MAX = 32_768
"""Characters that Kubernetes allows in the message of a condition."""


def evaluate(
    rules: Sequence[options.ConditionRule], live: Object, *, generation: int, budget: Budget
) -> tuple[status.Condition, ...]:
    """Return the conditions of an object, one per rule that matches it."""
    conditions = (_condition(rule, live, budget=budget) for rule in rules)
    return tuple(
        replace(condition, observed_generation=generation) for condition in conditions if condition is not None
    )


def denied(
    rules: Sequence[options.ConditionRule], kind: manifest_identity.GroupVersionKind, *, problem: str, generation: int
) -> tuple[status.Condition, ...]:
    """Return the conditions of an object that the rules may not see: all unknown, with the problem."""
    return tuple(
        status.Condition(
            type=rule.condition,
            status=status.UNKNOWN,
            reason=DENIED,
            message=problem,
            observed_generation=generation,
        )
        for rule in rules
        if rule.type != options.WELL_KNOWN_CONDITIONS or (kind, rule.condition) in well_known_status.CONDITIONS
    )


def is_reason_of_rule(reason: object) -> bool:
    """Return whether a condition with this reason comes from a condition rule."""
    return isinstance(reason, str) and reason.startswith(REASON_PREFIX)


def _condition(rule: options.ConditionRule, live: Object, *, budget: Budget) -> status.Condition | None:
    if rule.type == options.WELL_KNOWN_CONDITIONS:
        known = well_known_status.CONDITIONS.get((manifest_identity.gvk_of(live), rule.condition))
        return None if known is None else _evaluated(_overridden(known, rule), live, budget=budget)
    if rule.type == options.CEL:
        return _evaluated(rule, live, budget=budget)
    message = f"unrecognized condition rule type {rule.type}"
    return status.Condition(type=rule.condition, status=status.UNKNOWN, reason=INVALID, message=message)


def _overridden(known: options.ConditionRule, rule: options.ConditionRule) -> options.ConditionRule:
    return replace(
        known,
        message=rule.message or known.message,
        message_expression=rule.message_expression or known.message_expression,
    )


def _evaluated(rule: options.ConditionRule, live: Object, *, budget: Budget) -> status.Condition:
    try:
        is_true = all(_holds(expression, live, budget=budget) for expression in rule.cel_expressions)
        return status.Condition(
            type=rule.condition,
            status=status.TRUE if is_true else status.FALSE,
            reason=EVALUATED,
            message=budget.keep(_message(rule, live, result=is_true, budget=budget)[:_MESSAGE_MAX]),
        )
    except BudgetExceeded as error:
        # Nothing is known about the object: the Go agent says False, which a rule may also mean.
        return status.Condition(
            type=rule.condition, status=status.UNKNOWN, reason=BUDGET_EXCEEDED, message=_exceeded(error)
        )
    except values.CelError as error:
        return status.Condition(
            type=rule.condition, status=status.FALSE, reason=EXPRESSION_ERROR, message=str(error)[:_MESSAGE_MAX]
        )


def _exceeded(error: BudgetExceeded) -> str:
    return f"CEL evaluation budget exceeded: {error}"


def _holds(expression: str, live: Object, *, budget: Budget) -> bool:
    value = interpreter.evaluate(expression, {"object": live}, budget=budget)
    if not isinstance(value, bool):
        raise values.CelError(f"expected bool result, got {go_values.type_name(value)}")
    return value


def _message(rule: options.ConditionRule, live: Object, *, result: bool, budget: Budget) -> str:
    """Return the message from `messageExpression`, else `message`, else the default.

    An expression that fails gives its error.
    """
    if rule.message_expression:
        try:
            text = interpreter.evaluate(rule.message_expression, {"object": live, "result": result}, budget=budget)
        except BudgetExceeded as error:
            return _exceeded(error)
        except values.CompileError as error:
            return error.headline
        except values.CelError as error:
            return str(error)
        if not isinstance(text, str):
            return f"expected message expression to have a string result, got {go_values.type_name(text)}"
        if text:
            return text
    return rule.message or f"Manifest is {'' if result else 'not '}{rule.condition}"
