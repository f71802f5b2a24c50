"""AppliedManifestWorks and owner references."""

from typing import Any

import pytest

from maestropy.agent.decide import ownership
from maestropy.wire.works import options, status
from tests.unit.agent.decide.applied_objects import (
    FOREIGN,
    NO_OWNER,
    OTHER_WORK,
    OWNER,
    REFERENCE,
    config_map,
    live_object,
    manifest_work,
)

IDENTITY = ownership.AgentIdentity(hub_hash="hub", agent_id="agent")
META = status.ResourceMeta(
    ordinal=0, version="v1", kind="ConfigMap", resource="configmaps", name="cm1", namespace="ns1"
)


def resource(name: str, **members: str) -> ownership.AppliedResource:
    return ownership.AppliedResource(
        **{"version": "v1", "resource": "configmaps", "namespace": "ns1", "name": name, **members}
    )


def test_hub_hash_is_hash_of_address() -> None:
    hub_hash = ownership.hub_hash("maestro-mqtt-agent.maestro:1883")
    assert hub_hash.startswith("f1d8a1049b93dffc")
    assert hub_hash.endswith("dde73c8")
    assert ownership.hub_hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_new_applied_work() -> None:
    labelled_work = manifest_work(config_map()).with_labels({"a": "b"})
    assert ownership.new_applied_work(labelled_work, identity=IDENTITY) == {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "AppliedManifestWork",
        "metadata": {
            "name": "hub-work1",
            "finalizers": ["cluster.open-cluster-management.io/applied-manifest-work-cleanup"],
            "labels": {"a": "b"},
        },
        "spec": {"hubHash": "hub", "agentID": "agent", "manifestWorkName": "work1"},
    }


def applied_work(*resources: ownership.AppliedResource, **metadata: Any) -> dict[str, Any]:
    body = ownership.new_applied_work(manifest_work(), identity=IDENTITY)
    body["metadata"] |= {"uid": "amw-1", "resourceVersion": "3", **metadata}
    return body | {"status": {"appliedResources": [entry.to_json() for entry in resources]}}


def test_spec_is_patched_only_if_different() -> None:
    assert ownership.spec_patch(applied_work(), work_name="work1", identity=IDENTITY) is None
    other = ownership.AgentIdentity(hub_hash="hub", agent_id="other")
    assert ownership.spec_patch(applied_work(), work_name="work1", identity=other) == {
        "metadata": {"uid": "amw-1", "resourceVersion": "3"},
        "spec": {"hubHash": "hub", "agentID": "other", "manifestWorkName": "work1"},
    }


def test_applied_resources_are_sorted() -> None:
    cms = [resource("cm2", namespace="ns1"), resource("cm3", namespace="ns2")]
    namespace = ownership.AppliedResource(version="v1", resource="namespaces", name="ns1")
    deployment = ownership.AppliedResource(group="apps", version="v1", resource="deployments", name="d")
    patch = ownership.status_patch(applied_work(), [deployment, namespace, *reversed(cms)])
    assert patch is not None
    names = [(entry["resource"], entry["name"]) for entry in patch["status"]["appliedResources"]]
    assert names == [("configmaps", "cm2"), ("configmaps", "cm3"), ("namespaces", "ns1"), ("deployments", "d")]
    assert [*patch["status"]["appliedResources"][0]] == ["group", "version", "resource", "namespace", "name", "uid"]


def test_unchanged_applied_resources_are_not_patched() -> None:
    resources = [resource("cm1", uid="1"), resource("cm2", uid="2")]
    assert ownership.status_patch(applied_work(*resources), reversed(resources)) is None
    assert ownership.status_patch(applied_work(*resources), [resource("cm1", uid="new"), resources[1]]) is not None


def test_finalizer_is_set_and_removed() -> None:
    assert ownership.finalizer_patch(applied_work(), is_set=True) is None
    removed = ownership.finalizer_patch(applied_work(), is_set=False)
    assert removed == {"metadata": {"uid": "amw-1", "resourceVersion": "3", "finalizers": None}}
    kept = ownership.finalizer_patch(applied_work(finalizers=["other", ownership.FINALIZER]), is_set=False)
    assert kept is not None
    assert kept["metadata"]["finalizers"] == ["other"]


RULE = options.ResourceIdentifier(resource="configmaps", name="cm1", namespace="ns1")


@pytest.mark.parametrize(
    ("policy", "orphaning", "expected"),
    [
        pytest.param(None, (), True, id="no-option"),
        pytest.param("Foreground", (RULE,), True, id="foreground"),
        pytest.param("Orphan", (), False, id="orphan"),
        pytest.param("SelectivelyOrphan", (RULE,), False, id="selected"),
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
def test_delete_option_decides_ownership(
    policy: str | None, orphaning: tuple[options.ResourceIdentifier, ...], expected: bool
) -> None:
    option = None if policy is None else options.DeleteOption(propagation_policy=policy, orphaning_rules=orphaning)
    assert ownership.is_owned(option, META, orphaned=orphaning) is expected


@pytest.mark.parametrize(
    ("references", "owner", "expected"),
    [
        pytest.param([], OWNER, [REFERENCE], id="add"),
        pytest.param([FOREIGN], OWNER, [FOREIGN, REFERENCE], id="append"),
        pytest.param([OTHER_WORK], OWNER, [OTHER_WORK, REFERENCE], id="two-works"),
        pytest.param([REFERENCE], OWNER, None, id="already-set"),
        pytest.param([REFERENCE | {"uid": "old"}, FOREIGN], OWNER, [REFERENCE, FOREIGN], id="recreated-applied-work"),
        pytest.param(
            [REFERENCE | {"apiVersion": "work.open-cluster-management.io/v1beta1"}],
            OWNER,
            None,
            id="version-is-ignored",
        ),
        pytest.param([FOREIGN, REFERENCE], NO_OWNER, [FOREIGN], id="remove"),
        pytest.param([REFERENCE | {"uid": "old"}], NO_OWNER, [], id="remove-reference-to-lost-applied-work"),
        pytest.param([FOREIGN], NO_OWNER, None, id="remove-missing"),
    ],
)
def test_merged_owner_references(
    references: list[dict[str, str]], owner: ownership.OwnerReference, expected: list[dict[str, str]] | None
) -> None:
    patch = ownership.owner_references_patch(live_object(config_map(), owners=tuple(references)), owner)
    if expected is None:
        assert patch is None
    else:
        guard = {"uid": "uid-1", "resourceVersion": "7"}
        assert patch == {"metadata": guard | {"ownerReferences": expected}}


@pytest.mark.parametrize(
    ("previous", "current", "unresolved", "expected"),
    [
        pytest.param([resource("cm1")], [resource("cm2")], [], [resource("cm1")], id="replaced"),
        pytest.param([resource("cm1", version="v1")], [resource("cm1", version="v2")], [], [], id="other-version"),
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
            [ownership.UnresolvedManifest(group="my.io", namespace="ns1", name="foo")],
            [resource("cm1")],
            id="unresolved-kind-keeps-its-object-only",
        ),
    ],
)
def test_untracked_resources(previous: Any, current: Any, unresolved: Any, expected: Any) -> None:
    assert ownership.untracked(previous, current, unresolved=unresolved) == expected


@pytest.mark.parametrize(
    ("references", "is_ours"),
    [
        pytest.param(None, False, id="none"),
        pytest.param([], False, id="empty"),
        pytest.param([{"kind": "AppliedManifestWork", "name": "hub-w"}], True, id="same-hub"),
        pytest.param([{"kind": "AppliedManifestWork", "name": "other-w"}], False, id="other-hub"),
        pytest.param([{"kind": "ReplicaSet", "name": "hub-w"}], False, id="other-kind"),
        pytest.param("nonsense", False, id="malformed"),
    ],
)
def test_object_is_owned_by_hub(references: object, *, is_ours: bool) -> None:
    assert ownership.is_owned_by_hub({"metadata": {"ownerReferences": references}}, hub="hub") == is_ours
    assert not ownership.is_owned_by_hub({}, hub="hub")


@pytest.mark.parametrize(
    ("references", "is_ours"),
    [
        pytest.param([], False, id="none"),
        pytest.param([FOREIGN, REFERENCE], True, id="ours"),
        pytest.param([REFERENCE | {"uid": "old"}], False, id="recreated-applied-work"),
        pytest.param([REFERENCE | {"name": "other"}], False, id="other-work"),
    ],
)
def test_object_was_applied_by_this_work(references: list[dict[str, str]], *, is_ours: bool) -> None:
    live = live_object(config_map(), owners=tuple(references))
    assert ownership.is_applied_by(live, OWNER) == is_ours
