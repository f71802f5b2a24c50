"""What is measured of server and agent together, on a real Kubernetes API server: ours with ours, Go with Go."""

from bench import usage
from bench.rig import Report, Rig
from tests.peers import kube_agents

BURSTS = (20, 50, 100)


def bursts(rig: Rig, kind: str) -> Report:
    """Publish a burst of works and wait until each is on the cluster and its status back at the client."""
    cluster = rig.cluster()
    found: Report = {}
    with rig.server(kind) as server:
        server.add_consumers(["cluster1"])
        starting = kube_agents.agent_process(
            kind, rig.programs, cluster=cluster, server=server.running, consumer="cluster1", folder=server.folder
        )
        with starting as agent:
            to_server = {"grpc": server.running.grpc_addr, "source": "bench", "consumers": "cluster1", "size": 3000}
            server.load("burst", requests=5, workers=5, **to_server)
            for size in BURSTS:
                report = server.load("burst", requests=size, workers=size, **to_server)
                found[f"burst of {size}, publish to first status p50 ms"] = report["p50_ms"]
                found[f"burst of {size}, publish to first status p99 ms"] = report["p99_ms"]
                found[f"burst of {size}, publish to available p50 ms"] = report["available_p50_ms"]
            found["agent memory after these bursts, MB"] = usage.memory_mb(agent.pid)
    return found
