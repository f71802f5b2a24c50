"""The agent's suite on a real API server, etcd and controllers: what differs from the sandbox is the sandbox's bug."""

import asyncio
import itertools
from collections.abc import Iterator

import pytest
from conformance.agent_cases import Case, every_case
from conformance.fleet import Cluster, fleet
from kube_cluster import KubeCluster

from maestropy.kube import config

pytestmark = pytest.mark.peers

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def cluster(real_cluster: KubeCluster, loop: asyncio.Runner) -> Iterator[Cluster]:
    found = Cluster(config.from_kubeconfig([real_cluster.kubeconfig]))
    loop.run(found.__aenter__())
    yield found
    loop.run(found.__aexit__())


@every_case
def test_agent_on_kubernetes(case: Case, cluster: Cluster, loop: asyncio.Runner) -> None:
    async def scenario() -> None:
        async with fleet(cluster, f"suite{next(NUMBERS)}") as found:
            await case(found)

    loop.run(scenario())
