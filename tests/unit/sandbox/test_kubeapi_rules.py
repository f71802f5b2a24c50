"""Selectors, paths, rights and schemas of the sandbox's Kubernetes API, by table."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.sandbox.kubeapi import (
    admission,
    bodies,
    crds,
    crdschema,
    kinds,
    names,
    paths,
    rbac,
    selectors,
    watch,
)
from maestropy.sandbox.kubeapi.problems import Problem
from maestropy.sandbox.kubeapi.store import Event, Store, Stored

REGISTRY = kinds.Registry(kinds.builtin())
PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
LABELS = {"app": "web", "tier": "2"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=2", True),
        ("app!=web", False),
        ("none!=x", True),
        ("app in (web, db)", True),
        ("app notin (web,db)", False),
        ("app", True),
        ("!app", False),
        ("!none", True),
        ("tier>1", True),
        ("tier<2", False),
        ("app>1", False),
        ("app=", False),
    ],
)
def test_label_selector(text: str, matches: bool) -> None:
    test = selectors.labels(text)
    assert (test is None or test({"metadata": {"labels": LABELS}})) is matches


@given(st.text("ab=!,()< in", max_size=12))
def test_a_selector_is_read_or_refused(text: str) -> None:
    try:
        test = selectors.labels(text)
    except selectors.BadSelector:
        return
    assert test is None or test({"metadata": {}}) in (True, False)


@pytest.mark.parametrize(
    ("method", "path", "call"),
    [
        ("GET", "/api/v1/namespaces", ("list", "", "", "namespaces", "", "")),
        ("GET", "/api/v1/namespaces/a", ("get", "", "", "namespaces", "a", "")),
        ("PUT", "/api/v1/namespaces/a/finalize", ("update", "", "", "namespaces", "a", "finalize")),
        ("POST", "/api/v1/namespaces/a/pods", ("create", "", "a", "pods", "", "")),
        ("DELETE", "/apis/apps/v1/namespaces/a/deployments", ("deletecollection", "apps", "a", "deployments", "", "")),
        ("PATCH", "/apis/apps/v1/namespaces/a/sets/d/status", ("patch", "apps", "a", "sets", "d", "status")),
        ("GET", "/apis/apps/v1/deployments", ("list", "apps", "", "deployments", "", "")),
        ("GET", "/api/v1/namespaces/a/configmaps/x%2Fy", ("get", "", "a", "configmaps", "x/y", "")),
    ],
)  # fmt: skip
def test_path(method: str, path: str, call: tuple[str, ...]) -> None:
    found = paths.parse(method, path)
    assert found is not None
    assert (found.verb, found.group, found.namespace, found.resource, found.name, found.subresource) == call


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1", "/apis/apps/v1", "/version", "/apis/a/b/c/d/e/f/g"])
def test_a_path_about_no_object(path: str) -> None:
    assert paths.parse("GET", path) is None


@pytest.mark.parametrize(
    ("rule", "question", "allowed"),
    [
        (PODS, {"verb": "get", "resource": "pods"}, True),
        (PODS, {"verb": "list", "resource": "pods"}, False),
        (EVERYTHING, {"verb": "x", "group": "y", "resource": "z/status"}, True),
        (PODS, {"verb": "get", "resource": "pods/log"}, False),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]}, {"verb": "get", "resource": "pods/log"}, True),
        ({**PODS, "resourceNames": ["a"]}, {"verb": "get", "resource": "pods", "name": "b"}, False),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics*"]}, {"verb": "get", "path": "/metrics/x"}, True),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, {"verb": "get", "path": "/metrics/x"}, False),
    ],
)  # fmt: skip
def test_rule(rule: dict[str, Any], question: dict[str, str], allowed: bool) -> None:
    assert rbac.covers(rule, rbac.Question(**question)) is allowed


@pytest.mark.parametrize(
    ("name", "plural", "good"),
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
def test_name(name: str, plural: str, good: bool) -> None:
    assert (names.object_name(name, plural) is None) is good


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
        pytest.param({"a": 1}, [], id="fine"),
        pytest.param({"a": 1, "n": None}, [], id="nullable"),
        pytest.param({}, ["spec.a"], id="missing"),
        pytest.param({"a": "1"}, ["spec.a"], id="wrong-type"),
        pytest.param({"a": True}, ["spec.a"], id="a-boolean-is-no-number"),
        pytest.param({"a": 0, "b": "y"}, ["spec.a", "spec.b"], id="two-faults"),
        pytest.param({"a": 1, "c": [True, 1]}, ["spec.c[1]", "spec.c"], id="in-a-list"),
        pytest.param([], ["spec"], id="no-object"),
    ],
)
def test_schema_of_a_custom_kind(spec: Any, fields: list[str]) -> None:
    assert [cause.field for cause in crdschema.causes({"spec": spec}, SCHEMA)] == fields


def test_defaults_and_pruning_of_a_custom_kind() -> None:
    unknown: list[str] = []
    obj = {"apiVersion": "v1", "kind": "K", "metadata": {}, "spec": {"a": 1, "z": {"y": 1}}, "more": 1}
    kept = crdschema.pruned(obj, SCHEMA, unknown=unknown)
    assert kept["spec"] == {"a": 1}
    assert unknown == ["spec.z", "more"]
    assert crdschema.completed(kept, SCHEMA)["spec"] == {"a": 1, "b": "xy"}


def test_a_definition_brings_its_served_versions() -> None:
    version = {"served": True, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}}
    versions = [
        {**version, "name": "v1"},
        {**version, "name": "v2", "storage": True},
        {**version, "name": "v0", "served": False},
    ]
    spec = {"group": "g", "scope": "Cluster", "names": {"plural": "ks", "kind": "K"}, "versions": versions}
    found = crds.kinds_of({"spec": spec})
    assert [(kind.version, kind.storage_version, kind.namespaced) for kind in found] == [
        ("v1", "v2", False),
        ("v2", "v2", False),
    ]


known_fields = st.sampled_from(["metadata", "spec", "name", "labels", "template", "containers", "replicas", "rules"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(known_fields, inner, max_size=3),
    max_leaves=6,
)
STAMP = admission.Stamp(uid="u", now="2026-01-01T00:00:00Z", suffix="abcde", address="10.96.0.9")


def code_of(action: Callable[[], Any]) -> int:
    try:
        action()
    except Problem as refused:
        return refused.code
    return 0


@given(st.sampled_from(list(REGISTRY.stored())), values)
def test_no_body_makes_a_rule_stumble(kind: kinds.Kind, body: Any) -> None:
    def make() -> None:
        obj = admission.read(kind, body, validation_mode="Warn", warnings=[])
        admission.new_object(kind, admission.address(kind, obj, namespace="n"), STAMP, own=lambda new: new)

    assert code_of(make) in (0, 400, 422, 500)


@given(st.binary(max_size=20), st.sampled_from(["application/json", "application/yaml", "x/y", ""]))
def test_no_bytes_make_a_reader_stumble(body: bytes, media: str) -> None:
    assert code_of(lambda: bodies.read(media, body)) in (0, 400, 415)


def stored(version: int, **labels: str) -> Stored:
    obj = {"kind": "ConfigMap", "metadata": {"name": "n", "resourceVersion": str(version), "labels": labels}}
    return Stored(resource=("", "configmaps"), obj=obj, raw=b"{}", version=version)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        pytest.param(None, {"in": "y"}, b"ADDED", id="appears"),
        pytest.param({"in": "y"}, {"in": "y", "more": "y"}, b"MODIFIED", id="changes"),
        pytest.param({"in": "y"}, None, b"DELETED", id="disappears"),
        pytest.param({}, {"in": "y"}, b"ADDED", id="enters"),
        pytest.param({"in": "y"}, {}, b"DELETED", id="leaves"),
        pytest.param({}, {}, None, id="stays-outside"),
    ],
)
def test_what_a_watcher_is_told(before: Any, after: Any, told: bytes | None) -> None:
    old = stored(1, **before) if before is not None else None
    new = stored(2, **after) if after is not None else None
    event = Event(version=2, before=old, after=new, last=new or stored(2, **(before or {})))
    wish = watch.Wish(
        resource=("", "configmaps"),
        api_version="v1",
        kind="ConfigMap",
        namespace="",
        matches=lambda obj: obj["metadata"]["labels"].get("in") == "y",
        version=0,
        bookmarks=False,
        announce_end_of_list=False,
        seconds=1,
        render=lambda each: each.raw,
    )
    line = watch.line_for(event, wish)
    assert (line is None) if told is None else (line is not None and told in line)


def test_history_is_bounded_and_says_what_it_forgot() -> None:
    store = Store(history=3)
    for number in range(20):
        store.put(
            ("", "configmaps"),
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "uid": "u", "n": number}},
        )
    log = store.log(("", "configmaps"))
    with pytest.raises(LookupError):
        log.since(1)
    assert [event.version for event in log.since(store.version - 2)] == [store.version - 1, store.version]
