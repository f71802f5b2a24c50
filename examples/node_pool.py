"""The workers of a cluster: a NodePool and the ConfigMap with their settings, two objects in one work."""

from typing import Any

from maestropy import Work
from maestropy.adapter import Adapter, DesiredState, Event, NotReady, ObservedState, Resource, StatusReport

adapter = Adapter("nodepool")


@adapter.reconciles("NodePool")
def workers(_: Event, pool: Resource) -> DesiredState | NotReady:
    """Return both objects, once the node pool has a cluster."""
    if not pool.owner_id:
        return NotReady(reason="NoCluster", message="the node pool belongs to no cluster yet")
    replicas = pool.spec.get("replicas", 2)
    work = Work(f"nodepool-{pool.id}").add(settings(pool))
    return DesiredState(
        work.add(node_pool(pool, replicas=replicas), feedback={"ready": ".status.replicas", "status": ".status"}),
        read=lambda observed: read(observed, replicas=replicas),
    )


def read(observed: ObservedState, *, replicas: int) -> StatusReport:
    """Report how many nodes are ready."""
    ready = observed.feedback("ready", "NodePool")
    if ready != replicas:
        return StatusReport(available=False, reason="Scaling", message=f"{ready} of {replicas} nodes are ready")
    return StatusReport(available=True, reason="AllNodesReady", data={"replicas": ready})


def settings(pool: Resource) -> dict[str, Any]:
    """Return the settings of the nodes."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{pool.name}-settings", "namespace": "clusters"},
        "data": {"kubelet": "maxPods: 250"},
    }


def node_pool(pool: Resource, *, replicas: int) -> dict[str, Any]:
    """Return the NodePool."""
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": pool.name, "namespace": "clusters"},
        "spec": {
            "clusterName": pool.owner_id,
            "replicas": replicas,
            "config": [{"name": f"{pool.name}-settings"}],
        },
    }
