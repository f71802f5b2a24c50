"""Values that JSON cannot carry are named with their paths."""

import math
import re
from typing import Any

import pytest

from maestropy.sdk import resource_bundles
from maestropy.sdk._manifests import sources
from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work
from maestropy.wire import json_values

UNUSABLE = [
    pytest.param(math.inf, "infinite", id="infinity"),
    pytest.param(-math.inf, "infinite", id="minus-infinity"),
    pytest.param(math.nan, "NaN", id="nan"),
    pytest.param(2**63, "more than 64 bits", id="large"),
    pytest.param(-(2**63) - 1, "more than 64 bits", id="small"),
    pytest.param("a\ud800", "surrogate", id="surrogate"),
    pytest.param({"\udfff": 1}, "surrogate", id="surrogate-key"),
    pytest.param({True: 1}, "quote it", id="boolean-key"),
    pytest.param({1: "a"}, "has the key 1, which is not a string: quote it", id="integer-key"),
    pytest.param(b"x", "is bytes", id="bytes"),
    pytest.param({"a", "b"}, "is a set", id="set"),
]


def manifest(value: Any) -> dict[str, Any]:
    return {"apiVersion": "x/v1", "kind": "Foo", "metadata": {"name": "foo"}, "spec": {"list": [0, {"n": value}]}}


@pytest.mark.parametrize(("value", "words"), UNUSABLE)
def test_an_unusable_value_is_named_with_its_path(value: Any, words: str) -> None:
    (problem,) = json_values.problems(manifest(value))
    assert "spec.list[1].n" in problem
    assert words in problem
    problem.encode()


@pytest.mark.parametrize(("value", "words"), UNUSABLE)
def test_a_work_with_an_unusable_value_is_invalid(value: Any, words: str) -> None:
    with pytest.raises(Invalid, match=words) as caught:
        Work("hello", consumer="c").add(manifest(value)).validate()
    assert "spec.workload.manifests[0].spec.list[1].n" in str(caught.value)
    with pytest.raises(Invalid, match=words):
        resource_bundles.validate({"consumer_name": "c", "manifests": [manifest(value)]})


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 1.5, 1e300, "\U0001f600", None, True, {"1": "a"}, [[]]])
def test_other_values_are_usable(value: Any) -> None:
    assert json_values.problems(manifest(value)) == []


@pytest.mark.parametrize(
    "text", ["n: .inf", "n: .nan", "n: 1.0e+400", '{"n": 1e400}', '{"n": NaN}', "n: 99999999999999999999"]
)
def test_a_text_with_an_unusable_number_is_rejected_with_the_path(text: str) -> None:
    with pytest.raises(Invalid, match="the YAML text: n is "):
        sources.read(text)


def test_an_object_that_holds_itself_is_named_with_its_path() -> None:
    endless: dict[str, Any] = {"list": []}
    endless["list"].append(endless)
    with pytest.raises(Invalid, match=r"manifests\[0\]\.spec\.list\[1\]\.n\.list\[0\] holds itself"):
        Work("hello", consumer="c").add(manifest(endless)).validate()


def test_an_object_that_stands_in_two_places_is_usable() -> None:
    shared = {"a": "b"}
    assert json_values.problems(manifest([shared, shared])) == []


@pytest.mark.parametrize(("tag", "kind"), [("!!set {a, b}", "a set"), ("!!binary aGk=", "bytes")])
def test_a_tag_of_yaml_that_json_has_not_is_rejected_with_the_path(tag: str, kind: str) -> None:
    with pytest.raises(Invalid, match=f"the YAML text: data is {kind}"):
        sources.read(f"kind: ConfigMap\ndata: {tag}\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metadata": {"name": 123}}, 'manifests[0].metadata.name is 123, not a string: quote it ("123")'),
        ({"metadata": {"name": "a", "namespace": 1.5}}, "manifests[0].metadata.namespace is 1.5, not a string"),
        ({"kind": True}, "manifests[0].kind is true, not a string"),
        ({"apiVersion": 1}, "manifests[0].apiVersion is 1, not a string"),
    ],
)
def test_a_name_that_is_not_a_string_is_named_with_the_remedy(change: dict[str, Any], message: str) -> None:
    changed = manifest(0) | change
    with pytest.raises(Invalid, match=re.escape(message)):
        Work("hello", consumer="c").add(changed).validate()
    with pytest.raises(Invalid, match=re.escape(message)):
        resource_bundles.validate({"consumer_name": "c", "manifests": [changed]})
