"""Real agents are killed and frozen in the middle of applying and deleting: whoever comes next finishes."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from tests.faults import fault_programs
from tests.faults.fault_ledger import GONE, Ledger
from tests.faults.fault_parties import Listener, SourceClient, running, source_client
from tests.faults.fault_proxy import FaultProxy
from tests.faults.fault_world import FLAGS, HEARTBEAT_TIMEOUT_SECONDS, settles
from tests.stack import harness


@dataclass(frozen=True, kw_only=True)
class Rig:
    """A server in this process, a cluster with a real agent, and a client."""

    database: Dsn
    kube: fault_programs.KubeProgram
    agent: fault_programs.Program
    client: SourceClient
    listener: Listener
    to_server: FaultProxy
    ledger: Ledger

    async def settles(self) -> None:
        async def objects() -> dict[str, dict[str, str]]:
            return {"cluster1": await self.kube.config_maps()}

        await settles(self.ledger, address=self.database, objects=objects, listeners=[self.listener], seconds=60)

    async def count(self) -> int:
        """Return how many bundles are on the cluster."""
        return len(await self.kube.config_maps())


@asynccontextmanager
async def rig(database: Dsn, folder: Path, ledger: Ledger) -> AsyncIterator[Rig]:
    flags = dict(flag.removeprefix("--").split("=") for flag in FLAGS)
    kube = fault_programs.kube(folder, "cluster1")
    async with harness.in_process(database, **flags) as server:
        await server.add_consumer("cluster1")
        async with FaultProxy(("127.0.0.1", int(server.agents.rpartition(":")[2]))) as to_server:
            config = folder / "agent.yaml"
            config.write_text(f"url: {to_server.address}\nserverHealthinessTimeout: {HEARTBEAT_TIMEOUT_SECONDS:g}s\n")
            way = [f"--workload-source-config={config}"]
            agent = fault_programs.agent(folder, "cluster1", kubeconfig=kube.kubeconfig, way=way)
            listener = Listener([server.sources], ledger)
            async with (
                fault_programs.programs(kube),
                fault_programs.programs(agent),
                source_client(server.sources, ledger=ledger) as client,
                running(listener.run),
            ):
                yield Rig(
                    database=database,
                    kube=kube,
                    agent=agent,
                    client=client,
                    listener=listener,
                    to_server=to_server,
                    ledger=ledger,
                )


async def request_all(client: SourceClient, count: int, text: str | None) -> None:
    await asyncio.gather(*(client.insist(f"w{number}", "cluster1", text) for number in range(count)))


@pytest.mark.peers
async def test_kill_9_in_the_middle_of_applying_and_deleting(
    database: Dsn, tmp_path: Path, ledger: Ledger, chance: random.Random
) -> None:
    count, kills = 30, 3

    async with rig(database, tmp_path, ledger) as here:
        for text in ("first", "second", GONE):
            requesting = asyncio.ensure_future(request_all(here.client, count, text))
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(0, 0.3))  # any moment will do
                await here.agent.kill()
                here.agent.launch()
            await requesting
            await here.settles()
        assert await here.count() == 0
        assert ledger.counts["delete taken"] == count


@pytest.mark.peers
@pytest.mark.parametrize("fault", ["freeze", "strand", "partition", "restart-kubernetes"])
async def test_an_agent_that_is_cut_off(database: Dsn, tmp_path: Path, ledger: Ledger, fault: str) -> None:
    """Spec requests come while the agent is frozen, half connected, not connected, or without its cluster."""

    async with rig(database, tmp_path, ledger) as here:
        await request_all(here.client, 30, "first")
        await here.settles()
        match fault:
            case "freeze":
                here.agent.pause()
            case "strand":
                here.to_server.strand()
            case "partition":
                here.to_server.partition()
            case "restart-kubernetes":
                await here.kube.stop()
        await request_all(here.client, 30, "second")
        await asyncio.gather(*(here.client.insist(f"w{number}", "cluster1", GONE) for number in range(10)))
        await asyncio.sleep(HEARTBEAT_TIMEOUT_SECONDS)  # long enough for both ends to notice
        here.agent.resume()
        here.to_server.heal()
        if fault == "restart-kubernetes":
            await here.kube.start()
        await here.settles()
