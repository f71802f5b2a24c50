"""Two agents of one cluster on a real API server."""

from pathlib import Path

import pytest

from maestropy import AsyncMaestro
from maestropy.kube.config import load as config
from tests.conformance import replicas
from tests.conformance.agent_environment import Cluster
from tests.peers import peer_postgres
from tests.peers.kube_build import ControlPlane
from tests.peers.kube_cluster import kube_cluster
from tests.peers.peer_servers import python_server

pytestmark = pytest.mark.peers


async def test_one_agent_leads_and_others_take_over_on_kubernetes(
    control_plane: ControlPlane, postgres: peer_postgres.Cluster, tmp_path: Path
) -> None:
    place = tmp_path / "kube"
    place.mkdir()
    with (
        kube_cluster(control_plane, folder=place) as kube,
        python_server(database=postgres.create("replicas"), folder=tmp_path) as server,
    ):
        async with (
            Cluster(config.from_kubeconfig([kube.kubeconfig])) as cluster,
            AsyncMaestro(api_url=server.rest_url, grpc_url=server.grpc_addr, source="sdk", environ={}) as client,
        ):
            await replicas.run_failover(
                replicas.ReplicaSetting(
                    cluster=cluster,
                    client=client,
                    kubeconfig=kube.kubeconfig,
                    broker=server.broker_addr,
                    folder=tmp_path,
                )
            )
