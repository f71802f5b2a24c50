"""Which bundles are refused, and in which words."""

import json
import math
import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors, names, validate

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "test", "namespace": "test"}}


def manifest(**metadata: Any) -> dict[str, Any]:
    return {**CONFIG_MAP, "metadata": {**CONFIG_MAP["metadata"], **metadata}}  # type: ignore[dict-item]


def refusal(*manifests: Any) -> str:
    with pytest.raises(errors.Invalid) as caught:
        validate.validate_bundle(json.dumps({"manifests": manifests}).encode())
    return str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"{}",
        b'{"manifests":null}',
        b'{"manifests":[]}',
        b'{"manifests":[],"deleteOption":{"x":1},"unknown":[[]]}',
        json.dumps({"manifests": [CONFIG_MAP, {**CONFIG_MAP, "kind": "Secret"}]}).encode(),
        json.dumps({"manifests": [manifest(namespace=None, labels=None, resourceVersion="", creationTimestamp=None)]}),
        json.dumps({"manifests": [manifest(labels={"a": 1}, annotations=[], finalizers=[1])]}),
        json.dumps({"manifests": [manifest(annotations={"Example.com/Any": "<&>\n" * 100}, finalizers=["a/b"])]}),
    ],
    ids=["no-data", "null", "object", "null-list", "empty", "unknown", "two", "nulls", "odd-types", "annotations"],
)
def test_accepted(data: bytes | str) -> None:
    validate.validate_bundle(data.encode() if isinstance(data, str) else data)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        pytest.param({"manifestConfigs": {}}, "$.manifestConfigs", id="configs"),
        pytest.param({"executer": "me"}, "$.executer", id="executor"),
        pytest.param({"deleteOption": []}, "$.deleteOption", id="delete-option"),
        pytest.param(
            {"deleteOption": {"ttlSecondsAfterFinished": "5"}}, "$.deleteOption.ttlSecondsAfterFinished", id="ttl"
        ),
        pytest.param(
            {"manifestConfigs": [{"feedbackRules": [{"jsonPaths": [{"path": 5}]}]}]},
            "$.manifestConfigs[0].feedbackRules[0].jsonPaths[0].path",
            id="path",
        ),
        pytest.param(
            {"manifestConfigs": [{"updateStrategy": {"serverSideApply": {"force": "yes"}}}]},
            "$.manifestConfigs[0].updateStrategy.serverSideApply.force",
            id="force",
        ),
    ],
)
def test_options_that_no_go_program_could_read(options: dict[str, Any], where: str) -> None:
    data = json.dumps({"manifests": [CONFIG_MAP], **options}).encode()
    with pytest.raises(errors.Invalid, match=f"failed to decode manifest bundle: .*{re.escape(where)}"):
        validate.validate_bundle(data)


def test_options_that_are_null_count_as_not_set() -> None:
    options = {"manifestConfigs": [None, {"feedbackRules": None}], "deleteOption": None, "executer": {"subject": None}}
    validate.validate_bundle(json.dumps({"manifests": [CONFIG_MAP], **options}).encode())


@pytest.mark.parametrize(
    ("found", "text"),
    [
        pytest.param({}, "apiVersion: Required value: field not set", id="empty"),
        pytest.param({**CONFIG_MAP, "apiVersion": ""}, "apiVersion: Required value: field not set", id="no-version"),
        pytest.param({**CONFIG_MAP, "apiVersion": 1}, "apiVersion: Required value: field not set", id="odd-version"),
        pytest.param(
            {**CONFIG_MAP, "apiVersion": "apps/"},
            'apiVersion: Invalid value: "apps/": version not set',
            id="group-only",
        ),
        pytest.param(
            {**CONFIG_MAP, "apiVersion": "/v1"}, 'apiVersion: Invalid value: "/v1": group not set', id="version-only"
        ),
        pytest.param(
            {**CONFIG_MAP, "apiVersion": "apps/v1/x"},
            'apiVersion: Invalid value: "apps/v1/x": bad format',
            id="slashes",
        ),
        pytest.param(
            {**CONFIG_MAP, "apiVersion": "Apps/1"}, 'apiVersion: Invalid value: "Apps/1": a DNS-1035 label', id="format"
        ),
        pytest.param({**CONFIG_MAP, "kind": ""}, "kind: Required value: field not set", id="no-kind"),
        pytest.param(manifest(name=""), "metadata.name: Required value: field not set", id="no-name"),
        pytest.param(manifest(name=7), "metadata.name: Required value: field not set", id="odd-name"),
        pytest.param({**CONFIG_MAP, "metadata": 1}, "metadata.name: Required value: field not set", id="odd-metadata"),
        pytest.param(
            manifest(namespace="_"), 'metadata.namespace: Invalid value: "_": a lowercase RFC', id="namespace"
        ),
        pytest.param(
            manifest(generateName="x"), "metadata.generateName: Forbidden: field cannot be set", id="generate-name"
        ),
        pytest.param(
            manifest(resourceVersion="1"), "metadata.resourceVersion: Forbidden: field cannot be set", id="version"
        ),
        pytest.param(
            manifest(deletionGracePeriodSeconds=0),
            "metadata.deletionGracePeriodSeconds: Forbidden: field cannot be set",
            id="grace-period",
        ),
        pytest.param(
            manifest(labels={"-": "x"}), 'metadata.labels: Invalid value: "-": name part must', id="label-key"
        ),
        pytest.param(
            manifest(labels={"a": "-"}), 'metadata.labels: Invalid value: "-": a valid label must', id="label-value"
        ),
        pytest.param(
            manifest(labels={"a": "x" * 500}), "must be no more than 63 characters", id="long-label-is-not-remembered"
        ),
        pytest.param(
            manifest(annotations={"a/b/c": "x"}),
            'metadata.annotations: Invalid value: "a/b/c": a qualified name must',
            id="annotation-key",
        ),
        pytest.param(
            manifest(annotations={"a": "é" * 131072}),
            "metadata.annotations: Too long: may not be more than 262144 bytes",
            id="annotation-size",
        ),
        pytest.param(
            manifest(finalizers=["a b"]), 'metadata.finalizers: Invalid value: "a b": name part', id="finalizer"
        ),
        pytest.param(
            manifest(finalizers=["orphan", "foregroundDeletion"]),
            'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and '
            "foregroundDeletion cannot be both set",
            id="finalizers",
        ),
        pytest.param(None, "manifests[0]: Invalid value: a manifest must be an object", id="null-manifest"),
        pytest.param("x", "manifests[0]: Invalid value: a manifest must be an object", id="text-manifest"),
    ],
)
def test_refused(found: Any, text: str) -> None:
    assert text in refusal(found)


def test_one_violation_stands_alone_and_several_are_joined_once_each() -> None:
    nameless = {"apiVersion": "v1", "kind": "ConfigMap"}
    assert refusal(nameless) == "metadata.name: Required value: field not set"
    assert refusal(nameless, {"apiVersion": "v1"}) == (
        "[metadata.name: Required value: field not set, kind: Required value: field not set]"
    )


def test_duplicates() -> None:
    assert refusal(CONFIG_MAP, CONFIG_MAP) == (
        "duplicate manifest for resource test/test with resource type v1.ConfigMap"
    )
    unnamespaced = {**CONFIG_MAP, "metadata": {"name": "x"}}
    assert "resource /x with" in refusal(unnamespaced, {**unnamespaced, "metadata": {"name": "x", "namespace": ""}})


@pytest.mark.parametrize(
    "data",
    [b"[]", b'"x"', b"{", b"{}{}", b'{"manifests":{}}', b'{"manifests":[{]}', b'{"x":"\xff"}', b'{"x":"\\ud800"}'],
    ids=["list", "text", "cut", "two", "object-as-list", "syntax", "utf8", "surrogate"],
)
def test_what_is_not_a_bundle_cannot_be_unmarshalled(data: bytes) -> None:
    with pytest.raises(errors.Malformed, match="failed to unmarshal event data"):
        validate.validate_bundle(data)


def nested(depth: int, *, inner: str = "1") -> bytes:
    return ('{"a":[' * (depth // 2) + inner + "]}" * (depth // 2)).encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(rb'{"a":"x\u0000"}', "\\u0000", id="nul"),
        pytest.param(rb'{"\\\u0000":1}', "\\u0000", id="nul-in-key-after-backslash"),
        pytest.param(b'{"a":1e309}', "number", id="beyond-float"),
        pytest.param(b'{"a":[-1.5E+400]}', "number", id="negative"),
        pytest.param(b"1e999999999999", "number", id="absurd-exponent"),
        pytest.param(b'{"a":1e-20000}', "number", id="too-many-decimals"),
        pytest.param(b'{"a":' + b"9" * 400 + b"}", "number", id="400-digits"),
        pytest.param(b'{"a":' + b"9" * 250 + b"e99}", "number", id="250-digits-and-exponent"),
        pytest.param(b'{"a":0.' + b"1" * 17000 + b"}", "number", id="17000-decimals"),
        pytest.param(nested(514), "nested deeper", id="deep"),
        pytest.param(nested(514, inner='"]}]}"'), "nested deeper", id="deep-with-brackets-in-text"),
        pytest.param(b'{"a":"}","b":' * 600 + b'"\\""' + b"}" * 600, "nested deeper", id="deep-behind-fake-brackets"),
    ],
)
def test_json_that_cannot_be_stored(data: bytes, reason: str) -> None:
    with pytest.raises(errors.Invalid, match=f"the payload.*{re.escape(reason)}"):
        validate.check_json(data, what="the payload")
    with pytest.raises(errors.Invalid, match="event data"):
        validate.validate_bundle(b'{"x":' + data + b"}")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(rb'{"a":"\\u0000"}', id="escaped-backslash"),
        pytest.param(b'{"a":"1e999, ","image":"x@sha256:0e123456e999999"}', id="numbers-in-text"),
        pytest.param(b'{"a":"x, 1e999,"}', id="number-in-text-between-commas"),
        pytest.param(b'{"a":"' + b"9" * 20000 + b'"}', id="digits-in-text"),
        pytest.param(b"[1e308,1E-300,-0,0.1e-400]", id="fitting-numbers"),
        pytest.param(nested(512), id="just-not-too-deep"),
        pytest.param(b"[" + b",".join([b'{"a":["]}"]}'] * 3000) + b"]", id="many-brackets"),
        pytest.param(b"[" + b",".join([b'{"a":["\\"]}"]}'] * 3000) + b"]", id="many-brackets-and-quotes"),
        pytest.param(rb'"\ud83d\ude00"', id="surrogate-pair"),
    ],
)
def test_json_that_can_be_stored(data: bytes) -> None:
    validate.check_json(data, what="the payload")


@pytest.mark.parametrize("data", [b"", b"[" * 100000, b"\xef\xbb\xbf{}", b"NaN"])
def test_json_that_is_none(data: bytes) -> None:
    with pytest.raises(errors.Malformed, match="failed to unmarshal metadata"):
        validate.check_json(data, what="metadata")


numbers = st.from_regex(r"\A-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,5})?([eE][-+]?[0-9]{1,6})?\Z")


def fits(number: str) -> bool:
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return math.isfinite(float(number)) and decimals - int(exponent or 0) <= 16383


@given(st.lists(numbers, max_size=5), st.text(max_size=10))
def test_numbers_are_judged_one_by_one(found: list[str], text: str) -> None:
    quoted = json.dumps(text.replace("\x00", ""))
    document = f'{{"t":{quoted},"n":[{" ,".join(found)}],"u":{quoted}}}'.encode()
    try:
        validate.check_json(document, what="x")
    except errors.Invalid:
        assert not all(map(fits, found))
    else:
        assert all(map(fits, found))


@given(st.binary(max_size=60) | st.text('[]{}":,e019.-+\\u dTrue', max_size=40).map(str.encode))
def test_what_passes_can_be_parsed_by_others(data: bytes) -> None:
    try:
        validate.check_json(data, what="x")
    except errors.WireError:
        return
    orjson.loads(data)


@given(st.dictionaries(st.text(max_size=10), st.text(max_size=10), max_size=3), st.text(min_size=1, max_size=70))
def test_labels_are_judged_whatever_they_are(labels: dict[str, str], name: str) -> None:
    is_storable = "\x00" not in name + "".join(labels) + "".join(labels.values())
    are_good = not any(names.qualified_name(key) + names.label_value(value) for key, value in labels.items())
    found = json.dumps({"manifests": [manifest(name=name, labels=labels)]}).encode()
    if is_storable and are_good:
        validate.validate_bundle(found)
    else:
        with pytest.raises(errors.Invalid):
            validate.validate_bundle(found)
