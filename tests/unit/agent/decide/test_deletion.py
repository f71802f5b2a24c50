"""What happens to objects that are no longer wanted, and how a work ends."""

from typing import Any

import pytest
from applied_objects import FOREIGN, OTHER_WORK, OWNER, REFERENCE, config_map, living, manifest_work

from maestropy.agent.decide import deletion, ownership
from maestropy.wire import status

RECORDED = ownership.AppliedResource(version="v1", resource="configmaps", namespace="ns1", name="cm1", uid="uid-1")
GUARD = {"uid": "uid-1", "resourceVersion": "7"}
TERMINATING = {"deletionTimestamp": "2024-01-01T00:00:00Z", "finalizers": ["a.io/hold", "b.io/hold"]}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param(None, deletion.Forget(reason="it is gone"), id="missing"),
        pytest.param(living(config_map()), deletion.Delete(uid="uid-1"), id="case-3-plain"),
        pytest.param(
            living(config_map(), owners=(REFERENCE, FOREIGN)), deletion.Delete(uid="uid-1"), id="case-84-foreign-owner"
        ),
        pytest.param(
            living(config_map(), owners=(FOREIGN,)),
            deletion.Forget(reason="it is not owned by this work"),
            id="case-28-not-owned",
        ),
        pytest.param(
            living(config_map(), owners=(REFERENCE, OTHER_WORK, FOREIGN)),
            deletion.LetGo(patch={"metadata": GUARD | {"ownerReferences": [OTHER_WORK, FOREIGN]}}),
            id="case-24-shared-with-another-work",
        ),
        pytest.param(
            living(config_map(), metadata={"ownerReferences": "garbage"}),
            deletion.Forget(reason="its owner references cannot be read"),
            id="unreadable-owners",
        ),
        pytest.param(
            living(config_map(), metadata={"uid": "another"}),
            deletion.Forget(reason="it was created anew by someone else"),
            id="created-anew",
        ),
        pytest.param(
            living(config_map(), metadata=TERMINATING),
            deletion.Wait(finalizers=("a.io/hold", "b.io/hold")),
            id="case-17-held-by-finalizers",
        ),
    ],
)
def test_verdict(live: dict[str, Any] | None, expected: deletion.Verdict) -> None:
    assert deletion.judge(RECORDED, live, owner=OWNER) == expected


def test_objects_go_in_the_background() -> None:
    verdict = deletion.judge(RECORDED, living(config_map()), owner=OWNER)
    assert isinstance(verdict, deletion.Delete)
    assert verdict.propagation == "Background"


def test_a_record_without_uid_still_deletes_the_living_object() -> None:
    recorded = ownership.AppliedResource(version="v1", resource="configmaps", namespace="ns1", name="cm1")
    assert deletion.judge(recorded, living(config_map()), owner=OWNER) == deletion.Delete(uid="uid-1")


def record(*resources: ownership.AppliedResource, is_deleting: bool = True) -> dict[str, Any]:
    made = ownership.new_record(manifest_work(), identity=ownership.Identity(hub_hash="hub", agent_id="hub"))
    made["metadata"] |= {"uid": "amw-1", "resourceVersion": "3"}
    if is_deleting:
        made["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    return made | {"status": {"appliedResources": [found.to_json() for found in resources]}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(None, deletion.Finish(), id="case-6-never-applied"),
        pytest.param(record(RECORDED, is_deleting=False), deletion.DeleteRecord(), id="first-the-record"),
        pytest.param(record(RECORDED), deletion.CleanUp(resources=(RECORDED,)), id="then-its-objects"),
        pytest.param(
            record(),
            deletion.ReleaseRecord(patch={"metadata": {"uid": "amw-1", "resourceVersion": "3", "finalizers": None}}),
            id="then-its-finalizer",
        ),
    ],
)
def test_stages(found: dict[str, Any] | None, expected: deletion.Stage) -> None:
    assert deletion.next_stage(found) == expected


def test_case_19_the_work_says_that_it_is_being_deleted() -> None:
    found = deletion.deleting(generation=4)
    assert found == status.Condition(
        type="Deleting",
        status="True",
        reason="WorkDeleting",
        message="ManifestWork is being deleted",
        observed_generation=4,
    )


def test_what_blocks_is_named() -> None:
    role = ownership.AppliedResource(group="rbac.authorization.k8s.io", resource="clusterroles", name="r")
    blockers = [
        deletion.Blocker(resource=RECORDED, finalizers=("a.io/hold", "b.io/hold")),
        deletion.Blocker(resource=role),
    ]
    assert deletion.deleting(generation=4, blockers=blockers).message == (
        "ManifestWork is being deleted, waiting for configmaps ns1/cm1 (finalizers: a.io/hold, b.io/hold), "
        "clusterroles.rbac.authorization.k8s.io r"
    )


def test_a_thousand_blockers_make_no_endless_message() -> None:
    blockers = [deletion.Blocker(resource=RECORDED)] * 1000
    assert deletion.deleting(generation=4, blockers=blockers).message.endswith(" and 990 more")


def test_the_last_word() -> None:
    assert deletion.deleted(consumer="cluster1") == status.Condition(
        type="Deleted",
        status="True",
        reason="ManifestsDeleted",
        message="The manifests are deleted from the cluster cluster1",
    )


def test_reasons_for_the_log() -> None:
    assert deletion.reason_untracked("w") == "it is no longer maintained by manifestwork w"
    assert deletion.reason_terminating("w") == "manifestwork w is terminating"
