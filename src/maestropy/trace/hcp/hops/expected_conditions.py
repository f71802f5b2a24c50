"""Expected conditions of healthy objects, and who is responsible when one deviates. Tables only.

Health is judged by these lists and nothing else: a condition that is not listed may be False for good reasons.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from maestropy.trace.hcp.documents.decode import ObjectCondition

Owner = Literal["input", "cloud", "platform"]

# In the order of causes: an earlier deviation explains later ones, so the first one is reported.
_HOSTED_TRUE = (
    "ValidConfiguration",
    "SupportedHostedCluster",
    "ValidHostedControlPlaneConfiguration",
    "ValidReleaseInfo",
    "ValidReleaseImage",
    "PlatformCredentialsFound",
    "ValidAzureKMSConfig",
    "InfrastructureReady",
    "ExternalDNSReachable",
    "EtcdAvailable",
    "KubeAPIServerAvailable",
    "IgnitionEndpointAvailable",
    "ReconciliationActive",
    "ReconciliationSucceeded",
    "ConfigOperatorReconciliationSucceeded",
    "Available",
    "ClusterVersionReleaseAccepted",
    "ClusterVersionAvailable",
    "ClusterVersionSucceeding",
    "ControlPlaneConnectionAvailable",
    "DataPlaneConnectionAvailable",
)
_HOSTED_FALSE = ("Degraded", "ClusterVersionProgressing", "Progressing")
_MAY_BE_UNKNOWN = frozenset(
    # Without a customer's key or with a private vault, without DNS of its own, and before there are workers.
    {"ValidAzureKMSConfig", "ExternalDNSReachable", "ControlPlaneConnectionAvailable", "DataPlaneConnectionAvailable"}
)
_NODE_POOL_TRUE = (
    "ValidReleaseImage",
    "SupportedVersionSkew",
    "ValidMachineConfig",
    "ValidTuningConfig",
    "ValidGeneratedPayload",
    "ReconciliationActive",
    "UpdateManagementEnabled",
    "ReachedIgnitionEndpoint",
    "AllMachinesReady",
    "AllNodesHealthy",
    "Ready",
)
_NODE_POOL_FALSE = ("UpdatingVersion", "UpdatingConfig", "UpdatingPlatformMachineTemplate")
MANAGED_CLUSTER_TRUE = ("HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable")

_INPUT = ("Valid", "Supported")
_CLOUD = frozenset({"InfrastructureReady", "ValidAzureKMSConfig", "ExternalDNSReachable", "PlatformCredentialsFound"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The conditions that a healthy object of a kind has."""

    true: Sequence[str]
    false: Sequence[str]
    may_be_unknown: frozenset[str] = frozenset()

    def deviations(self, conditions: Iterable[ObjectCondition]) -> tuple[ObjectCondition, ...]:
        """Return the conditions that are not as they should be, causes first."""
        by_type = {condition.type: condition for condition in conditions}
        expected = [*((name, "True") for name in self.true), *((name, "False") for name in self.false)]
        return tuple(
            by_type[name] for name, status in expected if name in by_type and not self._fits(by_type[name], status)
        )

    def unreported(self, conditions: Iterable[ObjectCondition]) -> tuple[str, ...]:
        """Return the expected conditions that the object does not have."""
        have = {condition.type for condition in conditions}
        return tuple(name for name in (*self.true, *self.false) if name not in have)

    def _fits(self, condition: ObjectCondition, status: str) -> bool:
        return condition.status == status or (condition.status == "Unknown" and condition.type in self.may_be_unknown)


HOSTED_CLUSTER = Expectation(true=_HOSTED_TRUE, false=_HOSTED_FALSE, may_be_unknown=_MAY_BE_UNKNOWN)
NODE_POOL = Expectation(true=_NODE_POOL_TRUE, false=_NODE_POOL_FALSE)
MANAGED_CLUSTER = Expectation(true=MANAGED_CLUSTER_TRUE, false=())


def owner(condition: str) -> Owner:
    """Return who is responsible for a deviating condition of a HostedCluster."""
    if condition in _CLOUD:
        return "cloud"
    return "input" if condition.startswith(_INPUT) else "platform"
