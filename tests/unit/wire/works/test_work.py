"""ManifestWorks and statuses: typed access, changes by copy, unknown members are kept."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors, timestamps
from maestropy.wire.works import options, status, work

DATA = Path(__file__).parents[3] / "data"
NOW = timestamps.parse("2026-01-02T03:04:05.678Z")
EARLIER = "2025-12-16T06:00:17Z"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
extras = st.dictionaries(st.text(max_size=5).map("x-".__add__), json_values, max_size=3)


def sample(name: str) -> work.ManifestWork:
    return work.from_json((DATA / f"{name}.json").read_bytes())


def test_typed_access_to_a_recorded_work() -> None:
    recorded = sample("wire_manifestwork_watched")
    assert (recorded.name, recorded.generation) == ("e44ec579-9646-549a-b679-db8d19d6da37", 1)
    assert recorded.uid == "55c61e54-a3f6-563d-9fec-b1fe297bdfdb"
    assert recorded.labels == {"maestro.resource.type": "2d18a7dc-c731-5753-8aa9-6b2f22e3b12b"}
    assert [manifest["kind"] for manifest in recorded.manifests] == ["Deployment"]
    (config,) = recorded.manifest_configs
    assert config.resource_identifier == options.ResourceIdentifier(
        group="apps", resource="deployments", name="maestro-e2e-upgrade-test", namespace="default"
    )
    assert config.update_strategy == options.UpdateStrategy(
        type="ServerSideApply", force=True, field_manager="maestro-agent"
    )
    assert config.feedback_rules == (
        options.FeedbackRule(type="JSONPaths", json_paths=(options.JsonPath(name="status", path=".status"),)),
    )
    assert recorded.delete_option is None
    assert recorded.executor is None
    assert recorded.status.is_true("Applied")
    assert not recorded.status.is_deleted
    (manifest,) = recorded.status.manifests
    assert manifest.resource_meta.kind == "Deployment"
    assert manifest.feedback[0].type == "JsonRaw"
    assert str(manifest.feedback[0].value).startswith('{"conditions"')
    assert [condition.type for condition in manifest.conditions] == ["Applied", "Available", "StatusFeedbackSynced"]


def test_all_options_are_read() -> None:
    manifest_work = work.new("w").with_spec(
        deleteOption={
            "propagationPolicy": "SelectivelyOrphan",
            "selectivelyOrphans": {"orphaningRules": [{"resource": "secrets", "name": "s"}]},
            "ttlSecondsAfterFinished": 0,
        },
        executor={"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "sa"}}},
        manifestConfigs=[
            {
                "resourceIdentifier": {"resource": "jobs", "name": "*"},
                "conditionRules": [{"condition": "C", "type": "CEL", "celExpressions": ["true"], "message": "m"}],
                "updateStrategy": {
                    "type": "ServerSideApply",
                    "serverSideApply": {"ignoreFields": [{"condition": "OnSpokePresent", "jsonPaths": [".spec"]}]},
                },
                "feedbackScrapeType": "Watch",
            }
        ],
    )
    assert manifest_work.delete_option == options.DeleteOption(
        propagation_policy=options.SELECTIVELY_ORPHAN,
        orphaning_rules=(options.ResourceIdentifier(resource="secrets", name="s"),),
        ttl_seconds_after_finished=0,
    )
    assert manifest_work.executor == options.Executor(type="ServiceAccount", namespace="n", name="sa")
    (config,) = manifest_work.manifest_configs
    assert config.condition_rules == (
        options.ConditionRule(condition="C", type="CEL", cel_expressions=("true",), message="m"),
    )
    assert config.update_strategy is not None
    assert config.update_strategy.ignore_fields == (
        options.IgnoreFields(condition="OnSpokePresent", json_paths=(".spec",)),
    )
    assert config.feedback_scrape_type == options.WATCH


@pytest.mark.parametrize(
    ("body", "read", "path"),
    [
        ({"metadata": []}, "name", "metadata must be an object"),
        ({"metadata": {"name": 1}}, "name", "metadata.name must be a string"),
        ({"metadata": {"generation": "1"}}, "generation", "metadata.generation must be a whole number"),
        ({"metadata": {"labels": {"a": 1}}}, "labels", "metadata.labels must be a map of strings"),
        ({"metadata": {"finalizers": [1]}}, "finalizers", "metadata.finalizers must be a list of strings"),
        ({"spec": {"workload": {"manifests": {}}}}, "manifests", "spec.workload.manifests must be a list"),
        ({"spec": {"workload": {"manifests": [1]}}}, "manifests", r"spec.workload.manifests\[0\] must be an object"),
    ],
)
def test_member_of_wrong_type_is_named_by_path(body: dict[str, Any], read: str, path: str) -> None:
    with pytest.raises(errors.MalformedMessage, match=path):
        getattr(work.from_object(body), read)


def test_other_kind_is_rejected() -> None:
    with pytest.raises(errors.MalformedMessage, match="kind is 'Pod'"):
        work.from_object({"kind": "Pod"})


def test_changes_do_not_modify_the_original() -> None:
    original = work.new("w", namespace="c1", manifests=[{"kind": "Pod"}])
    before = original.to_json()
    changed = (
        original.with_labels({"a": "b"})
        .with_annotations({work.TRACING_PREFIX + "op-id": "1", "other": "x"})
        .with_metadata(uid="u", generation=2)
        .with_manifests([{"kind": "Secret"}])
        .with_status(original.status.with_condition(status.Condition(type="Applied", status="True"), now=NOW))
    )
    assert original.to_json() == before
    assert (changed.uid, changed.generation, changed.labels) == ("u", 2, {"a": "b"})
    assert changed.tracing == {work.TRACING_PREFIX + "op-id": "1"}
    assert changed.manifests == [{"kind": "Secret"}]
    assert changed.status.is_true("Applied")
    assert "labels" not in changed.with_labels({"a": None}).metadata


@given(extras, extras, extras, extras)
def test_unknown_members_are_kept(top: Any, metadata: Any, spec: Any, inner: Any) -> None:
    body = {
        **top,
        "metadata": {"name": "w", **metadata},
        "spec": {**spec, "workload": {"manifests": [inner], **inner}, "manifestConfigs": [{**inner}]},
        "status": {**inner, "conditions": [{"type": "Applied", "status": "False", **inner}]},
    }
    parsed = work.from_json(json.dumps(body))
    assert json.loads(parsed.to_json()) == body
    merged = parsed.status.with_condition(status.Condition(type="Applied", status="True"), now=NOW)
    changed = parsed.with_labels({"a": "b"}).with_manifests(parsed.manifests).with_status(merged)
    again = json.loads(changed.to_json())
    assert again.items() >= top.items()
    assert again["metadata"].items() >= metadata.items()
    assert again["spec"] == body["spec"]
    assert again["status"]["conditions"][0].items() >= inner.items()


OLD = {"type": "Applied", "status": "True", "lastTransitionTime": EARLIER, "reason": "Old", "message": "", "x-more": 1}


@pytest.mark.parametrize(
    ("condition", "since"),
    [
        pytest.param(status.Condition(type="Applied", status="True", reason="New"), EARLIER, id="same-status"),
        pytest.param(
            status.Condition(type="Applied", status="False", reason="New"), "2026-01-02T03:04:05Z", id="changed-status"
        ),
    ],
)
def test_transition_time_changes_only_with_the_status(condition: status.Condition, since: str) -> None:
    (merged,) = status.merge_condition([OLD], condition, now=NOW)
    assert merged == {**OLD, "status": condition.status, "reason": "New", "lastTransitionTime": since}


def test_new_condition_is_appended_without_generation_zero() -> None:
    merged = status.merge_condition([OLD], status.Condition(type="Available", status="True", reason="R"), now=NOW)
    assert merged == [
        OLD,
        {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
            "reason": "R",
            "message": "",
        },
    ]


def test_generation_zero_removes_the_observed_generation() -> None:
    (merged,) = status.merge_condition(
        [{**OLD, "observedGeneration": 3}], status.Condition(type="Applied", status="True"), now=NOW
    )
    assert "observedGeneration" not in merged


conditions = st.builds(
    status.Condition,
    type=st.sampled_from(["A", "B", "C"]),
    status=st.sampled_from(["True", "False", "Unknown"]),
    reason=st.text(max_size=3),
    message=st.text(max_size=3),
    observed_generation=st.integers(0, 3),
)


@given(st.lists(conditions, max_size=12))
def test_merge_keeps_the_last_condition_of_each_type(steps: list[status.Condition]) -> None:
    merged: list[Any] = []
    last: dict[str, status.Condition] = {}
    changed_at: dict[str, int] = {}
    for second, condition in enumerate(steps):
        if condition.type not in last or last[condition.type].status != condition.status:
            changed_at[condition.type] = second
        last[condition.type] = condition
        merged = status.merge_condition(merged, condition, now=timestamps.Timestamp(second))
    read = {condition.type: condition for condition in status.read_conditions(merged)}
    assert len(read) == len(merged) == len(last)
    for kind, condition in last.items():
        assert (read[kind].status, read[kind].reason) == (condition.status, condition.reason)
        assert read[kind].observed_generation == condition.observed_generation
        assert read[kind].last_transition_time == timestamps.Timestamp(changed_at[kind]).rfc3339_seconds()


def test_manifest_status_round_trip() -> None:
    meta = status.ResourceMeta(ordinal=1, version="v1", kind="ConfigMap", resource="configmaps", name="c")
    values = [
        status.FeedbackValue(name="n", type="Integer", value=0),
        status.FeedbackValue(name="b", type="Boolean", value=False),
        status.FeedbackValue(name="j", type="JsonRaw", value="{}"),
    ]
    built = status.manifest_status(meta, conditions=[OLD], feedback=values)
    assert built.resource_meta == meta
    assert list(built.feedback) == values
    assert built.body["statusFeedback"]["values"][0] == {"name": "n", "fieldValue": {"type": "Integer", "integer": 0}}
    assert set(built.body["resourceMeta"]) == {"ordinal", "group", "version", "kind", "resource", "name", "namespace"}
    assert status.manifest_status(meta).body["statusFeedback"] == {}


def test_with_manifests_replaces_the_manifest_statuses() -> None:
    meta = status.ResourceMeta(ordinal=0)
    changed = status.WorkStatus().with_manifests([status.manifest_status(meta)])
    assert [manifest.resource_meta for manifest in changed.manifests] == [meta]
    assert changed.hash() != status.WorkStatus().hash()
