import pytest
from adapter_samples import CLUSTER, MAP, reported, work

from maestropy.adapter import stamping
from maestropy.sdk import changing
from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work


def stamp(found: Work, *, adapter: str = "a", generation: int = 5) -> Work:
    resource = type(CLUSTER)(id="abc", kind="Cluster", generation=generation)
    return stamping.stamped(found, adapter=adapter, resource=resource)


def test_the_work_and_every_manifest_carry_the_generation() -> None:
    found = stamp(work().add({**MAP, "metadata": {"name": "n", "namespace": "default", "annotations": {"mine": "x"}}}))
    assert found.annotations[stamping.GENERATION] == "5"
    for each in found.manifest_work.manifests:
        assert each["metadata"]["annotations"][stamping.GENERATION] == "5"
        assert each["metadata"]["labels"][stamping.ADAPTER] == "a"
    assert found.manifest_work.manifests[1]["metadata"]["annotations"]["mine"] == "x"
    assert found.manifest_work.spec["manifestConfigs"] == work().manifest_work.spec["manifestConfigs"]


STORED = reported(stamp(work()))
LEAVING = Work.wrap(STORED.manifest_work.with_metadata(deletionTimestamp="2026-01-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("stored", "wanted", "verdict"),
    [
        pytest.param(None, stamp(work()), stamping.Create(), id="not-there"),
        pytest.param(STORED, stamp(work()), stamping.Skip(), id="the-same"),
        pytest.param(STORED, stamp(work(), generation=6), stamping.Patch("generation 5 → 6"), id="newer"),
        pytest.param(STORED, stamp(work(), generation=4), stamping.Patch("generation 5 → 4"), id="older"),
        pytest.param(
            STORED,
            stamp(work().delete_option("Orphan")),
            stamping.Patch("the adapter wants something else for generation 5"),
            id="a-new-version-of-the-adapter",
        ),
        pytest.param(
            STORED,
            stamp(work(), adapter="b"),
            stamping.Foreign("adapter 'a' for Cluster abc"),
            id="another-adapter",
        ),
        pytest.param(
            reported(work()),
            stamp(work()),
            stamping.Foreign("somebody who set no label hyperfleet.io/adapter"),
            id="somebody",
        ),
        pytest.param(LEAVING, stamp(work()), stamping.Wait(), id="being-deleted"),
    ],
)
def test_verdict(stored: Work | None, wanted: Work, verdict: stamping.Verdict) -> None:
    assert stamping.verdict(stored, wanted) == verdict


def test_a_patch_leaves_nothing_of_the_earlier_wish_and_keeps_what_others_set() -> None:
    before = stamp(work().delete_option("Orphan").executor(namespace="n", name="s")).with_labels({"theirs": "kept"})
    wanted = stamp(Work("w-abc").add(MAP), generation=6)
    after = Work.from_dict(changing.merge_patch(before.to_dict(), stamping.patch_for(wanted)))
    assert after.to_dict()["spec"] == wanted.to_dict()["spec"]
    assert after.labels["theirs"] == "kept"
    assert stamping.verdict(after, wanted) == stamping.Skip()


def test_a_manifest_without_metadata_is_named() -> None:
    with pytest.raises(Invalid, match="ConfigMap has no metadata"):
        stamp(Work("w").add({"apiVersion": "v1", "kind": "ConfigMap"}))
