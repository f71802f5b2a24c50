"""The control plane of a cluster: a HostedCluster on a management cluster, and its endpoint."""

from maestropy import Work
from maestropy.adapter import Adapter, DesiredState, Event, ObservedState, Resource, StatusReport

adapter = Adapter("controlplane")


@adapter.reconciles("Cluster")
def control_plane(_: Event, cluster: Resource) -> DesiredState:
    """Return one HostedCluster, with its status as feedback."""
    hosted_cluster = {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {"name": cluster.name, "namespace": "clusters"},
        "spec": {"platform": {"type": "GCP"}, "release": {"image": cluster.spec["release"]}},
    }
    work = Work(f"hostedcluster-{cluster.id}").delete_option("Foreground")
    return DesiredState(
        work.add(hosted_cluster, feedback={"status": ".status"}, update_strategy="ServerSideApply"), read=read
    )


def read(observed: ObservedState) -> StatusReport:
    """Report whether it is available, and its endpoint."""
    status = observed.status("HostedCluster")
    endpoint = status.get("controlPlaneEndpoint") or {}
    address = f"{endpoint['host']}:{endpoint['port']}" if endpoint.get("host") else ""
    return StatusReport(available=status, data={"control_plane_endpoint": address})
