"""What do the condition rules of a work say about one object?

A rule never fails the caller: an expression that cannot be read or evaluated gives a condition that says so.
"""

from collections.abc import Sequence
from dataclasses import replace

from maestropy.agent.decide import gotext, identity, wellknown
from maestropy.agent.decide.cel import interpreter, values
from maestropy.wire import options, status
from maestropy.wire.jsontypes import Object

REASON_PREFIX = "ConditionRule"
EVALUATED = "ConditionRuleEvaluated"
EXPRESSION_ERROR = "ConditionRuleExpressionError"
INVALID = "ConditionRuleInvalid"

STEPS_PER_OBJECT = 1_000_000
"""Steps that all rules of one object may take together."""

_RULE_VARIABLES = frozenset(("object",))
_MESSAGE_VARIABLES = frozenset(("object", "result"))


def evaluate(
    rules: Sequence[options.ConditionRule], live: Object, *, generation: int, steps: int = STEPS_PER_OBJECT
) -> tuple[status.Condition, ...]:
    """Return the conditions of an object, one per rule that applies to it."""
    budget = interpreter.Budget(steps)
    found = (_condition(rule, live, budget=budget) for rule in rules)
    return tuple(replace(condition, observed_generation=generation) for condition in found if condition is not None)


def is_reason_of_rule(reason: object) -> bool:
    """Say whether a condition with this reason was made by a rule."""
    return isinstance(reason, str) and reason.startswith(REASON_PREFIX)


def _condition(rule: options.ConditionRule, live: Object, *, budget: interpreter.Budget) -> status.Condition | None:
    if rule.type == options.WELL_KNOWN_CONDITIONS:
        known = wellknown.CONDITIONS.get((identity.kind_of(live), rule.condition))
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


def _evaluated(rule: options.ConditionRule, live: Object, *, budget: interpreter.Budget) -> status.Condition:
    try:
        is_true = all(_holds(expression, live, budget=budget) for expression in rule.cel_expressions)
    except values.CelError as error:
        return status.Condition(type=rule.condition, status=status.FALSE, reason=EXPRESSION_ERROR, message=str(error))
    return status.Condition(
        type=rule.condition,
        status=status.TRUE if is_true else status.FALSE,
        reason=EVALUATED,
        message=_message(rule, live, result=is_true, budget=budget),
    )


def _holds(expression: str, live: Object, *, budget: interpreter.Budget) -> bool:
    program = interpreter.compiled(expression, variables=_RULE_VARIABLES)
    value = program.evaluate({"object": live}, budget=budget)
    if not isinstance(value, bool):
        raise values.CelError(f"expected bool result, got {gotext.type_name(value)}")
    return value


def _message(rule: options.ConditionRule, live: Object, *, result: bool, budget: interpreter.Budget) -> str:
    """Return the message: by its expression, else as given, else a plain one. A broken expression shows its error."""
    if rule.message_expression:
        try:
            program = interpreter.compiled(rule.message_expression, variables=_MESSAGE_VARIABLES)
            text = program.evaluate({"object": live, "result": result}, budget=budget)
        except values.CompileError as error:
            return error.headline
        except values.CelError as error:
            return str(error)
        if not isinstance(text, str):
            return f"expected message expression to have a string result, got {gotext.type_name(text)}"
        if text:
            return text
    return rule.message or f"Manifest is {'' if result else 'not '}{rule.condition}"
