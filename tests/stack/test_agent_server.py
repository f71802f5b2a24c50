"""Client, server, agent and cluster together, from spec request to status."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from maestropy import AsyncMaestro, Work
from maestropy.journal import emit
from maestropy.kube.config import load as config
from maestropy.sandbox.cluster_agent import run_agent
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.store.dsn import Dsn
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import Cluster, condition
from tests.stack import harness

CONSUMER = "c1"


@asynccontextmanager
async def client_of(server: harness.Running) -> AsyncIterator[AsyncMaestro]:
    async with AsyncMaestro(api_url=server.rest, grpc_url=server.sources, source="sdk", environ={}) as client:
        yield client


def agent(sandbox: SandboxCluster, server: harness.Running) -> Any:
    journal = emit.Journal(io.BytesIO(), clock=lambda: 0.0)
    return run_agent(sandbox.kubeconfig, consumer=CONSUMER, broker=server.agents, journal=journal)


@pytest.mark.long
async def test_work_is_applied_updated_deleted_and_recreated(database: Dsn) -> None:
    async with (
        harness.in_process(database) as server,
        SandboxCluster(tls=False, delay=0.01) as sandbox,
        Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
        client_of(server) as client,
    ):
        await client.consumers.create(CONSUMER)
        works = client.works(CONSUMER)
        async with agent(sandbox, server):
            for replicas in (1, 2):
                web = samples.deployment("default", "web", replicas=replicas)
                await works.apply(Work("web").add(web, feedback={"ready": ".status.readyReplicas"}))
                reported = await works.wait_for(
                    "web", lambda observed: observed.feedback("ready") == replicas, timeout=60
                )
                assert reported.version == replicas
            # Deleted and recreated at once, several times.
            for _ in range(3):
                await works.delete("web", wait=True, timeout=60)
                assert await cluster.get(samples.deployment("default", "web")) is None
                await works.apply(Work("web").add(samples.deployment("default", "web")))
                await works.wait_for("web", "Available", timeout=60)


async def test_requests_while_agent_is_down_are_applied(database: Dsn) -> None:
    async with (
        harness.in_process(database) as server,
        SandboxCluster(tls=False, delay=0.01) as sandbox,
        Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
        client_of(server) as client,
    ):
        await client.consumers.create(CONSUMER)
        works = client.works(CONSUMER)
        async with agent(sandbox, server):
            for name in ("changed", "deleted"):
                await works.apply(Work(name).add(samples.config_map("default", name)))
                await works.wait_for(name, "Available", timeout=60)
        await works.apply(Work("changed").add(samples.config_map("default", "changed", data={"k": "new"})))
        await works.delete("deleted")
        await works.apply(Work("created").add(samples.config_map("default", "created")))
        async with agent(sandbox, server):
            await works.wait_for("changed", "Available", timeout=60)
            await works.wait_for("created", "Available", timeout=60)
            await works.delete("deleted", wait=True, timeout=60)
            live = await cluster.get(samples.config_map("default", "changed"))
            assert live is not None
            assert live["data"] == {"k": "new"}
            assert await cluster.get(samples.config_map("default", "deleted")) is None


@pytest.mark.long
async def test_server_restart_delivers_missed_status(tmp_path: Path) -> None:
    process = harness.Place(folder=tmp_path)
    async with (
        SandboxCluster(tls=False, delay=0.01) as sandbox,
        Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
    ):
        cm = samples.config_map("default", "cm")
        async with process.run() as server:
            await server.add_consumer(CONSUMER)
            running = agent(sandbox, server)
            await running.__aenter__()
            async with client_of(server) as client:
                read_only = Work("w").add(cm, feedback={"value": ".data.test"}, update_strategy="CreateOnly")
                await client.works(CONSUMER).apply(read_only)
                await client.works(CONSUMER).wait_for("w", "Available", timeout=60)
            server.kill()
        await cluster.edit(cm, {"data": {"test": "meanwhile"}})
        async with process.run() as server, client_of(server) as client:
            works = client.works(CONSUMER)
            await works.wait_for("w", lambda observed: observed.feedback("value") == "meanwhile", timeout=60)
            await works.delete("w", wait=True, timeout=60)
            await running.__aexit__(None, None, None)
        assert await cluster.get(cm) is None


async def test_oversized_feedback_is_reported_with_fewer_values(database: Dsn) -> None:
    """Oversized feedback is reported, does not block other works, and the work can be deleted."""

    async with (
        harness.in_process(database) as server,
        SandboxCluster(tls=False, delay=0.01) as sandbox,
        Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
        client_of(server) as client,
    ):
        await client.consumers.create(CONSUMER)
        works = client.works(CONSUMER)
        large = samples.config_map("default", "large", data={"a": "x" * 900_000})
        await cluster.create(large)
        async with agent(sandbox, server):
            paths = {f"v{number}": ".data" for number in range(6)}
            small = samples.config_map("default", "large")
            await works.apply(Work("large").add(small, feedback=paths, update_strategy="ReadOnly"))
            await works.apply(Work("small").add(samples.config_map("default", "small")))
            await works.wait_for("small", "Available", timeout=60)
            reported = await works.wait_for("large", "Available", timeout=60)
            (manifest,) = reported.manifest_work.status.manifests
            assert len(manifest.feedback) < len(paths)
            synced = condition(manifest, "StatusFeedbackSynced")
            assert synced.status == "False"
            assert "request fewer or smaller values" in synced.message
            await works.delete("large", wait=True, timeout=60)
