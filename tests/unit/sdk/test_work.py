"""Works are built, validated and read."""

import json
from pathlib import Path
from typing import Any

import pytest

from maestropy.sdk import errors
from maestropy.sdk._operations import changes, summary
from maestropy.sdk.work import Work
from maestropy.wire.works import work as wire
from tests.unit.sdk.samples import HOSTED, SECRET, bundle, reported, value

DATA = Path(__file__).parents[2] / "data"


def test_work_of_the_integration_guide() -> None:
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


def test_feedback_rules_are_merged_per_object() -> None:
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


def test_orphaned_and_read_only_objects() -> None:
    built = Work("w").observe("v1", "Secret", "s", namespace="ns").delete_option("SelectivelyOrphan", orphan=[SECRET])
    assert built.manifest_work.delete_option is not None
    assert built.manifest_work.delete_option.orphaning_rules[0].name == "my-cluster"
    config = built.manifest_work.manifest_configs[0]
    assert config.update_strategy is not None
    assert (config.update_strategy.type, config.feedback_rules[0].json_paths[0].path) == ("ReadOnly", "@")


# The table holds mistakes that a type checker would reject.
untyped_work: Any = Work
untyped_patch: Any = changes.patched


@pytest.mark.parametrize(
    ("build", "message"),
    [
        pytest.param(lambda: untyped_work("Bad Name").add(SECRET).validate(), "metadata.name", id="name"),
        pytest.param(lambda: untyped_work("w").validate(), "should not be empty", id="empty"),
        pytest.param(
            lambda: Work.from_dict({**untyped_work("w").to_dict(), "spec": {"worklaod": {}}}).validate(),
            'unknown field "worklaod", did you mean "workload"',
            id="misspelt-before-empty",
        ),
        pytest.param(
            lambda: untyped_work("w", labels={"a b": "c"}).add(SECRET).validate(),
            'metadata.labels: Invalid value: "a b"',
            id="label-key",
        ),
        pytest.param(
            lambda: untyped_work("w", labels={"a": "b c"}).add(SECRET).validate(),
            r'metadata.labels\[a\]: Invalid value: "b c"',
            id="label-value",
        ),
        pytest.param(
            lambda: Work.from_dict(
                {**untyped_work("w").add(SECRET).to_dict(), "metadata": {"name": "w", "labels": {"a": 1}}}
            ).validate(),
            r"metadata.labels\[a\]: must be a text",
            id="label-is-a-number",
        ),
        pytest.param(
            lambda: untyped_work("w").add([SECRET, SECRET]).validate(), "duplicate manifest", id="duplicate-manifest"
        ),
        pytest.param(
            lambda: untyped_work("w").add({**SECRET, "data": {"x": object()}}).validate(), "JSON", id="not-json"
        ),
        pytest.param(
            lambda: untyped_work("w").add(SECRET, feedback={"s": "status"}), "begin it with a dot", id="json-path"
        ),
        pytest.param(lambda: untyped_work("w").add(SECRET, feedback="x"), "WellKnownStatus", id="feedback"),
        pytest.param(lambda: untyped_work("w").add(SECRET).update_strategy("Merge"), "use one of", id="strategy"),
        pytest.param(
            lambda: untyped_work("w").add(SECRET).update_strategy("Update", force=True), "ServerSideApply", id="force"
        ),
        pytest.param(lambda: untyped_work("w").delete_option("Never"), "use one of", id="policy"),
        pytest.param(
            lambda: untyped_work("w").feedback_rule("a", ".b", kind="Pod"), "add it first", id="no-such-manifest"
        ),
        pytest.param(lambda: untyped_work("w").add(7), "cannot be of type int", id="number"),
        pytest.param(lambda: untyped_work("w").add(b"kind: A"), "cannot be of type bytes", id="bytes"),
        pytest.param(lambda: untyped_patch(untyped_work("w"), [1]), "a patch cannot be of type list", id="patch"),
        pytest.param(lambda: untyped_work("w").add("a: [1\n"), "line 2, column 1", id="yaml"),
        pytest.param(lambda: untyped_work("w").add("- 1"), "document 1 is not an object", id="yaml-list"),
        pytest.param(
            lambda: untyped_work("w").add("deploy/web.yaml"),
            r"to read a file give pathlib\.Path\('deploy/web\.yaml'\)",
            id="path-as-text",
        ),
        pytest.param(
            lambda: untyped_work("w").add(SECRET, feedback={"x": "status["}),
            r"feedback\['x'\]: the JSON path 'status\[' has a bracket without its counterpart; write it such as",
            id="open-bracket",
        ),
        pytest.param(
            lambda: untyped_work("w").add(Path("/nowhere.yaml")), "/nowhere.yaml cannot be read", id="no-file"
        ),
        pytest.param(lambda: Work.from_yaml("kind: Pod"), "not a ManifestWork", id="another-kind"),
    ],
)
def test_invalid_work_is_rejected_before_it_is_sent(build: Any, message: str) -> None:
    with pytest.raises(errors.Invalid, match=message):
        build()


def test_feedback_values_are_decoded() -> None:
    values = [
        value("status", "JsonRaw", '{"conditions":[{"type":"Available","status":"True"}]}'),
        value("broken", "JsonRaw", "{"),
        value("replicas", "Integer", 3),
        value("ready", "Boolean", False),
        value("phase", "String", "Running"),
    ]
    work = Work.from_resource_bundle(bundle(HOSTED, *values))
    assert work.feedback("status")["conditions"][0]["type"] == "Available"
    assert work.manifest("HostedCluster").feedback["broken"] == "{"
    assert [work.feedback(name) for name in ("replicas", "ready", "phase", "none")] == [3, False, "Running", None]
    assert work.feedback("phase", kind="Secret", default="?") == "?"
    applied = work.condition("Applied")
    assert applied is not None
    assert applied.reason == "R"
    with pytest.raises(errors.Invalid, match="choose one of HostedCluster/my-cluster"):
        work.manifest("Pod")


def test_status_of_an_older_version_is_stale() -> None:
    work = Work.from_resource_bundle(bundle(HOSTED, version=2))
    assert (work.is_stale, work.is_true("Applied")) == (True, False)
    assert summary.sentence(work) == "version 2 is stored, and the agent has reported only on version 1"


def nested(manifest: dict[str, Any], values: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A nested work with one manifest, and its status."""
    inner = {
        "apiVersion": wire.API_VERSION,
        "kind": wire.KIND,
        "metadata": {"name": "inner", "namespace": "local-cluster"},
        "spec": {"workload": {"manifests": [manifest]}},
    }
    return inner, {"conditions": [], "resourceStatus": {"manifests": [reported(manifest, *values)]}}


@pytest.mark.parametrize("form", ["status", "resource"])
def test_nested_works_are_read_to_the_innermost(form: str) -> None:
    values = [
        value("Available-Status", "String", "False"),
        value("Available-Reason", "String", "EtcdWaitingForQuorum"),
        value("progress", "String", "Partial"),
    ]
    inner, status = nested(HOSTED, values)
    middle, middle_status = nested(inner, [value("status", "JsonRaw", json.dumps(status))])
    raw = middle_status if form == "status" else {**middle, "status": middle_status}
    work = Work.from_resource_bundle(bundle(middle, value(form, "JsonRaw", json.dumps(raw))))
    assert len(list(work.walk())) == 3
    (leaf,) = work.leaves()
    assert (leaf.kind, leaf.feedback["progress"]) == ("HostedCluster", "Partial")
    (available,) = leaf.folded
    assert (available.type, available.status, available.reason) == ("Available", "False", "EtcdWaitingForQuorum")


def test_recorded_work_is_parsed() -> None:
    body = json.loads((DATA / "wire_manifestwork_watched.json").read_text())
    work = Work.from_dict(body)
    assert work.is_reported
    assert [manifest.kind for manifest in work.manifests]
    assert Work.from_yaml(DATA / "wire_manifestwork.json").validate()
