"""Two agents of one cluster on the Kubernetes in process."""

from pathlib import Path

import harness
from conformance import replicas
from conformance.fleet import Cluster

from maestropy import AsyncMaestro
from maestropy.kube import config
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.store.dsn import Dsn


def test_one_leads_and_others_take_over(database: Dsn, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            harness.in_process(database) as server,
            SandboxCluster(tls=False, delay=0.01) as sandbox,
            Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
            AsyncMaestro(api_url=server.rest, grpc_url=server.sources, source="sdk", environ={}) as client,
        ):
            await replicas.play(
                replicas.Setting(
                    cluster=cluster,
                    client=client,
                    kubeconfig=Path(sandbox.kubeconfig),
                    broker=server.agents,
                    folder=tmp_path,
                )
            )

    harness.play(scenario())
