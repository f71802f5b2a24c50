"""What is written, for each strategy and each state of the cluster."""

from typing import Any

import pytest
from applied_objects import FOREIGN, NO_OWNER, OTHER_WORK, OWNER, REFERENCE, config_map, deployment, living, wish

from maestropy.agent.decide import gotext, strategy
from maestropy.wire import options

CREATE_ONLY = options.UpdateStrategy(type=options.CREATE_ONLY)
READ_ONLY = options.UpdateStrategy(type=options.READ_ONLY)
APPLY = options.UpdateStrategy(type=options.SERVER_SIDE_APPLY)


def applying(*ignored: options.IgnoreFields, **members: Any) -> options.UpdateStrategy:
    return options.UpdateStrategy(type=options.SERVER_SIDE_APPLY, ignore_fields=ignored, **members)


def present(**members: tuple[str, ...]) -> options.IgnoreFields:
    return options.IgnoreFields(condition=options.ON_SPOKE_PRESENT, **members)  # type: ignore[arg-type]  # a table


def changed(**members: tuple[str, ...]) -> options.IgnoreFields:
    return options.IgnoreFields(condition=options.ON_SPOKE_CHANGE, **members)  # type: ignore[arg-type]  # a table


def body_of(action: strategy.Action) -> dict[str, Any]:
    assert isinstance(action, strategy.Create | strategy.Replace | strategy.Apply | strategy.PatchMetadata)
    return dict(action.body)


# Update


def test_case_1_what_is_missing_is_created_with_our_owner() -> None:
    action = strategy.decide(wish(config_map(data={"a": "1"}), None))
    assert action == strategy.Create(body=config_map(data={"a": "1"}, metadata={"ownerReferences": [REFERENCE]}))


def test_case_26_an_orphan_is_created_without_owner() -> None:
    manifest = config_map(metadata={"ownerReferences": [FOREIGN]})
    assert "ownerReferences" not in body_of(strategy.decide(wish(manifest, None, owner=NO_OWNER)))["metadata"]


def test_marks_for_removal_are_not_created() -> None:
    manifest = config_map(metadata={"labels": {"keep": "1", "drop-": ""}, "annotations": {"gone-": ""}})
    metadata = body_of(strategy.decide(wish(manifest, None)))["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"keep": "1"}, {})


def test_what_is_as_wanted_is_left() -> None:
    manifest = config_map(data={"a": "1"})
    assert strategy.decide(wish(manifest, living(manifest))) == strategy.Leave(reason="already as wanted")


def test_case_15_an_edit_of_the_cluster_is_repaired_at_once() -> None:
    manifest = config_map(data={"a": "1"})
    action = strategy.decide(wish(manifest, living(config_map(data={"a": "edited"}))))
    assert isinstance(action, strategy.Replace)
    assert not action.can_wait
    assert (action.body["data"], action.body["metadata"]["resourceVersion"]) == ({"a": "1"}, "7")


def test_case_8_annotations_and_labels_merge() -> None:
    live = living(config_map(metadata={"annotations": {"foo": "bar", "old": "x"}, "labels": {"l": "1"}}))
    manifest = config_map(metadata={"annotations": {"foo1": "bar1", "old-": ""}, "labels": {"l": "2"}})
    metadata = body_of(strategy.decide(wish(manifest, live)))["metadata"]
    assert (metadata["annotations"], metadata["labels"]) == ({"foo": "bar", "foo1": "bar1"}, {"l": "2"})


def test_case_9_finalizers_belong_to_the_cluster() -> None:
    resource = {"apiVersion": "my.io/v1", "kind": "Foo", "metadata": {"name": "f", "annotations": {"new": "1"}}}
    live = living({**resource, "metadata": {"name": "f"}}, metadata={"finalizers": ["cluster.io/hold"]})
    assert body_of(strategy.decide(wish(resource, live)))["metadata"]["finalizers"] == ["cluster.io/hold"]
    with_own = {**resource, "metadata": {"name": "f", "finalizers": ["mine"], "labels": {"x": "y"}}}
    without = living({**resource, "metadata": {"name": "f"}})
    assert "finalizers" not in body_of(strategy.decide(wish(with_own, without)))["metadata"]


def test_a_kind_without_special_rules_is_replaced_as_a_whole() -> None:
    live = living(deployment(replicas=3, paused=True), status={"replicas": 3})
    body = body_of(strategy.decide(wish(deployment(replicas=1), live)))
    assert body["spec"] == {"replicas": 1}
    assert body["metadata"]["uid"] == "uid-1"


def test_what_the_cluster_made_of_the_last_write_is_no_drift() -> None:
    manifest = deployment(replicas=1)
    defaulted = living(deployment(replicas=1, revisionHistoryLimit=10))
    before = wish(manifest, None)
    last = strategy.settled(before, defaulted)
    assert isinstance(strategy.decide(wish(manifest, defaulted)), strategy.Replace)
    rolled = {**defaulted, "status": {"replicas": 1}}
    assert strategy.decide(wish(manifest, rolled, last=last)) == strategy.Leave(reason="already as wanted")
    assert isinstance(strategy.decide(wish(deployment(replicas=2), rolled, last=last)), strategy.Replace)


@pytest.mark.parametrize(
    ("found", "can_wait"),
    [
        pytest.param({"paused": True, "replicas": 5}, True, id="an-autoscaler-set-what-the-manifest-leaves-out"),
        pytest.param({"paused": False, "replicas": 1}, False, id="what-the-manifest-states-was-changed"),
    ],
)
def test_drift_that_can_wait(found: dict[str, Any], can_wait: bool) -> None:
    manifest = deployment(paused=True)
    last = strategy.settled(wish(manifest, None), living(deployment(paused=True, replicas=1)))
    action = strategy.decide(wish(manifest, living(deployment(**found)), last=last))
    assert isinstance(action, strategy.Replace)
    assert action.can_wait is can_wait


def test_case_29_a_changed_delete_option_changes_the_owner() -> None:
    manifest = config_map(data={"a": "1"})
    orphan = living(manifest, owners=(FOREIGN,))
    assert body_of(strategy.decide(wish(manifest, orphan)))["metadata"]["ownerReferences"] == [FOREIGN, REFERENCE]
    owned = living(manifest, owners=(REFERENCE, OTHER_WORK))
    released = body_of(strategy.decide(wish(manifest, owned, owner=NO_OWNER)))
    assert released["metadata"]["ownerReferences"] == [OTHER_WORK]


# CreateOnly and ReadOnly


def test_case_30_create_only_writes_once() -> None:
    manifest = deployment(replicas=3)
    assert isinstance(strategy.decide(wish(manifest, None, strategy=CREATE_ONLY)), strategy.Create)
    found = living(deployment(replicas=1))
    assert strategy.decide(wish(manifest, found, strategy=CREATE_ONLY)) == strategy.Leave(reason="exists already")


def test_create_only_takes_over_what_is_there() -> None:
    found = living(deployment(replicas=1), owners=(FOREIGN,))
    action = strategy.decide(wish(deployment(replicas=3), found, strategy=CREATE_ONLY))
    guard = {"uid": "uid-1", "resourceVersion": "7"}
    assert action == strategy.PatchMetadata(body={"metadata": guard | {"ownerReferences": [FOREIGN, REFERENCE]}})


@pytest.mark.parametrize("live", [None, living(config_map(data={"x": "y"}), owners=())])
def test_case_31_read_only_never_writes(live: dict[str, Any] | None) -> None:
    assert strategy.decide(wish(config_map(), live, strategy=READ_ONLY)) == strategy.Leave(reason="read-only")


@pytest.mark.parametrize("kind", ["", "Later"])
def test_an_unknown_strategy_is_refused(kind: str) -> None:
    action = strategy.decide(wish(config_map(), None, strategy=options.UpdateStrategy(type=kind)))
    assert isinstance(action, strategy.Refuse)
    assert f'updateStrategy.type "{kind}" is not known' in action.problem


# ServerSideApply


def test_case_32_server_side_apply_sends_the_manifest() -> None:
    action = strategy.decide(wish(deployment(replicas=3), living(deployment(replicas=1)), strategy=APPLY))
    assert action == strategy.Apply(body=deployment(replicas=3), field_manager="work-agent", force=False)


def test_case_34_another_manager_with_force() -> None:
    chosen = applying(field_manager="work-agent-another", force=True)
    action = strategy.decide(wish(deployment(replicas=3), None, strategy=chosen))
    assert action == strategy.Apply(body=deployment(replicas=3), field_manager="work-agent-another", force=True)


def test_server_side_apply_is_not_repeated_while_nothing_moves() -> None:
    manifest, live = deployment(replicas=3), living(deployment(replicas=3, paused=False))
    last = strategy.settled(wish(manifest, None, strategy=APPLY), live)
    assert strategy.decide(wish(manifest, live, strategy=APPLY, last=last)) == strategy.Leave(
        reason="already as wanted"
    )
    moved = living(deployment(replicas=2, paused=False))
    assert isinstance(strategy.decide(wish(manifest, moved, strategy=APPLY, last=last)), strategy.Apply)
    forced = applying(force=True)
    assert isinstance(strategy.decide(wish(manifest, live, strategy=forced, last=last)), strategy.Apply)


def test_case_35_owners_follow_a_server_side_apply() -> None:
    live = living(deployment(replicas=1), owners=(OTHER_WORK,))
    patch = strategy.followup(wish(deployment(replicas=1), None, strategy=APPLY), live)
    assert patch is not None
    assert patch.body["metadata"]["ownerReferences"] == [OTHER_WORK, REFERENCE]
    both = living(deployment(replicas=1), owners=(OTHER_WORK, REFERENCE))
    released = strategy.followup(wish(deployment(replicas=1), None, strategy=APPLY, owner=NO_OWNER), both)
    assert released is not None
    assert released.body["metadata"]["ownerReferences"] == [OTHER_WORK]
    assert strategy.followup(wish(deployment(replicas=1), None, strategy=APPLY), both) is None


def test_case_41_null_timestamps_are_dropped_at_every_level() -> None:
    nested = {"metadata": {"creationTimestamp": None, "name": "inner"}}
    manifest = deployment(template=nested, list=[nested, "x"], kept={"creationTimestamp": None})
    manifest["metadata"]["creationTimestamp"] = None
    body = body_of(strategy.decide(wish(manifest, None, strategy=APPLY)))
    assert "creationTimestamp" not in body["metadata"]
    assert body["spec"]["template"] == {"metadata": {"name": "inner"}}
    assert body["spec"]["list"] == [{"metadata": {"name": "inner"}}, "x"]
    assert body["spec"]["kept"] == {"creationTimestamp": None}
    assert manifest["spec"]["template"]["metadata"] == {"creationTimestamp": None, "name": "inner"}


def annotated(manifest: dict[str, Any], value: str) -> dict[str, Any]:
    metadata = {**manifest["metadata"], "annotations": {strategy.CONFIG_HASH: value}}
    return {**manifest, "metadata": metadata}


def test_case_36_on_spoke_change_yields_until_the_wish_changes() -> None:
    manifest = deployment(replicas=1, paused=False)
    chosen = applying(changed(json_paths=(".spec.replicas",)))
    created = body_of(strategy.decide(wish(manifest, None, strategy=chosen)))
    assert created == annotated(manifest, gotext.object_hash(manifest))
    live = living({**created, "spec": {"replicas": 2, "paused": False}})
    forced = applying(changed(json_paths=(".spec.replicas",)), force=True)
    assert strategy.decide(wish(manifest, live, strategy=forced)) == strategy.Leave(reason="the wish has not changed")
    action = strategy.decide(wish(deployment(replicas=3, paused=False), live, strategy=chosen))
    assert body_of(action)["spec"] == {"replicas": 3, "paused": False}


@pytest.mark.parametrize(
    "ignored",
    [
        pytest.param(present(json_paths=(".spec.replicas",)), id="case-37-json-path"),
        pytest.param(present(json_pointers=("/spec/replicas",)), id="case-38-json-pointer"),
        pytest.param(present(jq_path_expressions=(".spec.replicas",)), id="jq"),
        pytest.param(options.IgnoreFields(condition="", json_paths=(".spec.replicas",)), id="condition-left-out"),
    ],
)
def test_on_spoke_present_never_writes_the_field_again(ignored: options.IgnoreFields) -> None:
    chosen = applying(ignored)
    created = body_of(strategy.decide(wish(deployment(replicas=1, paused=False), None, strategy=chosen)))
    assert created["spec"] == {"replicas": 1, "paused": False}
    live = living({**created, "spec": {"replicas": 2, "paused": False}})
    same = strategy.decide(wish(deployment(replicas=3, paused=False), live, strategy=chosen))
    assert same == strategy.Leave(reason="the wish has not changed")
    other = strategy.decide(wish(deployment(replicas=3, paused=True), live, strategy=chosen))
    assert body_of(other)["spec"] == {"paused": True}


def test_case_39_jq_selects_one_variable_of_every_container() -> None:
    env = [{"name": "JAVA_OPTS", "value": "-Xmx1g"}, {"name": "OTHER", "value": "1"}]
    template = {"spec": {"containers": [{"name": "c", "env": env}]}}
    expression = '.spec.template.spec.containers[].env[] | select(.name == "JAVA_OPTS")'
    chosen = applying(present(jq_path_expressions=(expression,)))
    created = body_of(strategy.decide(wish(deployment(template=template), None, strategy=chosen)))
    assert created["spec"]["template"] == template
    live = living(annotated(deployment(template=template), "outdated"))
    updated = body_of(strategy.decide(wish(deployment(template=template), live, strategy=chosen)))
    assert updated["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": "OTHER", "value": "1"}]


def test_case_40_invalid_jq_is_told() -> None:
    chosen = applying(present(jq_path_expressions=(".spec.[bad",)))
    action = strategy.decide(wish(deployment(replicas=1), None, strategy=chosen))
    assert isinstance(action, strategy.Refuse)
    assert action.is_about_ignored_fields
    assert action.problem.startswith("JQ expression error in '.spec.[bad': failed to parse jq expression: ")


def test_owners_are_mended_even_if_the_wish_has_not_changed() -> None:
    manifest = deployment(replicas=1)
    chosen = applying(changed(json_paths=(".spec.replicas",)))
    live = living(annotated(manifest, gotext.object_hash(manifest)), owners=())
    action = strategy.decide(wish(manifest, live, strategy=chosen, owner=OWNER))
    assert body_of(action)["metadata"]["ownerReferences"] == [REFERENCE]


def test_prepared_drops_what_only_a_cluster_sets() -> None:
    manifest = config_map(metadata={"uid": "x", "resourceVersion": "1", "managedFields": [], "labels": {"a": "b"}})
    assert strategy.prepared(manifest, is_namespaced=True) == config_map(metadata={"labels": {"a": "b"}})


def test_case_11_a_cluster_scoped_object_has_no_namespace() -> None:
    role = {"kind": "ClusterRole", "metadata": {"name": "r", "namespace": "ns1"}}
    assert strategy.prepared(role, is_namespaced=False)["metadata"] == {"name": "r"}


def test_a_malformed_manifest_is_refused_not_crashed_on() -> None:
    manifest = config_map(metadata={"labels": ["not", "a", "map"]})
    action = strategy.decide(wish(manifest, living(config_map())))
    assert isinstance(action, strategy.Refuse)
    assert action.problem == "labels must be an object"
