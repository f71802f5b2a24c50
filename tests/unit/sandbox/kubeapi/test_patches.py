"""Patches: the published examples, and rules that hold for any document."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.sandbox.kubeapi.apply import patches
from maestropy.sandbox.kubeapi.schemas import builtin_types

DEPLOYMENT = builtin_types.schema_of("apps", "v1", "Deployment")
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text("abc/~", max_size=3)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
documents = st.dictionaries(st.text("abc", min_size=1, max_size=2), values, max_size=4)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(child) for key, child in value.items() if child is not None}
    return value


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="replaces"),
        pytest.param({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}, id="removes"),
        pytest.param({"a": ["b"]}, {"a": "c"}, {"a": "c"}, id="list-by-scalar"),
        pytest.param({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}, id="nested"),
        pytest.param({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}, id="lists-are-replaced"),
        pytest.param(["a", "b"], {"a": "b", "c": None}, {"a": "b"}, id="object-in-place-of-list"),
        pytest.param({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}, id="nulls-of-new-objects-are-dropped"),
    ],
)
def test_merge_patch(target: Any, patch: Any, result: Any) -> None:
    assert patches.merge_patch(target, patch) == result


@given(documents, documents)
def test_merge_patch_is_idempotent(target: Any, patch: Any) -> None:
    before = copy.deepcopy(target)
    once = patches.merge_patch(target, patch)
    assert target == before
    assert patches.merge_patch(once, patch) == once


@given(documents, documents)
def test_merge_patch_can_make_any_document(start: Any, target: Any) -> None:
    start, target = without_nulls(start), without_nulls(target)
    removal = dict.fromkeys(start)
    assert patches.merge_patch(patches.merge_patch(start, removal), target) == target


@pytest.mark.parametrize(
    ("steps", "result"),
    [
        pytest.param([{"op": "add", "path": "/l/1", "value": 9}], {"l": [1, 9, 2], "m": {"a/b": 1}}, id="insert"),
        pytest.param([{"op": "add", "path": "/l/-", "value": 9}], {"l": [1, 2, 9], "m": {"a/b": 1}}, id="append"),
        pytest.param([{"op": "remove", "path": "/m/a~1b"}], {"l": [1, 2], "m": {}}, id="escaped"),
        pytest.param([{"op": "replace", "path": "/l/0", "value": 5}], {"l": [5, 2], "m": {"a/b": 1}}, id="replace"),
        pytest.param([{"op": "move", "from": "/l/0", "path": "/x"}], {"l": [2], "m": {"a/b": 1}, "x": 1}, id="move"),
        pytest.param([{"op": "copy", "from": "/l/1", "path": "/n"}], {"l": [1, 2], "m": {"a/b": 1}, "n": 2}, id="copy"),
        pytest.param([{"op": "test", "path": "/l", "value": [1, 2]}], {"l": [1, 2], "m": {"a/b": 1}}, id="test"),
    ],
)  # fmt: skip
def test_json_patch(steps: Any, result: Any) -> None:
    assert patches.json_patch({"l": [1, 2], "m": {"a/b": 1}}, steps) == result


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        pytest.param([{"op": "test", "path": "/a", "value": 2}], patches.Unprocessable, id="failed-test"),
        pytest.param([{"op": "remove", "path": "/none"}], patches.Unprocessable, id="missing-path"),
        pytest.param([{"op": "replace", "path": "/none", "value": 1}], patches.Unprocessable, id="nothing-to-replace"),
        pytest.param([{"op": "add", "path": "/a/b", "value": 1}], patches.Unprocessable, id="below-a-scalar"),
        pytest.param([{"op": "add", "path": "/l/5", "value": 1}], patches.Unprocessable, id="beyond-the-end"),
        pytest.param([{"op": "add", "path": "a", "value": 1}], patches.BadPatch, id="not-a-pointer"),
        pytest.param([{"op": "add", "path": "/a"}], patches.BadPatch, id="missing-value"),
        pytest.param([{"op": "fly", "path": "/a"}], patches.BadPatch, id="unknown-operation"),
        pytest.param({"op": "add"}, patches.BadPatch, id="not-a-list"),
    ],
)
def test_invalid_json_patch(steps: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        patches.json_patch({"a": 1, "l": []}, steps)


steps_of_any_kind = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "test"]), "path": st.text("/ab0~", max_size=4), "value": values}
    ),
    max_size=3,
)


@given(documents, steps_of_any_kind)
def test_json_patch_keeps_its_input_and_raises_only_patch_errors(target: Any, steps: Any) -> None:
    before = copy.deepcopy(target)
    try:
        patches.json_patch(target, steps)
    except (patches.BadPatch, patches.Unprocessable):
        pass
    assert target == before


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": list(containers), **spec}}}}


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        pytest.param(pod({"name": "b", "image": "2"}), pod({"name": "a"}, {"name": "b", "image": "2"}), id="merged"),
        pytest.param(pod({"name": "c"}), pod({"name": "a"}, {"name": "b", "image": "1"}, {"name": "c"}), id="appended"),
        pytest.param(pod({"name": "a", "$patch": "delete"}), pod({"name": "b", "image": "1"}), id="deleted"),
        pytest.param(pod({"$patch": "replace"}, {"name": "x"}), pod({"name": "x"}), id="list-replaced"),
        pytest.param({"spec": {"$patch": "replace", "template": {}}}, {"spec": {"template": {}}}, id="map-replaced"),
        pytest.param({"spec": {"template": {"spec": None}}}, {"spec": {"template": {}}}, id="null-removes"),
        pytest.param(
            {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}}},
            pod({"name": "b", "image": "1"}, {"name": "a"}),
            id="reordered",
        ),
    ],
)
def test_strategic_patch(patch: Any, result: Any) -> None:
    start = pod({"name": "a"}, {"name": "b", "image": "1"})
    assert patches.strategic_patch(start, patch, DEPLOYMENT) == result


def test_strategic_patch_of_lists_without_merge_key() -> None:
    schema = builtin_types.metadata()
    start = {"finalizers": ["a", "b"]}
    assert patches.strategic_patch(start, {"finalizers": ["b", "c"]}, schema)["finalizers"] == ["a", "b", "c"]
    assert patches.strategic_patch(start, {"$deleteFromPrimitiveList/finalizers": ["a"]}, schema)["finalizers"] == ["b"]
    with pytest.raises(patches.BadPatch):
        patches.strategic_patch(start, {"ownerReferences": [{"name": "no uid"}]}, schema)
