"""Which objects no work may contain."""

import pytest

from maestropy.agent.decide import agent_records, ownership
from maestropy.wire.works import status

GROUP = "work.open-cluster-management.io"


@pytest.mark.parametrize(
    ("group", "kind", "resource", "name", "is_record"),
    [
        (GROUP, "AppliedManifestWork", "appliedmanifestworks", "any", True),
        (GROUP, "ManifestWork", "manifestworks", "any", False),
        ("example.com", "AppliedManifestWork", "appliedmanifestworks", "any", False),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            f"manifestworks.{GROUP}",
            False,
        ),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            f"appliedmanifestworks.{GROUP}",
            True,
        ),
        ("apiregistration.k8s.io", "APIService", "apiservices", f"v1.{GROUP}", True),
        ("apiregistration.k8s.io", "APIService", "apiservices", f"v1.x.{GROUP}", False),
        ("coordination.k8s.io", "Lease", "leases", "maestro-agent-lock", True),
        ("coordination.k8s.io", "Lease", "leases", "mine", False),
        ("apps", "Deployment", "deployments", "maestro-agent", False),
        ("", "Namespace", "namespaces", "maestro-agent", False),
    ],
)
def test_records(group: str, kind: str, resource: str, name: str, is_record: bool) -> None:
    meta = status.ResourceMeta(ordinal=0, group=group, version="v1", kind=kind, resource=resource, name=name)
    entry = ownership.AppliedResource(group=group, version="v1", resource=resource, name=name)
    assert bool(agent_records.problem(meta)) == is_record
    assert agent_records.is_record(entry) == is_record
    assert not is_record or name in agent_records.problem(meta)


def test_record_whose_kind_is_not_served() -> None:
    meta = status.ResourceMeta(ordinal=0, group=GROUP, version="v9", kind="AppliedManifestWork", name="a")
    assert "is a record of the agent" in agent_records.problem(meta)
