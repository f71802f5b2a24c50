"""The health port over real TLS, with reviews by a real HTTP API server."""

import asyncio
import datetime as dt
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from maestropy.agent import main
from maestropy.agent.runtime import health
from maestropy.agent.settings import ListenAddress
from maestropy.agent.telemetry.metrics import AgentMetrics
from maestropy.aio import checks
from maestropy.kube.config import load as config
from tests.certificates import CertFiles, make_ca, put
from tests.review_api import ACCESS, TOKENS, ReviewApi, status_body

LOOPBACK = ListenAddress(host="127.0.0.1", port=0)
NOW = dt.datetime.now(dt.UTC)
READY = health.AgentReadiness()


def distrustful_of_nobody() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@asynccontextmanager
async def calling(
    *,
    readiness: health.AgentReadiness = READY,
    metrics_access: health.MetricsAccess | None = None,
    certificate: Path = Path("/nowhere"),
) -> AsyncIterator[httpx.AsyncClient]:
    metrics = AgentMetrics(CollectorRegistry())
    metrics.work_processed("patch")
    app = health.create_app(readiness=lambda: readiness, metrics=metrics, metrics_access=metrics_access)
    async with (
        health.serving(LOOPBACK, app, now=NOW, on_problem=pytest.fail, certificate=certificate) as address,
        httpx.AsyncClient(base_url=address, verify=distrustful_of_nobody(), trust_env=False) as client,
    ):
        yield client


async def test_probes_need_no_token() -> None:
    async with calling() as client:
        for path in ("/healthz", "/livez", "/readyz", "/readyz/"):
            response = await client.get(path)
            assert (response.status_code, response.text) == (200, "ok")
        assert (await client.head("/healthz")).status_code == 200
        assert (await client.post("/healthz")).status_code == 405
        assert (await client.get("/")).status_code == 404
        assert (await client.get("/debug/pprof")).status_code == 404


async def test_missing_dependency_fails_readiness_but_not_liveness() -> None:
    async with calling(readiness=health.AgentReadiness(missing=("not connected to the server", "no lease"))) as client:
        response = await client.get("/readyz")
        assert response.status_code == 503
        assert response.text == "[-]not connected to the server\n[-]no lease\nreadyz check failed\n"
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/livez")).status_code == 200


def test_what_an_operator_has_to_change_is_shown() -> None:
    connection = SimpleNamespace(problem="projects/p/subscriptions/s does not exist; create it", last_error="")
    agent: Any = SimpleNamespace(is_ready=False, connection=connection, dependencies=list)
    (missing,) = main._readiness(agent, None, (), now=0.0).missing
    assert missing.startswith("the connection to the server")
    assert missing.endswith(": projects/p/subscriptions/s does not exist; create it")


def test_reason_of_a_refused_connection_is_shown() -> None:
    connection = SimpleNamespace(problem="", last_error="UNAVAILABLE: Connection refused")
    agent: Any = SimpleNamespace(is_ready=False, connection=connection, dependencies=list)
    (missing,) = main._readiness(agent, None, (), now=0.0).missing
    assert missing.endswith("AppliedManifestWorks: UNAVAILABLE: Connection refused")


async def test_verbose_readiness_lists_every_dependency() -> None:
    failed = health.AgentReadiness(
        missing=("the connection to the server",),
        dependencies=(checks.ok("cluster"), checks.failed("server", "UNAVAILABLE: Connection refused")),
    )
    async with calling(readiness=failed) as client:
        response = await client.get("/readyz?verbose")
        assert response.status_code == 503
        assert (
            response.text == "[+]cluster ok\n[-]server failed: UNAVAILABLE: Connection refused\nreadyz check failed\n"
        )
    ready = health.AgentReadiness(
        note="2 works held", dependencies=(checks.ok("server"), checks.warning("certificate serving", "has expired"))
    )
    async with calling(readiness=ready) as client:
        response = await client.get("/readyz?verbose=")
        assert response.status_code == 200
        expected = "2 works held\n[+]server ok\n[!]certificate serving warning: has expired\nreadyz check passed\n"
        assert response.text == expected


async def test_agent_waiting_for_leadership_is_ready() -> None:
    async with calling(readiness=health.AgentReadiness(note="waiting for leadership, which other-1 has")) as client:
        response = await client.get("/readyz")
        assert response.status_code == 200
        assert response.text == "ok\nwaiting for leadership, which other-1 has\n"


async def test_metrics_without_access_check_need_no_token() -> None:
    async with calling() as client:
        response = await client.get("/metrics")
        assert response.status_code == 200
        assert 'manifestworks_processed_total{action="patch",code="Success"} 1' in response.text


@pytest.mark.parametrize(
    ("header", "status", "asked"),
    [
        pytest.param(None, 401, {}, id="no-token"),
        pytest.param("Bearer", 401, {}, id="empty-token"),
        pytest.param("Basic Zm9v", 401, {}, id="another-scheme"),
        pytest.param("Bearer wrong", 401, {TOKENS: 1}, id="unknown-token"),
        pytest.param("Bearer other", 403, {TOKENS: 1, ACCESS: 1}, id="denied"),
        pytest.param("Bearer scraper", 200, {TOKENS: 1, ACCESS: 1}, id="allowed"),
    ],
)
async def test_metrics_need_token_with_access(
    tmp_path: Path, header: str | None, status: int, asked: dict[str, int]
) -> None:
    tokens = {"scraper": ("prometheus", ["monitoring"]), "other": ("eve", [])}
    async with ReviewApi(tokens=tokens, grants={("prometheus", "/metrics", "get")}) as api:
        cluster = config.from_kubeconfig([Path(api.write_kubeconfig(tmp_path, user={"token": "ours"}))])
        async with (
            health.reviewing(cluster) as reviews,
            calling(metrics_access=health.MetricsAccess(reviews)) as client,
        ):
            response = await client.get("/metrics", headers={"Authorization": header} if header else {})
            assert response.status_code == status
            assert ("manifestworks" in response.text) is (status == 200)
            assert ("www-authenticate" in response.headers) is (status == 401)
            assert (await client.get("/healthz")).status_code == 200
        assert dict(api.requests) == asked
        if header == "Bearer scraper":
            assert api.bodies[1]["spec"] == {
                "user": "prometheus",
                "groups": ["monitoring"],
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
            }


async def test_metrics_are_unavailable_while_api_server_does_not_answer(tmp_path: Path) -> None:
    async with ReviewApi(tokens={"scraper": ("prometheus", [])}) as api:
        cluster = config.from_kubeconfig([Path(api.write_kubeconfig(tmp_path))])
        async with (
            health.reviewing(cluster) as reviews,
            calling(metrics_access=health.MetricsAccess(reviews)) as client,
        ):
            api.answer_with = status_body(500, "InternalError")
            headers = {"Authorization": "Bearer scraper"}
            assert (await client.get("/metrics", headers=headers)).status_code == 503
            api.answer_with = status_body(403, "Forbidden")
            assert (await client.get("/metrics", headers=headers)).status_code == 503
            await api.stop()
            assert (await client.get("/metrics", headers=headers)).status_code == 503
            assert (await client.get("/readyz")).status_code == 200


def mount(directory: Path, pair: CertFiles) -> None:
    put(directory / "tls.crt", pair.cert.read_bytes())
    put(directory / "tls.key", pair.key.read_bytes())


async def test_mounted_certificate_is_served_and_reloaded(tmp_path: Path) -> None:
    mounted = tmp_path / "serving-cert"
    mounted.mkdir()
    ca, other = make_ca(tmp_path), make_ca(tmp_path)

    async def get(address: httpx.URL, trusted: Path) -> int:
        context = ssl.create_default_context(cafile=trusted)
        async with httpx.AsyncClient(verify=context, trust_env=False) as fresh:
            return (await fresh.get(f"{address}/healthz")).status_code

    mount(mounted, ca.issue(cn="agent", san=["127.0.0.1"]))
    async with calling(certificate=mounted) as client:
        assert await get(client.base_url, ca.cert) == 200
        with pytest.raises(httpx.ConnectError):
            await get(client.base_url, other.cert)
        mount(mounted, other.issue(cn="agent", san=["127.0.0.1"]))
        assert await get(client.base_url, other.cert) == 200


async def test_self_signed_certificate_is_valid_and_names_host(tmp_path: Path) -> None:
    async with calling() as client:
        port = client.base_url.port
        assert port is not None
        pem = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
        (tmp_path / "agent.crt").write_text(pem)
        context = ssl.create_default_context(cafile=tmp_path / "agent.crt")
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
        writer.close()
        await writer.wait_closed()


async def test_empty_address_disables_port() -> None:
    app = health.create_app(
        readiness=health.AgentReadiness, metrics=AgentMetrics(CollectorRegistry()), metrics_access=None
    )
    async with health.serving(None, app, now=NOW, on_problem=pytest.fail) as address:
        assert address == ""


async def test_port_in_use_is_named_in_error() -> None:
    app = health.create_app(
        readiness=health.AgentReadiness, metrics=AgentMetrics(CollectorRegistry()), metrics_access=None
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"cannot listen on 127\.0\.0\.1:{port}"):
            async with health.serving(ListenAddress(host="127.0.0.1", port=port), app, now=NOW, on_problem=pytest.fail):
                pytest.fail("entered")


async def test_cancelled_agent_closes_port() -> None:
    app = health.create_app(
        readiness=health.AgentReadiness, metrics=AgentMetrics(CollectorRegistry()), metrics_access=None
    )
    addresses: list[str] = []
    up = asyncio.Event()

    async def agent() -> None:
        async with health.serving(LOOPBACK, app, now=NOW, on_problem=pytest.fail) as address:
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
