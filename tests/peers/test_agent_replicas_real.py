"""Two agents of one cluster on a real API server."""

import asyncio
from pathlib import Path

import peer_postgres
import pytest
from conformance import replicas
from conformance.fleet import Cluster
from kube_build import ControlPlane
from kube_cluster import kube_cluster
from peer_servers import python_server

from maestropy import AsyncMaestro
from maestropy.kube import config

pytestmark = pytest.mark.peers


def test_one_leads_and_others_take_over_on_kubernetes(
    control_plane: ControlPlane, postgres: peer_postgres.Cluster, tmp_path: Path
) -> None:
    place = tmp_path / "kube"
    place.mkdir()
    with (
        kube_cluster(control_plane, folder=place) as kube,
        python_server(database=postgres.create("replicas"), folder=tmp_path) as server,
    ):

        async def scenario() -> None:
            async with (
                Cluster(config.from_kubeconfig([kube.kubeconfig])) as cluster,
                AsyncMaestro(api_url=server.rest_url, grpc_url=server.grpc_addr, source="sdk", environ={}) as client,
            ):
                await replicas.play(
                    replicas.Setting(
                        cluster=cluster,
                        client=client,
                        kubeconfig=kube.kubeconfig,
                        broker=server.broker_addr,
                        folder=tmp_path,
                    )
                )

        asyncio.run(scenario())
