"""Forward a local port to a pod through the API server: `kubectl port-forward` without kubectl.

Speaks `v4.channel.k8s.io`, which every kubelet supports: one WebSocket per connection, channel 0 for data, channel 1
for errors; the first message of each channel is the port number. A forward is tested before it is returned, and closed
with all its connections when its block ends.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import quote

import aiohttp
from yarl import URL

from maestropy.aio.clock import Clock
from maestropy.aio.tasks import TaskOwner, wait_for_first
from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.config.address import ClusterAddress
from maestropy.kube.config.credentials import RequestAuthSource
from maestropy.kube.config.tls import TlsContexts
from maestropy.kube.objects import Json
from maestropy.kube.request import ObjectSelector, ResourceType
from maestropy.trace.access.pod_database import PODS, is_ready
from maestropy.trace.errors import NoAccess

PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_CHUNK = 64 * 1024
_SERVICES = ResourceType(group="", version="v1", plural="services", kind="Service", namespaced=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardTarget:
    """A port of a pod."""

    namespace: str
    pod: str
    port: int

    def __str__(self) -> str:
        return f"pod {self.namespace}/{self.pod} port {self.port}"


def choose(service: Json, pods: list[Json], *, port: int) -> ForwardTarget | None:
    """Return the pod and port that a port of a service leads to; None if no pod is ready. Pure."""
    ports = (service.get("spec") or {}).get("ports") or ()
    service_port_spec = next((service_port for service_port in ports if service_port.get("port") == port), None)
    for pod in pods:
        metadata = pod.get("metadata") or {}
        if is_ready(pod):
            number = _number((service_port_spec or {}).get("targetPort", port), pod, otherwise=port)
            return ForwardTarget(namespace=str(metadata.get("namespace")), pod=str(metadata.get("name")), port=number)
    return None


def _number(target_port: object, pod: Json, *, otherwise: int) -> int:
    if isinstance(target_port, int):
        return target_port
    containers = (pod.get("spec") or {}).get("containers") or ()
    named = [
        port for container in containers for port in container.get("ports") or () if port.get("name") == target_port
    ]
    port = named[0].get("containerPort") if named else otherwise
    return port if isinstance(port, int) else otherwise


async def find(client: KubeClient, *, namespace: str, service: str, port: int) -> ForwardTarget:
    """Return a pod behind a service that can be forwarded to."""
    try:
        service_object = await client.get(_SERVICES, service, namespace=namespace)
        chosen = (service_object.get("spec") or {}).get("selector") or {}
        labels = ",".join(f"{name}={value}" for name, value in chosen.items())
        pods = await client.list(PODS, namespace=namespace, selector=ObjectSelector(labels=labels)) if labels else []
    except errors.KubeError as error:
        raise NoAccess(f"service {namespace}/{service} cannot be read: {error.message}") from error
    target = choose(service_object, list(pods), port=port)
    if target is None:
        raise NoAccess(f"service {namespace}/{service} has no ready pod; kubectl -n {namespace} get pods")
    return target


@contextlib.asynccontextmanager
async def forward(
    address: ClusterAddress, target: ForwardTarget, *, timeout_seconds: float = 10.0
) -> AsyncIterator[str]:
    """Yield `http://127.0.0.1:PORT`, which leads to the target while the block lasts."""
    tunnel = _Tunnel(address, target, timeout_seconds=timeout_seconds)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=False) as session:
        await tunnel.check(session)
        task_owner = TaskOwner()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task_owner.start(f"forward to {target}", tunnel.carry(session, reader, writer))

        server = await asyncio.start_server(accept, host="127.0.0.1", port=0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            await task_owner.stop()


class _Tunnel:
    """Forwards connections to one target."""

    def __init__(self, address: ClusterAddress, target: ForwardTarget, *, timeout_seconds: float) -> None:
        self._address = address
        self._target = target
        self._timeout = timeout_seconds
        self._keyring = RequestAuthSource(address.credentials, clock=Clock())
        self._tls = TlsContexts(address)

    async def check(self, session: aiohttp.ClientSession) -> None:
        """Open and close one connection, so that a rejection is raised before the forward is used."""
        try:
            async with asyncio.timeout(self._timeout), self._open(session) as socket:
                await socket.close()
        except TimeoutError as error:
            raise NoAccess(f"a port-forward to {self._target} did not open within {self._timeout:g} s") from error

    async def carry(
        self, session: aiohttp.ClientSession, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Forward one connection until it ends; if the WebSocket breaks, close the connection."""
        try:
            async with self._open(session) as socket:
                await wait_for_first([_send(reader, socket), _receive(socket, writer)])
        except (NoAccess, aiohttp.ClientError, OSError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    @contextlib.asynccontextmanager
    async def _open(self, session: aiohttp.ClientSession) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        target = self._target
        path = f"/api/v1/namespaces/{quote(target.namespace, safe='')}/pods/{quote(target.pod, safe='')}/portforward"
        try:
            proof = await self._keyring.current()
            headers = [("Authorization", proof.authorization)] if proof.authorization else []
            async with session.ws_connect(
                URL(f"{self._address.server}{path}?ports={target.port}", encoded=True),
                protocols=(PROTOCOL,),
                headers=[*headers, *self._address.credentials.impersonation],
                ssl=self._tls.current(proof) or True,
                server_hostname=self._address.tls_server_name or None,
                max_msg_size=0,
            ) as socket:
                await _await_open(socket, target)
                yield socket
        except aiohttp.WSServerHandshakeError as error:
            raise NoAccess(f"the API server rejects a port-forward to {target} (HTTP {error.status})") from error
        except (aiohttp.ClientError, OSError, errors.KubeError) as error:
            raise NoAccess(f"a port-forward to {target} cannot be opened ({error})") from error


async def _await_open(socket: aiohttp.ClientWebSocketResponse, target: ForwardTarget) -> None:
    """Read the port's number on both channels, which the kubelet sends when the port is open."""
    missing = {_DATA, _ERROR}
    while missing:
        message = await socket.receive()
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            raise NoAccess(f"the port-forward to {target} was closed before it was open")
        channel, content = message.data[0], message.data[1:]
        if channel not in missing or int.from_bytes(content[:2], "little") != target.port:
            raise NoAccess(f"the other end of the port-forward to {target} does not support {PROTOCOL}")
        missing.discard(channel)


async def _send(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    while chunk := await reader.read(_CHUNK):
        await socket.send_bytes(bytes([_DATA]) + chunk)
    # The protocol cannot signal the end of one direction, so the other end closes the connection.
    await asyncio.Event().wait()


async def _receive(socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> None:
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            return
        channel, content = message.data[0], message.data[1:]
        if channel == _ERROR and content:
            return
        if channel == _DATA and content:
            writer.write(content)
            await writer.drain()
