"""The agent's port over real TLS, with the reviews of a real HTTP API server."""

import asyncio
import datetime as dt
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from certificates import CertFiles, make_ca, put
from prometheus_client import CollectorRegistry
from review_api import ACCESS, TOKENS, ReviewApi, status_body

from maestropy.agent import probes
from maestropy.agent.metrics import Metrics
from maestropy.agent.settings import Listen
from maestropy.kube import config

LOOPBACK = Listen(host="127.0.0.1", port=0)
NOW = dt.datetime.now(dt.UTC)
READY = probes.Fitness()


def distrustful_of_nobody() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@asynccontextmanager
async def calling(
    *, fitness: probes.Fitness = READY, gate: probes.Gate | None = None, certificate: Path = Path("/nowhere")
) -> AsyncIterator[httpx.AsyncClient]:
    metrics = Metrics(CollectorRegistry())
    metrics.work_processed("patch")
    app = probes.create_app(fitness=lambda: fitness, metrics=metrics, gate=gate)
    async with (
        probes.serving(LOOPBACK, app, now=NOW, on_problem=pytest.fail, certificate=certificate) as address,
        httpx.AsyncClient(base_url=address, verify=distrustful_of_nobody(), trust_env=False) as client,
    ):
        yield client


def test_probes_need_no_token() -> None:
    async def scenario() -> None:
        async with calling() as client:
            for path in ("/healthz", "/livez", "/readyz", "/readyz/"):
                answer = await client.get(path)
                assert (answer.status_code, answer.text) == (200, "ok")
            assert (await client.head("/healthz")).status_code == 200
            assert (await client.post("/healthz")).status_code == 405
            assert (await client.get("/")).status_code == 404
            assert (await client.get("/debug/pprof")).status_code == 404

    asyncio.run(scenario())


def test_what_is_missing_makes_it_unready_but_not_dead() -> None:
    async def scenario() -> None:
        async with calling(fitness=probes.Fitness(missing=("not connected to the server", "no lease"))) as client:
            answer = await client.get("/readyz")
            assert answer.status_code == 503
            assert answer.text == "[-]not connected to the server\n[-]no lease\nreadyz check failed\n"
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/livez")).status_code == 200

    asyncio.run(scenario())


def test_waiting_for_its_turn_is_ready() -> None:
    async def scenario() -> None:
        async with calling(fitness=probes.Fitness(note="waiting for leadership, which other-1 has")) as client:
            answer = await client.get("/readyz")
            assert answer.status_code == 200
            assert answer.text == "ok\nwaiting for leadership, which other-1 has\n"

    asyncio.run(scenario())


def test_without_a_gate_metrics_are_for_everybody() -> None:
    async def scenario() -> None:
        async with calling() as client:
            answer = await client.get("/metrics")
            assert answer.status_code == 200
            assert 'manifestworks_processed_total{action="patch",code="Success"} 1' in answer.text

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("header", "status", "asked"),
    [
        pytest.param(None, 401, {}, id="no-token"),
        pytest.param("Bearer", 401, {}, id="empty-token"),
        pytest.param("Basic Zm9v", 401, {}, id="another-scheme"),
        pytest.param("Bearer wrong", 401, {TOKENS: 1}, id="unknown-token"),
        pytest.param("Bearer stranger", 403, {TOKENS: 1, ACCESS: 1}, id="may-not"),
        pytest.param("Bearer scraper", 200, {TOKENS: 1, ACCESS: 1}, id="may"),
    ],
)
def test_metrics_are_for_whom_kubernetes_lets_get_them(
    tmp_path: Path, header: str | None, status: int, asked: dict[str, int]
) -> None:
    async def scenario() -> None:
        tokens = {"scraper": ("prometheus", ["monitoring"]), "stranger": ("eve", [])}
        async with ReviewApi(tokens=tokens, grants={("prometheus", "/metrics", "get")}) as api:
            cluster = config.from_kubeconfig([Path(api.write_kubeconfig(tmp_path, user={"token": "ours"}))])
            async with probes.reviewing(cluster) as reviews, calling(gate=probes.Gate(reviews)) as client:
                answer = await client.get("/metrics", headers={"Authorization": header} if header else {})
                assert answer.status_code == status
                assert ("manifestworks" in answer.text) is (status == 200)
                assert ("www-authenticate" in answer.headers) is (status == 401)
                assert (await client.get("/healthz")).status_code == 200
            assert dict(api.requests) == asked
            if header == "Bearer scraper":
                assert api.bodies[1]["spec"] == {
                    "user": "prometheus",
                    "groups": ["monitoring"],
                    "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
                }

    asyncio.run(scenario())


def test_when_kubernetes_does_not_say_nobody_is_let_in(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ReviewApi(tokens={"scraper": ("prometheus", [])}) as api:
            cluster = config.from_kubeconfig([Path(api.write_kubeconfig(tmp_path))])
            async with probes.reviewing(cluster) as reviews, calling(gate=probes.Gate(reviews)) as client:
                api.answer_with = status_body(500, "InternalError")
                headers = {"Authorization": "Bearer scraper"}
                assert (await client.get("/metrics", headers=headers)).status_code == 503
                api.answer_with = status_body(403, "Forbidden")
                assert (await client.get("/metrics", headers=headers)).status_code == 503
                await api.stop()
                assert (await client.get("/metrics", headers=headers)).status_code == 503
                assert (await client.get("/readyz")).status_code == 200

    asyncio.run(scenario())


def mount(directory: Path, pair: CertFiles) -> None:
    put(directory / "tls.crt", pair.cert.read_bytes())
    put(directory / "tls.key", pair.key.read_bytes())


def test_a_mounted_certificate_is_served_and_followed(tmp_path: Path) -> None:
    mounted = tmp_path / "serving-cert"
    mounted.mkdir()
    ca, other = make_ca(tmp_path), make_ca(tmp_path)

    async def get(address: httpx.URL, trusted: Path) -> int:
        context = ssl.create_default_context(cafile=trusted)
        async with httpx.AsyncClient(verify=context, trust_env=False) as fresh:
            return (await fresh.get(f"{address}/healthz")).status_code

    async def scenario() -> None:
        mount(mounted, ca.issue(cn="agent", san=["127.0.0.1"]))
        async with calling(certificate=mounted) as client:
            assert await get(client.base_url, ca.cert) == 200
            with pytest.raises(httpx.ConnectError):
                await get(client.base_url, other.cert)
            mount(mounted, other.issue(cn="agent", san=["127.0.0.1"]))
            assert await get(client.base_url, other.cert) == 200

    asyncio.run(scenario())


def test_the_self_signed_certificate_is_in_date_and_names_the_host(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with calling() as client:
            port = client.base_url.port
            assert port is not None
            pem = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
            (tmp_path / "agent.crt").write_text(pem)
            context = ssl.create_default_context(cafile=tmp_path / "agent.crt")
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
            writer.close()
            await writer.wait_closed()

    asyncio.run(scenario())


def test_no_address_means_no_port() -> None:
    async def scenario() -> None:
        app = probes.create_app(fitness=probes.Fitness, metrics=Metrics(CollectorRegistry()), gate=None)
        async with probes.serving(None, app, now=NOW, on_problem=pytest.fail) as address:
            assert address == ""

    asyncio.run(scenario())


def test_a_port_that_is_taken_is_an_error_that_names_it() -> None:
    async def scenario() -> None:
        app = probes.create_app(fitness=probes.Fitness, metrics=Metrics(CollectorRegistry()), gate=None)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(OSError, match=rf"cannot listen on 127\.0\.0\.1:{port}"):
                async with probes.serving(Listen(host="127.0.0.1", port=port), app, now=NOW, on_problem=pytest.fail):
                    pytest.fail("entered")

    asyncio.run(scenario())


def test_an_agent_that_is_cancelled_gives_the_port_back() -> None:
    async def scenario() -> None:
        app = probes.create_app(fitness=probes.Fitness, metrics=Metrics(CollectorRegistry()), gate=None)
        addresses: list[str] = []
        up = asyncio.Event()

        async def agent() -> None:
            async with probes.serving(LOOPBACK, app, now=NOW, on_problem=pytest.fail) as address:
                addresses.append(address)
                up.set()
                await asyncio.Event().wait()

        running = asyncio.create_task(agent())
        await up.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        async with httpx.AsyncClient(verify=distrustful_of_nobody(), trust_env=False) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get(f"{addresses[0]}/healthz")

    asyncio.run(scenario())
