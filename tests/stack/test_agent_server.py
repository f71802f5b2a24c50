"""Client, server, agent and cluster together: the way of a wish and the way back, without anything faked."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import harness
from conformance import objects_wanted as want
from conformance.fleet import Cluster, condition

from maestropy import AsyncMaestro, Work
from maestropy.journal import emit
from maestropy.kube import config
from maestropy.sandbox.cluster_agent import agent_on
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.store.dsn import Dsn

CONSUMER = "c1"


@asynccontextmanager
async def client_of(server: harness.Running) -> AsyncIterator[AsyncMaestro]:
    async with AsyncMaestro(api_url=server.rest, grpc_url=server.sources, source="sdk", environ={}) as client:
        yield client


def agent(sandbox: SandboxCluster, server: harness.Running) -> Any:
    journal = emit.Journal(io.BytesIO(), clock=lambda: 0.0)
    return agent_on(sandbox.kubeconfig, consumer=CONSUMER, broker=server.agents, journal=journal)


def test_the_whole_way_and_back(database: Dsn) -> None:
    async def scenario() -> None:
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
                    web = want.deployment("default", "web", replicas=replicas)
                    await works.apply(Work("web").add(web, feedback={"ready": ".status.readyReplicas"}))
                    seen = await works.wait_for(
                        "web", lambda found, count=replicas: found.feedback("ready") == count, timeout=60
                    )
                    assert seen.version == replicas
                # Deleted and asked for anew, at once and again.
                for _ in range(3):
                    await works.delete("web", wait=True, timeout=60)
                    assert await cluster.get(want.deployment("default", "web")) is None
                    await works.apply(Work("web").add(want.deployment("default", "web")))
                    await works.wait_for("web", "Available", timeout=60)

    harness.play(scenario())


def test_wishes_while_the_agent_is_away(database: Dsn) -> None:
    async def scenario() -> None:
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
                    await works.apply(Work(name).add(want.config_map("default", name)))
                    await works.wait_for(name, "Available", timeout=60)
            await works.apply(Work("changed").add(want.config_map("default", "changed", data={"k": "new"})))
            await works.delete("deleted")
            await works.apply(Work("created").add(want.config_map("default", "created")))
            async with agent(sandbox, server):
                await works.wait_for("changed", "Available", timeout=60)
                await works.wait_for("created", "Available", timeout=60)
                await works.delete("deleted", wait=True, timeout=60)
                live = await cluster.get(want.config_map("default", "changed"))
                assert live is not None
                assert live["data"] == {"k": "new"}
                assert await cluster.get(want.config_map("default", "deleted")) is None

    harness.play(scenario())


def test_server_dies_and_comes_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        place = harness.Place(folder=tmp_path)
        async with (
            SandboxCluster(tls=False, delay=0.01) as sandbox,
            Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
        ):
            cm = want.config_map("default", "cm")
            async with place.run() as server:
                await server.add_consumer(CONSUMER)
                running = agent(sandbox, server)
                await running.__aenter__()
                async with client_of(server) as client:
                    look = Work("w").add(cm, feedback={"value": ".data.test"}, update_strategy="CreateOnly")
                    await client.works(CONSUMER).apply(look)
                    await client.works(CONSUMER).wait_for("w", "Available", timeout=60)
                server.kill()
            await cluster.edit(cm, {"data": {"test": "meanwhile"}})
            async with place.run() as server, client_of(server) as client:
                works = client.works(CONSUMER)
                await works.wait_for("w", lambda found: found.feedback("value") == "meanwhile", timeout=60)
                await works.delete("w", wait=True, timeout=60)
                await running.__aexit__(None, None, None)
            assert await cluster.get(cm) is None

    harness.play(scenario())


def test_more_feedback_than_a_message_can_carry(database: Dsn) -> None:
    """Who asks for too much is told so, silences nobody else, and can be deleted."""

    async def scenario() -> None:
        async with (
            harness.in_process(database) as server,
            SandboxCluster(tls=False, delay=0.01) as sandbox,
            Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
            client_of(server) as client,
        ):
            await client.consumers.create(CONSUMER)
            works = client.works(CONSUMER)
            large = want.config_map("default", "large", data={"a": "x" * 900_000})
            await cluster.create(large)
            async with agent(sandbox, server):
                paths = {f"v{number}": ".data" for number in range(6)}
                small = want.config_map("default", "large")
                await works.apply(Work("large").add(small, feedback=paths, update_strategy="ReadOnly"))
                await works.apply(Work("small").add(want.config_map("default", "small")))
                await works.wait_for("small", "Available", timeout=60)
                seen = await works.wait_for("large", "Available", timeout=60)
                (manifest,) = seen.manifest_work.status.manifests
                assert manifest.feedback == ()
                assert "ask for less" in condition(manifest, "StatusFeedbackSynced").message
                await works.delete("large", wait=True, timeout=60)

    harness.play(scenario())
