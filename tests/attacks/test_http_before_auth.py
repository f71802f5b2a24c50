"""Attacks on the HTTP ports of the server and the agent by clients that are not authenticated."""

import asyncio
import contextlib
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from maestropy.agent.runtime import health
from maestropy.kube.config import load as kube_config
from maestropy.sandbox.server_process import ServerProcess
from maestropy.store.dsn import Dsn
from tests.attacks import processes
from tests.attacks.processes import MIB
from tests.faults import fault_programs
from tests.review_api import TOKENS, ReviewApi
from tests.unit.agent.runtime.test_health import calling
from tests.waiting import until

BUNDLES = "/api/maestro/v1/resource-bundles"
ROOT = Path(__file__).parents[2]
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def connections(ports: Iterable[int]) -> AsyncIterator[list[Connection]]:
    """Open a connection to each port, without an HTTP library."""
    opened = [await asyncio.open_connection("127.0.0.1", port) for port in ports]
    try:
        yield opened
    finally:
        for _, writer in opened:
            writer.transport.abort()


@contextlib.asynccontextmanager
async def endless_headers(scheme: str, *ports: int) -> AsyncIterator[None]:
    """Send endless headers on 50 connections from another process."""
    command = (sys.executable, "-m", "tests.attacks.endless_headers", scheme, *map(str, ports))
    attacker = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, cwd=ROOT)
    try:
        yield
    finally:
        attacker.kill()
        await attacker.wait()


async def is_closed(connection: Connection) -> bool:
    """Wait until the server closes the connection."""
    async with asyncio.timeout(20):
        with contextlib.suppress(ConnectionError):
            while await connection[0].read(65536):
                pass
    return True


async def median_seconds(url: str) -> float:
    """Return the median time of requests on new connections, within the time in which the attack has an effect."""
    deadline, seconds = time.monotonic() + 3, list[float]()
    while time.monotonic() < deadline:
        seconds += await processes.answer_seconds(url, count=1)
        await asyncio.sleep(0.02)
    return statistics.median(seconds)


async def test_endless_headers_at_the_server(database: Dsn, tmp_path: Path) -> None:
    """50 connections with an endless header at REST, health, metrics -> closed at 64 KiB; /livez answers in 100 ms"""
    async with ServerProcess(database, log=tmp_path / "server.log") as server:
        ports = server.ports
        before = processes.peak_bytes(server.pid)
        async with endless_headers("http", ports.rest, ports.health, ports.metrics):
            assert await median_seconds(f"http://127.0.0.1:{ports.health}/livez") < 0.1
        assert processes.peak_bytes(server.pid) - before < 32 * MIB


async def test_unfinished_headers_at_the_server(database: Dsn, tmp_path: Path) -> None:
    """50 connections that stop in the middle of a header -> are closed after --http-read-timeout"""
    flags = ("--http-read-timeout=1s",)
    async with ServerProcess(database, log=tmp_path / "server.log", flags=flags) as server:
        async with connections([server.ports.rest, server.ports.health] * 25) as attackers:
            for _, writer in attackers:
                writer.write(b"GET /livez HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 60_000)
            assert await median_seconds(f"http://127.0.0.1:{server.ports.health}/livez") < 0.1
            assert all(await asyncio.gather(*(is_closed(attacker) for attacker in attackers)))


async def test_blank_lines_after_a_request(database: Dsn, tmp_path: Path) -> None:
    """an idle connection that sends a blank line now and then -> is closed after --http-read-timeout"""
    flags = ("--http-read-timeout=1s",)
    async with (
        ServerProcess(database, log=tmp_path / "server.log", flags=flags) as server,
        connections([server.ports.health]) as [(reader, writer)],
    ):
        writer.write(b"GET /livez HTTP/1.1\r\nHost: h\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"\r\n")
        assert await is_closed((reader, writer))


async def test_many_silent_connections(database: Dsn, tmp_path: Path) -> None:
    """more silent connections than --http-max-connections -> the oldest are closed; /livez answers"""
    flags = ("--http-max-connections=50", "--http-read-timeout=60s")
    async with ServerProcess(database, log=tmp_path / "server.log", flags=flags) as server:
        async with connections([server.ports.health] * 200) as attackers:
            assert await median_seconds(f"http://127.0.0.1:{server.ports.health}/livez") < 0.1
            assert all(await asyncio.gather(*(is_closed(attacker) for attacker in attackers[:150])))


async def test_pipelined_requests(database: Dsn, tmp_path: Path) -> None:
    """100,000 requests that do not wait for a response -> the connection is closed after 16"""
    async with ServerProcess(database, log=tmp_path / "server.log") as server:
        before = processes.peak_bytes(server.pid)
        async with connections([server.ports.rest] * 10) as attackers:
            for _, writer in attackers:
                writer.write(b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n" * 10_000)
            assert all(await asyncio.gather(*(is_closed(attacker) for attacker in attackers)))
        assert processes.peak_bytes(server.pid) - before < 32 * MIB


async def test_many_header_fields(database: Dsn, tmp_path: Path) -> None:
    """a request with 10,000 header fields -> HTTP 431"""
    async with (
        ServerProcess(database, log=tmp_path / "server.log") as server,
        connections([server.ports.rest]) as [(reader, writer)],
    ):
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n" + b"a:b\r\n" * 10_000 + b"\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 431 ")


@contextlib.asynccontextmanager
async def jwks_server(document: dict[str, object]) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve a key set; yield its URL and the request lines so far."""
    requests: list[bytes] = []
    body = json.dumps(document).encode()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0])
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()

    listener = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/keys", requests


def token(kid: str, *, key: rsa.RSAPrivateKey = KEY) -> str:
    """Return a signed token."""
    return jwt.encode({"sub": "alice", "exp": time.time() + 600}, key, algorithm="RS256", headers={"kid": kid})


@contextlib.asynccontextmanager
async def jwt_server(database: Dsn, folder: Path) -> AsyncIterator[tuple[ServerProcess, list[bytes]]]:
    """Run a server with signed tokens for REST; yield it and the requests for its keys."""
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
    async with jwks_server({"keys": [{**public, "kid": "known", "use": "sig"}]}) as (url, requests):
        flags = ("--rest-authn-type=jwt", f"--jwks-url={url}")
        async with ServerProcess(database, log=folder / "server.log", flags=flags) as server:
            yield server, requests


async def test_bad_signed_tokens_cause_no_requests(database: Dsn, tmp_path: Path) -> None:
    """300 signed tokens with invented key IDs -> HTTP 401; the keys of the issuer are read once or twice"""
    async with (
        jwt_server(database, tmp_path) as (server, requests),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.ports.rest}", timeout=20) as rest,
    ):
        for number in range(300):
            invented = token(f"invented-{number}")
            response = await rest.get(BUNDLES, headers={"Authorization": f"Bearer {invented}"})
            assert response.status_code == 401
        assert len(requests) <= 2
        known = await rest.get(BUNDLES, headers={"Authorization": f"Bearer {token('known')}"})
        assert known.status_code != 401


async def test_large_body_without_token(database: Dsn, tmp_path: Path) -> None:
    """a body of 1 GB without a token -> HTTP 401 before it is read; the connection is closed"""
    async with jwt_server(database, tmp_path) as (server, _):
        before = processes.peak_bytes(server.pid)
        async with connections([server.ports.rest]) as [(reader, writer)]:
            writer.write(b"POST /api/maestro/v1/consumers HTTP/1.1\r\nHost: h\r\nContent-Length: 1073741824\r\n\r\n")
            with contextlib.suppress(OSError):
                for _ in range(512):
                    writer.write(bytes(64 * 1024))
                    await writer.drain()
            with contextlib.suppress(ConnectionError):
                assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
            assert await is_closed((reader, writer))
        assert processes.peak_bytes(server.pid) - before < 32 * MIB


async def test_endless_headers_at_the_agent(tmp_path: Path) -> None:
    """50 connections with an endless header at the agent's HTTPS port -> closed at 32 KiB; /livez in 100 ms"""
    kube = fault_programs.kube(tmp_path, "c1")
    async with fault_programs.programs(kube):
        agent = fault_programs.agent(tmp_path, "c1", kubeconfig=kube.kubeconfig, way=["--grpc-url=127.0.0.1:1"])
        port = int(next(flag for flag in agent.command if flag.startswith("--listen=")).rpartition(":")[2])
        url = f"https://127.0.0.1:{port}/livez"
        try:
            agent.launch()
            await until(lambda: _answers(url), what="the agent's port")
            assert agent.process
            before = processes.peak_bytes(agent.process.pid)
            async with endless_headers("https", port):
                assert await median_seconds(url) < 0.1
            assert processes.peak_bytes(agent.process.pid) - before < 64 * MIB
        finally:
            await agent.kill()


async def _answers(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        async with httpx.AsyncClient(verify=False, timeout=2) as client:
            return (await client.get(url)).status_code == 200
    return False


async def test_bad_tokens_at_the_agent(tmp_path: Path) -> None:
    """300 invented tokens for the agent's metrics -> 20 reviews, then HTTP 429; a known token still works"""
    tokens: dict[str, tuple[str, list[str]]] = {"scraper": ("prometheus", ["monitoring"])}
    async with ReviewApi(tokens=tokens, grants={("prometheus", "/metrics", "get")}) as api:
        address = kube_config.from_kubeconfig([Path(api.write_kubeconfig(tmp_path))])
        async with (
            health.reviewing(address) as reviews,
            calling(metrics_access=health.MetricsAccess(reviews)) as client,
        ):
            scraper = {"Authorization": "Bearer scraper"}
            assert (await client.get("/metrics", headers=scraper)).status_code == 200
            statuses = []
            for number in range(300):
                response = await client.get("/metrics", headers={"Authorization": f"Bearer bad-{number}"})
                statuses.append(response.status_code)
            assert set(statuses) <= {401, 429}
            assert statuses.count(429) > 250
            assert api.requests[TOKENS] <= 40
            assert (await client.get("/metrics", headers=scraper)).status_code == 200
