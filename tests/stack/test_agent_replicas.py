"""Several agents of one cluster on the sandbox Kubernetes API."""

from pathlib import Path

import pytest

from maestropy import AsyncMaestro
from maestropy.kube.config import load as config
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.store.dsn import Dsn
from tests.conformance import replicas
from tests.conformance.agent_environment import Cluster
from tests.stack import harness


@pytest.mark.long
async def test_one_agent_leads_and_others_take_over(database: Dsn, tmp_path: Path) -> None:
    async with (
        harness.in_process(database) as server,
        SandboxCluster(tls=False, delay=0.01) as sandbox,
        Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
        AsyncMaestro(api_url=server.rest, grpc_url=server.sources, source="sdk", environ={}) as client,
    ):
        await replicas.run_failover(
            replicas.ReplicaSetting(
                cluster=cluster,
                client=client,
                kubeconfig=Path(sandbox.kubeconfig),
                broker=server.agents,
                folder=tmp_path,
            )
        )
