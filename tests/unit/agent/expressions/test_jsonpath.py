"""Values that a JSONPath selects, and errors in the words of client-go."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maestropy.agent.expressions import jsonpath, jsonpath_syntax
from maestropy.agent.expressions.budget import Budget, BudgetExceeded

STORE = {
    "a": {"b": 1, "c.d": "dotted", "f": 1.5, "none": None},
    "list": [{"k": "v", "n": 1, "t": True}, {"k": "w", "n": 2}, {"n": 3}],
    "numbers": [10, 20, 30, 40],
    "items": [{"name": "x", "sub": [{"id": 1}, {"id": 2}]}, {"name": "y", "sub": []}],
    "text": "hi",
    "labels": {"kubernetes.io/os": "linux"},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(".a.b", [[1]], id="members"),
        pytest.param("$.a.b", [[1]], id="dollar-is-the-root"),
        pytest.param(" .a.b ", [[1]], id="blanks-are-ignored"),
        pytest.param("['a']['b']", [[1]], id="members-in-brackets"),
        pytest.param("['a.b']", [[1]], id="dot-in-brackets-separates"),
        pytest.param(r".a.c\.d", [["dotted"]], id="escaped-dot"),
        pytest.param(r".labels.kubernetes\.io/os", [["linux"]], id="label-with-dot-and-slash"),
        pytest.param(".missing.deeper", [[]], id="missing-key-is-no-error"),
        pytest.param(".a.none", [[None]], id="null-is-found"),
        pytest.param(".numbers[0]", [[10]], id="first"),
        pytest.param(".numbers[-1]", [[40]], id="last"),
        pytest.param(".numbers[1:3]", [[20, 30]], id="slice"),
        pytest.param(".numbers[::2]", [[10, 30]], id="step"),
        pytest.param(".numbers[-2:]", [[30, 40]], id="from-the-end"),
        pytest.param(".numbers[1:1]", [[]], id="empty-slice"),
        pytest.param(".numbers[*]", [[10, 20, 30, 40]], id="every-item"),
        pytest.param(".numbers[0,2]", [[10, 30]], id="union-of-indexes"),
        pytest.param("['text','a.b']", [["hi", 1]], id="union-of-keys"),
        pytest.param(".list[*].n", [[1, 2, 3]], id="members-of-every-item"),
        pytest.param(".a.*", [[1, "dotted", 1.5, None]], id="wildcard-in-order-of-names"),
        pytest.param("..id", [[1, 2]], id="recursive"),
        pytest.param('.list[?(@.k=="v")].n', [[1]], id="filter-equal"),
        pytest.param(".list[?(@.k == 'w')].n", [[2]], id="filter-with-blanks-and-single-quotes"),
        pytest.param('.list[?(@.k!="v")].n', [[2]], id="filter-not-equal-skips-items-without-the-key"),
        pytest.param(".list[?(@.n>=2)].n", [[2, 3]], id="filter-greater-or-equal"),
        pytest.param(".list[?(@.t==true)].n", [[1]], id="filter-boolean"),
        pytest.param(".list[?(@.k)].n", [[1, 2]], id="filter-existence"),
        pytest.param(".a.b}{.text", [[1], ["hi"]], id="two-actions"),
        pytest.param("range .items[*]}{.name}-{end", [["x"], ["-"], ["y"], ["-"]], id="range"),
        pytest.param("range .items[*]}{range .sub[*]}{.id}{end}{end", [[1], [2]], id="range-in-range"),
        pytest.param("range .missing[*]}{.x}{end}{.text", [["hi"]], id="range-over-empty-list"),
        pytest.param('"quoted\\t"', [["quoted\t"]], id="quoted-text-with-escape"),
    ],
)
def test_path_selects_values(path: str, expected: list[list[object]]) -> None:
    assert jsonpath.find(jsonpath_syntax.parse_path(path), STORE, budget=Budget()) == expected


def test_text_outside_braces_is_literal() -> None:
    assert jsonpath.find(jsonpath_syntax.parse("n={.a.b}!"), STORE, budget=Budget()) == [["n="], [1], ["!"]]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        pytest.param(".a[", "unterminated array", id="array"),
        pytest.param(".a[x]", "invalid array index x", id="index"),
        pytest.param(".list[?(@.k", "unterminated filter", id="filter"),
        pytest.param(".list[?(@.k)", "unclosed array expect ]", id="filter-bracket"),
        pytest.param("....a", "invalid multiple recursive descent", id="recursion"),
        pytest.param("'open", "unterminated quoted string", id="quote"),
        pytest.param("&", "unrecognized character in action: U+0026 '&'", id="character"),
        pytest.param("1.2.3", "cannot parse number 1.2.3", id="number"),
        pytest.param("." + "a" * 20000, "path has 20003 characters, more than the 4096 allowed", id="too-long"),
    ],
)
def test_syntax_error(path: str, problem: str) -> None:
    with pytest.raises(jsonpath_syntax.JsonPathError) as caught:
        jsonpath_syntax.parse_path(path)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        pytest.param("status.phase", "unrecognized identifier status", id="no-leading-dot"),
        pytest.param("end", "not in range, nothing to end", id="end-without-range"),
        pytest.param(".numbers[9]", "array index out of bounds: index 9, length 4", id="index-too-large"),
        pytest.param(".numbers[-9]", "array index out of bounds: index -5, length 4", id="index-too-small"),
        pytest.param(".numbers[0:9]", "array index out of bounds: index 8, length 4", id="slice-too-long"),
        pytest.param(".numbers[3:1]", "starting index 3 is greater than ending index 1", id="slice-backwards"),
        pytest.param(".numbers[::0]", "step must be > 0", id="step-zero"),
        pytest.param(".a[0]", "map[string]interface {} is not array or slice", id="index-of-a-map"),
        pytest.param(".text[?(@.k)]", "hi is not array or slice and cannot be filtered", id="filter-of-string"),
        pytest.param('.list[?(@.n=="1")]', "incompatible types for comparison", id="number-with-text"),
        pytest.param(".list[?(@.n<>1)]", "unrecognized filter operator <>", id="operator"),
        pytest.param(".list[?(@.t<true)]", "invalid type for comparison", id="order-of-booleans"),
        pytest.param(".list[?(@.*==1)]", "can only compare one element at a time", id="comparison-of-several-values"),
    ],
)
def test_evaluation_error(path: str, problem: str) -> None:
    template = jsonpath_syntax.parse_path(path)
    with pytest.raises(jsonpath.JsonPathError) as caught:
        jsonpath.find(template, STORE, budget=Budget())
    assert str(caught.value) == problem


def test_step_limit_ends_evaluation() -> None:
    nested: dict[str, object] = {}
    for _ in range(20):
        nested = {"a": nested}
    with pytest.raises(BudgetExceeded):
        jsonpath.find(jsonpath_syntax.parse_path("..['a','a','a']" * 10), nested, budget=Budget())


def test_deeply_nested_object_is_rejected() -> None:
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"d": deep}
    with pytest.raises(jsonpath.JsonPathError, match="nested more than"):
        jsonpath.find(jsonpath_syntax.parse_path("..x"), {"d": deep}, budget=Budget())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "k"]), inner, max_size=3),
    max_leaves=12,
)
PIECES = st.sampled_from(
    [
        ".a",
        ".b",
        "..",
        ".*",
        "[",
        "]",
        "[0]",
        "[-1]",
        "[*]",
        "[?(@.k",
        "==",
        "'k'",
        '"',
        ")]",
        "{",
        "}",
        "range ",
        "end",
        "$",
        "@",
        ",",
        ":",
        "\\",
        "1",
        "-2.5",
        "true",
        " ",
        "\n",
        "é",
    ]
)


@given(path=st.text(max_size=40) | st.lists(PIECES, max_size=10).map("".join), root=JSON)
@example(path="[?([?([?(@)])])]", root=[])
@example(path="٣", root={})
def test_any_path_is_evaluated_or_rejected(path: str, root: object) -> None:
    with contextlib.suppress(jsonpath_syntax.JsonPathError):
        results = jsonpath.find(jsonpath_syntax.parse_path(path), root, budget=Budget())
        assert all(isinstance(result, list) for result in results)
