"""The agent's suite on a real API server, etcd and controllers: what differs from the sandbox is the sandbox's bug."""

import asyncio
import itertools
from collections.abc import Iterator

import pytest

from maestropy.kube.config import load as config
from tests.conformance.agent_cases import Case, every_case
from tests.conformance.agent_environment import Cluster, agent_environment
from tests.peers.kube_cluster import KubeCluster

pytestmark = pytest.mark.peers

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def cluster(real_cluster: KubeCluster, loop: asyncio.Runner) -> Iterator[Cluster]:
    env = Cluster(config.from_kubeconfig([real_cluster.kubeconfig]))
    loop.run(env.__aenter__())
    yield env
    loop.run(env.__aexit__())


@every_case
def test_agent_on_kubernetes(case: Case, cluster: Cluster, loop: asyncio.Runner) -> None:
    async def scenario() -> None:
        async with agent_environment(cluster, f"suite{next(NUMBERS)}") as env:
            await case(env)

    loop.run(scenario())
