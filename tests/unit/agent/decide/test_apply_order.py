"""The order in which manifests are applied."""

import pytest

from maestropy.agent.decide import apply_order


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        pytest.param(
            ["Deployment", "ConfigMap", "Namespace", "ClusterRole", "ServiceAccount", "Service"],
            ["Namespace", "ClusterRole", "ServiceAccount", "ConfigMap", "Service", "Deployment"],
            id="ranks",
        ),
        pytest.param(["Zoo", "Ark", "APIService"], ["APIService", "Zoo", "Ark"], id="unknown-kinds-last-in-spec-order"),
        pytest.param(["Foo", "CustomResourceDefinition"], ["CustomResourceDefinition", "Foo"], id="crd-before-cr"),
    ],
)
def test_apply_order(kinds: list[str], expected: list[str]) -> None:
    manifests = [{"kind": kind} for kind in kinds]
    assert [kinds[ordinal] for ordinal in apply_order.ordinals(manifests)] == expected


def test_namespace_comes_before_namespaced_objects() -> None:
    manifests = [{"kind": kind} for kind in ("ConfigMap", "Namespace", "ConfigMap", "ConfigMap")]
    assert apply_order.ordinals(manifests) == [1, 0, 2, 3]


def test_invalid_manifests_come_last() -> None:
    assert apply_order.ordinals(["text", {}, {"kind": "Unknown"}, {"kind": "Pod"}]) == [3, 2, 0, 1]
