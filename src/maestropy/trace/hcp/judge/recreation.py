"""Find out which component would re-create an object that is deleted by hand. Pure.

Each layer re-creates what the layer above it still wants, so deleting below such a layer has no lasting effect.
"""

from collections.abc import Iterable

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.hops import views
from maestropy.trace.hcp.model import Recreation, WalkContext
from maestropy.trace.hcp.query import Topic

SAFE_ORDER = (
    "ManagedClusterAddOn finalizers",
    "AzureMachine",
    "Machine, MachineSet, MachineDeployment",
    "Deployments (hypershift.openshift.io/component-finalizer)",
    "Cluster (CAPI)",
    "HostedControlPlane",
    "NodePool",
    "HostedCluster",
    "ManifestWork",
    "namespaces",
)
"""In which order finalizers may be cleared by hand, once nothing above re-creates. AzureMachines may leak VMs."""


def find(context: WalkContext) -> tuple[Recreation, ...]:
    """Return which component would re-create which object, from the top layer down."""
    return (*_clusters_service(context), *_maestro_agent(context), *_acm(context), *_hypershift(context))


def _clusters_service(context: WalkContext) -> Iterable[Recreation]:
    state = views.cluster_state(context)
    if state and state != "uninstalling":
        yield Recreation(
            who="Clusters Service", what="the bundles in Maestro", because=f"its cluster is {state}, not uninstalling"
        )


def _maestro_agent(context: WalkContext) -> Iterable[Recreation]:
    for bundle in views.bundles(context):
        if not bundle.deleted and not bundle.read_only:
            yield Recreation(
                who="the Maestro agent", what=bundle.title, because=f"bundle {bundle.id} is not deleted in Maestro"
            )


def _acm(context: WalkContext) -> Iterable[Recreation]:
    for work in context.documents(Topic.WORK):
        if not lookup.is_deleting(work.value):
            kinds = [
                f"{lookup.text(one, 'kind')} {lookup.name(one)}"
                for one in lookup.objects(work.value, "spec", "workload", "manifests")
            ]
            yield Recreation(
                who="ACM's work agent",
                what=", ".join(kinds) or "what it holds",
                because=f"ManifestWork {lookup.name(work.value)} is not being deleted",
            )


def _hypershift(context: WalkContext) -> Iterable[Recreation]:
    for hosted_cluster in context.documents(Topic.HOSTED_CLUSTER):
        if not lookup.is_deleting(hosted_cluster.value):
            yield Recreation(
                who="the HyperShift operator",
                what=f"everything in {context.known.control_plane or 'the control plane namespace'}",
                because=f"HostedCluster {lookup.name(hosted_cluster.value)} is not being deleted",
            )
