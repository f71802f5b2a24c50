"""The apply plan of a work, also with invalid manifests."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.agent.decide import manifest_identity, plan, update_strategy
from maestropy.agent.expressions.budget import Budget
from maestropy.wire.works import options, status, work
from tests.unit.agent.decide.applied_objects import OWNER, SERVED, config_map, deployment, live_object, manifest_work

FOO = manifest_identity.GroupVersionKind("my.io", "v1", "Foo")


def planned(planned_work: work.ManifestWork, **served: Any) -> plan.ApplyPlan:
    verdict = plan.plan_work(planned_work, served=served.get("served", SERVED))
    assert isinstance(verdict, plan.ApplyPlan)
    return verdict


def test_invalid_manifest_does_not_block_others() -> None:
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
    verdict = planned(manifest_work(nameless, config_map("cm1"), "text", config_map("cm2")))
    assert [(step.meta.name, step.problem) for step in verdict.steps] == [
        ("", "name must be set in manifest"),
        ("cm1", ""),
        ("cm2", ""),
        ("", "a manifest must be a JSON object"),
    ]


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        pytest.param(
            {"apiVersion": "my.io/v1", "kind": "Foo", "metadata": {"name": "f"}},
            'the server doesn\'t have a resource type "Foo"',
            id="unknown-kind",
        ),
        pytest.param({"metadata": {"name": "x"}}, "Object 'Kind' is missing in manifest", id="no-kind"),
        pytest.param(config_map("", metadata={"name": ""}), "name must be set in manifest", id="no-name"),
        pytest.param(
            config_map(metadata={"generateName": "x-"}), "generateName must not be set in manifest", id="generate-name"
        ),
        pytest.param(
            {"apiVersion": 1, "kind": "ConfigMap", "metadata": {"name": "x"}}, "apiVersion must be a string", id="types"
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": []}, "metadata must be an object", id="metadata"
        ),
    ],
)
def test_invalid_manifest_has_problem(manifest: dict[str, Any], problem: str) -> None:
    (step,) = planned(manifest_work(manifest)).steps
    assert step.problem == problem
    assert plan.action(step, live=None, owner=OWNER, budget=Budget()) == update_strategy.RejectManifest(problem=problem)


def test_failed_discovery_is_problem_of_manifest() -> None:
    served = {FOO: plan.DiscoveryFailed(problem="the server is currently unable to handle the request")}
    foo = {"apiVersion": "my.io/v1", "kind": "Foo", "metadata": {"name": "f"}}
    (step,) = planned(manifest_work(foo), served=served).steps
    assert step.problem == "the server is currently unable to handle the request"


def test_steps_are_in_apply_order_and_keep_ordinals() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns1"}}
    verdict = planned(manifest_work(deployment(), config_map(), namespace))
    assert [(step.meta.kind, step.meta.ordinal) for step in verdict.steps] == [
        ("Namespace", 2),
        ("ConfigMap", 1),
        ("Deployment", 0),
    ]


def test_cluster_scoped_object_has_no_namespace() -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "r", "namespace": "ns1"},
    }
    (step,) = planned(manifest_work(role)).steps
    assert step.meta.namespace == ""
    assert step.manifest["metadata"] == {"name": "r"}


def test_step_has_effective_config_and_ownership() -> None:
    identifier = {"group": "", "resource": "configmaps", "name": "cm*", "namespace": "*"}
    verdict = planned(
        manifest_work(
            config_map("cm1"),
            config_map("cm2"),
            manifestConfigs=[{"resourceIdentifier": identifier, "updateStrategy": {"type": "CreateOnly"}}],
            deleteOption={
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphans": {"orphaningRules": [{**identifier, "name": "cm1", "namespace": "ns1"}]},
            },
        )
    )
    assert [step.config.update_strategy.type for step in verdict.steps] == [options.CREATE_ONLY] * 2
    assert [step.is_owned for step in verdict.steps] == [False, True]
    assert isinstance(
        plan.action(verdict.steps[0], live=None, owner=OWNER, budget=Budget()), update_strategy.CreateObject
    )


def test_each_kind_is_discovered_once() -> None:
    mixed_work = manifest_work(config_map("cm1"), config_map("cm2"), deployment(), "text", {"apiVersion": 1})
    assert plan.gvks_of(mixed_work) == {
        manifest_identity.GroupVersionKind("", "v1", "ConfigMap"),
        manifest_identity.GroupVersionKind("apps", "v1", "Deployment"),
    }


def test_complete_work_is_not_applied() -> None:
    done = status.WorkStatus({"conditions": [{"type": "Complete", "status": "True"}]})
    assert plan.plan_work(manifest_work(config_map()).with_status(done), served=SERVED) == plan.AlreadyComplete()


def test_complete_manifest_is_not_applied_after_move() -> None:
    meta = status.ResourceMeta(
        ordinal=5, version="v1", kind="ConfigMap", resource="configmaps", name="cm1", namespace="ns1"
    )
    entry = status.manifest_status(meta, conditions=[{"type": "Complete", "status": "True"}])
    changed_work = manifest_work(config_map("cm1", data={"new": "1"}), config_map("cm2"))
    verdict = planned(changed_work.with_status(status.WorkStatus().with_manifests([entry])))
    assert [step.is_complete for step in verdict.steps] == [True, False]
    left = plan.action(verdict.steps[0], live=live_object(config_map("cm1")), owner=OWNER, budget=Budget())
    assert left == update_strategy.LeaveUnchanged(reason="complete")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"manifestConfigs": "x"}, "spec.manifestConfigs must be a list", id="configs"),
        pytest.param(
            {"deleteOption": {"propagationPolicy": 1}}, "propagationPolicy must be a string", id="delete-option"
        ),
        pytest.param({"workload": {"manifests": {}}}, "spec.workload.manifests must be a list", id="manifests"),
    ],
)
def test_invalid_work_is_rejected(spec: dict[str, Any], problem: str) -> None:
    assert plan.plan_work(manifest_work(config_map()).with_spec(**spec), served=SERVED) == plan.InvalidWork(
        problem=problem
    )


@pytest.mark.parametrize(
    ("executor", "problem"),
    [
        pytest.param({}, "only support ServiceAccount type for the executor", id="empty-is-not-absent"),
        pytest.param(
            {"subject": {"type": "ServiceAccount"}}, "the executor service account is nil", id="account-missing"
        ),
        pytest.param(
            {"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "x"}}}, "", id="fine"
        ),
    ],
)
def test_executor_problem_reaches_every_step(executor: dict[str, Any], problem: str) -> None:
    verdict = planned(manifest_work(config_map(), executor=executor))
    assert verdict.executor is not None
    assert verdict.steps[0].problem == problem


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "kind", "x"]), inner, max_size=3)
    ),
    max_leaves=4,
)
MANIFEST = JSON | st.fixed_dictionaries({}, optional={"apiVersion": JSON, "kind": JSON, "metadata": JSON, "spec": JSON})


@given(st.lists(MANIFEST, max_size=4))
def test_any_manifest_gets_one_step(manifests: list[Any]) -> None:
    any_work = manifest_work(*manifests)
    plan.gvks_of(any_work)
    verdict = planned(any_work)
    assert sorted(step.meta.ordinal for step in verdict.steps) == [*range(len(manifests))]
    for step in verdict.steps:
        plan.action(step, live=None, owner=OWNER, budget=Budget())
