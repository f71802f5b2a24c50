"""Our agent as a process, behind a real broker: server, broker and agent each go away once, and the cluster follows."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as kube_config
from maestropy.kube.errors import NotFound
from maestropy.kube.request import ResourceType
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.store.dsn import Dsn
from tests import waiting
from tests.peers.mosquitto import Mosquitto
from tests.peers.peer_processes import tail
from tests.stack import harness
from tests.stack.clients import MANIFEST, bundle_data, is_about, source

pytestmark = pytest.mark.peers
CONFIG_MAPS = ResourceType(group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True)


@contextlib.asynccontextmanager
async def running_agent(kubeconfig: Path, config: Path, *, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "maestropy.cli.main", "agent", "--consumer-name=cluster1", "--listen="),
            *("--workload-source-driver=mqtt", f"--workload-source-config={config}", f"--kubeconfig={kubeconfig}"),
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        await process.wait()


async def test_works_are_applied_through_every_outage(
    database: Dsn, broker: Mosquitto, tmp_path: Path, shown_logs: list[Path]
) -> None:
    log = tmp_path / "agent.log"
    log.touch()
    shown_logs.append(log)

    config = broker.config()
    flags = {"message_broker_type": "mqtt", "message_broker_config_file": str(config)}
    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(SandboxCluster(delay=0.01))
        address = kube_config.from_kubeconfig([cluster.kubeconfig])
        kube = await stack.enter_async_context(KubeClient(address, settings=ClientSettings(qps=0)))

        async def content() -> str | None:
            try:
                found = await kube.get(CONFIG_MAPS, MANIFEST["metadata"]["name"], namespace="default")
            except NotFound:
                return None
            return str(found["data"]["k"])

        async def holds(text: str | None) -> None:
            async def look() -> bool:
                return await content() == text

            await waiting.until(look, seconds=30, what=f"an object with {text}: {tail(log, lines=5)}")

        agent = await stack.enter_async_context(running_agent(cluster.kubeconfig, config, log=log))
        async with harness.in_process(database, **flags) as server, source(server.sources) as a:
            await server.add_consumer("cluster1")
            async with a.subscribe() as told:
                await a.create("w1", "cluster1", data=bundle_data("first"))
                await holds("first")
                await told.take(lambda e: is_about(e, "w1") and b'"Available"' in e.data)
            broker.stop()
            await a.update("w1", "cluster1", version=1, data=bundle_data("while the broker was away"))
            broker.start()
            await holds("while the broker was away")
            agent.kill()
            await agent.wait()
            await a.update("w1", "cluster1", version=2, data=bundle_data("while the agent was away"))
            await waiting.until(server.has_nothing_pending, what="an empty queue")
        # The agent comes back while no server listens: it must not be content with that.
        await stack.enter_async_context(running_agent(cluster.kubeconfig, config, log=log))
        await waiting.until(
            lambda: "no server is subscribed" in log.read_text(),
            what="the agent to notice that no server is subscribed",
        )
        async with harness.in_process(database, **flags) as server, source(server.sources) as a:
            await holds("while the agent was away")
            async with a.subscribe() as told:
                await a.delete("w1", "cluster1")
                await told.take(lambda e: b'"Deleted"' in e.data)
            await holds(None)
            assert await server.bundle("w1") is None
    shown_logs.remove(log)
