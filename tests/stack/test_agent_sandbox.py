"""The agent's suite on the Kubernetes in process."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from conformance.agent_cases import Case, every_case
from conformance.fleet import Cluster, fleet

from maestropy.kube import config
from maestropy.sandbox.kubeapi.cluster import SandboxCluster

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """One event loop for all cases, in which the cluster lives too."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def cluster(loop: asyncio.Runner) -> Iterator[Cluster]:
    stack = AsyncExitStack()

    async def start() -> Cluster:
        sandbox = await stack.enter_async_context(SandboxCluster(delay=0.01))
        return await stack.enter_async_context(Cluster(config.from_kubeconfig([sandbox.kubeconfig])))

    yield loop.run(start())
    loop.run(stack.aclose())


@every_case
def test_agent(case: Case, cluster: Cluster, loop: asyncio.Runner) -> None:
    async def scenario() -> None:
        async with fleet(cluster, f"suite{next(NUMBERS)}") as found:
            await case(found)

    loop.run(scenario())
