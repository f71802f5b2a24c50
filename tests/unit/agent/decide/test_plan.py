"""What a work wants, manifest by manifest, whatever is wrong with some of them."""

from typing import Any

import pytest
from applied_objects import OWNER, SERVED, config_map, deployment, living, manifest_work
from hypothesis import given
from hypothesis import strategies as st

from maestropy.agent.decide import identity, plan, strategy
from maestropy.wire import options, status, work

FOO = identity.Kind("my.io", "v1", "Foo")


def planned(found: work.ManifestWork, **served: Any) -> plan.Plan:
    verdict = plan.plan(found, served=served.get("served", SERVED))
    assert isinstance(verdict, plan.Plan)
    return verdict


def test_case_4_one_bad_manifest_blocks_nobody() -> None:
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
            id="case-7-unknown-kind",
        ),
        pytest.param({"metadata": {"name": "x"}}, "Object 'Kind' is missing in manifest", id="no-kind"),
        pytest.param(config_map("", metadata={"name": ""}), "name must be set in manifest", id="case-88-no-name"),
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
def test_problems_of_a_manifest(manifest: dict[str, Any], problem: str) -> None:
    (step,) = planned(manifest_work(manifest)).steps
    assert step.problem == problem
    assert plan.action(step, live=None, owner=OWNER) == strategy.Refuse(problem=problem)


def test_a_discovery_that_failed_is_told() -> None:
    served = {FOO: plan.NotServed(problem="the server is currently unable to handle the request")}
    foo = {"apiVersion": "my.io/v1", "kind": "Foo", "metadata": {"name": "f"}}
    (step,) = planned(manifest_work(foo), served=served).steps
    assert step.problem == "the server is currently unable to handle the request"


def test_steps_are_in_order_of_rank_and_keep_their_place() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns1"}}
    verdict = planned(manifest_work(deployment(), config_map(), namespace))
    assert [(step.meta.kind, step.meta.ordinal) for step in verdict.steps] == [
        ("Namespace", 2),
        ("ConfigMap", 1),
        ("Deployment", 0),
    ]


def test_case_11_a_cluster_scoped_object_has_no_namespace() -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "r", "namespace": "ns1"},
    }
    (step,) = planned(manifest_work(role)).steps
    assert step.meta.namespace == ""
    assert step.manifest["metadata"] == {"name": "r"}


def test_wishes_and_ownership_reach_the_step() -> None:
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
    assert [step.treatment.update_strategy.type for step in verdict.steps] == [options.CREATE_ONLY] * 2
    assert [step.is_owned for step in verdict.steps] == [False, True]
    assert isinstance(plan.action(verdict.steps[0], live=None, owner=OWNER), strategy.Create)


def test_discovery_is_asked_for_each_kind_once() -> None:
    found = manifest_work(config_map("cm1"), config_map("cm2"), deployment(), "text", {"apiVersion": 1})
    assert plan.kinds_of(found) == {identity.Kind("", "v1", "ConfigMap"), identity.Kind("apps", "v1", "Deployment")}


def test_a_complete_work_is_frozen() -> None:
    done = status.WorkStatus({"conditions": [{"type": "Complete", "status": "True"}]})
    assert plan.plan(manifest_work(config_map()).with_status(done), served=SERVED) == plan.Frozen()


def test_a_complete_manifest_is_left_alone_wherever_it_moved() -> None:
    meta = status.ResourceMeta(
        ordinal=5, version="v1", kind="ConfigMap", resource="configmaps", name="cm1", namespace="ns1"
    )
    entry = status.manifest_status(meta, conditions=[{"type": "Complete", "status": "True"}])
    found = manifest_work(config_map("cm1", data={"new": "1"}), config_map("cm2"))
    verdict = planned(found.with_status(status.WorkStatus().with_manifests([entry])))
    assert [step.is_complete for step in verdict.steps] == [True, False]
    left = plan.action(verdict.steps[0], live=living(config_map("cm1")), owner=OWNER)
    assert left == strategy.Leave(reason="complete")


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
def test_a_work_that_cannot_be_read_is_refused(spec: dict[str, Any], problem: str) -> None:
    assert plan.plan(manifest_work(config_map()).with_spec(**spec), served=SERVED) == plan.Refused(problem=problem)


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
def test_executors(executor: dict[str, Any], problem: str) -> None:
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
def test_any_manifest_gets_its_step(manifests: list[Any]) -> None:
    found = manifest_work(*manifests)
    plan.kinds_of(found)
    verdict = planned(found)
    assert sorted(step.meta.ordinal for step in verdict.steps) == [*range(len(manifests))]
    for step in verdict.steps:
        plan.action(step, live=None, owner=OWNER)
