"""A server, its PostgreSQL, a Kubernetes API and an agent as processes, for tests that damage the database."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from maestropy.store.dsn import Dsn
from maestropy.store.migrations import migrate
from maestropy.wire.events import event
from tests import waiting
from tests.faults import fault_programs
from tests.faults.fault_parties import bundle_data
from tests.stack import clients, harness

WORKS = int(os.environ.get("MAESTRO_DATA_SAFETY_WORKS", "30"))
CONSUMER = "cluster1"
SECONDS = 60 + WORKS / 5


@dataclass(kw_only=True)
class Fleet:
    """One server, one cluster, one agent, and the PostgreSQL behind the server."""

    postgres: fault_programs.Postgres
    server: fault_programs.ServerProgram
    kube: fault_programs.KubeProgram
    agent: fault_programs.Program
    metrics_url: str

    def database(self, name: str) -> Dsn:
        return replace(self.postgres.address, database=name)

    async def admin(self, statement: str) -> None:
        await harness.sql(self.postgres.address, statement)

    async def move_to(self, name: str) -> None:
        """Start the server again on another database."""
        await self.server.stop()
        self.server.env = {**self.server.env, "MAESTRO_DB_DSN": str(self.database(name))}
        await self.server.start()

    async def publish(self, first: int, last: int, text: str, *, kind: str = event.SPEC_CREATE) -> None:
        source = clients.Source(address=self.server.sources)
        try:
            for start in range(first, last, 50):
                numbers = range(start, min(start + 50, last))
                await asyncio.gather(
                    *(source.publish(source.spec(kind, *_work(number), data=_data(number, text))) for number in numbers)
                )
        finally:
            await source.channel.close()

    async def wait_for_objects(self, first: int, last: int, text: str) -> None:
        async def is_applied() -> bool:
            texts = await self.kube.config_maps()
            return all(texts.get(f"w{number}") == text for number in range(first, last))

        await waiting.until(is_applied, seconds=SECONDS, what=f"{last - first} objects with {text}")

    async def cli(self, *arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "maestropy.cli.main", *arguments, f"--rest-url={self.server.rest}"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "XDG_CONFIG_HOME": str(self.kube.kubeconfig.parent)},
        )
        output, _ = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, output.decode()
        return output.decode()

    async def metric(self, reason: str) -> float:
        async with httpx.AsyncClient(verify=False, timeout=5) as client:
            text = (await client.get(f"{self.metrics_url}/metrics")).text
        name = f'maestropy_agent_held_works{{reason="{reason}"}}'
        return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    async def assert_held(self, reason: str, *, works: int) -> None:
        """Wait until `works` works are held, and until that is visible everywhere."""

        async def is_counted() -> bool:
            return await self.metric(reason) == works

        await waiting.until(is_counted, seconds=SECONDS, what=f"{works} works held as {reason}")

        async def is_listed() -> bool:
            return f"{reason} ({works} works)" in await self.cli("consumer", "list")

        await waiting.until(is_listed, seconds=SECONDS, what="the hold in `maestro consumer list`")
        assert f"{reason}: {works} works since" in await self.cli("consumer", "get", CONSUMER)
        assert "data-safety hold" in self.agent.log.read_text()
        assert "data-safety hold" in self.server.log.read_text()
        async with httpx.AsyncClient(verify=False, timeout=5) as client:
            ready = await client.get(f"{self.metrics_url}/readyz")
        assert ready.status_code == 200
        assert f"{reason} {works}" in ready.text

    async def wait_until_released(self) -> None:
        """Wait until nothing is held; works that wait for their eviction are not."""
        held = ("OtherDatabase", "UnknownConsumer", "TooManyOrphans", "OlderVersion", "OlderIncarnation")

        async def is_released() -> bool:
            listed = await self.cli("consumer", "list")
            return not any(reason in listed for reason in held)

        await waiting.until(is_released, seconds=SECONDS, what="the end of the hold")


def _work(number: int) -> tuple[str, str]:
    return f"w{number}", CONSUMER


def _data(number: int, text: str) -> bytes:
    bundle = json.loads(bundle_data(f"w{number}", text))
    if text == "newer":
        extra = {**bundle["manifests"][0], "metadata": {"name": f"w{number}-extra", "namespace": "default"}}
        bundle["manifests"].append(extra)
    return json.dumps(bundle).encode()


@asynccontextmanager
async def running_fleet(postgres: fault_programs.Postgres, folder: Path) -> AsyncIterator[Fleet]:
    await harness.sql(postgres.address, "CREATE DATABASE live")
    dsn = replace(postgres.address, database="live")
    await migrate.migrate(dsn)
    server = fault_programs.server(folder, dsn, "--heartbeat-interval=3")
    kube = fault_programs.kube(folder, CONSUMER)
    agent = fault_programs.agent(folder, CONSUMER, kubeconfig=kube.kubeconfig, way=[f"--grpc-url={server.agents}"])
    (listen,) = (flag.removeprefix("--listen=") for flag in agent.command if flag.startswith("--listen="))
    fleet = Fleet(postgres=postgres, server=server, kube=kube, agent=agent, metrics_url=f"https://{listen}")
    async with fault_programs.programs(server, kube):
        await server.running().add_consumer(CONSUMER)
        async with fault_programs.programs(agent):
            yield fleet
