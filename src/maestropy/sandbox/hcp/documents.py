"""Build the documents of the practice HCP: resources, statuses and service responses of a scenario. Pure."""

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

CID = "2practise0hosted0control0plane01"
PREFIX = "h4x7k2"
NAME = "orders"
ENVIRONMENT = "arohcpdev"
CONSUMER = "hcp-underlay-usw3-mgmt-1"
MANAGEMENT = "dev-westus3-mgmt-1"
NAMESPACE = f"ocm-{ENVIRONMENT}-{CID}"
CONTROL_PLANE = f"{NAMESPACE}-{PREFIX}"
SUBSCRIPTION = "11111111-2222-4333-8444-555555555555"
GROUP = "rg-practice"
ARM_ID = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}"
    f"/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/{NAME}"
)
LABELS = {
    "api.openshift.com/id": CID,
    "api.openshift.com/name": NAME,
    "api.openshift.com/environment": ENVIRONMENT,
}
ROOT = "/api/aro_hcp/v1alpha1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The state of the HCP in each component."""

    arm: str
    cs: str
    etcd_is_up: bool
    summary: str
    """What a trace should find."""
    is_delivered: bool = True
    is_deleted: bool = False


SCENARIOS = {
    "healthy": Scenario(arm="Succeeded", cs="ready", etcd_is_up=True, summary="all components are healthy"),
    "etcd": Scenario(arm="Provisioning", cs="installing", etcd_is_up=False, summary="etcd waits for quorum"),
    "undelivered": Scenario(
        arm="Provisioning", cs="installing", etcd_is_up=False, is_delivered=False, summary="no agent receives the work"
    ),
    "deletion": Scenario(
        arm="Deleting",
        cs="uninstalling",
        etcd_is_up=True,
        is_deleted=True,
        summary="a finalizer blocks the deletion of the HostedCluster",
    ),
    "contradiction": Scenario(
        arm="Succeeded", cs="ready", etcd_is_up=False, summary="the services report ready, the HostedCluster does not"
    ),
}


def arm_cluster(scenario: Scenario, *, now: str) -> Json:
    """Return the response of the RP frontend."""
    url = "https://api.example.net" if scenario.arm == "Succeeded" else ""
    return {
        "id": ARM_ID,
        "name": NAME,
        "type": "Microsoft.RedHatOpenShift/hcpOpenShiftClusters",
        "location": "westus3",
        "systemData": {"createdAt": now},
        "properties": {
            "provisioningState": scenario.arm,
            "version": {"id": "4.21", "channelGroup": "stable"},
            "dns": {"baseDomainPrefix": PREFIX, "baseDomain": "h1x7.westus3.hcp.example.net"},
            "api": {"url": url, "visibility": "Public"},
        },
    }


def cs_cluster(scenario: Scenario, *, now: str) -> Json:
    """Return the cluster of Clusters Service."""
    return {
        "kind": "Cluster",
        "id": CID,
        "href": f"{ROOT}/clusters/{CID}",
        "name": NAME,
        "domain_prefix": PREFIX,
        "state": scenario.cs,
        "azure": {"subscription_id": SUBSCRIPTION, "resource_group_name": GROUP, "resource_name": NAME},
        "version": {"kind": "VersionLink", "id": "openshift-v4.21.9"},
        "creation_timestamp": now,
        "status": {"state": scenario.cs, "dns_ready": True, "oidc_ready": True, "provision_error_code": ""},
    }


def shard() -> Json:
    """Return the provision shard."""
    group = f"hcp-underlay-{MANAGEMENT}"
    providers = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.ContainerService"
    return {
        "kind": "ProvisionShard",
        "id": "0f5b9a5e-3a0d-4a51-8d0a-6b1f4d2f7c11",
        "status": "active",
        "azure_shard": {
            "aks_management_cluster_resource_id": f"{providers}/managedClusters/{MANAGEMENT}",
            "cx_managed_identities_key_vault_url": "https://ah-dev-mi-usw3-1.vault.example.net/",
        },
        "maestro_config": {"consumer_name": CONSUMER},
    }


def hosted_cluster() -> Json:
    """Return the HostedCluster that Clusters Service creates."""
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {
            "name": PREFIX,
            "namespace": NAMESPACE,
            "labels": LABELS,
            "finalizers": ["hypershift.openshift.io/finalizer"],
        },
        "spec": {"platform": {"type": "Azure"}},
    }


def hosted_status(scenario: Scenario, *, now: str) -> Json:
    """Return the status that HyperShift's operator writes."""
    up = "True" if scenario.etcd_is_up else "False"
    reason = "AsExpected" if scenario.etcd_is_up else "EtcdWaitingForQuorum"
    message = "" if scenario.etcd_is_up else "Waiting for etcd to reach quorum"
    conditions = dict.fromkeys(("Available", "EtcdAvailable"), (up, reason, message))
    conditions |= dict.fromkeys(("InfrastructureReady", "ValidConfiguration"), ("True", "AsExpected", ""))
    conditions |= {"Degraded": ("False" if scenario.etcd_is_up else "True", "UnavailableReplicas", "")}
    host = "api.example.net" if scenario.etcd_is_up else ""
    return {
        "conditions": [_condition(*condition, now=now) for condition in _flat(conditions)],
        "controlPlaneEndpoint": {"host": host},
    }


def work() -> Json:
    """Return the ManifestWork that Clusters Service wraps the HostedCluster in."""
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "name": CID,
            "namespace": "local-cluster",
            "labels": LABELS,
            "finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"],
        },
        "spec": {"workload": {"manifests": [hosted_cluster()]}},
    }


def work_status(scenario: Scenario, *, now: str) -> Json:
    """Return the status that ACM's work agent writes, with the HostedCluster's conditions as feedback values."""
    meta = {
        "ordinal": 0,
        "group": "hypershift.openshift.io",
        "version": "v1beta1",
        "kind": "HostedCluster",
        "resource": "hostedclusters",
        "name": PREFIX,
        "namespace": NAMESPACE,
    }
    values = [
        {"name": f"{condition['type']}-{part}", "fieldValue": {"type": "String", "string": condition[part.lower()]}}
        for condition in hosted_status(scenario, now=now)["conditions"]
        for part in ("Status", "Reason")
    ]
    done = [_condition("Applied", "True", "AppliedManifestComplete", "", now=now)]
    return {
        "conditions": [
            _condition("Applied", "True", "AppliedManifestWorkComplete", "", now=now),
            _condition("Available", "True", "ResourcesAvailable", "", now=now),
        ],
        "resourceStatus": {
            "manifests": [{"resourceMeta": meta, "conditions": done, "statusFeedback": {"values": values}}]
        },
    }


def managed_cluster() -> Json:
    """Return the ManagedCluster."""
    return {
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": CID},
        "spec": {"hubAcceptsClient": True},
    }


def managed_status(scenario: Scenario, *, now: str) -> Json:
    """Return the status that ACM writes."""
    joined = "True" if scenario.etcd_is_up else "False"
    conditions = {
        "HubAcceptedManagedCluster": ("True", "HubClusterAdminAccepted", ""),
        "ManagedClusterJoined": (joined, "ManagedClusterJoined", ""),
        "ManagedClusterConditionAvailable": (joined, "ManagedClusterAvailable", ""),
    }
    return {"conditions": [_condition(*condition, now=now) for condition in _flat(conditions)]}


def node_pool() -> Json:
    """Return a NodePool."""
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": f"{PREFIX}-workers", "namespace": NAMESPACE},
        "spec": {"clusterName": PREFIX, "replicas": 3},
    }


def node_pool_status(scenario: Scenario, *, now: str) -> Json:
    """Return the status that HyperShift's operator writes."""
    ready = "True" if scenario.etcd_is_up else "False"
    replicas = 3 if scenario.etcd_is_up else 0
    return {"replicas": replicas, "conditions": [_condition("Ready", ready, "AsExpected", "", now=now)]}


def pods(scenario: Scenario) -> list[Json]:
    """Return the pods of the control plane; an annotation makes the sandbox fail them."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": CONTROL_PLANE,
                "annotations": {} if scenario.etcd_is_up or name == "etcd-0" else {"sandbox.maestropy/fail": "true"},
            },
            "spec": {"restartPolicy": "Always", "containers": [{"name": "etcd", "image": "etcd"}]},
        }
        for name in ("etcd-0", "etcd-1", "etcd-2")
    ]


def definitions() -> list[Json]:
    """Return CustomResourceDefinitions of ACM and HyperShift, without field validation."""
    kinds = [
        ("work.open-cluster-management.io", "v1", "ManifestWork", "Namespaced"),
        ("cluster.open-cluster-management.io", "v1", "ManagedCluster", "Cluster"),
        ("hypershift.openshift.io", "v1beta1", "HostedCluster", "Namespaced"),
        ("hypershift.openshift.io", "v1beta1", "NodePool", "Namespaced"),
    ]
    return [_definition(*kind) for kind in kinds]


def _definition(group: str, version: str, kind: str, scope: str) -> Json:
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }


def _flat(conditions: dict[str, tuple[str, str, str]]) -> list[tuple[str, str, str, str]]:
    return [(name, *condition) for name, condition in conditions.items()]


def _condition(name: str, status: str, reason: str, message: str, *, now: str) -> Json:
    return {"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": now}
