"""Read health and metrics ports of servers and agents in pods, through port-forwards of the API server."""

from collections.abc import Sequence
from typing import Final

from maestropy.diagnose.collection.sources import server
from maestropy.diagnose.collection.staging import Staging
from maestropy.trace.access import pod_logs, port_forward
from maestropy.trace.access.cluster import TracedCluster
from maestropy.trace.access.pod_logs import ComponentPods
from maestropy.trace.errors import NoAccess

_MOST_PODS: Final = 20
_SERVER: Final = (("health", 8083, "http"), ("metrics", 8080, "http"))
_AGENT: Final = (("health", 8443, "https"), ("metrics", 8443, "https"))
"""Kind, port and scheme, as the charts set them."""


async def collect_ports(component: ComponentPods, staging: Staging, *, folder: str) -> Sequence[str]:
    """Write what the ports of a component's pods say; return problems."""
    problems: list[str] = []
    async with TracedCluster(component.target) as cluster:
        pods = await pod_logs.pods_of(cluster.client, component)
        for pod in pods[:_MOST_PODS]:
            metadata = pod["metadata"]
            name, namespace = str(metadata.get("name")), str(metadata.get("namespace", ""))
            for kind, port, scheme in _SERVER if component.name == "server" else _AGENT:
                target = port_forward.ForwardTarget(namespace=namespace, pod=name, port=port)
                try:
                    async with port_forward.forward(cluster.client.address, target) as local:
                        url = local.replace("http://", f"{scheme}://", 1)
                        problems += await server.collect_endpoint(staging, f"{folder}/{name}", url=url, kind=kind)
                except NoAccess as error:
                    problems.append(str(error))
    if len(pods) > _MOST_PODS:
        problems.append(f"only {_MOST_PODS} of {len(pods)} pods of {component.name} are asked")
    return problems
