"""Run several agent processes of one cluster: one leads, the others wait."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from maestropy import AsyncMaestro, Work
from maestropy.sandbox import ports
from tests import waiting
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import Cluster

CONSUMER = "c1"
NAMESPACE = "agents"
"""The namespace of the kubeconfig's context, where the lease is."""
TIMEOUT_SECONDS = 40.0
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "maestro-agent-lock", "namespace": NAMESPACE},
}
# Short enough to wait for, long enough for a busy machine.
SHORT = {"leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "300ms"}
# Too long to expire in the test: the leader releases the lease.
LONG = {"leaseDuration": "10m", "renewDeadline": "9m", "retryPeriod": "300ms"}


@dataclass(frozen=True, kw_only=True)
class ReplicaSetting:
    """What the agents run against."""

    cluster: Cluster
    client: AsyncMaestro
    kubeconfig: Path
    broker: str
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One agent process."""

    name: str
    process: asyncio.subprocess.Process
    probes: httpx.AsyncClient
    log: Path

    async def ready(self) -> str:
        """Return the body of /readyz; empty unless it responds with 200."""
        try:
            response = await self.probes.get("/readyz")
        except httpx.TransportError:
            return ""
        return response.text if response.status_code == 200 else ""

    async def wait_until_leading(self) -> None:
        await self._until(lambda text: text == "ok", what="to lead")

    async def wait_until_waiting(self) -> None:
        await self._until(lambda text: "waiting for leadership, which" in text, what="to wait")
        assert (await self.probes.get("/livez")).status_code == 200

    async def _until(self, fits: Callable[[str], bool], *, what: str) -> None:
        async def is_matching() -> bool:
            assert self.process.returncode is None, self.log.read_text()[-4000:]
            return fits(await self.ready())

        await waiting.until(is_matching, what=f"{self.name} {what}")


@asynccontextmanager
async def replica(name: str, environment: ReplicaSetting, times: Mapping[str, str]) -> AsyncIterator[Replica]:
    """Run one agent process."""
    config, log = environment.folder / f"{name}.yaml", environment.folder / f"{name}.log"
    config.write_text(yaml.safe_dump({"leaderElection": dict(times)}))
    (port,) = ports.free(1)
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "maestropy.cli.main", "agent", f"--consumer-name={CONSUMER}"),
            *(
                f"--grpc-url={environment.broker}",
                f"--kubeconfig={_kubeconfig_with_namespace(environment)}",
                f"--config={config}",
            ),
            *("--disable-leader-election=false", f"--listen=127.0.0.1:{port}"),
            stdout=output,
            stderr=output,
            env={**os.environ, "KUBECONFIG": ""},
        )
    async with httpx.AsyncClient(
        base_url=f"https://127.0.0.1:{port}",
        verify=False,  # a self-signed certificate
        headers={"Connection": "close"},
        trust_env=False,
    ) as probes:
        try:
            yield Replica(name=name, process=process, probes=probes, log=log)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def _kubeconfig_with_namespace(environment: ReplicaSetting) -> Path:
    """Return a copy of the kubeconfig whose context wait_until_available our namespace."""
    content = yaml.safe_load(environment.kubeconfig.read_text())
    for context in content["contexts"]:
        context["context"]["namespace"] = NAMESPACE
    path = environment.folder / "kubeconfig-at-home"
    path.write_text(yaml.safe_dump(content))
    return path


async def _check_metrics(leader: Replica) -> None:
    """Check that the metrics of dashboards have values; some are written when a reconciliation has ended."""
    for sample in (
        'rest_client_requests_total{code="201"',
        "rest_client_request_duration_seconds_count{",
        "workqueue_adds_total{",
        "workqueue_work_duration_seconds_count{",
        'manifestworks_processed_total{action="patch",code="Success"',
        'cloudevents_sent_total{action="update_request"',
        'cloudevents_received_total{action="create_request"',
    ):

        async def count(name: str = sample) -> float:
            shown = (await leader.probes.get("/metrics")).text.splitlines()
            return sum(float(line.split()[-1]) for line in shown if line.startswith(name))

        await waiting.until(count, what=f"a value of {sample}")


async def run_failover(environment: ReplicaSetting) -> None:
    """Kill the first leader; stop the second one cleanly; the third one takes over at once."""
    cluster, works = environment.cluster, environment.client.works(CONSUMER)
    await cluster.create(samples.namespace(NAMESPACE))
    await environment.client.consumers.create(CONSUMER)

    async def apply(name: str) -> None:
        await works.apply(Work(name).add(samples.config_map("default", name)))

    async def wait_until_available(name: str) -> Any:
        await works.wait_for(name, "Available", timeout=TIMEOUT_SECONDS)
        live = await cluster.get(samples.config_map("default", name))
        assert live is not None
        return live["metadata"]["uid"]

    async with replica("first", environment, SHORT) as first:
        await first.wait_until_leading()
        async with replica("second", environment, LONG) as second:
            await second.wait_until_waiting()
            await apply("one")
            uid = await wait_until_available("one")
            await _check_metrics(first)
            assert "subscribed to grpc server" not in second.log.read_text()
            first.process.send_signal(signal.SIGKILL)
            await apply("two")
            await wait_until_available("two")
            await second.wait_until_leading()
            assert await wait_until_available("one") == uid
            async with replica("third", environment, SHORT) as third:
                await third.wait_until_waiting()
                second.process.send_signal(signal.SIGTERM)
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    assert await second.process.wait() == 0
                await third.wait_until_leading()
                await apply("three")
                await wait_until_available("three")
                assert await wait_until_available("one") == uid
                lease = await cluster.get(LEASE)
                assert lease is not None
                assert lease["spec"]["leaseTransitions"] == 2
                assert len(await cluster.applied_works()) == 3
