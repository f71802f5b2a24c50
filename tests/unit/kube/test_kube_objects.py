"""Identity, order and ownership of objects."""

import pytest

from pymaestro.kube import objects
from pymaestro.kube.errors import Malformed
from pymaestro.kube.objects import Identity

AMW = "work.open-cluster-management.io/v1"
OURS = {"apiVersion": AMW, "kind": "AppliedManifestWork", "name": "h-w", "uid": "u1"}
THEIRS = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u2", "controller": True}


def test_identity() -> None:
    who = objects.identify({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "n", "name": "d"}})
    assert who == Identity(api_version="apps/v1", kind="Deployment", namespace="n", name="d")
    assert (who.group, str(who)) == ("apps", "Deployment n/d")
    core = objects.identify({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    assert (core.group, str(core)) == ("", "Namespace n")


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ({}, "apiVersion is missing"),
        ({"apiVersion": "v1", "kind": ["x"]}, "kind must be a string"),
        ({"apiVersion": "v1", "kind": "X", "metadata": "no"}, "metadata must be an object"),
        ({"apiVersion": "v1", "kind": "X", "metadata": None}, "metadata.name is missing"),
        ({"apiVersion": "v1", "kind": "X", "metadata": {"generateName": "a-"}}, "metadata.name is missing"),
    ],
)
def test_what_cannot_be_addressed_is_refused(manifest: dict[str, object], words: str) -> None:
    with pytest.raises(Malformed, match=words):
        objects.identify(manifest)


def test_apply_order_is_what_pods_need_first() -> None:
    kinds = ["Widget", "ValidatingWebhookConfiguration", "Deployment", "Service", "ConfigMap", "ServiceAccount"]
    kinds += ["Role", "Namespace", "CustomResourceDefinition"]
    assert sorted(kinds, key=objects.apply_rank) == [
        "Namespace",
        "CustomResourceDefinition",
        "Role",
        "ServiceAccount",
        "ConfigMap",
        "Service",
        "Deployment",
        "ValidatingWebhookConfiguration",
        "Widget",
    ]
    assert objects.apply_rank("Widget") == objects.LAST_RANK == 1000


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([], [OURS], id="first"),
        pytest.param([THEIRS], [THEIRS, OURS], id="beside-others"),
        pytest.param([OURS, THEIRS], [OURS, THEIRS], id="already"),
        pytest.param([OURS | {"uid": "old"}, THEIRS], [OURS, THEIRS], id="earlier-life-is-replaced"),
        pytest.param([OURS | {"apiVersion": AMW + "beta1"}], [OURS], id="another-version-is-the-same-owner"),
        pytest.param([OURS | {"name": "other"}], [OURS | {"name": "other"}, OURS], id="another-name"),
        pytest.param([OURS | {"controller": True}], [OURS | {"controller": True}], id="what-others-set-stays"),
    ],
)
def test_with_owner(before: list[objects.Json], after: list[objects.Json]) -> None:
    kept = [dict(each) for each in before]
    assert objects.with_owner(before, OURS) == after
    assert before == kept


def test_without_owner() -> None:
    assert objects.without_owner([THEIRS, OURS], "u1") == [THEIRS]
    assert objects.without_owner([THEIRS], "u1") == [THEIRS]


def test_ownership() -> None:
    owner = {"apiVersion": AMW, "kind": "AppliedManifestWork", "metadata": {"name": "h-w", "uid": "u1"}}
    assert objects.reference_to(owner) == OURS
    owned = {"metadata": {"ownerReferences": [THEIRS, OURS]}}
    assert objects.is_owned_by(owned, "u1")
    assert not objects.is_owned_by(owned, "u3")
    assert not objects.is_owned_by({"metadata": {"ownerReferences": [{"name": "x"}]}}, "")
    with pytest.raises(Malformed, match="ownerReferences"):
        objects.is_owned_by({"metadata": {"ownerReferences": "x"}}, "u")


def test_terminating() -> None:
    assert objects.is_terminating({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}})
    assert not objects.is_terminating({"metadata": {"deletionTimestamp": None}})
