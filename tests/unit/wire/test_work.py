"""Works and statuses: typed access, changes by copy, and nothing lost on the way."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors, instant, options, status, work

DATA = Path(__file__).parents[2] / "data"
NOW = instant.parse("2026-01-02T03:04:05.678Z")
EARLIER = "2025-12-16T06:00:17Z"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
extras = st.dictionaries(st.text(max_size=5).map("x-".__add__), json_values, max_size=3)


def sample(name: str) -> work.ManifestWork:
    return work.from_json((DATA / f"{name}.json").read_bytes())


def test_typed_view_of_a_real_work() -> None:
    found = sample("wire_manifestwork_watched")
    assert (found.name, found.generation) == ("e44ec579-9646-549a-b679-db8d19d6da37", 1)
    assert found.uid == "55c61e54-a3f6-563d-9fec-b1fe297bdfdb"
    assert found.labels == {"maestro.resource.type": "2d18a7dc-c731-5753-8aa9-6b2f22e3b12b"}
    assert [manifest["kind"] for manifest in found.manifests] == ["Deployment"]
    (config,) = found.manifest_configs
    assert config.resource_identifier == options.ResourceIdentifier(
        group="apps", resource="deployments", name="maestro-e2e-upgrade-test", namespace="default"
    )
    assert config.update_strategy == options.UpdateStrategy(
        type="ServerSideApply", force=True, field_manager="maestro-agent"
    )
    assert config.feedback_rules == (
        options.FeedbackRule(type="JSONPaths", json_paths=(options.JsonPath(name="status", path=".status"),)),
    )
    assert found.delete_option is None
    assert found.executor is None
    assert found.status.is_true("Applied")
    assert not found.status.is_deleted
    (manifest,) = found.status.manifests
    assert manifest.resource_meta.kind == "Deployment"
    assert manifest.feedback[0].type == "JsonRaw"
    assert str(manifest.feedback[0].value).startswith('{"conditions"')
    assert [condition.type for condition in manifest.conditions] == ["Applied", "Available", "StatusFeedbackSynced"]


def test_all_options_are_read() -> None:
    found = work.new("w").with_spec(
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
    assert found.delete_option == options.DeleteOption(
        propagation_policy=options.SELECTIVELY_ORPHAN,
        orphaning_rules=(options.ResourceIdentifier(resource="secrets", name="s"),),
        ttl_seconds_after_finished=0,
    )
    assert found.executor == options.Executor(type="ServiceAccount", namespace="n", name="sa")
    (config,) = found.manifest_configs
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
def test_wrong_types_are_named_by_path(body: dict[str, Any], read: str, path: str) -> None:
    with pytest.raises(errors.Malformed, match=path):
        getattr(work.from_object(body), read)


def test_other_kinds_are_refused() -> None:
    with pytest.raises(errors.Malformed, match="kind is 'Pod'"):
        work.from_object({"kind": "Pod"})


def test_changes_leave_the_original_alone() -> None:
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
def test_unknown_members_survive(top: Any, metadata: Any, spec: Any, inner: Any) -> None:
    body = {
        **top,
        "metadata": {"name": "w", **metadata},
        "spec": {**spec, "workload": {"manifests": [inner], **inner}, "manifestConfigs": [{**inner}]},
        "status": {**inner, "conditions": [{"type": "Applied", "status": "False", **inner}]},
    }
    found = work.from_json(json.dumps(body))
    assert json.loads(found.to_json()) == body
    merged = found.status.with_condition(status.Condition(type="Applied", status="True"), now=NOW)
    changed = found.with_labels({"a": "b"}).with_manifests(found.manifests).with_status(merged)
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
        pytest.param(status.Condition(type="Applied", status="False", reason="New"), "2026-01-02T03:04:05Z", id="flip"),
    ],
)
def test_transition_time_moves_only_with_the_status(condition: status.Condition, since: str) -> None:
    (found,) = status.merge_condition([OLD], condition, now=NOW)
    assert found == {**OLD, "status": condition.status, "reason": "New", "lastTransitionTime": since}


def test_new_conditions_go_to_the_end_and_omit_generation_zero() -> None:
    found = status.merge_condition([OLD], status.Condition(type="Available", status="True", reason="R"), now=NOW)
    assert found == [
        OLD,
        {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
            "reason": "R",
            "message": "",
        },
    ]


def test_a_generation_of_zero_removes_the_old_one() -> None:
    (found,) = status.merge_condition(
        [{**OLD, "observedGeneration": 3}], status.Condition(type="Applied", status="True"), now=NOW
    )
    assert "observedGeneration" not in found


conditions = st.builds(
    status.Condition,
    type=st.sampled_from(["A", "B", "C"]),
    status=st.sampled_from(["True", "False", "Unknown"]),
    reason=st.text(max_size=3),
    message=st.text(max_size=3),
    observed_generation=st.integers(0, 3),
)


@given(st.lists(conditions, max_size=12))
def test_merging_keeps_one_condition_per_type_and_the_last_word(steps: list[status.Condition]) -> None:
    found: list[Any] = []
    last: dict[str, status.Condition] = {}
    changed_at: dict[str, int] = {}
    for second, condition in enumerate(steps):
        if condition.type not in last or last[condition.type].status != condition.status:
            changed_at[condition.type] = second
        last[condition.type] = condition
        found = status.merge_condition(found, condition, now=instant.Timestamp(second))
    read = {condition.type: condition for condition in status.read_conditions(found)}
    assert len(read) == len(found) == len(last)
    for kind, condition in last.items():
        assert (read[kind].status, read[kind].reason) == (condition.status, condition.reason)
        assert read[kind].observed_generation == condition.observed_generation
        assert read[kind].last_transition_time == instant.Timestamp(changed_at[kind]).rfc3339_seconds()


def test_status_of_a_manifest_round_trips() -> None:
    meta = status.ResourceMeta(ordinal=1, version="v1", kind="ConfigMap", resource="configmaps", name="c")
    values = [
        status.FeedbackValue(name="n", type="Integer", value=0),
        status.FeedbackValue(name="b", type="Boolean", value=False),
        status.FeedbackValue(name="j", type="JsonRaw", value="{}"),
    ]
    found = status.manifest_status(meta, conditions=[OLD], feedback=values)
    assert found.resource_meta == meta
    assert list(found.feedback) == values
    assert found.body["statusFeedback"]["values"][0] == {"name": "n", "fieldValue": {"type": "Integer", "integer": 0}}
    assert set(found.body["resourceMeta"]) == {"ordinal", "group", "version", "kind", "resource", "name", "namespace"}
    assert status.manifest_status(meta).body["statusFeedback"] == {}


def test_with_manifests_replaces_them_in_the_status() -> None:
    meta = status.ResourceMeta(ordinal=0)
    found = status.WorkStatus().with_manifests([status.manifest_status(meta)])
    assert [manifest.resource_meta for manifest in found.manifests] == [meta]
    assert found.hash() != status.WorkStatus().hash()
