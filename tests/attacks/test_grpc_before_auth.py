"""Attacks on the gRPC ports by clients that are not authenticated, or on a port without authentication."""

import asyncio
import contextlib
import functools
import gzip
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from maestropy.sandbox.server_process import ServerProcess
from maestropy.store.dsn import Dsn
from maestropy.wire.events import grpc_binding
from tests import certificates
from tests.attacks import http2_frames, processes
from tests.attacks.processes import MIB
from tests.review_api import ACCESS, TOKENS, ReviewApi
from tests.stack.secure_server import CONSUMER, SOURCE, add_consumers, channel, refusal, spec, subscribe
from tests.waiting import until

TOKEN = "t0ken-of-alice"
GRANTS = {("alice", f"/sources/{SOURCE}", verb) for verb in ("pub", "sub")}

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def review_server(
    database: Dsn, folder: Path, api: ReviewApi, *, flags: tuple[str, ...] = ()
) -> AsyncIterator[tuple[ServerProcess, bytes]]:
    """Run a server that has the tokens of sources reviewed by `api`; yield it and its CA."""
    ca = certificates.make_ca(folder)
    files = ca.issue(cn="localhost", san=["localhost", "127.0.0.1"])
    flags = (
        *flags,
        f"--grpc-tls-cert-file={files.cert}",
        f"--grpc-tls-key-file={files.key}",
        "--grpc-authn-type=token",
        f"--grpc-authorizer-config={api.write_kubeconfig(folder)}",
    )
    async with ServerProcess(database, log=folder / "server.log", flags=flags) as server:
        yield server, ca.cert.read_bytes()


@contextlib.asynccontextmanager
async def connections(
    port: int, *, count: int, ca: bytes | None = None, acknowledges: bool = True
) -> AsyncIterator[list[Connection]]:
    """Open HTTP/2 connections that no library controls."""
    context = None
    if ca is not None:
        context = ssl.create_default_context(cadata=ca.decode())
        context.set_alpn_protocols(["h2"])
    opened = [await asyncio.open_connection("localhost", port, ssl=context) for _ in range(count)]
    try:
        for _, writer in opened:
            writer.write(http2_frames.settings(acknowledges=acknowledges))
        yield opened
    finally:
        for _, writer in opened:
            writer.transport.abort()


def inflating_call(*, token: str = "") -> bytes:
    """Return a call of 60 KB that inflates to 60 MiB; it fits into the first window of a connection."""
    metadata = [("grpc-encoding", "gzip"), *([("authorization", f"Bearer {token}")] if token else [])]
    return http2_frames.call(grpc_binding.PUBLISH_METHOD, metadata=metadata) + http2_frames.message(
        compressed(60 * MIB), is_compressed=True
    )


@functools.cache
def compressed(size: int) -> bytes:
    return gzip.compress(bytes(size))


async def test_compressed_messages_without_token(database: Dsn, tmp_path: Path) -> None:
    """2 MB of gzip that inflate to 2 GB, without a valid token -> no message is read or decompressed"""
    async with ReviewApi() as api, review_server(database, tmp_path, api) as (server, ca):
        api.may_answer.clear()  # the calls wait for the review, and so would their messages
        before = processes.peak_bytes(server.pid)
        async with connections(server.ports.sources, count=32, ca=ca) as attackers:
            for number, (_, writer) in enumerate(attackers):
                writer.write(inflating_call(token=f"bad-{number}"))
                await writer.drain()
            await until(lambda: api.requests[TOKENS] >= 5, what="the reviews")
            await processes.answer_seconds(f"http://127.0.0.1:{server.ports.health}/livez")
            assert processes.peak_bytes(server.pid) - before < 64 * MIB
            api.may_answer.set()


async def test_compressed_messages_without_authentication(database: Dsn, tmp_path: Path) -> None:
    """2 MB of gzip that inflate to 2 GB, on a port without authentication -> 4 MiB each, then RESOURCE_EXHAUSTED"""
    await add_consumers(database, CONSUMER)
    async with ServerProcess(database, log=tmp_path / "server.log") as server:
        for port in (server.ports.sources, server.ports.agents):
            before = processes.peak_bytes(server.pid)
            async with connections(port, count=32) as attackers:
                call = inflating_call()
                for _, writer in attackers:
                    writer.write(call)
                for reader, _ in attackers:
                    async with asyncio.timeout(30):
                        await reader.readuntil(b"larger than max")
            assert processes.peak_bytes(server.pid) - before < 128 * MIB


async def test_compressed_request_within_the_limit_is_accepted(database: Dsn, tmp_path: Path) -> None:
    """a client that compresses its requests -> is served as before"""
    await add_consumers(database, CONSUMER)
    async with ServerProcess(database, log=tmp_path / "server.log") as server, channel(server.ports.sources) as client:
        for number, compression in enumerate((grpc.Compression.Gzip, grpc.Compression.Deflate)):
            request = grpc_binding.encode_publish(spec(f"bundle-{number}"))
            await client.unary_unary(grpc_binding.PUBLISH_METHOD)(request, compression=compression, timeout=20)


async def test_large_messages_without_token(database: Dsn, tmp_path: Path) -> None:
    """60 messages of 4 MB without a valid token -> are not received; only the first window of a stream is buffered"""
    async with ReviewApi() as api, review_server(database, tmp_path, api) as (server, ca):
        api.may_answer.clear()
        before = processes.peak_bytes(server.pid)
        async with channel(server.ports.sources, ca=ca) as client:
            message = bytes(4 * MIB - 100)
            calls = [asyncio.ensure_future(refusal(client, message, token=f"bad-{number}")) for number in range(60)]
            await until(lambda: api.requests[TOKENS] >= 5, what="the reviews")
            await processes.answer_seconds(f"http://127.0.0.1:{server.ports.health}/livez")
            api.may_answer.set()
            answers = await asyncio.gather(*calls)
            # UNAVAILABLE: no call of the connection was authenticated, and it was closed before all answers were sent.
            assert {code for code, _ in answers} <= {"UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
        assert processes.peak_bytes(server.pid) - before < 64 * MIB


async def test_subscriptions_of_one_client(database: Dsn, tmp_path: Path) -> None:
    """15,000 subscriptions of one client -> RESOURCE_EXHAUSTED after 2,000; agents of others go on"""
    flags = ("--grpc-max-subscriptions-per-client=200", "--grpc-max-subscriptions=10000")
    async with ServerProcess(database, log=tmp_path / "server.log", flags=flags) as server:
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(channel(server.ports.agents)) for _ in range(6)]
            streams = [subscribe(clients[number % 6], cluster_name=f"c{number}") for number in range(600)]
            codes = await asyncio.gather(*(_opened(stream) for stream in streams))
            assert codes.count("open") == 200
            assert codes.count("RESOURCE_EXHAUSTED") == 400
            for stream in streams:
                stream.cancel()
            # What was closed can be opened again.
            await until(lambda: _is_open(subscribe(clients[0], cluster_name="again")), what="a free subscription")


async def test_memory_after_many_subscriptions(database: Dsn, tmp_path: Path) -> None:
    """6,000 subscriptions, of which 2,000 open -> the memory is returned when they have ended"""
    async with ServerProcess(database, log=tmp_path / "server.log") as server:
        before = processes.resident_bytes(server.pid)
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(channel(server.ports.sources)) for _ in range(12)]
            streams = [subscribe(clients[number % 12], source=f"s{number}") for number in range(6_000)]
            codes = await asyncio.gather(*(_opened(stream) for stream in streams))
            assert codes.count("open") == 2_000
            for stream in streams:
                stream.cancel()
        await until(lambda: processes.resident_bytes(server.pid) - before < 64 * MIB, what="less memory", seconds=30)


async def test_streams_of_one_connection(database: Dsn, tmp_path: Path) -> None:
    """15,000 calls on one connection -> the server allows 500 at a time"""
    async with ServerProcess(database, log=tmp_path / "server.log") as server:
        for port in (server.ports.sources, server.ports.agents):
            async with connections(port, count=1) as [(reader, _)]:
                settings = await http2_frames.first_settings(reader)
                assert settings[http2_frames.MAX_CONCURRENT_STREAMS] == 500


async def test_busy_client_on_one_connection(database: Dsn, tmp_path: Path) -> None:
    """3,000 calls of a good client at once on one connection -> wait in the client; none is rejected"""
    async with ServerProcess(database, log=tmp_path / "server.log") as server, channel(server.ports.agents) as client:
        answers = await asyncio.gather(*(refusal(client, b"not an event") for _ in range(3_000)))
        assert {code for code, _ in answers} == {"INVALID_ARGUMENT"}


async def test_calls_that_are_reset_at_once(database: Dsn, tmp_path: Path) -> None:
    """50,000 calls that the client resets at once -> little memory; /livez answers meanwhile"""
    async with ServerProcess(database, log=tmp_path / "server.log") as server:
        before = processes.peak_bytes(server.pid)
        async with connections(server.ports.sources, count=5) as attackers:
            for first in range(1, 20_001, 1_000):
                for _, writer in attackers:
                    writer.write(
                        b"".join(
                            http2_frames.call(grpc_binding.PUBLISH_METHOD, stream=stream) + http2_frames.reset(stream)
                            for stream in range(first, first + 1_000, 2)
                        )
                    )
                await processes.answer_seconds(f"http://127.0.0.1:{server.ports.health}/livez", count=1)
        seconds = await processes.answer_seconds(f"http://127.0.0.1:{server.ports.health}/livez")
        assert seconds[len(seconds) // 2] < 0.5
        assert processes.peak_bytes(server.pid) - before < 256 * MIB


async def test_connections_of_a_port(database: Dsn, tmp_path: Path) -> None:
    """more connections than --grpc-max-connections -> further ones are closed, the open ones go on"""
    flags = ("--grpc-max-connections=20",)
    async with (
        ServerProcess(database, log=tmp_path / "server.log", flags=flags) as server,
        channel(server.ports.agents) as client,
    ):
        stream = subscribe(client, cluster_name=CONSUMER)
        assert await _opened(stream) == "open"
        async with connections(server.ports.agents, count=40) as attackers:
            greeted = await asyncio.gather(*(_is_greeted(reader) for reader, _ in attackers))
            # On a busy machine the server gives up on one that took too long to begin, and greets another.
            open_at_once = [
                reader for (reader, _), was in zip(attackers, greeted, strict=True) if was and _is_connected(reader)
            ]
            assert len(open_at_once) < 20
            assert not all(greeted)
            assert not stream.done()


async def test_headers_that_repeat_a_large_one(database: Dsn, tmp_path: Path) -> None:
    """5.7 MB of headers that stand for 22 GB (HPACK bomb), no token -> closed as memory grows, up to 450 MB"""
    await add_consumers(database, CONSUMER)
    async with (
        ReviewApi(tokens={TOKEN: ("alice", ["devs"])}, grants=GRANTS) as api,
        review_server(database, tmp_path, api) as (server, ca),
        channel(server.ports.sources, ca=ca) as client,
    ):
        assert (await refusal(client, grpc_binding.encode_publish(spec("first")), token=TOKEN)) == ("OK", "")
        async with connections(server.ports.sources, count=1, ca=ca, acknowledges=False) as [(reader, writer)]:
            writer.write(http2_frames.repeated_header(grpc_binding.PUBLISH_METHOD, count=400))
            async with asyncio.timeout(8):
                await _end(reader)
        assert (await refusal(client, grpc_binding.encode_publish(spec("second")), token=TOKEN)) == ("OK", "")
        log = tmp_path / "server.log"
        await until(lambda: "closed connections without" in log.read_text(), what="the line in the log")
        # The library logs each call that it has parsed.
        assert log.read_text().count("Ignoring key value pair due to size limit") < 300


@pytest.mark.parametrize("header", ["large", "small"])
async def test_headers_that_repeat_one_on_many_connections(database: Dsn, tmp_path: Path, header: str) -> None:
    """such headers, large or small, on 60 connections at once -> closed while memory grows; others are served"""
    attack = {
        "large": http2_frames.repeated_header(grpc_binding.PUBLISH_METHOD, count=60),
        "small": http2_frames.endless_small_headers(grpc_binding.PUBLISH_METHOD, size=900_000),
    }[header]
    await add_consumers(database, CONSUMER)
    async with (
        ReviewApi(tokens={TOKEN: ("alice", ["devs"])}, grants=GRANTS) as api,
        review_server(database, tmp_path, api) as (server, ca),
        channel(server.ports.sources, ca=ca) as client,
    ):
        assert (await refusal(client, grpc_binding.encode_publish(spec("first")), token=TOKEN)) == ("OK", "")
        async with connections(server.ports.sources, count=60, ca=ca, acknowledges=False) as attackers:
            for _, writer in attackers:
                writer.write(attack)
            async with asyncio.timeout(60):
                for reader, _ in attackers:
                    await _end(reader)
        assert (await refusal(client, grpc_binding.encode_publish(spec("second")), token=TOKEN)) == ("OK", "")
        assert processes.peak_bytes(server.pid) < 1000 * MIB


async def test_token_of_several_kilobytes(database: Dsn, tmp_path: Path) -> None:
    """a client with a token of 24 KB -> is served every time"""
    token = "t" * 24_000
    await add_consumers(database, CONSUMER)
    async with (
        ReviewApi(tokens={token: ("alice", ["devs"])}, grants=GRANTS) as api,
        review_server(database, tmp_path, api) as (server, ca),
        channel(server.ports.sources, ca=ca) as client,
    ):
        requests = [grpc_binding.encode_publish(spec(f"bundle-{number}")) for number in range(20)]
        assert {await refusal(client, request, token=token) for request in requests} == {("OK", "")}


async def test_idle_connections_without_a_call(database: Dsn, tmp_path: Path) -> None:
    """idle connections up to --grpc-max-connections, without a token -> the oldest are closed; others can connect"""
    await add_consumers(database, CONSUMER)
    flags = ("--grpc-max-connections=100",)
    async with (
        ReviewApi(tokens={TOKEN: ("alice", ["devs"])}, grants=GRANTS) as api,
        review_server(database, tmp_path, api, flags=flags) as (server, ca),
        channel(server.ports.sources, ca=ca) as earlier,
    ):
        assert (await refusal(earlier, grpc_binding.encode_publish(spec("first")), token=TOKEN)) == ("OK", "")
        async with connections(server.ports.sources, count=99, ca=ca):
            async with channel(server.ports.sources, ca=ca) as newcomer:
                publish = newcomer.unary_unary(grpc_binding.PUBLISH_METHOD)
                request = grpc_binding.encode_publish(spec("second"))
                await publish(request, metadata=[("authorization", f"Bearer {TOKEN}")], wait_for_ready=True, timeout=20)
            # Connections with an authenticated call stay.
            assert earlier.get_state() is grpc.ChannelConnectivity.READY
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.ports.metrics}") as metrics:
                text = (await metrics.get("/metrics")).text
        [counter] = [line for line in text.splitlines() if line.startswith("grpc_server_pending_connections_closed")]
        assert float(counter.split()[1]) >= 10


async def test_idle_connections_of_one_address(database: Dsn, tmp_path: Path) -> None:
    """more idle connections of one address than --grpc-max-pending-connections -> the oldest are closed"""
    flags = ("--grpc-max-pending-connections=10",)
    async with (
        ServerProcess(database, log=tmp_path / "server.log", flags=flags) as server,
        connections(server.ports.agents, count=30) as attackers,
    ):
        ends = [asyncio.ensure_future(_end(reader)) for reader, _ in attackers]
        await until(lambda: sum(end.done() for end in ends) >= 20, what="closed connections", seconds=20)
        assert sum(end.done() for end in ends) == 20
        for end in ends:
            end.cancel()


async def test_subscription_without_message(database: Dsn, tmp_path: Path) -> None:
    """subscriptions whose message never comes -> hold no subscription of the topic and end after 30 s"""
    async with ServerProcess(database, log=tmp_path / "server.log") as server:
        async with connections(server.ports.agents, count=1) as [(_, writer)]:
            for stream in range(1, 101, 2):
                writer.write(http2_frames.call(grpc_binding.SUBSCRIBE_METHOD, stream=stream))
            async with channel(server.ports.agents) as client:
                assert await _opened(subscribe(client, cluster_name=CONSUMER)) == "open"


async def test_bad_tokens_cause_few_reviews(database: Dsn, tmp_path: Path) -> None:
    """1,500 invented tokens of one client -> 20 reviews, then RESOURCE_EXHAUSTED; a known token still works"""
    await add_consumers(database, CONSUMER)
    async with (
        ReviewApi(tokens={TOKEN: ("alice", ["devs"])}, grants=GRANTS) as api,
        review_server(database, tmp_path, api) as (server, ca),
        channel(server.ports.sources, ca=ca) as client,
    ):
        good = await refusal(client, grpc_binding.encode_publish(spec("first")), token=TOKEN)
        assert good == ("OK", "")
        answers = await asyncio.gather(*(refusal(client, b"", token=f"bad-{number}") for number in range(1_500)))
        codes = [code for code, _ in answers]
        assert set(codes) == {"UNAUTHENTICATED", "RESOURCE_EXHAUSTED"}, set(answers)
        assert api.requests[TOKENS] - 1 <= 40
        good = await refusal(client, grpc_binding.encode_publish(spec("second")), token=TOKEN)
        assert good == ("OK", "")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.ports.metrics}") as metrics:
            text = (await metrics.get("/metrics")).text
        [counter] = [line for line in text.splitlines() if line.startswith("grpc_server_token_reviews_limited_total ")]
        assert float(counter.split()[1]) == codes.count("RESOURCE_EXHAUSTED")
        assert api.requests[ACCESS] == 1


async def _opened(stream: Any) -> str:
    """Return `open`, or the code of the rejection."""
    try:
        async with asyncio.timeout(30):
            await stream.initial_metadata()
            return "open" if not stream.done() else (await stream.code()).name
    except grpc.aio.AioRpcError as error:
        return str(error.code().name)


async def _is_open(stream: Any) -> bool:
    return await _opened(stream) == "open"


async def _end(reader: asyncio.StreamReader) -> None:
    """Return when the server has closed the connection."""
    with contextlib.suppress(OSError):
        await reader.read()


def _is_connected(reader: asyncio.StreamReader) -> bool:
    return not reader.at_eof() and reader.exception() is None


async def _is_greeted(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(10):
            await http2_frames.first_settings(reader)
    except (OSError, asyncio.IncompleteReadError):
        return False
    return True
