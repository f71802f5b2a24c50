"""HyperFleet's additions to CEL, and the operators of preconditions, by table."""

from typing import Any

import pytest

from maestropy.adapter.tasks.language import criteria, expressions
from maestropy.adapter.tasks.language.expressions import ExpressionError

NOW = "2026-09-01T10:00:00+00:00"
CONDITIONS = [
    {"type": "Ready", "status": "True", "last_transition_time": "2026-09-01T09:50:00Z"},
    {"type": "Old", "status": "False", "lastTransitionTime": "2026-09-01T09:59:00Z"},
    {"type": "Bare", "status": "True"},
]
VALUES: dict[str, Any] = {"conditions": CONDITIONS, "a": {"b": {"c": 1}}, "n": 3, "text": "x"}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("now()", NOW),
        ("timestamp(now()) - timestamp('2026-09-01T09:00:00Z') > duration('30m')", True),
        ('conditionStatus(conditions, "Ready")', "True"),
        ('conditionStatus(conditions, "Other")', "Unknown"),
        ('conditionAge(conditions, "Ready")', 600),
        ('conditionAge(conditions, "Old")', 60),
        ('conditionAge(conditions, "Bare")', -1),
        ('conditionAge(conditions, "Other")', -1),
        ('stableFor(conditions, "Ready", 600)', True),
        ('stableFor(conditions, "Ready", 601)', False),
        ('stableFor(conditions, "Old", 1)', False),
        ('stableFor(conditions, "Bare", 0)', False),
        ('dig(a, "b.c")', 1),
        ('dig(a, "b.x.y")', None),
        ("toJson(a)", '{"b":{"c":1}}'),
        ("triState(true, false)", "True"),
        ("triState(false, true)", "False"),
        ("triState(false, false)", "Unknown"),
        ("a.?x.?y.orValue('none')", "none"),
        ("a.?b", {"c": 1}),
        ("a.?x", None),
        ("  n + 1\n", 4),
        ('["b", "a", "b"].distinct()', ["b", "a"]),
        ("[[1], {'a': 1}, [1], {'a': 1}, 1.0, 1].distinct()", [[1], {"a": 1}, 1.0]),
        ('["b", "a"].sort()', ["a", "b"]),
        ("[].sort()", []),
        ('[{"n": 2}, {"n": 1}].sortBy(e, e.n).map(e, e.n)', [1, 2]),
        ("[1, 2, 3].slice(1, 3)", [2, 3]),
        ("[1, 2, 3].slice(3, 3)", []),
        ("[1, [2, [3]]].flatten()", [1, 2, [3]]),
        ("[1, [2, [3]]].flatten(2)", [1, 2, 3]),
        ("[1, [2]].flatten(0)", [1, [2]]),
        ("[1, 2].reverse()", [2, 1]),
        ("'ab'.reverse()", "ba"),
        ("lists.range(3)", [0, 1, 2]),
        ("[4, 5].first()", 4),
        ("[4, 5].last().orValue(0)", 5),
        ("[].first().orValue(0)", 0),
    ],
)
def test_an_expression_has_the_value_of_hyperfleet(expression: str, value: Any) -> None:
    assert expressions.evaluate(expression, VALUES, now=NOW) == value


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("unknown", "undeclared reference to 'unknown'"),
        ("a.x", "no such key: x"),
        ("now(1)", "no such overload"),
        ('dig(a, "b", "c")', "no such overload"),
        ('conditionStatus("x", "y")', "no such overload"),
        ("n ? 1 : 2", "no such overload"),
        ('[1, "a"].sort()', "list elements must have the same type"),
        ("[[1], [2]].sort()", "list elements must be comparable, and are list"),
        ("text.sort()", "no such overload"),
        ("[1].sort(2)", "no such overload"),
        ("[{'n': 1}].sortBy(e, e)", "list elements must be comparable, and are map"),
        ("[1].slice(0, 2)", "list is length 1"),
        ("[1].slice(1, 0)", "start index must be less than or equal to end index"),
        ("[1].slice(-1, 0)", "negative indexes not supported"),
        ("[1].flatten(-1)", "level must be non-negative"),
        ("lists.range('3')", "no such overload"),
        ("lists.range(1000000000)", "takes more than 25000 steps"),
        ("lists.other(3)", "undeclared reference to"),
    ],
)
def test_an_expression_that_fails_says_why(expression: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        expressions.evaluate(expression, VALUES, now=NOW)
    assert problem in str(caught.value)


def test_a_python_function_takes_the_place_of_an_expression() -> None:
    assert expressions.evaluate(lambda values: values["n"] * 2, VALUES, now=NOW) == 6
    with pytest.raises(ExpressionError, match="KeyError: 'missing'"):
        expressions.evaluate(lambda values: values["missing"], VALUES, now=NOW)


@pytest.mark.parametrize(
    ("operator", "actual", "expected", "result"),
    [
        ("equals", "a", "a", True),
        ("equals", 1, "1", False),
        ("equals", 1, True, False),
        ("equals", {"a": [1]}, {"a": [1]}, True),
        ("notEquals", None, "a", True),
        ("in", "a", ["a", "b"], True),
        ("notIn", "c", ["a", "b"], True),
        ("contains", "abc", "b", True),
        ("contains", [1, 2], 2, True),
        ("contains", {"a": 1}, "a", True),
        ("greaterThan", 3, 2, True),
        ("greaterThan", 2, 2, False),
        ("lessThan", 1.5, 2, True),
        ("exists", 0, None, True),
        ("exists", False, None, True),
        ("exists", "", None, False),
        ("exists", [], None, False),
        ("exists", None, None, False),
    ],
)
def test_an_operator(operator: str, actual: Any, expected: Any, result: bool) -> None:
    assert criteria.holds(operator, actual, expected) is result


@pytest.mark.parametrize(
    ("operator", "actual", "expected"), [("contains", None, "a"), ("greaterThan", "3", 2), ("in", "a", "abc")]
)
def test_an_operator_that_cannot_decide_fails(operator: str, actual: Any, expected: Any) -> None:
    with pytest.raises(criteria.CriteriaError):
        criteria.holds(operator, actual, expected)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b.c", 1),
        ("{.a.b.c}", 1),
        ("a.x.y", None),
        ("items[1].name", "two"),
        ("items[5].name", None),
        ("{.items[?(@.name=='two')].data.phase}", "Active"),
        ("{.items[?(@.name=='ten')].data.phase}", None),
    ],
)
def test_a_field_of_a_response(path: str, value: Any) -> None:
    items = [{"name": "one"}, {"name": "two", "data": {"phase": "Active"}}]
    assert criteria.value_at({"a": {"b": {"c": 1}}, "items": items}, path) == value
