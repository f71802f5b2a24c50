"""Fields that ignoreFields removes before a server-side apply."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.agent.decide import ignored_fields
from maestropy.agent.expressions import jq
from maestropy.agent.expressions.budget import Budget, BudgetExceeded
from maestropy.wire.works import options

BODY: dict[str, Any] = {
    "metadata": {"annotations": {"a/b": "1", "c": "2"}, "labels": {"x": "y"}},
    "spec": {
        "replicas": 1,
        "containers": [
            {"name": "app", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"name": "istio-proxy", "image": "p"},
        ],
    },
}


def ignored(condition: str = options.ON_SPOKE_PRESENT, **fields: tuple[str, ...]) -> options.IgnoreFields:
    return options.IgnoreFields(condition=condition, **fields)


def removed(**fields: Any) -> dict[str, Any]:
    return ignored_fields.without_fields(BODY, [ignored(**fields)], budget=Budget())[0]


@pytest.mark.parametrize(
    ("fields", "path", "expected"),
    [
        pytest.param({"json_paths": (".spec.replicas",)}, ("spec", "replicas"), None, id="json-path"),
        pytest.param(
            {"json_paths": (".spec.replicas", ".metadata.labels")},
            ("metadata",),
            {"annotations": {"a/b": "1", "c": "2"}},
            id="several",
        ),
        pytest.param(
            {"json_paths": ('.spec.containers[?(@.name=="app")].image',)},
            ("spec", "containers", 0, "image"),
            None,
            id="filtered",
        ),
        pytest.param(
            {"json_paths": (".spec.containers[0]",)},
            ("spec", "containers"),
            BODY["spec"]["containers"],
            id="list-item-stays",
        ),
        pytest.param({"json_paths": (".nowhere.at.all",)}, (), BODY, id="missing"),
        pytest.param(
            {"json_pointers": ("/metadata/annotations/a~1b",)},
            ("metadata", "annotations"),
            {"c": "2"},
            id="pointer-with-escaped-slash",
        ),
        pytest.param(
            {"json_pointers": ("/spec/containers/1",)},
            ("spec", "containers"),
            BODY["spec"]["containers"][:1],
            id="pointer-to-an-item",
        ),
        pytest.param(
            {"json_pointers": ("/nowhere/9/x", "/spec/containers/9")}, (), BODY, id="pointer-to-missing-field"
        ),
        pytest.param({"jq_path_expressions": (".spec.replicas",)}, ("spec", "replicas"), None, id="jq"),
        pytest.param(
            {"jq_path_expressions": ('.spec.containers[] | select(.name == "istio-proxy")',)},
            ("spec", "containers"),
            BODY["spec"]["containers"][:1],
            id="jq-istio-sidecar",
        ),
        pytest.param(
            {"jq_path_expressions": ('.spec.containers[].env[]? | select(.name | startswith("A") or . == "B")',)},
            ("spec", "containers", 0, "env"),
            [],
            id="jq-two-of-one-list",
        ),
        pytest.param(
            {"jq_path_expressions": ('.metadata.annotations["a/b"], .metadata.annotations."c"',)},
            ("metadata", "annotations"),
            {},
            id="jq-quoted-keys",
        ),
        pytest.param(
            {"jq_path_expressions": (".spec.containers[-1].image",)},
            ("spec", "containers", 1, "image"),
            None,
            id="jq-last",
        ),
        pytest.param(
            {"jq_path_expressions": ('.. | select(type == "number")',)}, ("spec", "replicas"), None, id="jq-recursive"
        ),
    ],
)
def test_ignored_field_is_removed(
    fields: dict[str, tuple[str, ...]], path: tuple[str | int, ...], expected: object
) -> None:
    value: Any = removed(**fields)
    for part in path[:-1] if expected is None else path:
        value = value[part]
    if expected is None:
        assert path[-1] not in value
    else:
        assert value == expected


def test_manifest_is_not_modified() -> None:
    removed(json_paths=(".spec.replicas",), json_pointers=("/metadata",), jq_path_expressions=(".spec.containers[]",))
    assert BODY["spec"]["replicas"] == 1
    assert len(BODY["spec"]["containers"]) == 2


def test_invalid_json_path_gives_warning() -> None:
    body, notes = ignored_fields.without_fields(BODY, [ignored(json_paths=(".spec[.replicas",))], budget=Budget())
    assert body == BODY
    assert notes == ("ignoreFields path .spec[.replicas selects nothing: unterminated array",)


def test_on_spoke_change_fields_stay() -> None:
    entry = ignored(options.ON_SPOKE_CHANGE, json_paths=(".spec.replicas",), jq_path_expressions=("(",))
    assert ignored_fields.without_fields(BODY, [entry], budget=Budget())[0] == BODY


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param(
            {"json_pointers": ("spec",)}, "JSON Pointer error in 'spec': a pointer starts with /", id="pointer"
        ),
        pytest.param(
            {"jq_path_expressions": (".a | map(.b)",)},
            "JQ expression error in '.a | map(.b)': failed to parse jq expression: function not defined: map",
            id="unknown-function",
        ),
        pytest.param(
            {"jq_path_expressions": (".spec.replicas.x",)},
            "JQ expression error in '.spec.replicas.x': jq expression returned error: "
            "expected an object but got: number",
            id="fails",
        ),
        pytest.param(
            {"jq_path_expressions": (".",)},
            "JQ expression error in '.': jq expression result is not a valid object",
            id="everything",
        ),
        pytest.param(
            {"jq_path_expressions": (".spec | length",)},
            "JQ expression error in '.spec | length': jq expression returned error: Invalid path expression",
            id="no-path",
        ),
    ],
)
def test_ignore_fields_error(fields: dict[str, tuple[str, ...]], problem: str) -> None:
    with pytest.raises(ignored_fields.IgnoreFieldsError) as caught:
        removed(**fields)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('has("env")', [0]),
        ('.name | endswith("proxy")', [1]),
        ('.name | contains("sti")', [1]),
        ('.name | test("^a.p$")', [0]),
        ('(.name == "app" | not)', [1]),
        ('.name != "app" and (.image | length) == 1', [1]),
        ('.name < "b"', [0]),
        (".env == null", [1]),
        (".weight >= -1 or false", [0, 1]),
        (".name > 5", [0, 1]),
        ('.env | type == "array"', [0]),
        ("true, true", [0, 0, 1, 1]),
    ],
)
def test_jq_select_condition(condition: str, expected: list[int]) -> None:
    body = {"spec": {"containers": [{**container, "weight": 1.5} for container in BODY["spec"]["containers"]]}}
    selected = jq.paths(f".spec.containers[] | select({condition})", body, budget=Budget())
    assert [path[-1] for path in selected] == expected


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ('.spec | select(test("a"))', "test cannot be applied to: object"),
        ('.spec.containers[0].name | select(test("("))', "error parsing regexp: missing ): ("),
        (".spec.containers.name", "expected an object but got: array"),
        (".spec[0]", "expected an array but got: object"),
        (".spec.replicas[]", "cannot iterate over: number"),
    ],
)
def test_jq_error(expression: str, problem: str) -> None:
    with pytest.raises(jq.JqError) as caught:
        jq.paths(expression, BODY, budget=Budget())
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    "fields", [{"jq_path_expressions": (".l[].x",)}, {"json_paths": (".l[*].y.x",)}], ids=["jq", "json-path"]
)
def test_fields_that_exceed_limit_reject_manifest(fields: dict[str, Any]) -> None:
    large = {"l": [{"x": 1}] * 30_000}
    with pytest.raises(ignored_fields.IgnoreFieldsError, match="takes more than 25000 steps"):
        ignored_fields.without_fields(large, [ignored(**fields)], budget=Budget())


PIECES = [
    ".",
    "..",
    ".a",
    '."b"',
    "[]",
    "[0]",
    "[",
    "]",
    "(",
    ")",
    "|",
    ",",
    "?",
    "==",
    "<",
    "select(",
    "not",
    "and",
    "or",
]


@given(st.text(max_size=20) | st.lists(st.sampled_from([*PIECES, " 1", ' "x"', "-", "has("]), max_size=10).map("".join))
def test_any_jq_text_is_evaluated_or_rejected(expression: str) -> None:
    with contextlib.suppress(jq.JqSyntaxError, jq.JqError, BudgetExceeded):
        jq.paths(expression, {"a": [1, {"b": None}]}, budget=Budget())


@pytest.mark.parametrize("expression", ["(" * 4000, ".a" * 3000, "..|" * 30 + "..", "." + "[]?" * 1000])
def test_expensive_jq_expression_ends(expression: str) -> None:
    with contextlib.suppress(jq.JqSyntaxError, jq.JqError, BudgetExceeded):
        jq.paths(expression, {"a": {"a": {"a": [1, 2, 3]}}}, budget=Budget())
