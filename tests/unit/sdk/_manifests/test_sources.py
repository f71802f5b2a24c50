import json
from typing import Any, ClassVar

import pytest

from maestropy.sdk._manifests import sources

SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "my-cluster", "namespace": "clusters"},
}


class OfficialClientObject:
    """Has the form of an object of the official Kubernetes client."""

    attribute_map: ClassVar = {"api_version": "apiVersion", "kind": "kind", "metadata": "metadata", "spec": "spec"}
    api_version, kind, metadata, spec = "v1", "Secret", {"name": "x"}, None

    def to_dict(self) -> dict[str, Any]:
        return {"api_version": "v1"}


class OtherClientObject:
    def to_dict(self) -> dict[str, Any]:
        return SECRET


@pytest.mark.parametrize(
    ("source", "documents"),
    [
        pytest.param(SECRET, [SECRET], id="dict"),
        pytest.param(json.dumps(SECRET), [SECRET], id="json"),
        pytest.param("kind: A\n---\n---\nkind: B\n", [{"kind": "A"}, {"kind": "B"}], id="documents"),
        pytest.param({"kind": "List", "items": [SECRET]}, [SECRET], id="list"),
        pytest.param([SECRET, "kind: A"], [SECRET, {"kind": "A"}], id="mixed"),
        pytest.param(OtherClientObject(), [SECRET], id="object"),
        pytest.param(
            OfficialClientObject(), [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}], id="official"
        ),
        pytest.param("since: 2026-01-02", [{"since": "2026-01-02"}], id="date-stays-a-string"),
    ],
)
def test_manifests_are_read_from_any_source(source: Any, documents: list[Any]) -> None:
    assert sources.read(source) == documents


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("Deployment", "deployments"),
        ("NetworkPolicy", "networkpolicies"),
        ("Ingress", "ingresses"),
        ("Gateway", "gateways"),
        ("Endpoints", "endpoints"),
        ("HostedCluster", "hostedclusters"),
    ],
)
def test_plural_of_kind(kind: str, resource: str) -> None:
    assert sources.plural(kind) == resource
