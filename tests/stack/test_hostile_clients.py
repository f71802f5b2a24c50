"""Rude clients: too much, nothing at all, the wrong protocol, gone without a word. The server outlives them all."""

import asyncio
import contextlib
import gc
import json
import resource
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from maestropy.server.runtime.listeners import _limits
from maestropy.server.settings import load
from maestropy.server.settings.listeners import GrpcSettings
from maestropy.store.dsn import Dsn
from maestropy.wire import timestamps
from maestropy.wire._pb import cloudevents_pb2 as pb
from maestropy.wire.events import event, grpc_binding
from tests import waiting
from tests.stack import harness
from tests.stack.secure_server import (
    BUNDLES,
    CONSUMER,
    SOURCE,
    Channel,
    Running,
    add_consumers,
    bundle,
    next_event,
    refusal,
    report,
    request_of,
    running,
    send,
    spec,
    structured,
    subscribe,
)
from tests.stack.secure_server import channel as connect

MIB = 2**20
CLIENTS = "grpc_server_registered_source_clients"


def resident(pid: int | str = "self") -> int:
    """Return how many bytes of memory a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


async def serves(server: Running, name: str = "afterwards") -> None:
    """Check that all ports answer good requests."""
    async with server.sources() as sources, server.agents() as agents:
        stream = subscribe(agents, cluster_name=CONSUMER)
        await stream.initial_metadata()
        await send(sources, grpc_binding.encode_publish(spec(name)))
        while (await next_event(stream)).extensions[event.RESOURCE_ID] != name:
            pass
        await send(agents, grpc_binding.encode_publish(report(name)))
        stream.cancel()
    for port, path in (("rest", f"{BUNDLES}/{name}"), ("health", "/healthcheck"), ("metrics", "/metrics")):
        async with server.http(port) as client:
            assert (await client.get(path)).status_code == 200


@pytest.mark.long
@pytest.mark.parametrize("port", ["sources", "agents"])
async def test_messages_beyond_the_limit(database: Dsn, port: str) -> None:
    await add_consumers(database, CONSUMER)
    async with running(database) as server:
        async with server.sources() if port == "sources" else server.agents() as channel:
            for size in (4 * MIB + 1, 50 * MIB):
                code, text = await refusal(channel, b"\x0a" + bytes(size - 1))
                assert code == "RESOURCE_EXHAUSTED"
                assert f"Received message larger than max ({size} vs. {4 * MIB})" in text
                logged = await waiting.until(server.refusals, what="the log record")
                assert f"the call has no message, or one larger than max ({4 * MIB})" in logged[-1]["reason"]
                assert (await _refused_subscription(channel, bytes(size))).startswith("RESOURCE_EXHAUSTED")
        await serves(server)


@pytest.mark.long
async def test_refused_messages_do_not_stay_in_memory(tmp_path: Path) -> None:
    """In a process of its own, where only the server's memory counts and its collector is as calm as in production."""

    async with harness.Place(folder=tmp_path).run() as server:
        async with connect(int(server.sources.rpartition(":")[2])) as channel:
            await refusal(channel, b"")
            before = resident(server.process.pid)
            for _ in range(10):
                await refusal(channel, bytes(50 * MIB))
                await _refused_subscription(channel, bytes(50 * MIB))
            # Ten of each kind went in. An allocator keeps up to seven for later, however many more come.
            assert resident(server.process.pid) < before + 10 * 50 * MIB


async def _refused_subscription(channel: Channel, request: bytes) -> str:
    try:
        await channel.unary_stream(grpc_binding.SUBSCRIBE_METHOD)(request).read()
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name}: {error.details()}"
    return "OK"


async def test_as_much_as_is_allowed(database: Dsn) -> None:
    """Nearly a megabyte of metadata and nearly four of data are unusual, not wrong."""

    await add_consumers(database, CONSUMER)
    async with running(database) as server, server.sources() as sources, server.agents() as agents:
        stream = subscribe(agents, cluster_name=CONSUMER)
        metadata = json.dumps({"name": "large", "annotations": {"a": "m" * (MIB - 100)}})
        large = spec("large", extensions={event.METADATA: metadata}, data=bundle(y="d" * (3 * MIB - 65536)))
        request = grpc_binding.encode_publish(large)
        assert len(request) <= 4 * MIB
        await send(sources, request)
        received = await next_event(stream)
        assert received.data == large.data
        assert len(str(received.extensions[event.METADATA])) > MIB - 100
        stream.cancel()
        async with server.http("rest") as rest:
            assert (await rest.get(BUNDLES)).json()["total"] == 1


def _unusual() -> Iterator[tuple[str, bytes]]:
    for label, seconds in (("ancient", -62135596800), ("of the year 0099", -59_000_000_000), ("future", 253402300799)):
        moment = timestamps.Timestamp(seconds, 999_999_999)
        yield f"time {label}", grpc_binding.encode_publish(spec(f"time-{label}".replace(" ", "-"), time=moment))
    yield "no time", grpc_binding.encode_publish(spec("no-time", time=None))
    for name in ("it's", 'say "x"', "a..b", "%2e%2e%2f", "'; DROP TABLE resources; --", "naïve-名前", "x" * 253):
        yield f"id {name[:20]}", grpc_binding.encode_publish(spec(name))
    for kind in ("", "text/plain", "application/xml", "application/json; charset=utf-8"):
        yield (
            f"content type {kind!r}",
            grpc_binding.encode_publish(spec("ct-" + kind.replace("/", "-"), content_type=kind)),
        )
    message = grpc_binding.to_message(spec("no-contenttype"))
    del message.attributes["contenttype"]
    yield "no contenttype", request_of(message)
    message = grpc_binding.to_message(spec("text-data"))
    message.text_data = message.binary_data.decode()
    yield "data as text", request_of(message)
    yield "unknown fields", request_of(grpc_binding.to_message(spec("unknown-fields"))) + b"\xf2\x3e\x03abc"
    message = grpc_binding.to_message(spec("extra"))
    message.attributes["x-not-ours"].ce_string = "ignored"
    message.attributes["ce-flag"].ce_boolean = True
    message.attributes["ce-raw"].ce_bytes = b"\x00\xff"
    message.attributes["ce-when"].ce_timestamp.seconds = 5
    message.attributes["ce-UPPER"].ce_uri = "x://y"
    yield "attributes of every kind", request_of(message)
    yield "version as text", grpc_binding.encode_publish(spec("v-text", extensions={event.RESOURCE_VERSION: "5"}))
    yield "highest version", grpc_binding.encode_publish(spec("v-max", extensions={event.RESOURCE_VERSION: 2**31 - 1}))
    yield "no data", grpc_binding.encode_publish(spec("no-data", data=b""))
    yield "empty bundle", grpc_binding.encode_publish(spec("empty", data=b"{}"))
    members = {"specversion": "1.0", "id": "i", "source": SOURCE, "type": event.SPEC_CREATE, "resourceid": "structured"}
    members |= {"clustername": CONSUMER, "data": json.loads(bundle())}
    yield "structured", structured(members | {"resourceversion": 0})
    yield "structured, whole float", structured(members | {"resourceid": "float", "resourceversion": 3.0})
    deep = b"[" * 500 + b"]" * 500
    yield "nested 500 times", grpc_binding.encode_publish(spec("deep", data=bundle().replace(b'"1"', deep)))


async def test_what_is_merely_unusual_is_taken_and_delivered(database: Dsn) -> None:
    cases = list(_unusual())

    await add_consumers(database, CONSUMER)
    async with running(database, verbosity=10) as server, server.sources() as sources, server.agents() as agents:
        stream = subscribe(agents, cluster_name=CONSUMER)
        await stream.initial_metadata()
        delivered = set()
        for name, request in cases:
            assert (await refusal(sources, request), name) == (("OK", ""), name)
            received = await next_event(stream)
            delivered.add(received.extensions[event.RESOURCE_ID])
            status = report(
                str(received.extensions[event.RESOURCE_ID]),
                extensions={event.RESOURCE_VERSION: received.extensions[event.RESOURCE_VERSION]},
            )
            assert (await refusal(agents, grpc_binding.encode_publish(status)), name) == (("OK", ""), name)
        stream.cancel()
        assert len(delivered) == len(cases)
        rows = await server.counts()
        assert (rows[0], rows[4]) == (len(cases), len(cases))
        async with server.http("rest") as rest:
            listed = (await rest.get(BUNDLES, params={"size": 500})).json()
            assert {item["id"] for item in listed["items"]} == delivered
        # Every status can be told to its source.
        answers = subscribe(sources, source=SOURCE)
        await answers.initial_metadata()
        await send(sources, grpc_binding.encode_publish(spec("any", type=event.STATUS_RESYNC_REQUEST, data=b"")))
        told = {(await next_event(answers)).extensions[event.RESOURCE_ID] for _ in cases}
        assert told == delivered
        answers.cancel()


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="http-1"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 4096, id="half-http-2"),
        pytest.param(b"\x16\x03\x01\x02\x00" + bytes(200), id="tls-hello"),
        pytest.param(b"\x00\xff" * 65536, id="noise"),
    ],
)
async def test_what_only_connects(database: Dsn, garbage: bytes) -> None:
    await add_consumers(database, CONSUMER)
    async with running(database) as server:
        rude = []
        for name in server.places:
            for _ in range(20):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port(name))
                writer.write(garbage)
                rude.append((reader, writer))
        await serves(server)
        for _, writer in rude:
            writer.transport.abort()
        await serves(server, "once-more")
        assert not server.lines("a call failed unexpectedly")


async def test_subscriber_that_never_reads_does_not_delay_others(database: Dsn) -> None:
    await add_consumers(database, CONSUMER)
    async with running(database) as server, server.sources() as sources, server.agents() as agents:
        idle = [subscribe(agents, cluster_name=CONSUMER) for _ in range(3)]
        for stream in idle:
            await stream.initial_metadata()
        async with server.agents() as other:
            reading = subscribe(other, cluster_name=CONSUMER)
            await reading.initial_metadata()
            for number in range(40):
                large = spec(f"bundle-{number}", data=bundle(y="z" * 500_000))
                await send(sources, grpc_binding.encode_publish(large))
                assert (await next_event(reading)).extensions[event.RESOURCE_ID] == f"bundle-{number}"
            reading.cancel()
        for stream in idle:
            stream.cancel()
        await waiting.until(lambda: CONSUMER not in server.server.agent_subscribers)


async def test_a_client_that_vanishes_is_unregistered(database: Dsn) -> None:
    """Its socket is reset in the middle of a stream; nobody says goodbye."""

    await add_consumers(database, CONSUMER)
    async with running(database) as server:
        async with _Bridge(server.port("gRPC for sources")) as bridge:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{bridge.port}") as channel:
                stream = subscribe(channel, source=SOURCE)
                await stream.initial_metadata()
                assert server.gauge(CLIENTS) == 1
                assert SOURCE in server.server.source_subscribers
                bridge.cut()
                await waiting.until(lambda: server.gauge(CLIENTS) == 0)
                await waiting.until(lambda: SOURCE not in server.server.source_subscribers)
                stream.cancel()
        assert len(server.lines("unregistered broadcaster client")) == 1
        await serves(server)


class _Bridge:
    """Carries bytes between a client and the server until it is cut."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._sockets: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> "_Bridge":
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()
        self._server.close()

    def cut(self) -> None:
        """Reset every connection, as a crashed host or a firewall does."""
        for writer in self._sockets:
            sock = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        self._sockets.clear()
        self._server.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._sockets += [writer, far_writer]

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while chunk := await source.read(65536):
                    sink.write(chunk)

        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))


@pytest.mark.long
async def test_500_subscriptions_leave_nothing_behind(database: Dsn) -> None:
    await add_consumers(database, CONSUMER)
    async with running(database, verbosity=0) as server, server.sources() as sources, server.agents() as agents:

        async def cycle() -> None:
            streams = [subscribe(sources, source=SOURCE), subscribe(agents, cluster_name=CONSUMER)]
            for stream in streams:
                await stream.initial_metadata()
                stream.cancel()

        for _ in range(50):
            await cycle()
        await waiting.until(lambda: server.gauge(CLIENTS) == 0)
        gc.collect()
        tasks, memory = len(asyncio.all_tasks()), resident()
        for _ in range(450):
            await cycle()
        await waiting.until(lambda: server.gauge(CLIENTS) == 0)
        await waiting.until(
            lambda: not server.server.agent_subscribers.topics() and not server.server.source_subscribers.topics()
        )
        await waiting.until(lambda: len(asyncio.all_tasks()) <= tasks)
        server.log.truncate(0)
        gc.collect()
        assert resident() < memory + 16 * MIB
        await serves(server)


def test_ping_floods_are_refused_by_the_library() -> None:
    settings = load({"--grpc-client-min-ping-interval": "7s", "--grpc-connection-timeout": "9s"}, {})
    options = dict(_limits(settings.grpc, shares_ports=False).options())
    assert options["grpc.http2.min_recv_ping_interval_without_data_ms"] == 7000
    assert options["grpc.http2.max_ping_strikes"] == 2
    assert options["grpc.server_handshake_timeout_ms"] == 9000
    assert options["grpc.keepalive_permit_without_calls"] == int(GrpcSettings().permit_ping_without_stream)


@pytest.mark.parametrize(
    ("name", "fragment"),
    [
        pytest.param("", "missing cluster name", id="empty"),
        pytest.param("a\x00b", "printable", id="nul"),
        pytest.param("x" * 10_000, "printable", id="long"),
    ],
)
async def test_subscriptions_by_impossible_names(database: Dsn, name: str, fragment: str) -> None:
    """One of them must not spoil the look for the pending events of all."""

    await add_consumers(database, CONSUMER)
    async with running(database) as server, server.agents() as agents, server.sources() as sources:
        stream = subscribe(agents, cluster_name=name)
        with pytest.raises(grpc.aio.AioRpcError, match=fragment) as refused:
            await stream.read()
        assert refused.value.code() is grpc.StatusCode.UNKNOWN
        assert (refused.value.details() or "").startswith("invalid subscription request: ")
        if name:
            other = subscribe(sources, source=name)
            with pytest.raises(grpc.aio.AioRpcError, match=fragment):
                await other.read()
        assert len(server.lines("subscription rejected")) == 1 + bool(name)
        await serves(server)


async def test_unreadable_row_does_not_hide_others(database: Dsn) -> None:
    """Whoever wrote it: the server tells of it and goes on."""

    await add_consumers(database, CONSUMER)
    async with running(database) as server, server.sources() as sources, server.agents() as agents:
        await send(sources, grpc_binding.encode_publish(spec("broken")))
        await send(agents, grpc_binding.encode_publish(report("broken")))
        await server.sql("UPDATE resources SET payload = payload || '{\"time\": \"soon\"}' WHERE id = 'broken'")
        await server.sql("UPDATE resources SET status = status || '{\"time\": \"soon\"}' WHERE id = 'broken'")
        await server.sql("DELETE FROM renditions")
        await serves(server)
        answers = subscribe(sources, source=SOURCE)
        await answers.initial_metadata()
        await send(sources, grpc_binding.encode_publish(spec("any", type=event.STATUS_RESYNC_REQUEST, data=b"")))
        assert (await next_event(answers)).extensions[event.RESOURCE_ID] == "afterwards"
        answers.cancel()
        told = [line for line in server.everything() if line["level"] == "error"]
        assert {line["resourceID"] for line in told} == {"broken"}


async def test_a_refusal_cannot_hide_from_the_journal(database: Dsn) -> None:
    """Its text, part of which the caller chose, does not decide whether it is told."""

    async with running(database) as server, server.sources() as sources:
        odd = pb.CloudEvent(id="i", source=SOURCE, spec_version="1.0", type="x: maestro-6: y")
        odd.attributes["contenttype"].ce_string = "application/json"
        await refusal(sources, request_of(odd))
        assert len(server.refusals()) == 1
