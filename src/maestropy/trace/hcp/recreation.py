"""Who would bring back what, if somebody deleted it by hand now. Pure.

Each layer re-creates what the layer above it still wants. Deleting below a layer that still wants the thing is in vain.
"""

from collections.abc import Iterable

from maestropy.trace.hcp import reading, views
from maestropy.trace.hcp.model import Recreation, Scene
from maestropy.trace.hcp.question import Topic

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


def find(scene: Scene) -> tuple[Recreation, ...]:
    """Return who would re-create what, from above to below."""
    return (*_clusters_service(scene), *_maestro_agent(scene), *_acm(scene), *_hypershift(scene))


def _clusters_service(scene: Scene) -> Iterable[Recreation]:
    state = views.cluster_state(scene)
    if state and state != "uninstalling":
        yield Recreation(
            who="Clusters Service", what="the bundles in Maestro", because=f"its cluster is {state}, not uninstalling"
        )


def _maestro_agent(scene: Scene) -> Iterable[Recreation]:
    for each in views.bundles(scene):
        if not each.deleted and not each.read_only:
            yield Recreation(
                who="the Maestro agent", what=each.title, because=f"bundle {each.id} is not deleted in Maestro"
            )


def _acm(scene: Scene) -> Iterable[Recreation]:
    for each in scene.documents(Topic.WORK):
        if not reading.is_going(each.value):
            kinds = [
                f"{reading.text(one, 'kind')} {reading.name(one)}"
                for one in reading.objects(each.value, "spec", "workload", "manifests")
            ]
            yield Recreation(
                who="ACM's work agent",
                what=", ".join(kinds) or "what it holds",
                because=f"ManifestWork {reading.name(each.value)} is not being deleted",
            )


def _hypershift(scene: Scene) -> Iterable[Recreation]:
    for each in scene.documents(Topic.HOSTED_CLUSTER):
        if not reading.is_going(each.value):
            yield Recreation(
                who="the HyperShift operator",
                what=f"everything in {scene.known.control_plane or 'the control plane namespace'}",
                because=f"HostedCluster {reading.name(each.value)} is not being deleted",
            )
