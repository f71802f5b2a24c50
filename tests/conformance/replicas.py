"""Two agents of one cluster as processes: one acts, the other waits; played on the sandbox and on a real API server."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from conformance import objects_wanted as want
from conformance.fleet import Cluster

from maestropy import AsyncMaestro, Work
from maestropy.sandbox import ports

CONSUMER = "c1"
HOME = "agents"
"""The namespace of the kubeconfig's context, where the lease belongs."""
PATIENCE_SECONDS = 40.0
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "maestro-agent-lock", "namespace": HOME},
}
# Short enough to wait for, long enough for a crowded machine.
SHORT = {"leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "300ms"}
# Nobody waits for the end of this one: who takes it over got it back.
LONG = {"leaseDuration": "10m", "renewDeadline": "9m", "retryPeriod": "300ms"}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where the agents work."""

    cluster: Cluster
    client: AsyncMaestro
    kubeconfig: Path
    broker: str
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One agent."""

    name: str
    process: asyncio.subprocess.Process
    probes: httpx.AsyncClient
    log: Path

    async def ready(self) -> str:
        """Return what it says about its readiness; nothing while it does not answer with 200."""
        try:
            answer = await self.probes.get("/readyz")
        except httpx.TransportError:
            return ""
        return answer.text if answer.status_code == 200 else ""

    async def leads(self) -> None:
        await self._until(lambda text: text == "ok", what="to lead")

    async def waits(self) -> None:
        await self._until(lambda text: "waiting for leadership, which" in text, what="to wait")
        assert (await self.probes.get("/livez")).status_code == 200

    async def _until(self, fits: Callable[[str], bool], *, what: str) -> None:
        async def look() -> bool:
            assert self.process.returncode is None, self.log.read_text()[-4000:]
            return fits(await self.ready())

        await until(look, what=f"{self.name} {what}")


async def until(look: Callable[[], Awaitable[bool]], *, what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await look():
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"not in time: {what}") from None


@asynccontextmanager
async def replica(name: str, setting: Setting, times: Mapping[str, str]) -> AsyncIterator[Replica]:
    """Run one agent."""
    config, log = setting.folder / f"{name}.yaml", setting.folder / f"{name}.log"
    config.write_text(yaml.safe_dump({"leaderElection": dict(times)}))
    (port,) = ports.free(1)
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "maestropy.cli.main", "agent", f"--consumer-name={CONSUMER}"),
            *(f"--grpc-url={setting.broker}", f"--kubeconfig={_at_home(setting)}", f"--config={config}"),
            *("--disable-leader-election=false", f"--listen=127.0.0.1:{port}"),
            stdout=output,
            stderr=output,
            env={**os.environ, "KUBECONFIG": ""},
        )
    async with httpx.AsyncClient(
        base_url=f"https://127.0.0.1:{port}",
        verify=False,  # the certificate is one that nobody vouches for
        headers={"Connection": "close"},
        trust_env=False,
    ) as probes:
        try:
            yield Replica(name=name, process=process, probes=probes, log=log)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def _at_home(setting: Setting) -> Path:
    """Return the kubeconfig, its context being at home in a namespace of ours."""
    content = yaml.safe_load(setting.kubeconfig.read_text())
    for each in content["contexts"]:
        each["context"]["namespace"] = HOME
    path = setting.folder / "kubeconfig-at-home"
    path.write_text(yaml.safe_dump(content))
    return path


async def _has_counted(leader: Replica) -> None:
    """What dashboards ask for is counted, not only named."""
    shown = (await leader.probes.get("/metrics")).text.splitlines()
    for sample in (
        'rest_client_requests_total{code="201"',
        "rest_client_request_duration_seconds_count{",
        "workqueue_adds_total{",
        "workqueue_work_duration_seconds_count{",
        'manifestworks_processed_total{action="patch",code="Success"',
        'cloudevents_sent_total{action="update_request"',
        'cloudevents_received_total{action="create_request"',
    ):
        counts = [float(line.split()[-1]) for line in shown if line.startswith(sample)]
        assert sum(counts) > 0, sample


async def play(setting: Setting) -> None:
    """One dies, the next one goes on and ends in good order, the third goes on at once."""
    cluster, works = setting.cluster, setting.client.works(CONSUMER)
    await cluster.create(want.namespace(HOME))
    await setting.client.consumers.create(CONSUMER)

    async def asks_for(name: str) -> None:
        await works.apply(Work(name).add(want.config_map("default", name)))

    async def has(name: str) -> Any:
        await works.wait_for(name, "Available", timeout=PATIENCE_SECONDS)
        found = await cluster.get(want.config_map("default", name))
        assert found is not None
        return found["metadata"]["uid"]

    async with replica("first", setting, SHORT) as first:
        await first.leads()
        async with replica("second", setting, LONG) as second:
            await second.waits()
            await asks_for("one")
            life = await has("one")
            await _has_counted(first)
            assert "subscribed to grpc server" not in second.log.read_text()
            first.process.send_signal(signal.SIGKILL)
            await asks_for("two")
            await has("two")
            await second.leads()
            assert await has("one") == life
            async with replica("third", setting, SHORT) as third:
                await third.waits()
                second.process.send_signal(signal.SIGTERM)
                async with asyncio.timeout(PATIENCE_SECONDS):
                    assert await second.process.wait() == 0
                await third.leads()
                await asks_for("three")
                await has("three")
                assert await has("one") == life
                lease = await cluster.get(LEASE)
                assert lease is not None
                assert lease["spec"]["leaseTransitions"] == 2
                assert len(await cluster.records()) == 3
