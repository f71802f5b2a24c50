"""Our agent on a Go server whose database goes away: what changed meanwhile is reported when the database is back.

A Go server answers FailedPrecondition to every failure, so the agent cannot tell from the code whether to try again.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from maestropy import AsyncMaestro, Work, errors
from maestropy.journal.phrases import AgentPhrase
from tests import waiting
from tests.faults import fault_programs
from tests.peers import peer_build
from tests.peers.peer_clients import rest
from tests.peers.peer_postgres import Database
from tests.peers.peer_servers import RunningServer, go_server
from tests.peers.postgres import postgres_servers

pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]
CONSUMER = "cluster1"
OBJECTS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def database() -> Iterator[postgres_servers.PostgresServer]:
    with postgres_servers.installation() as installed, postgres_servers.single(installed) as running:
        yield running


@pytest.fixture
def server(
    programs: peer_build.Programs,
    database: postgres_servers.PostgresServer,
    tmp_path: Path,
    shown_logs: list[Path],
) -> Iterator[RunningServer]:
    where = Database(port=database.port, name=postgres_servers.DATABASE)
    with go_server(programs, database=where, folder=tmp_path) as running:
        shown_logs.append(running.log)
        yield running
        shown_logs.remove(running.log)


def api_of(kube: fault_programs.KubeProgram) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=kube.url, headers={"Authorization": f"Bearer {kube.token}"})


def observed() -> Work:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen", "namespace": "default"}}
    return Work("w").add(manifest, update_strategy="ReadOnly", feedback={"value": ".data.value"})


async def test_status_that_changed_while_the_database_was_away_is_reported(
    server: RunningServer, database: postgres_servers.PostgresServer, tmp_path: Path, shown_logs: list[Path]
) -> None:
    config = tmp_path / "agent.yaml"
    config.write_text(json.dumps({"url": server.broker_addr}))
    kube = fault_programs.kube(tmp_path, CONSUMER)
    way = ["-v=4", "--workload-source-driver=grpc", f"--workload-source-config={config}"]
    agent = fault_programs.agent(tmp_path, CONSUMER, kubeconfig=kube.kubeconfig, way=way)
    rest(server, "POST", "/consumers", {"name": CONSUMER})
    async with contextlib.AsyncExitStack() as stack:
        shown_logs.append(agent.log)
        stack.callback(shown_logs.remove, agent.log)
        await stack.enter_async_context(fault_programs.programs(kube))
        api = await stack.enter_async_context(api_of(kube))
        (await api.post(OBJECTS, json={"metadata": {"name": "seen"}, "data": {"value": "first"}})).raise_for_status()
        await stack.enter_async_context(fault_programs.programs(agent))
        client = await stack.enter_async_context(
            AsyncMaestro(environ={}, api_url=server.rest_url, grpc_url=server.grpc_addr, source="outage")
        )
        works = client.works(CONSUMER)
        await works.create(observed())
        await works.wait_for("w", lambda work: work.feedback("value") == "first", timeout=60)

        database.kill()
        changed = {"metadata": {"name": "seen"}, "data": {"value": "second"}}
        (await api.put(f"{OBJECTS}/seen", json=changed)).raise_for_status()
        postponed = AgentPhrase.STATUS_POSTPONED
        await waiting.until(lambda: agent.log.read_text().count(postponed) > 3, what="failing status updates")
        database.start()

        # Read, not watched: a Go server loses the notification of a status that comes before it listens again.
        async def is_reported() -> bool:
            with contextlib.suppress(errors.MaestroError):
                return bool((await works.get("w")).feedback("value") == "second")
            return False

        await waiting.until(is_reported, what="the status of the time without a database", seconds=60)


async def test_agent_that_connects_while_the_database_is_away_resyncs_when_it_is_back(
    server: RunningServer, database: postgres_servers.PostgresServer, tmp_path: Path, shown_logs: list[Path]
) -> None:
    config = tmp_path / "agent.yaml"
    config.write_text(json.dumps({"url": server.broker_addr}))
    kube = fault_programs.kube(tmp_path, CONSUMER)
    way = ["-v=4", "--workload-source-driver=grpc", f"--workload-source-config={config}"]
    agent = fault_programs.agent(tmp_path, CONSUMER, kubeconfig=kube.kubeconfig, way=way)
    rest(server, "POST", "/consumers", {"name": CONSUMER})
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": "default"}}
    async with (
        AsyncMaestro(environ={}, api_url=server.rest_url, grpc_url=server.grpc_addr, source="outage") as client,
        fault_programs.programs(kube),
        api_of(kube) as api,
    ):
        await client.works(CONSUMER).create(Work("w").add(manifest))
        database.kill()
        shown_logs.append(agent.log)
        agent.launch()
        try:
            resync = AgentPhrase.RESYNC_POSTPONED
            await waiting.until(lambda: agent.log.read_text().count(resync) > 2, what="resyncs that fail")
            database.start()

            async def is_made() -> bool:
                return (await api.get(f"{OBJECTS}/made")).is_success

            await waiting.until(is_made, what="the work, applied after the resync", seconds=60)
            # One connection all the time: a Go server answers a resync on the stream, so a new one is not needed.
            assert agent.log.read_text().count('"subscribed to grpc server"') == 1
        finally:
            await agent.kill()
            shown_logs.remove(agent.log)
