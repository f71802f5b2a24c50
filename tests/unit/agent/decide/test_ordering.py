"""The order in which manifests are applied."""

import pytest

from maestropy.agent.decide import ordering


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        pytest.param(
            ["Deployment", "ConfigMap", "Namespace", "ClusterRole", "ServiceAccount", "Service"],
            ["Namespace", "ClusterRole", "ServiceAccount", "ConfigMap", "Service", "Deployment"],
            id="ranks",
        ),
        pytest.param(
            ["Zoo", "Ark", "APIService"], ["APIService", "Zoo", "Ark"], id="unknown-kinds-last-and-as-they-came"
        ),
        pytest.param(
            ["Foo", "CustomResourceDefinition"], ["CustomResourceDefinition", "Foo"], id="case-7-crd-before-cr"
        ),
    ],
)
def test_order(kinds: list[str], expected: list[str]) -> None:
    manifests = [{"kind": kind} for kind in kinds]
    assert [kinds[ordinal] for ordinal in ordering.ordinals(manifests)] == expected


def test_case_79_a_namespace_comes_before_what_lives_in_it() -> None:
    manifests = [{"kind": kind} for kind in ("ConfigMap", "Namespace", "ConfigMap", "ConfigMap")]
    assert ordering.ordinals(manifests) == [1, 0, 2, 3]


def test_unreadable_manifests_are_the_very_last() -> None:
    assert ordering.ordinals(["text", {}, {"kind": "Unknown"}, {"kind": "Pod"}]) == [3, 2, 0, 1]
