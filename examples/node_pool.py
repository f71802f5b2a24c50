"""The workers of a cluster: a NodePool and the ConfigMap with their settings, two objects in one work."""

from typing import Any

from maestropy import Work
from maestropy.adapter import Adapter, Event, Hold, Reading, Resource, Seen, Wish

adapter = Adapter("nodepool")


@adapter.reconciles("NodePool")
def workers(_: Event, pool: Resource) -> Wish | Hold:
    """Want both, once there is a cluster to belong to."""
    if not pool.owner_id:
        return Hold(reason="NoCluster", message="the node pool belongs to no cluster yet")
    replicas = pool.spec.get("replicas", 2)
    work = Work(f"nodepool-{pool.id}").add(settings(pool))
    return Wish(
        work.add(node_pool(pool, replicas=replicas), feedback={"ready": ".status.replicas", "status": ".status"}),
        read=lambda seen: read(seen, wanted=replicas),
    )


def read(seen: Seen, *, wanted: int) -> Reading:
    """Say how many nodes are there."""
    ready = seen.feedback("ready", "NodePool")
    if ready != wanted:
        return Reading(available=False, reason="Scaling", message=f"{ready} of {wanted} nodes are ready")
    return Reading(available=True, reason="AllNodesReady", data={"replicas": ready})


def settings(pool: Resource) -> dict[str, Any]:
    """Return the settings of the nodes."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{pool.name}-settings", "namespace": "clusters"},
        "data": {"kubelet": "maxPods: 250"},
    }


def node_pool(pool: Resource, *, replicas: int) -> dict[str, Any]:
    """Return the nodes."""
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
