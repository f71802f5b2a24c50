"""The control plane of a cluster: a HostedCluster on a management cluster, and its endpoint when it is there."""

from maestropy import Work
from maestropy.adapter import Adapter, Event, Reading, Resource, Seen, Wish

adapter = Adapter("controlplane")


@adapter.reconciles("Cluster")
def control_plane(_: Event, cluster: Resource) -> Wish:
    """Want one HostedCluster, and its status back."""
    hosted_cluster = {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {"name": cluster.name, "namespace": "clusters"},
        "spec": {"platform": {"type": "GCP"}, "release": {"image": cluster.spec["release"]}},
    }
    work = Work(f"hostedcluster-{cluster.id}").delete_option("Foreground")
    return Wish(work.add(hosted_cluster, feedback={"status": ".status"}, update_strategy="ServerSideApply"), read=read)


def read(seen: Seen) -> Reading:
    """Say whether it is available, and where."""
    status = seen.status("HostedCluster")
    endpoint = status.get("controlPlaneEndpoint") or {}
    where = f"{endpoint['host']}:{endpoint['port']}" if endpoint.get("host") else ""
    return Reading(available=status, data={"control_plane_endpoint": where})
