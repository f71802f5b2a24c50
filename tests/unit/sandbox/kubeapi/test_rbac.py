"""RBAC rules allow or deny a request."""

from typing import Any

import pytest

from maestropy.sandbox.kubeapi.access import rbac

PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}


@pytest.mark.parametrize(
    ("rule", "attributes", "allowed"),
    [
        (PODS, {"verb": "get", "resource": "pods"}, True),
        (PODS, {"verb": "list", "resource": "pods"}, False),
        (EVERYTHING, {"verb": "x", "group": "y", "resource": "z/status"}, True),
        (PODS, {"verb": "get", "resource": "pods/log"}, False),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]}, {"verb": "get", "resource": "pods/log"}, True),
        ({**PODS, "resourceNames": ["a"]}, {"verb": "get", "resource": "pods", "name": "b"}, False),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics*"]}, {"verb": "get", "path": "/metrics/x"}, True),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, {"verb": "get", "path": "/metrics/x"}, False),
    ],
)  # fmt: skip
def test_rbac_rule(rule: dict[str, Any], attributes: dict[str, str], allowed: bool) -> None:
    assert rbac.covers(rule, rbac.AccessAttributes(**attributes)) is allowed
