"""The agent suite on the sandbox Kubernetes API."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from maestropy.kube.config import load as config
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from tests.conformance.agent_cases import Case, every_case
from tests.conformance.agent_environment import Cluster, agent_environment

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """One event loop for all cases and the cluster."""
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
        async with agent_environment(cluster, f"suite{next(NUMBERS)}") as env:
            await case(env)

    loop.run(scenario())
