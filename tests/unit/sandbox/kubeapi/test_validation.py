"""Names, custom resource schemas, admission and bodies."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.sandbox.kubeapi.errors import StatusError
from maestropy.sandbox.kubeapi.http import bodies
from maestropy.sandbox.kubeapi.rules import admission, crd_schema, names
from maestropy.sandbox.kubeapi.schemas import crd_kinds, kinds

REGISTRY = kinds.Registry(kinds.builtin())


@pytest.mark.parametrize(
    ("name", "plural", "is_valid"),
    [
        ("a.b-c", "configmaps", True),
        ("a.b", "namespaces", False),
        ("1a", "services", False),
        ("system:node", "clusterroles", True),
        ("a/b", "roles", False),
        ("A", "configmaps", False),
        ("a" * 253, "configmaps", True),
        ("a" * 254, "configmaps", False),
    ],
)
def test_object_name(name: str, plural: str, is_valid: bool) -> None:
    assert (names.object_name(name, plural) is None) is is_valid


SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": {"type": "integer", "minimum": 1},
                "b": {"type": "string", "pattern": "^x", "default": "xy"},
                "c": {"type": "array", "maxItems": 1, "items": {"type": "boolean"}},
                "n": {"type": "string", "nullable": True},
            },
        }
    },
}


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        pytest.param({"a": 1}, [], id="valid"),
        pytest.param({"a": 1, "n": None}, [], id="nullable"),
        pytest.param({}, ["spec.a"], id="missing-field"),
        pytest.param({"a": "1"}, ["spec.a"], id="wrong-type"),
        pytest.param({"a": True}, ["spec.a"], id="boolean-is-not-a-number"),
        pytest.param({"a": 0, "b": "y"}, ["spec.a", "spec.b"], id="two-errors"),
        pytest.param({"a": 1, "c": [True, 1]}, ["spec.c[1]", "spec.c"], id="list-items"),
        pytest.param([], ["spec"], id="not-an-object"),
    ],
)
def test_crd_validation(spec: Any, fields: list[str]) -> None:
    assert [cause.field for cause in crd_schema.causes({"spec": spec}, SCHEMA)] == fields


def test_crd_pruning_and_defaulting() -> None:
    unknown: list[str] = []
    obj = {"apiVersion": "v1", "kind": "K", "metadata": {}, "spec": {"a": 1, "z": {"y": 1}}, "more": 1}
    kept = crd_schema.pruned(obj, SCHEMA, unknown=unknown)
    assert kept["spec"] == {"a": 1}
    assert unknown == ["spec.z", "more"]
    assert crd_schema.completed(kept, SCHEMA)["spec"] == {"a": 1, "b": "xy"}


def test_crd_serves_its_served_versions() -> None:
    version = {"served": True, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}}
    versions = [
        {**version, "name": "v1"},
        {**version, "name": "v2", "storage": True},
        {**version, "name": "v0", "served": False},
    ]
    spec = {"group": "g", "scope": "Cluster", "names": {"plural": "ks", "kind": "K"}, "versions": versions}
    served = crd_kinds.kinds_of({"spec": spec})
    assert [(kind.version, kind.storage_version, kind.namespaced) for kind in served] == [
        ("v1", "v2", False),
        ("v2", "v2", False),
    ]


known_fields = st.sampled_from(["metadata", "spec", "name", "labels", "template", "containers", "replicas", "rules"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(known_fields, inner, max_size=3),
    max_leaves=6,
)
SYSTEM_FIELDS = admission.SystemFields(uid="u", now="2026-01-01T00:00:00Z", suffix="abcde", address="10.96.0.9")


def code_of(action: Callable[[], Any]) -> int:
    try:
        action()
    except StatusError as error:
        return error.code
    return 0


@given(st.sampled_from(list(REGISTRY.stored())), values)
def test_any_body_is_admitted_or_rejected(kind: kinds.ServedKind, body: Any) -> None:
    def make() -> None:
        obj = admission.read(kind, body, validation_mode="Warn", warnings=[])
        admission.new_object(
            kind, admission.address(kind, obj, namespace="n"), SYSTEM_FIELDS, set_managed_fields=lambda new: new
        )

    assert code_of(make) in (0, 400, 422, 500)


@given(st.binary(max_size=20), st.sampled_from(["application/json", "application/yaml", "x/y", ""]))
def test_any_bytes_are_decoded_or_rejected(body: bytes, media: str) -> None:
    assert code_of(lambda: bodies.read(media, body)) in (0, 400, 415)
