"""Identifiers of an HCP are parsed in every form; a shard names its management cluster."""

import pytest

from maestropy.trace.errors import InvalidArguments, NoAccess
from maestropy.trace.hcp import identity
from maestropy.trace.hcp.identity import KnownIds
from tests.unit.trace.hcp.hcp_documents import ARM, CID, document


@pytest.mark.parametrize(
    ("given", "known"),
    [
        pytest.param(CID, KnownIds(cid=CID), id="clusters-service-id"),
        pytest.param(CID.upper(), KnownIds(cid=CID), id="id-in-upper-case"),
        pytest.param(f"/api/aro_hcp/v1alpha1/clusters/{CID}", KnownIds(cid=CID), id="href"),
        pytest.param(f"/api/clusters_mgmt/v1/clusters/{CID}/status", KnownIds(cid=CID), id="old-href-with-part"),
        pytest.param(
            "0243D197-f374-5370-b866-6d9272063084",
            KnownIds(bundle_id="0243d197-f374-5370-b866-6d9272063084"),
            id="bundle-id",
        ),
        pytest.param(f"ocm-arohcpdev-{CID}", KnownIds(cid=CID, environment="arohcpdev"), id="namespace"),
        pytest.param(
            f"ocm-arohcpdev-{CID}-f3k9q2",
            KnownIds(cid=CID, environment="arohcpdev", prefix="f3k9q2"),
            id="control-plane-namespace",
        ),
        pytest.param(
            f"ocm-arohcpdev-{CID}/f3k9q2",
            KnownIds(cid=CID, environment="arohcpdev", prefix="f3k9q2"),
            id="hosted-cluster",
        ),
        pytest.param(
            "clusters/demo", KnownIds(entry_namespace="clusters", prefix="demo"), id="hosted-cluster-elsewhere"
        ),
    ],
)
def test_identifier_forms_are_parsed(given: str, known: KnownIds) -> None:
    assert identity.parse(given) == known


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(ARM, id="as-written"),
        pytest.param(ARM.lower(), id="lower-case"),
        pytest.param(ARM.upper(), id="upper-case"),
        pytest.param(ARM + "/", id="slash-at-the-end"),
        pytest.param(ARM + "/nodePools/workers", id="child"),
        pytest.param(f"  {ARM}?api-version=2024-06-10-preview ", id="with-query-and-blanks"),
        pytest.param(f"http://localhost:8443{ARM}", id="as-address"),
    ],
)
def test_arm_in_any_spelling(given: str) -> None:
    found = identity.parse(given).arm
    assert found is not None
    assert found.key == ("3f6c1d52-7a0b-4d7e-9c55-0a1be1a2c3d4", "rg-customer-a", "orders-prod")


@pytest.mark.parametrize("given", ["", "nope", "a/b/c", ARM.rpartition("/")[0], f"{ARM}' or 1=1 --", "ocm-x-short"])
def test_unknown_identifier_form_is_rejected(given: str) -> None:
    with pytest.raises(InvalidArguments, match="ARM resource ID"):
        identity.parse(given)


def test_names_derived() -> None:
    known = KnownIds(cid=CID, environment="arohcpdev", prefix="my.name")
    assert known.namespace == f"ocm-arohcpdev-{CID}"
    assert known.control_plane == f"ocm-arohcpdev-{CID}-my-name"


def test_shard_by_resource_id() -> None:
    found = identity.management_cluster(document("08-cs-provision-shard.json"))
    assert found is not None
    assert (found.name, found.stamp, found.found_by, found.disagreement) == (
        "dev-westus3-mgmt-1",
        "1",
        "resource id",
        "",
    )


def test_shard_by_stamp() -> None:
    shard = document("08-cs-provision-shard.json")
    del shard["azure_shard"]["aks_management_cluster_resource_id"]
    found = identity.management_cluster(shard)
    assert found is not None
    assert (found.name, found.stamp, found.found_by) == ("mgmt-1", "1", "stamp number")


def test_disagreeing_stamps_are_reported() -> None:
    shard = document("08-cs-provision-shard.json")
    shard["azure_shard"]["cx_managed_identities_key_vault_url"] = "https://ah-dev-mi-usw3-7.vault.azure.net/"
    found = identity.management_cluster(shard)
    assert found is not None
    assert "cx_managed_identities_key_vault_url says 7" in found.disagreement


@pytest.mark.parametrize("shard", [{}, {"azure_shard": None}, {"azure_shard": "x"}], ids=str)
def test_shard_without_management_cluster(shard: dict[str, object]) -> None:
    assert identity.management_cluster(shard) is None


class TestContext:
    management = identity.HcpManagementCluster(
        name="dev-westus3-mgmt-1", resource_id="/x", stamp="1", found_by="resource id", stamps=()
    )

    @pytest.mark.parametrize(
        ("contexts", "chosen"),
        [
            pytest.param({"a": "x", "dev-westus3-mgmt-1": "y"}, "dev-westus3-mgmt-1", id="by-context"),
            pytest.param({"a": "dev-westus3-mgmt-1", "b": "y"}, "a", id="by-cluster"),
            pytest.param({"int-usw3-mgmt-1": "", "int-usw3-mgmt-2": ""}, "int-usw3-mgmt-1", id="by-stamp"),
            pytest.param({"only": "x"}, "only", id="the-only-one"),
        ],
    )
    def test_chosen(self, contexts: dict[str, str], chosen: str) -> None:
        from maestropy.trace.access.hcp import management_cluster as hcp_kube

        assert hcp_kube.choose_context(contexts, self.management) == chosen

    def test_the_service_clusters_file_may_hold_nothing_else(self) -> None:
        from maestropy.trace.access.hcp import management_cluster as hcp_kube

        with pytest.raises(NoAccess, match="--mgmt-context"):
            hcp_kube.choose_context({"svc": "svc"}, self.management, takes_the_only_one=False)

    @pytest.mark.parametrize(
        ("context", "cluster", "is_doubted"),
        [
            ("dev-westus3-mgmt-1", "", False),
            ("mine", "dev-westus3-mgmt-1", False),
            ("int-mgmt-1", "", False),
            ("int-mgmt-2", "", True),
            ("x", "y", True),
        ],
    )
    def test_doubt(self, context: str, cluster: str, *, is_doubted: bool) -> None:
        from maestropy.trace.access.hcp import management_cluster as hcp_kube

        assert bool(hcp_kube.context_mismatch(context, {context: cluster}, self.management)) is is_doubted
        assert hcp_kube.context_mismatch(context, {context: cluster}, None) == ""

    @pytest.mark.parametrize(
        ("contexts", "management"),
        [
            pytest.param({"a": "x", "b": "y"}, management, id="none-fits"),
            pytest.param({"eu-mgmt-1": "", "us-mgmt-1": ""}, management, id="two-stamps"),
            pytest.param({"a": "x", "b": "y"}, None, id="no-shard"),
        ],
    )
    def test_not_guessed(self, contexts: dict[str, str], management: identity.HcpManagementCluster | None) -> None:
        from maestropy.trace.access.hcp import management_cluster as hcp_kube

        with pytest.raises(NoAccess, match="--mgmt-context"):
            hcp_kube.choose_context(contexts, management)
