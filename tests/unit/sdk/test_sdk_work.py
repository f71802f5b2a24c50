"""Building and reading works."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from maestropy.sdk import changing, errors, manifests, telling
from maestropy.sdk.work import Work
from maestropy.wire import work as wire

DATA = Path(__file__).parents[2] / "data"
HOSTED: dict[str, Any] = {
    "apiVersion": "hypershift.openshift.io/v1beta1",
    "kind": "HostedCluster",
    "metadata": {"name": "my-cluster", "namespace": "clusters"},
}
SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "my-cluster", "namespace": "clusters"},
}


def test_the_work_of_the_guide() -> None:
    built = (
        Work("hostedcluster-abc123", consumer="us-east-mgmt-01", labels={"hyperfleet.io/adapter": "controlplane"})
        .add(HOSTED, feedback={"status": ".status"}, update_strategy="ServerSideApply")
        .delete_option("Foreground")
        .validate()
    )
    assert built.to_dict() == {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "name": "hostedcluster-abc123",
            "namespace": "us-east-mgmt-01",
            "labels": {"hyperfleet.io/adapter": "controlplane"},
        },
        "spec": {
            "workload": {"manifests": [HOSTED]},
            "manifestConfigs": [
                {
                    "resourceIdentifier": {
                        "group": "hypershift.openshift.io",
                        "resource": "hostedclusters",
                        "namespace": "clusters",
                        "name": "my-cluster",
                    },
                    "updateStrategy": {"type": "ServerSideApply"},
                    "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "status", "path": ".status"}]}],
                }
            ],
            "deleteOption": {"propagationPolicy": "Foreground"},
        },
    }


def test_rules_are_added_to_those_there_are_and_to_the_right_object() -> None:
    built = (
        Work("w")
        .add(HOSTED, feedback={"status": ".status"})
        .add(SECRET)
        .feedback_rule("phase", ".status.phase", kind="HostedCluster")
        .feedback_rule("status", ".status.x", kind="HostedCluster")
        .update_strategy("ServerSideApply", kind="Secret", force=True, fieldManager="me")
    )
    hosted, secret = built.manifest_work.manifest_configs
    assert [(path.name, path.path) for path in hosted.feedback_rules[0].json_paths] == [
        ("phase", ".status.phase"),
        ("status", ".status.x"),
    ]
    assert secret.resource_identifier.resource == "secrets"
    assert secret.update_strategy is not None
    assert (secret.update_strategy.force, secret.update_strategy.field_manager) == (True, "me")
    assert secret.feedback_rules == ()


def test_orphans_and_readers() -> None:
    built = Work("w").observe("v1", "Secret", "s", namespace="ns").delete_option("SelectivelyOrphan", orphan=[SECRET])
    assert built.manifest_work.delete_option is not None
    assert built.manifest_work.delete_option.orphaning_rules[0].name == "my-cluster"
    config = built.manifest_work.manifest_configs[0]
    assert config.update_strategy is not None
    assert (config.update_strategy.type, config.feedback_rules[0].json_paths[0].path) == ("ReadOnly", "@")


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        pytest.param(lambda: Work("Bad Name").add(SECRET).validate(), "metadata.name", id="name"),
        pytest.param(lambda: Work("w").validate(), "should not be empty", id="empty"),
        pytest.param(lambda: Work("w").add([SECRET, SECRET]).validate(), "duplicate manifest", id="twice"),
        pytest.param(lambda: Work("w").add({**SECRET, "data": {"x": object()}}).validate(), "JSON", id="not-json"),
        pytest.param(lambda: Work("w").add(SECRET, feedback={"s": "status"}), "begin it with a dot", id="path"),
        pytest.param(lambda: Work("w").add(SECRET, feedback="x"), "WellKnownStatus", id="feedback"),
        pytest.param(lambda: Work("w").add(SECRET).update_strategy("Merge"), "use one of", id="strategy"),
        pytest.param(
            lambda: Work("w").add(SECRET).update_strategy("Update", force=True), "ServerSideApply", id="force"
        ),
        pytest.param(lambda: Work("w").delete_option("Never"), "use one of", id="policy"),
        pytest.param(lambda: Work("w").feedback_rule("a", ".b", kind="Pod"), "add it first", id="no-such-manifest"),
        pytest.param(lambda: Work("w").add(7), "cannot be of type int", id="number"),
        pytest.param(lambda: Work("w").add(b"kind: A"), "cannot be of type bytes", id="bytes"),
        pytest.param(lambda: changing.patched(Work("w"), [1]), "a patch cannot be of type list", id="patch"),  # type: ignore[arg-type] # the mistake
        pytest.param(lambda: Work("w").add("a: [1\n"), "line 2, column 1", id="yaml"),
        pytest.param(lambda: Work("w").add("- 1"), "document 1 is no object", id="yaml-list"),
        pytest.param(lambda: Work("w").add(Path("/nowhere.yaml")), "/nowhere.yaml cannot be read", id="no-file"),
        pytest.param(lambda: Work.from_yaml("kind: Pod"), "not a ManifestWork", id="another-kind"),
    ],
)
def test_mistakes_are_told_before_anything_is_sent(make: Any, complaint: str) -> None:
    with pytest.raises(errors.Invalid, match=complaint):
        make()


class Official:
    """Like an object of the official Kubernetes client."""

    attribute_map: ClassVar = {"api_version": "apiVersion", "kind": "kind", "metadata": "metadata", "spec": "spec"}
    api_version, kind, metadata, spec = "v1", "Secret", {"name": "x"}, None

    def to_dict(self) -> dict[str, Any]:
        return {"api_version": "v1"}


class Camel:
    def to_dict(self) -> dict[str, Any]:
        return SECRET


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param(SECRET, [SECRET], id="dict"),
        pytest.param(json.dumps(SECRET), [SECRET], id="json"),
        pytest.param("kind: A\n---\n---\nkind: B\n", [{"kind": "A"}, {"kind": "B"}], id="documents"),
        pytest.param({"kind": "List", "items": [SECRET]}, [SECRET], id="list"),
        pytest.param([SECRET, "kind: A"], [SECRET, {"kind": "A"}], id="mixed"),
        pytest.param(Camel(), [SECRET], id="object"),
        pytest.param(Official(), [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}], id="official"),
        pytest.param("since: 2026-01-02", [{"since": "2026-01-02"}], id="dates-stay-texts"),
    ],
)
def test_manifests_from_anything(source: Any, found: list[Any]) -> None:
    assert manifests.read(source) == found


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("Deployment", "deployments"),
        ("NetworkPolicy", "networkpolicies"),
        ("Ingress", "ingresses"),
        ("Gateway", "gateways"),
        ("Endpoints", "endpoints"),
        ("HostedCluster", "hostedclusters"),
    ],
)
def test_plural(kind: str, resource: str) -> None:
    assert manifests.plural(kind) == resource


def value(name: str, kind: str, content: Any) -> dict[str, Any]:
    return {"name": name, "fieldValue": {"type": kind, kind[:1].lower() + kind[1:]: content}}


def reported(manifest: dict[str, Any], *values: dict[str, Any], conditions: Any = ()) -> dict[str, Any]:
    meta = {"ordinal": 0, "kind": manifest["kind"], "name": manifest["metadata"]["name"]}
    return {"resourceMeta": meta, "statusFeedback": {"values": list(values)}, "conditions": list(conditions)}


def bundle(manifest: dict[str, Any], *values: dict[str, Any], version: int = 1) -> dict[str, Any]:
    return {
        "id": "u1",
        "version": version,
        "consumer_name": "c1",
        "metadata": {"name": "w", "namespace": "c1", "uid": "u1"},
        "manifests": [manifest],
        "status": {
            "ObservedVersion": 1,
            "SequenceID": "1",
            "conditions": [{"type": "Applied", "status": "True", "reason": "R", "message": ""}],
            "resourceStatus": [reported(manifest, *values)],
        },
    }


def test_feedback_as_values() -> None:
    told = [
        value("status", "JsonRaw", '{"conditions":[{"type":"Available","status":"True"}]}'),
        value("broken", "JsonRaw", "{"),
        value("replicas", "Integer", 3),
        value("ready", "Boolean", False),
        value("phase", "String", "Running"),
    ]
    work = Work.from_bundle(bundle(HOSTED, *told))
    assert work.feedback("status")["conditions"][0]["type"] == "Available"
    assert work.manifest("HostedCluster").feedback["broken"] == "{"
    assert [work.feedback(name) for name in ("replicas", "ready", "phase", "none")] == [3, False, "Running", None]
    assert work.feedback("phase", kind="Secret", default="?") == "?"
    applied = work.condition("Applied")
    assert applied is not None
    assert applied.reason == "R"
    with pytest.raises(errors.Invalid, match="choose one of HostedCluster/my-cluster"):
        work.manifest("Pod")


def test_an_old_status_is_not_taken_for_a_new_one() -> None:
    work = Work.from_bundle(bundle(HOSTED, version=2))
    assert (work.is_stale, work.is_true("Applied")) == (True, False)
    assert telling.sentence(work) == "version 2 is stored, and the agent has reported only on version 1"


def nested(manifest: dict[str, Any], told: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a work with one manifest as it lies inside another, and its status."""
    inner = {
        "apiVersion": wire.API_VERSION,
        "kind": wire.KIND,
        "metadata": {"name": "inner", "namespace": "local-cluster"},
        "spec": {"workload": {"manifests": [manifest]}},
    }
    return inner, {"conditions": [], "resourceStatus": {"manifests": [reported(manifest, *told)]}}


@pytest.mark.parametrize("form", ["status", "resource"])
def test_nested_works_are_read_to_the_innermost(form: str) -> None:
    told = [
        value("Available-Status", "String", "False"),
        value("Available-Reason", "String", "EtcdWaitingForQuorum"),
        value("progress", "String", "Partial"),
    ]
    inner, status = nested(HOSTED, told)
    middle, middle_status = nested(inner, [value("status", "JsonRaw", json.dumps(status))])
    raw = middle_status if form == "status" else {**middle, "status": middle_status}
    work = Work.from_bundle(bundle(middle, value(form, "JsonRaw", json.dumps(raw))))
    assert len(list(work.walk())) == 3
    (leaf,) = work.leaves()
    assert (leaf.kind, leaf.feedback["progress"]) == ("HostedCluster", "Partial")
    (available,) = leaf.folded
    assert (available.type, available.status, available.reason) == ("Available", "False", "EtcdWaitingForQuorum")


def test_a_recorded_work_is_read() -> None:
    body = json.loads((DATA / "wire_manifestwork_watched.json").read_text())
    work = Work.from_dict(body)
    assert work.is_reported
    assert [each.kind for each in work.manifests]
    assert Work.from_yaml(DATA / "wire_manifestwork.json").validate()


@pytest.mark.parametrize(
    ("change", "unchanged"),
    [
        pytest.param(lambda work: work, True, id="same"),
        pytest.param(lambda work: work.with_annotations({f"{wire.TRACING_PREFIX}op-id": "7"}), True, id="operation-id"),
        pytest.param(lambda work: work.with_labels({"a": "b"}), False, id="label"),
        pytest.param(lambda work: work.add(HOSTED), False, id="manifest"),
        pytest.param(lambda work: work.delete_option("Orphan"), False, id="delete-option"),
        pytest.param(lambda work: work.executor(namespace="n", name="s"), False, id="executor-cannot-be-compared"),
    ],
)
def test_what_counts_as_a_change(change: Any, unchanged: bool) -> None:
    stored = Work.from_bundle(bundle(SECRET))
    wanted = change(Work("w").add(SECRET))
    assert changing.is_unchanged(stored.manifest_work, wanted.manifest_work) is unchanged


def test_differences_are_told_by_path() -> None:
    old, new = Work("w").add(SECRET), Work("w", labels={"a": "b"}).add({**SECRET, "data": {"k": "v"}})
    assert changing.differences(old, new) == [
        ("metadata.labels", None, {"a": "b"}),
        ("spec.workload.manifests[0].data", None, {"k": "v"}),
    ]


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(target: Any, patch: Any, result: Any) -> None:
    assert changing.merge_patch(target, patch) == result
