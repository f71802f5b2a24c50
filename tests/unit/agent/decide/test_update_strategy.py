"""Writes of each update strategy for each live state."""

from typing import Any

import pytest

from maestropy.agent.decide import update_strategy
from maestropy.agent.expressions import go_values
from maestropy.wire.works import options
from tests.unit.agent.decide.applied_objects import (
    FOREIGN,
    NO_OWNER,
    OTHER_WORK,
    OWNER,
    REFERENCE,
    apply_input,
    config_map,
    deployment,
    live_object,
)

CREATE_ONLY = options.UpdateStrategy(type=options.CREATE_ONLY)
READ_ONLY = options.UpdateStrategy(type=options.READ_ONLY)
APPLY = options.UpdateStrategy(type=options.SERVER_SIDE_APPLY)


def applying(*ignored: options.IgnoreFields, **members: Any) -> options.UpdateStrategy:
    return options.UpdateStrategy(type=options.SERVER_SIDE_APPLY, ignore_fields=ignored, **members)


def present(**members: tuple[str, ...]) -> options.IgnoreFields:
    return options.IgnoreFields(condition=options.ON_SPOKE_PRESENT, **members)


def changed(**members: tuple[str, ...]) -> options.IgnoreFields:
    return options.IgnoreFields(condition=options.ON_SPOKE_CHANGE, **members)


def body_of(action: update_strategy.Action) -> dict[str, Any]:
    assert isinstance(
        action,
        update_strategy.CreateObject
        | update_strategy.ReplaceObject
        | update_strategy.ServerSideApply
        | update_strategy.PatchMetadata,
    )
    return dict(action.body)


# Update


def test_missing_object_is_created_with_owner_reference() -> None:
    action = update_strategy.decide(apply_input(config_map(data={"a": "1"}), None))
    assert action == update_strategy.CreateObject(
        body=config_map(data={"a": "1"}, metadata={"ownerReferences": [REFERENCE]})
    )


def test_orphaned_object_is_created_without_owner_reference() -> None:
    manifest = config_map(metadata={"ownerReferences": [FOREIGN]})
    assert (
        "ownerReferences"
        not in body_of(update_strategy.decide(apply_input(manifest, None, owner=NO_OWNER)))["metadata"]
    )


def test_keys_for_removal_are_not_created() -> None:
    manifest = config_map(metadata={"labels": {"keep": "1", "drop-": ""}, "annotations": {"gone-": ""}})
    metadata = body_of(update_strategy.decide(apply_input(manifest, None)))["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"keep": "1"}, {})


def test_object_in_desired_state_is_not_written() -> None:
    manifest = config_map(data={"a": "1"})
    assert update_strategy.decide(apply_input(manifest, live_object(manifest))) == update_strategy.LeaveUnchanged(
        reason="already in the desired state"
    )


def test_drift_of_stated_field_is_corrected_at_once() -> None:
    manifest = config_map(data={"a": "1"})
    action = update_strategy.decide(apply_input(manifest, live_object(config_map(data={"a": "edited"}))))
    assert isinstance(action, update_strategy.ReplaceObject)
    assert not action.can_defer
    assert (action.body["data"], action.body["metadata"]["resourceVersion"]) == ({"a": "1"}, "7")


def test_annotations_and_labels_are_merged() -> None:
    live = live_object(config_map(metadata={"annotations": {"foo": "bar", "old": "x"}, "labels": {"l": "1"}}))
    manifest = config_map(metadata={"annotations": {"foo1": "bar1", "old-": ""}, "labels": {"l": "2"}})
    metadata = body_of(update_strategy.decide(apply_input(manifest, live)))["metadata"]
    assert (metadata["annotations"], metadata["labels"]) == ({"foo": "bar", "foo1": "bar1"}, {"l": "2"})


def test_live_finalizers_are_kept() -> None:
    resource = {"apiVersion": "my.io/v1", "kind": "Foo", "metadata": {"name": "f", "annotations": {"new": "1"}}}
    live = live_object({**resource, "metadata": {"name": "f"}}, metadata={"finalizers": ["cluster.io/hold"]})
    assert body_of(update_strategy.decide(apply_input(resource, live)))["metadata"]["finalizers"] == ["cluster.io/hold"]
    with_own = {**resource, "metadata": {"name": "f", "finalizers": ["mine"], "labels": {"x": "y"}}}
    without = live_object({**resource, "metadata": {"name": "f"}})
    assert "finalizers" not in body_of(update_strategy.decide(apply_input(with_own, without)))["metadata"]


def test_generic_kind_is_replaced_whole() -> None:
    live = live_object(deployment(replicas=3, paused=True), status={"replicas": 3})
    body = body_of(update_strategy.decide(apply_input(deployment(replicas=1), live)))
    assert body["spec"] == {"replicas": 1}
    assert body["metadata"]["uid"] == "uid-1"


def test_defaults_set_by_cluster_are_no_drift() -> None:
    manifest = deployment(replicas=1)
    defaulted = live_object(deployment(replicas=1, revisionHistoryLimit=10))
    before = apply_input(manifest, None)
    last = update_strategy.last_applied(before, defaulted)
    assert isinstance(update_strategy.decide(apply_input(manifest, defaulted)), update_strategy.ReplaceObject)
    rolled = {**defaulted, "status": {"replicas": 1}}
    assert update_strategy.decide(apply_input(manifest, rolled, last_applied=last)) == update_strategy.LeaveUnchanged(
        reason="already in the desired state"
    )
    assert isinstance(
        update_strategy.decide(apply_input(deployment(replicas=2), rolled, last_applied=last)),
        update_strategy.ReplaceObject,
    )


@pytest.mark.parametrize(
    ("live", "can_defer"),
    [
        pytest.param({"paused": True, "replicas": 5}, True, id="unstated-field-changed-by-autoscaler"),
        pytest.param({"paused": False, "replicas": 1}, False, id="stated-field-changed"),
    ],
)
def test_drift_of_unstated_fields_can_defer(live: dict[str, Any], can_defer: bool) -> None:
    manifest = deployment(paused=True)
    last = update_strategy.last_applied(apply_input(manifest, None), live_object(deployment(paused=True, replicas=1)))
    action = update_strategy.decide(apply_input(manifest, live_object(deployment(**live)), last_applied=last))
    assert isinstance(action, update_strategy.ReplaceObject)
    assert action.can_defer is can_defer


def test_changed_delete_option_changes_owner_reference() -> None:
    manifest = config_map(data={"a": "1"})
    orphan = live_object(manifest, owners=(FOREIGN,))
    assert body_of(update_strategy.decide(apply_input(manifest, orphan)))["metadata"]["ownerReferences"] == [
        FOREIGN,
        REFERENCE,
    ]
    owned = live_object(manifest, owners=(REFERENCE, OTHER_WORK))
    released = body_of(update_strategy.decide(apply_input(manifest, owned, owner=NO_OWNER)))
    assert released["metadata"]["ownerReferences"] == [OTHER_WORK]


# CreateOnly and ReadOnly


def test_create_only_writes_once() -> None:
    manifest = deployment(replicas=3)
    assert isinstance(
        update_strategy.decide(apply_input(manifest, None, strategy=CREATE_ONLY)), update_strategy.CreateObject
    )
    live = live_object(deployment(replicas=1))
    assert update_strategy.decide(apply_input(manifest, live, strategy=CREATE_ONLY)) == update_strategy.LeaveUnchanged(
        reason="exists already"
    )


def test_create_only_adopts_existing_object() -> None:
    live = live_object(deployment(replicas=1), owners=(FOREIGN,))
    action = update_strategy.decide(apply_input(deployment(replicas=3), live, strategy=CREATE_ONLY))
    guard = {"uid": "uid-1", "resourceVersion": "7"}
    assert action == update_strategy.PatchMetadata(body={"metadata": guard | {"ownerReferences": [FOREIGN, REFERENCE]}})


@pytest.mark.parametrize("live", [None, live_object(config_map(data={"x": "y"}), owners=())])
def test_read_only_never_writes(live: dict[str, Any] | None) -> None:
    assert update_strategy.decide(
        apply_input(config_map(), live, strategy=READ_ONLY)
    ) == update_strategy.LeaveUnchanged(reason="read-only")


@pytest.mark.parametrize("kind", ["", "Later"])
def test_unknown_strategy_is_rejected(kind: str) -> None:
    action = update_strategy.decide(apply_input(config_map(), None, strategy=options.UpdateStrategy(type=kind)))
    assert isinstance(action, update_strategy.RejectManifest)
    assert f'updateStrategy.type "{kind}" is not known' in action.problem


# ServerSideApply


def test_server_side_apply_sends_manifest() -> None:
    action = update_strategy.decide(
        apply_input(deployment(replicas=3), live_object(deployment(replicas=1)), strategy=APPLY)
    )
    assert action == update_strategy.ServerSideApply(
        body=deployment(replicas=3), field_manager="work-agent", force=False
    )


def test_server_side_apply_uses_field_manager_and_force() -> None:
    chosen = applying(field_manager="work-agent-another", force=True)
    action = update_strategy.decide(apply_input(deployment(replicas=3), None, strategy=chosen))
    assert action == update_strategy.ServerSideApply(
        body=deployment(replicas=3), field_manager="work-agent-another", force=True
    )


def test_server_side_apply_is_not_repeated_without_change() -> None:
    manifest, live = deployment(replicas=3), live_object(deployment(replicas=3, paused=False))
    last = update_strategy.last_applied(apply_input(manifest, None, strategy=APPLY), live)
    assert update_strategy.decide(
        apply_input(manifest, live, strategy=APPLY, last_applied=last)
    ) == update_strategy.LeaveUnchanged(reason="already in the desired state")
    moved = live_object(deployment(replicas=2, paused=False))
    assert isinstance(
        update_strategy.decide(apply_input(manifest, moved, strategy=APPLY, last_applied=last)),
        update_strategy.ServerSideApply,
    )
    forced = applying(force=True)
    assert isinstance(
        update_strategy.decide(apply_input(manifest, live, strategy=forced, last_applied=last)),
        update_strategy.ServerSideApply,
    )


def test_owner_reference_is_patched_after_server_side_apply() -> None:
    live = live_object(deployment(replicas=1), owners=(OTHER_WORK,))
    patch = update_strategy.owner_followup(apply_input(deployment(replicas=1), None, strategy=APPLY), live)
    assert patch is not None
    assert patch.body["metadata"]["ownerReferences"] == [OTHER_WORK, REFERENCE]
    both = live_object(deployment(replicas=1), owners=(OTHER_WORK, REFERENCE))
    released = update_strategy.owner_followup(
        apply_input(deployment(replicas=1), None, strategy=APPLY, owner=NO_OWNER), both
    )
    assert released is not None
    assert released.body["metadata"]["ownerReferences"] == [OTHER_WORK]
    assert update_strategy.owner_followup(apply_input(deployment(replicas=1), None, strategy=APPLY), both) is None


def test_null_creation_timestamps_are_dropped_at_every_level() -> None:
    nested = {"metadata": {"creationTimestamp": None, "name": "inner"}}
    manifest = deployment(template=nested, list=[nested, "x"], kept={"creationTimestamp": None})
    manifest["metadata"]["creationTimestamp"] = None
    body = body_of(update_strategy.decide(apply_input(manifest, None, strategy=APPLY)))
    assert "creationTimestamp" not in body["metadata"]
    assert body["spec"]["template"] == {"metadata": {"name": "inner"}}
    assert body["spec"]["list"] == [{"metadata": {"name": "inner"}}, "x"]
    assert body["spec"]["kept"] == {"creationTimestamp": None}
    assert manifest["spec"]["template"]["metadata"] == {"creationTimestamp": None, "name": "inner"}


def annotated(manifest: dict[str, Any], value: str) -> dict[str, Any]:
    metadata = {**manifest["metadata"], "annotations": {update_strategy.CONFIG_HASH: value}}
    return {**manifest, "metadata": metadata}


def test_on_spoke_change_keeps_spoke_edits_until_manifest_changes() -> None:
    manifest = deployment(replicas=1, paused=False)
    chosen = applying(changed(json_paths=(".spec.replicas",)))
    created = body_of(update_strategy.decide(apply_input(manifest, None, strategy=chosen)))
    assert created == annotated(manifest, go_values.object_hash(manifest))
    live = live_object({**created, "spec": {"replicas": 2, "paused": False}})
    forced = applying(changed(json_paths=(".spec.replicas",)), force=True)
    assert update_strategy.decide(apply_input(manifest, live, strategy=forced)) == update_strategy.LeaveUnchanged(
        reason="the manifest has not changed"
    )
    action = update_strategy.decide(apply_input(deployment(replicas=3, paused=False), live, strategy=chosen))
    assert body_of(action)["spec"] == {"replicas": 3, "paused": False}


@pytest.mark.parametrize(
    "ignored",
    [
        pytest.param(present(json_paths=(".spec.replicas",)), id="json-path"),
        pytest.param(present(json_pointers=("/spec/replicas",)), id="json-pointer"),
        pytest.param(present(jq_path_expressions=(".spec.replicas",)), id="jq"),
        pytest.param(options.IgnoreFields(condition="", json_paths=(".spec.replicas",)), id="condition-left-out"),
    ],
)
def test_on_spoke_present_never_writes_field_again(ignored: options.IgnoreFields) -> None:
    chosen = applying(ignored)
    created = body_of(update_strategy.decide(apply_input(deployment(replicas=1, paused=False), None, strategy=chosen)))
    assert created["spec"] == {"replicas": 1, "paused": False}
    live = live_object({**created, "spec": {"replicas": 2, "paused": False}})
    same = update_strategy.decide(apply_input(deployment(replicas=3, paused=False), live, strategy=chosen))
    assert same == update_strategy.LeaveUnchanged(reason="the manifest has not changed")
    other = update_strategy.decide(apply_input(deployment(replicas=3, paused=True), live, strategy=chosen))
    assert body_of(other)["spec"] == {"paused": True}


def test_ignored_jq_path_selects_env_var_of_every_container() -> None:
    env = [{"name": "JAVA_OPTS", "value": "-Xmx1g"}, {"name": "OTHER", "value": "1"}]
    template = {"spec": {"containers": [{"name": "c", "env": env}]}}
    expression = '.spec.template.spec.containers[].env[] | select(.name == "JAVA_OPTS")'
    chosen = applying(present(jq_path_expressions=(expression,)))
    created = body_of(update_strategy.decide(apply_input(deployment(template=template), None, strategy=chosen)))
    assert created["spec"]["template"] == template
    live = live_object(annotated(deployment(template=template), "outdated"))
    updated = body_of(update_strategy.decide(apply_input(deployment(template=template), live, strategy=chosen)))
    assert updated["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": "OTHER", "value": "1"}]


def test_invalid_jq_rejects_manifest() -> None:
    chosen = applying(present(jq_path_expressions=(".spec.[bad",)))
    action = update_strategy.decide(apply_input(deployment(replicas=1), None, strategy=chosen))
    assert isinstance(action, update_strategy.RejectManifest)
    assert action.is_ignore_fields_error
    assert action.problem.startswith("JQ expression error in '.spec.[bad': failed to parse jq expression: ")


def test_owner_reference_is_corrected_without_manifest_change() -> None:
    manifest = deployment(replicas=1)
    chosen = applying(changed(json_paths=(".spec.replicas",)))
    live = live_object(annotated(manifest, go_values.object_hash(manifest)), owners=())
    action = update_strategy.decide(apply_input(manifest, live, strategy=chosen, owner=OWNER))
    assert body_of(action)["metadata"]["ownerReferences"] == [REFERENCE]


def test_sendable_drops_server_set_metadata() -> None:
    manifest = config_map(metadata={"uid": "x", "resourceVersion": "1", "managedFields": [], "labels": {"a": "b"}})
    assert update_strategy.sendable(manifest, is_namespaced=True) == config_map(metadata={"labels": {"a": "b"}})


def test_cluster_scoped_object_has_no_namespace() -> None:
    role = {"kind": "ClusterRole", "metadata": {"name": "r", "namespace": "ns1"}}
    assert update_strategy.sendable(role, is_namespaced=False)["metadata"] == {"name": "r"}


def test_malformed_manifest_is_rejected() -> None:
    manifest = config_map(metadata={"labels": ["not", "a", "map"]})
    action = update_strategy.decide(apply_input(manifest, live_object(config_map())))
    assert isinstance(action, update_strategy.RejectManifest)
    assert action.problem == "labels must be an object"
