from typing import Any

import pytest

from maestropy.adapter.decide import ownership
from maestropy.sdk._operations import changes
from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work
from tests.unit.adapter.samples import CLUSTER, MAP, reported, work


def owned(desired: Work, *, adapter: str = "a", generation: int = 5) -> Work:
    resource = type(CLUSTER)(id="abc", kind="Cluster", generation=generation)
    return ownership.with_ownership(desired, adapter=adapter, resource=resource)


def test_work_and_manifests_carry_the_generation() -> None:
    annotated: dict[str, Any] = {
        **MAP,
        "metadata": {"name": "n", "namespace": "default", "annotations": {"mine": "x"}},
    }
    labelled = owned(work().add(annotated))
    assert labelled.annotations[ownership.GENERATION] == "5"
    for manifest in labelled.manifest_work.manifests:
        assert manifest["metadata"]["annotations"][ownership.GENERATION] == "5"
        assert manifest["metadata"]["labels"][ownership.ADAPTER] == "a"
    assert labelled.manifest_work.manifests[1]["metadata"]["annotations"]["mine"] == "x"
    assert labelled.manifest_work.spec["manifestConfigs"] == work().manifest_work.spec["manifestConfigs"]


STORED = reported(owned(work()))
DELETING = Work.wrap(STORED.manifest_work.with_metadata(deletionTimestamp="2026-01-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("stored", "desired", "action"),
    [
        pytest.param(None, owned(work()), ownership.CreateWork(), id="not-stored"),
        pytest.param(STORED, owned(work()), ownership.SkipWork(), id="unchanged"),
        pytest.param(
            STORED, owned(work(), generation=6), ownership.PatchWork("generation 5 → 6"), id="newer-generation"
        ),
        pytest.param(
            STORED,
            owned(work(), generation=4),
            ownership.RefuseStale(
                "stale generation: 4 is older than 5, for which work w-abc was written; nothing was applied"
            ),
            id="older-generation",
        ),
        pytest.param(
            STORED,
            owned(work().delete_option("Orphan")),
            ownership.PatchWork("the content changed for generation 5"),
            id="changed-content",
        ),
        pytest.param(
            STORED,
            owned(work(), adapter="b"),
            ownership.OwnedByAnother("adapter 'a' for Cluster abc"),
            id="another-adapter",
        ),
        pytest.param(
            reported(work()),
            owned(work()),
            ownership.OwnedByAnother("a client that set no label hyperfleet.io/adapter"),
            id="no-owner-label",
        ),
        pytest.param(DELETING, owned(work()), ownership.WaitForDeletion(), id="deleting"),
    ],
)
def test_action_for_stored_work(stored: Work | None, desired: Work, action: ownership.WorkAction) -> None:
    assert ownership.decide(stored, desired) == action


def test_patch_replaces_the_spec_and_keeps_foreign_labels() -> None:
    before = owned(work().delete_option("Orphan").executor(namespace="n", name="s")).with_labels({"theirs": "kept"})
    desired = owned(Work("w-abc").add(MAP), generation=6)
    after = Work.from_dict(changes.merge_patch(before.to_dict(), ownership.patch_for(desired)))
    assert after.to_dict()["spec"] == desired.to_dict()["spec"]
    assert after.labels["theirs"] == "kept"
    assert ownership.decide(after, desired) == ownership.SkipWork()


def test_manifest_without_metadata_is_rejected() -> None:
    with pytest.raises(Invalid, match="ConfigMap has no metadata"):
        owned(Work("w").add({"apiVersion": "v1", "kind": "ConfigMap"}))
