"""Invalid manifest bundles are rejected with the error texts of the Go Maestro."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors, kubernetes_names
from maestropy.wire.works import validation

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "test", "namespace": "test"}}


def manifest(**metadata: Any) -> dict[str, Any]:
    return {**CONFIG_MAP, "metadata": {**CONFIG_MAP["metadata"], **metadata}}  # type: ignore[dict-item]


def rejection(*manifests: Any) -> str:
    with pytest.raises(errors.InvalidContent) as caught:
        validation.validate_manifest_bundle(json.dumps({"manifests": manifests}).encode())
    return str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"{}",
        b'{"manifests":null}',
        b'{"manifests":[]}',
        json.dumps({"manifests": [CONFIG_MAP, {**CONFIG_MAP, "kind": "Secret"}]}).encode(),
        json.dumps({"manifests": [manifest(namespace=None, labels=None, resourceVersion="", creationTimestamp=None)]}),
        json.dumps({"manifests": [manifest(labels={"a": 1}, annotations=[], finalizers=[1])]}),
        json.dumps({"manifests": [manifest(annotations={"Example.com/Any": "<&>\n" * 100}, finalizers=["a/b"])]}),
    ],
    ids=["no-data", "null", "object", "null-list", "empty", "two", "nulls", "odd-types", "annotations"],
)
def test_valid_bundle_is_accepted(data: bytes | str) -> None:
    validation.validate_manifest_bundle(data.encode() if isinstance(data, str) else data)


@pytest.mark.parametrize(
    ("options", "path"),
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
def test_options_of_wrong_type_are_rejected(options: dict[str, Any], path: str) -> None:
    data = json.dumps({"manifests": [CONFIG_MAP], **options}).encode()
    with pytest.raises(errors.InvalidContent, match=f"failed to decode manifest bundle: .*{re.escape(path)}"):
        validation.validate_manifest_bundle(data)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"executor": {}}, 'unknown field "executor", did you mean "executer"?', id="executor"),
        pytest.param({"Executer": {}}, 'unknown field "Executer", did you mean "executer"?', id="other-case"),
        pytest.param({"manifestConfig": []}, 'unknown field "manifestConfig", did you mean "manifestConfigs"?', id="s"),
        pytest.param(
            {"x": None}, 'unknown field "x", known fields are manifestConfigs, deleteOption, ', id="nothing-like"
        ),
        pytest.param(
            {"executer": {"subject": {"serviceAccounts": {}}}},
            'unknown field "executer.subject.serviceAccounts", did you mean "serviceAccount"?',
            id="nested",
        ),
        pytest.param(
            {"manifestConfigs": [{}, {"feedbackRules": [{"jsonPath": []}]}]},
            'unknown field "manifestConfigs[1].feedbackRules[0].jsonPath", did you mean "jsonPaths"?',
            id="in-lists",
        ),
        pytest.param(
            {"deleteOption": {"propagationpolicy": "Orphan"}, "a\x1b": 1},
            '[unknown field "deleteOption.propagationpolicy", did you mean "propagationPolicy"?, '
            'unknown field "a\\x1b", ',
            id="several",
        ),
    ],
)
def test_unknown_options_are_rejected(options: dict[str, Any], problem: str) -> None:
    data = json.dumps({"manifests": [CONFIG_MAP], **options}).encode()
    with pytest.raises(errors.InvalidContent) as caught:
        validation.validate_manifest_bundle(data)
    assert str(caught.value).startswith(problem)


def test_null_options_count_as_not_set() -> None:
    options = {"manifestConfigs": [None, {"feedbackRules": None}], "deleteOption": None, "executer": {"subject": None}}
    validation.validate_manifest_bundle(json.dumps({"manifests": [CONFIG_MAP], **options}).encode())


@pytest.mark.parametrize(
    ("invalid", "text"),
    [
        pytest.param({}, "apiVersion: Required value: field not set", id="empty"),
        pytest.param({**CONFIG_MAP, "apiVersion": ""}, "apiVersion: Required value: field not set", id="no-version"),
        pytest.param(
            {**CONFIG_MAP, "apiVersion": 1}, "apiVersion: Required value: field not set", id="version-of-wrong-type"
        ),
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
        pytest.param(manifest(name=7), "metadata.name: Required value: field not set", id="name-of-wrong-type"),
        pytest.param(
            {**CONFIG_MAP, "metadata": 1}, "metadata.name: Required value: field not set", id="metadata-of-wrong-type"
        ),
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
            manifest(labels={"a": "x" * 500}), "must be no more than 63 characters", id="long-label-is-not-cached"
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
def test_invalid_manifest_is_rejected(invalid: Any, text: str) -> None:
    assert text in rejection(invalid)


def test_several_problems_are_joined_without_duplicates() -> None:
    nameless = {"apiVersion": "v1", "kind": "ConfigMap"}
    assert rejection(nameless) == "metadata.name: Required value: field not set"
    assert rejection(nameless, {"apiVersion": "v1"}) == (
        "[metadata.name: Required value: field not set, kind: Required value: field not set]"
    )


def test_duplicate_manifest_is_rejected() -> None:
    assert rejection(CONFIG_MAP, CONFIG_MAP) == (
        "duplicate manifest for resource test/test with resource type v1.ConfigMap"
    )
    unnamespaced = {**CONFIG_MAP, "metadata": {"name": "x"}}
    assert "resource /x with" in rejection(unnamespaced, {**unnamespaced, "metadata": {"name": "x", "namespace": ""}})


@pytest.mark.parametrize(
    "data",
    [b"[]", b'"x"', b"{", b"{}{}", b'{"manifests":{}}', b'{"manifests":[{]}', b'{"x":"\xff"}', b'{"x":"\\ud800"}'],
    ids=["list", "text", "cut", "two", "object-as-list", "syntax", "utf8", "surrogate"],
)
def test_data_that_is_no_bundle_is_rejected(data: bytes) -> None:
    with pytest.raises(errors.MalformedMessage, match="failed to unmarshal event data"):
        validation.validate_manifest_bundle(data)


@given(st.dictionaries(st.text(max_size=10), st.text(max_size=10), max_size=3), st.text(min_size=1, max_size=70))
def test_any_label_is_validated(labels: dict[str, str], name: str) -> None:
    is_storable = "\x00" not in name + "".join(labels) + "".join(labels.values())
    are_valid = not any(
        kubernetes_names.qualified_name(key) + kubernetes_names.label_value(value) for key, value in labels.items()
    )
    invalid = json.dumps({"manifests": [manifest(name=name, labels=labels)]}).encode()
    if is_storable and are_valid:
        validation.validate_manifest_bundle(invalid)
    else:
        with pytest.raises(errors.InvalidContent):
            validation.validate_manifest_bundle(invalid)
