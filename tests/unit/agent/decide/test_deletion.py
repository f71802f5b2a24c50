"""Decisions about applied objects and steps of a deletion."""

from typing import Any

import pytest

from maestropy.agent.decide import deletion, ownership
from maestropy.wire.works import status
from tests.unit.agent.decide.applied_objects import (
    FOREIGN,
    OTHER_WORK,
    OWNER,
    REFERENCE,
    config_map,
    live_object,
    manifest_work,
)

APPLIED = ownership.AppliedResource(version="v1", resource="configmaps", namespace="ns1", name="cm1", uid="uid-1")
GUARD = {"uid": "uid-1", "resourceVersion": "7"}
TERMINATING = {"deletionTimestamp": "2024-01-01T00:00:00Z", "finalizers": ["a.io/hold", "b.io/hold"]}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param(None, deletion.Untrack(reason="it is gone"), id="missing"),
        pytest.param(live_object(config_map()), deletion.DeleteObject(uid="uid-1"), id="owned"),
        pytest.param(
            live_object(config_map(), owners=(REFERENCE, FOREIGN)),
            deletion.DeleteObject(uid="uid-1"),
            id="foreign-owner",
        ),
        pytest.param(
            live_object(config_map(), owners=(FOREIGN,)),
            deletion.Untrack(reason="it is not owned by this work"),
            id="not-owned",
        ),
        pytest.param(
            live_object(config_map(), owners=(REFERENCE, OTHER_WORK, FOREIGN)),
            deletion.RemoveOwner(patch={"metadata": GUARD | {"ownerReferences": [OTHER_WORK, FOREIGN]}}),
            id="shared-with-another-work",
        ),
        pytest.param(
            live_object(config_map(), metadata={"ownerReferences": "garbage"}),
            deletion.Untrack(reason="its owner references cannot be read"),
            id="invalid-owner-references",
        ),
        pytest.param(
            live_object(config_map(), metadata={"uid": "another"}),
            deletion.Untrack(reason="another client recreated it"),
            id="recreated",
        ),
        pytest.param(
            live_object(config_map(), metadata=TERMINATING),
            deletion.AwaitFinalizers(finalizers=("a.io/hold", "b.io/hold")),
            id="kept-by-finalizers",
        ),
    ],
)
def test_decision_about_applied_object(live: dict[str, Any] | None, expected: deletion.Verdict) -> None:
    assert deletion.decide_object(APPLIED, live, owner=OWNER) == expected


def test_deletion_propagates_in_background() -> None:
    verdict = deletion.decide_object(APPLIED, live_object(config_map()), owner=OWNER)
    assert isinstance(verdict, deletion.DeleteObject)
    assert verdict.propagation == "Background"


def test_applied_resource_without_uid_deletes_live_object() -> None:
    recorded = ownership.AppliedResource(version="v1", resource="configmaps", namespace="ns1", name="cm1")
    assert deletion.decide_object(recorded, live_object(config_map()), owner=OWNER) == deletion.DeleteObject(
        uid="uid-1"
    )


def applied_work(*resources: ownership.AppliedResource, is_deleting: bool = True) -> dict[str, Any]:
    body = ownership.new_applied_work(manifest_work(), identity=ownership.AgentIdentity(hub_hash="hub", agent_id="hub"))
    body["metadata"] |= {"uid": "amw-1", "resourceVersion": "3"}
    if is_deleting:
        body["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    return body | {"status": {"appliedResources": [resource.to_json() for resource in resources]}}


@pytest.mark.parametrize(
    ("applied_work_body", "expected"),
    [
        pytest.param(None, deletion.ReportDeleted(), id="never-applied"),
        pytest.param(applied_work(APPLIED, is_deleting=False), deletion.DeleteAppliedWork(), id="not-terminating"),
        pytest.param(
            applied_work(APPLIED),
            deletion.DeleteAppliedResources(resources=(APPLIED,)),
            id="terminating-with-resources",
        ),
        pytest.param(
            applied_work(),
            deletion.RemoveFinalizer(patch={"metadata": {"uid": "amw-1", "resourceVersion": "3", "finalizers": None}}),
            id="no-resources-left",
        ),
    ],
)
def test_next_finalize_step(applied_work_body: dict[str, Any] | None, expected: deletion.FinalizeStep) -> None:
    assert deletion.next_step(applied_work_body) == expected


def test_deleting_condition() -> None:
    condition = deletion.deleting(generation=4)
    assert condition == status.Condition(
        type="Deleting",
        status="True",
        reason="WorkDeleting",
        message="ManifestWork is being deleted",
        observed_generation=4,
    )


def test_deleting_condition_names_blockers() -> None:
    role = ownership.AppliedResource(group="rbac.authorization.k8s.io", resource="clusterroles", name="r")
    blockers = [
        deletion.DeletionBlocker(resource=APPLIED, finalizers=("a.io/hold", "b.io/hold")),
        deletion.DeletionBlocker(resource=role),
    ]
    assert deletion.deleting(generation=4, blockers=blockers).message == (
        "ManifestWork is being deleted, waiting for configmaps ns1/cm1 (finalizers: a.io/hold, b.io/hold), "
        "clusterroles.rbac.authorization.k8s.io r"
    )


def test_deleting_condition_is_bounded() -> None:
    blockers = [deletion.DeletionBlocker(resource=APPLIED)] * 1000
    assert deletion.deleting(generation=4, blockers=blockers).message.endswith(" and 990 more")


def test_deleted_condition() -> None:
    assert deletion.deleted(consumer="cluster1") == status.Condition(
        type="Deleted",
        status="True",
        reason="ManifestsDeleted",
        message="The manifests are deleted from the cluster cluster1",
    )


def test_deletion_log_reasons() -> None:
    assert deletion.pruned_reason("w") == "it is no longer maintained by manifestwork w"
    assert deletion.terminating_reason("w") == "manifestwork w is terminating"
