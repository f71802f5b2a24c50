"""Every panel has data: each query of our dashboards, and of those that Maestro publishes, on a real Prometheus.

Two servers are scraped, one with gRPC streams and one with Mosquitto, and an agent of each.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from tests import waiting
from tests.certificates import make_ca
from tests.faults import fault_programs
from tests.peers import mosquitto, prometheus
from tests.peers.monitoring import upstream_dashboards
from tests.stack import harness
from tests.stack.clients import bundle_data, source

pytestmark = [pytest.mark.peers, pytest.mark.timeout(240)]

FOLDER = prometheus.ROOT / "monitoring" / "dashboards"
WORK = "11111111-0000-4000-8000-0000000a0001"
FAILING = "11111111-0000-4000-8000-0000000a0002"


def expressions() -> list[tuple[str, str]]:
    """Return the queries of our dashboards with the titles of their panels, as Grafana would send them."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel.get("targets", ()):
                expr = target["expr"].replace("$namespace", ".*").replace("$__rate_interval", "1m")
                found.append((f"{path.stem}: {panel['title']}", expr))
    return found


@pytest.fixture
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dsn, Dsn]]:
    with harness.postgres(tmp_path_factory.mktemp("dashboards")) as server:
        yield server.fresh(), server.fresh()


def named(name: str) -> bytes:
    """Return a bundle with one ConfigMap of this name."""
    bundle = json.loads(bundle_data("first"))
    bundle["manifests"][0]["metadata"]["name"] = name
    return json.dumps(bundle).encode()


@contextlib.asynccontextmanager
async def traffic(server: fault_programs.ServerProgram, consumer: str) -> AsyncIterator[None]:
    """Keep changing a work, and have one that cannot be applied, while the block runs."""
    async with source(server.sources) as client, client.subscribe() as told:
        await client.create(WORK, consumer, data=bundle_data("0"))
        broken = {"apiVersion": "v1", "kind": "Teapot", "metadata": {"name": "t", "namespace": "default"}}
        await client.create(FAILING, consumer, data=json.dumps({"manifests": [broken]}).encode())
        await told.spec_of(WORK)

        async def change() -> None:
            version = 1
            while True:
                await client.create(f"{WORK[:-6]}{version:06}", consumer, data=named(f"new-{version}"))
                await client.update(WORK, consumer, data=bundle_data(str(version)), version=version)
                version += 1
                async with server.running().http() as rest:
                    await rest.get("/resource-bundles")
                await asyncio.sleep(0.3)

        changing = asyncio.ensure_future(change())
        try:
            yield
        finally:
            changing.cancel()


async def test_every_query_has_data(databases: tuple[Dsn, Dsn], tmp_path: Path) -> None:
    https = make_ca(tmp_path).issue(cn="localhost", san=["127.0.0.1"])
    with mosquitto.mosquitto(tmp_path / "mosquitto") as broker:
        secure = [f"--https-cert-file={https.cert}", f"--https-key-file={https.key}", "--enable-metrics-https"]
        config = broker.config(more="")
        servers = (
            fault_programs.server(tmp_path, databases[0], *secure, name="streams"),
            fault_programs.server(
                tmp_path,
                databases[1],
                "--message-broker-type=mqtt",
                f"--message-broker-config-file={config}",
                name="mqtt",
            ),
        )
        ways = (
            [f"--grpc-url={servers[0].agents}"],
            ["--workload-source-driver=mqtt", f"--workload-source-config={config}"],
        )
        kubes = tuple(fault_programs.kube(tmp_path, name) for name in ("cluster1", "cluster2"))
        agents = [
            fault_programs.agent(tmp_path, consumer, kubeconfig=kube.kubeconfig, way=way)
            for consumer, kube, way in zip(("cluster1", "cluster2"), kubes, ways, strict=True)
        ]
        targets = [
            prometheus.Target(
                job="maestro",
                address=server.metrics,
                secure=number == 0,
                labels={"app": "maestro", "namespace": "maestro"},
            )
            for number, server in enumerate(servers)
        ]
        targets += [
            prometheus.Target(
                job="maestro-agent", address=listen_address(agent), secure=True, labels={"app": "maestro-agent"}
            )
            for agent in agents
        ]
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(fault_programs.programs(*servers, *kubes))
            for server, consumer in zip(servers, ("cluster1", "cluster2"), strict=True):
                await server.running().add_consumer(consumer)
            await stack.enter_async_context(fault_programs.programs(*agents))
            running = stack.enter_context(prometheus.prometheus(tmp_path / "prometheus", targets))
            for server, consumer in zip(servers, ("cluster1", "cluster2"), strict=True):
                await stack.enter_async_context(traffic(server, consumer))
            await waiting.until(lambda: running.targets_up() == len(targets), what="all targets, scraped")
            for agent in agents:
                # It resyncs when it is back.
                await agent.kill()
                await agent.start()
            await all_have_data(running)
            # The names of the old agent exist nowhere; a panel that asks for them is empty, as it is for Go.
            assert [query for query in upstream_dashboards.OF_AN_OLDER_AGENT if running.query(query)] == []


async def all_have_data(running: prometheus.Prometheus) -> None:
    queries = [*expressions(), *(("Maestro's own", query) for query in upstream_dashboards.QUERIES)]
    assert len(queries) > 80
    empty = list(queries)

    async def all_answered() -> bool:
        for title, query in list(empty):
            series = await asyncio.to_thread(running.query, query)
            # A quantile or a share without traffic is NaN: that is no data.
            if any(item["value"][1] != "NaN" for item in series):
                empty.remove((title, query))
        return not empty

    try:
        await waiting.until(all_answered, seconds=75)
    except AssertionError:
        raise AssertionError("no data:\n" + "\n".join(f"{title}: {query}" for title, query in empty)) from None


def listen_address(agent: fault_programs.Program) -> str:
    return next(flag.removeprefix("--listen=") for flag in agent.command if flag.startswith("--listen="))
