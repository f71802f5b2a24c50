"""Who owns what, and what the record of a work says."""

from typing import Any

import pytest
from applied_objects import FOREIGN, NO_OWNER, OTHER_WORK, OWNER, REFERENCE, config_map, living, manifest_work

from maestropy.agent.decide import ownership
from maestropy.wire import options, status

IDENTITY = ownership.Identity(hub_hash="hub", agent_id="agent")
META = status.ResourceMeta(
    ordinal=0, version="v1", kind="ConfigMap", resource="configmaps", name="cm1", namespace="ns1"
)


def resource(name: str, **members: str) -> ownership.AppliedResource:
    return ownership.AppliedResource(
        **{"version": "v1", "resource": "configmaps", "namespace": "ns1", "name": name, **members}
    )


def test_a_server_is_named_by_its_address() -> None:
    found = ownership.hub_hash("maestro-mqtt-agent.maestro:1883")
    assert found.startswith("f1d8a1049b93dffc")
    assert found.endswith("dde73c8")
    assert ownership.hub_hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_case_103_the_record_of_a_work() -> None:
    wanted = manifest_work(config_map()).with_labels({"a": "b"})
    assert ownership.new_record(wanted, identity=IDENTITY) == {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "AppliedManifestWork",
        "metadata": {
            "name": "hub-work1",
            "finalizers": ["cluster.open-cluster-management.io/applied-manifest-work-cleanup"],
            "labels": {"a": "b"},
        },
        "spec": {"hubHash": "hub", "agentID": "agent", "manifestWorkName": "work1"},
    }


def record(*resources: ownership.AppliedResource, **metadata: Any) -> dict[str, Any]:
    made = ownership.new_record(manifest_work(), identity=IDENTITY)
    made["metadata"] |= {"uid": "amw-1", "resourceVersion": "3", **metadata}
    return made | {"status": {"appliedResources": [found.to_json() for found in resources]}}


def test_a_record_is_patched_only_if_it_differs() -> None:
    assert ownership.record_spec_patch(record(), work_name="work1", identity=IDENTITY) is None
    other = ownership.Identity(hub_hash="hub", agent_id="other")
    assert ownership.record_spec_patch(record(), work_name="work1", identity=other) == {
        "metadata": {"uid": "amw-1", "resourceVersion": "3"},
        "spec": {"hubHash": "hub", "agentID": "other", "manifestWorkName": "work1"},
    }


def test_case_79_resources_are_listed_in_order() -> None:
    cms = [resource("cm2", namespace="ns1"), resource("cm3", namespace="ns2")]
    namespace = ownership.AppliedResource(version="v1", resource="namespaces", name="ns1")
    deployment = ownership.AppliedResource(group="apps", version="v1", resource="deployments", name="d")
    patch = ownership.record_status_patch(record(), [deployment, namespace, *reversed(cms)])
    assert patch is not None
    names = [(found["resource"], found["name"]) for found in patch["status"]["appliedResources"]]
    assert names == [("configmaps", "cm2"), ("configmaps", "cm3"), ("namespaces", "ns1"), ("deployments", "d")]
    assert [*patch["status"]["appliedResources"][0]] == ["group", "version", "resource", "namespace", "name", "uid"]


def test_an_unchanged_list_is_not_written() -> None:
    found = [resource("cm1", uid="1"), resource("cm2", uid="2")]
    assert ownership.record_status_patch(record(*found), reversed(found)) is None
    assert ownership.record_status_patch(record(*found), [resource("cm1", uid="new"), found[1]]) is not None


def test_the_finalizer_of_a_record() -> None:
    assert ownership.finalizer_patch(record(), is_wanted=True) is None
    removed = ownership.finalizer_patch(record(), is_wanted=False)
    assert removed == {"metadata": {"uid": "amw-1", "resourceVersion": "3", "finalizers": None}}
    kept = ownership.finalizer_patch(record(finalizers=["other", ownership.FINALIZER]), is_wanted=False)
    assert kept is not None
    assert kept["metadata"]["finalizers"] == ["other"]


RULE = options.ResourceIdentifier(resource="configmaps", name="cm1", namespace="ns1")


@pytest.mark.parametrize(
    ("policy", "orphaning", "expected"),
    [
        pytest.param(None, (), True, id="no-option"),
        pytest.param("Foreground", (RULE,), True, id="foreground"),
        pytest.param("Orphan", (), False, id="case-26-orphan"),
        pytest.param("SelectivelyOrphan", (RULE,), False, id="case-27-selected"),
        pytest.param("SelectivelyOrphan", (), True, id="nothing-selected"),
        pytest.param(
            "SelectivelyOrphan",
            (options.ResourceIdentifier(resource="configmaps", name="*", namespace="ns1"),),
            True,
            id="no-wildcards",
        ),
        pytest.param("", (RULE,), False, id="empty-policy-honours-rules"),
        pytest.param("Later", (), True, id="unknown-policy-owns"),
    ],
)
def test_ownership(policy: str | None, orphaning: tuple[options.ResourceIdentifier, ...], expected: bool) -> None:
    option = None if policy is None else options.DeleteOption(propagation_policy=policy, orphaning_rules=orphaning)
    assert ownership.is_owned(option, META) is expected


@pytest.mark.parametrize(
    ("found", "owner", "expected"),
    [
        pytest.param([], OWNER, [REFERENCE], id="add"),
        pytest.param([FOREIGN], OWNER, [FOREIGN, REFERENCE], id="append"),
        pytest.param([OTHER_WORK], OWNER, [OTHER_WORK, REFERENCE], id="case-83-two-works"),
        pytest.param([REFERENCE], OWNER, None, id="there-already"),
        pytest.param([REFERENCE | {"uid": "old"}, FOREIGN], OWNER, [REFERENCE, FOREIGN], id="record-created-anew"),
        pytest.param(
            [REFERENCE | {"apiVersion": "work.open-cluster-management.io/v1beta1"}],
            OWNER,
            None,
            id="version-is-no-matter",
        ),
        pytest.param([FOREIGN, REFERENCE], NO_OWNER, [FOREIGN], id="remove"),
        pytest.param([REFERENCE | {"uid": "old"}], NO_OWNER, [], id="remove-what-a-lost-record-left"),
        pytest.param([FOREIGN], NO_OWNER, None, id="remove-what-is-not-there"),
    ],
)
def test_owner_references(
    found: list[dict[str, str]], owner: ownership.Owner, expected: list[dict[str, str]] | None
) -> None:
    patch = ownership.owners_patch(living(config_map(), owners=tuple(found)), owner)
    if expected is None:
        assert patch is None
    else:
        guard = {"uid": "uid-1", "resourceVersion": "7"}
        assert patch == {"metadata": guard | {"ownerReferences": expected}}


@pytest.mark.parametrize(
    ("previous", "current", "unresolved", "expected"),
    [
        pytest.param([resource("cm1")], [resource("cm2")], [], [resource("cm1")], id="case-2-replaced"),
        pytest.param(
            [resource("cm1", version="v1")], [resource("cm1", version="v2")], [], [], id="case-81-other-version"
        ),
        pytest.param([resource("cm1", uid="old")], [resource("cm1", uid="new")], [], [], id="uid-refreshed"),
        pytest.param(
            [resource("cm1", namespace="ns1")],
            [resource("cm1", namespace="ns2")],
            [],
            [resource("cm1", namespace="ns1")],
            id="other-namespace",
        ),
        pytest.param(
            [resource("foo", group="my.io", resource="foos"), resource("cm1")],
            [],
            [ownership.Unresolved(group="my.io", namespace="ns1", name="foo")],
            [resource("cm1")],
            id="a-kind-that-vanished-costs-no-object-and-blocks-no-neighbour",
        ),
    ],
)
def test_untracked(previous: Any, current: Any, unresolved: Any, expected: Any) -> None:
    assert ownership.untracked(previous, current, unresolved=unresolved) == expected


@pytest.mark.parametrize(
    ("references", "is_ours"),
    [
        pytest.param(None, False, id="none"),
        pytest.param([], False, id="empty"),
        pytest.param([{"kind": "AppliedManifestWork", "name": "hub-w"}], True, id="of-this-server"),
        pytest.param([{"kind": "AppliedManifestWork", "name": "other-w"}], False, id="of-another-server"),
        pytest.param([{"kind": "ReplicaSet", "name": "hub-w"}], False, id="of-another-kind"),
        pytest.param("nonsense", False, id="nonsense"),
    ],
)
def test_objects_of_this_server(references: object, *, is_ours: bool) -> None:
    assert ownership.has_owner_of({"metadata": {"ownerReferences": references}}, hub="hub") == is_ours
    assert not ownership.has_owner_of({}, hub="hub")
