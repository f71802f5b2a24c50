"""A sandbox cluster forwards ports of its pods to local ports, over the two WebSocket protocols."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as config
from maestropy.kube.request import ResourceType
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sandbox.kubeapi.streams import forwarding, spdy
from maestropy.trace.access import port_forward
from tests.waiting import until

PODS = ResourceType(group="", version="v1", plural="pods", kind="Pod", namespaced=True)
Program = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PATH = "/api/v1/namespaces/default/pods/web"


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def cluster(handle: Program = echo) -> AsyncIterator[SandboxCluster]:
    """A cluster whose pod `web` leads port 80 to a program, and port 81 to a closed port."""
    program = await asyncio.start_server(handle, "127.0.0.1", 0)
    closed = await asyncio.start_server(echo, "127.0.0.1", 0)
    unused = closed.sockets[0].getsockname()[1]
    closed.close()
    await closed.wait_closed()
    local = program.sockets[0].getsockname()[1]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "annotations": {"sandbox.maestropy/forward": f"80={local},81={unused}"},
        },
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    }
    async with SandboxCluster() as running:
        async with KubeClient(config.from_kubeconfig([running.kubeconfig]), settings=ClientSettings(qps=0)) as client:
            await client.create(PODS, pod)
        try:
            yield running
        finally:
            program.close()


class Kubectl:
    """Speaks what kubectl speaks, over one WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.writer, self.reader = spdy.SpdyWriter(), spdy.SpdyReader()
        self.frames: list[spdy.Frame] = []

    async def send(self, *frames: spdy.Frame) -> None:
        for frame in frames:
            await self.socket.send_bytes(self.writer.write(frame))

    async def open(self, request: int, port: int) -> int:
        """Open the two streams of a connection; returns the one for data."""
        error, data = 4 * request + 1, 4 * request + 3
        headers = {"port": str(port), "requestid": str(request)}
        await self.send(
            spdy.OpenStream(error, {**headers, "streamtype": "error"}, is_last=True),
            spdy.OpenStream(data, {**headers, "streamtype": "data"}, is_last=False),
        )
        return data

    async def receive_until(self, is_enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not is_enough():
                message = await self.socket.receive()
                assert message.type is aiohttp.WSMsgType.BINARY, message
                self.frames += self.reader.feed(message.data)

    def data(self, stream: int) -> bytes:
        return b"".join(f.data for f in self.frames if isinstance(f, spdy.StreamData) and f.stream == stream)

    def has_ended(self, stream: int) -> bool:
        return any(isinstance(f, spdy.StreamData) and f.stream == stream and f.is_last for f in self.frames)


def with_kubectl(scenario: Callable[[Kubectl], Awaitable[None]]) -> None:
    async def run() -> None:
        async with (
            cluster() as running,
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{running.url}{PATH}/portforward", **options(running)) as socket,
        ):
            assert socket.protocol == forwarding.SPDY
            await scenario(Kubectl(socket))

    asyncio.run(run())


def options(running: SandboxCluster, *, token: str = "", protocol: str = forwarding.SPDY) -> dict[str, Any]:
    return {
        "ssl": ssl.create_default_context(cafile=running.ca_file),
        "headers": {"Authorization": f"Bearer {token or running.token}"},
        "protocols": (protocol,),
    }


def test_connections_of_one_forward_are_independent() -> None:
    async def scenario(kubectl: Kubectl) -> None:
        streams = [await kubectl.open(request, 80) for request in range(5)]
        large = {stream: bytes([stream]) * 300_000 for stream in streams}
        for stream, content in large.items():
            await kubectl.send(
                *(spdy.StreamData(stream, content[at : at + 30_000]) for at in range(0, 300_000, 30_000))
            )
            await kubectl.send(spdy.StreamData(stream, b"", is_last=True))
        await kubectl.receive_until(lambda: all(kubectl.has_ended(stream) for stream in streams))
        assert {stream: kubectl.data(stream) for stream in streams} == large
        assert [kubectl.data(stream - 2) for stream in streams] == [b""] * 5, "no errors"
        again = await kubectl.open(9, 80)
        await kubectl.send(spdy.StreamData(again, b"later", is_last=True))
        await kubectl.receive_until(lambda: kubectl.has_ended(again))
        assert kubectl.data(again) == b"later"

    with_kubectl(scenario)


def test_a_port_that_leads_nowhere_is_said_on_the_stream_for_errors() -> None:
    async def scenario(kubectl: Kubectl) -> None:
        unknown, closed = await kubectl.open(0, 8080), await kubectl.open(1, 81)
        await kubectl.receive_until(lambda: kubectl.has_ended(unknown) and kubectl.has_ended(closed))
        assert b"nothing listens on port 8080 of pod web" in kubectl.data(unknown - 2)
        assert b"cannot be reached: " in kubectl.data(closed - 2)
        good = await kubectl.open(2, 80)
        await kubectl.send(spdy.StreamData(good, b"hi", is_last=True))
        await kubectl.receive_until(lambda: kubectl.has_ended(good))
        assert kubectl.data(good) == b"hi"

    with_kubectl(scenario)


def test_streams_out_of_order_or_beyond_the_limit_are_refused() -> None:
    async def scenario(kubectl: Kubectl) -> None:
        headers = {"port": "80", "requestid": "x", "streamtype": "data"}
        await kubectl.send(spdy.OpenStream(1, headers, is_last=False), spdy.Ping(5))
        await kubectl.receive_until(lambda: spdy.Ping(5) in kubectl.frames)
        assert spdy.StreamReset(1, spdy.PROTOCOL_ERROR) in kubectl.frames
        errors = [
            spdy.OpenStream(number * 2 + 3, {**headers, "requestid": str(number), "streamtype": "error"}, is_last=True)
            for number in range(513)
        ]
        await kubectl.send(*errors)
        refused = spdy.StreamReset(512 * 2 + 3, spdy.REFUSED_STREAM)
        await kubectl.receive_until(lambda: refused in kubectl.frames)
        assert sum(isinstance(frame, spdy.StreamReply) for frame in kubectl.frames) == 512

    with_kubectl(scenario)


def test_a_broken_frame_ends_the_forward() -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.socket.send_bytes(b"\x80\x02" + bytes(6))
        await kubectl.receive_until(lambda: spdy.GoAway() in kubectl.frames)
        assert (await kubectl.socket.receive()).type is aiohttp.WSMsgType.CLOSE

    with_kubectl(scenario)


def test_local_connections_end_with_the_client() -> None:
    async def run() -> None:
        ended = asyncio.Event()

        async def program(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()
            ended.set()

        async with cluster(program) as running, aiohttp.ClientSession() as session:
            async with session.ws_connect(f"{running.url}{PATH}/portforward", **options(running)) as socket:
                kubectl = Kubectl(socket)
                await kubectl.open(0, 80)
                await kubectl.receive_until(lambda: len(kubectl.frames) == 2)
            await until(ended.is_set, what="the local connection to end")

    asyncio.run(run())


def test_a_program_that_does_not_read_does_not_keep_the_forward_of_a_client_that_is_gone() -> None:
    async def run() -> None:
        is_over = asyncio.Event()

        async def program(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # of a transport for both directions
            await is_over.wait()
            writer.transport.abort()

        async with cluster(program) as running, aiohttp.ClientSession() as session:
            socket = await session.ws_connect(f"{running.url}{PATH}/portforward", **options(running))
            kubectl = Kubectl(socket)
            stream = await kubectl.open(0, 80)
            await kubectl.receive_until(lambda: len(kubectl.frames) == 2)
            wire = kubectl.writer.write(spdy.StreamData(stream, bytes(1_000_000)))
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(_flood(socket, wire), name="a client that is cut off while it sends")
                connections = running._upgrades._server
                await until(lambda: len(connections.connections) == 1, what="the forward")
                sending.cancel()
            await session.close()
            await until(lambda: not connections.connections, what="the forward to end")
            is_over.set()

    asyncio.run(run())


async def _flood(socket: aiohttp.ClientWebSocketResponse, wire: bytes) -> None:
    for _ in range(50):
        await socket.send_bytes(wire)


def test_the_client_of_this_project_is_served() -> None:
    async def run() -> None:
        async with cluster() as running:
            address = config.from_kubeconfig([running.kubeconfig])
            target = port_forward.ForwardTarget(namespace="default", pod="web", port=80)
            async with port_forward.forward(address, target) as url:
                reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
                writer.write(b"x" * 200_000)
                assert await reader.readexactly(200_000) == b"x" * 200_000
                writer.close()

    asyncio.run(run())


def test_who_may_not_forward_is_told_why() -> None:
    async def run() -> None:
        async with cluster() as running, aiohttp.ClientSession() as session:
            running.add_token("weak", "weak")

            async def status(path: str, **changes: Any) -> int:
                try:
                    await session.ws_connect(f"{running.url}{path}", **options(running, **changes))
                except aiohttp.WSServerHandshakeError as error:
                    return error.status
                raise AssertionError("the request was accepted")

            assert await status(f"{PATH}/portforward", token="wrong") == 401
            assert await status(f"{PATH}/portforward", token="weak") == 403
            assert await status(f"{PATH}x/portforward") == 404
            assert await status(f"{PATH}/exec") == 501
            assert await status(f"{PATH}/portforward", protocol="v9.unknown") == 400
            assert await status(f"{PATH}/portforward", protocol=forwarding.CHANNELS) == 400
            assert await status(PATH) == 400
            assert await status("/version") == 404
            plain = await session.get(
                f"{running.url}{PATH}/portforward", ssl=options(running)["ssl"], headers=options(running)["headers"]
            )
            assert plain.status == 400
            assert "Upgrade request required" in await plain.text()

    asyncio.run(run())
