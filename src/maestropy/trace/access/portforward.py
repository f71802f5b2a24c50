"""A port of this computer that leads to a pod's, through the API server: `kubectl port-forward`, without kubectl.

Speaks `v4.channel.k8s.io`, which every kubelet does: one WebSocket for each connection, channel 0 for the data,
channel 1 for what goes wrong; the first message of each is the port's number. A forward is tried before it is
handed out, and closed with everything in it when its block ends.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import quote

import aiohttp
from yarl import URL

from maestropy.aio.clock import Clock
from maestropy.aio.tasks import Crew, first
from maestropy.kube import errors
from maestropy.kube.address import ClusterAddress
from maestropy.kube.client import KubeClient
from maestropy.kube.credentials import Keyring
from maestropy.kube.objects import Json
from maestropy.kube.request import ResourceType, Selector
from maestropy.kube.trust import TlsContexts
from maestropy.trace.errors import NoAccess

PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_CHUNK = 64 * 1024
_SERVICES = ResourceType(group="", version="v1", plural="services", kind="Service", namespaced=True)
_PODS = ResourceType(group="", version="v1", plural="pods", kind="Pod", namespaced=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A port of a pod."""

    namespace: str
    pod: str
    port: int

    def __str__(self) -> str:
        return f"pod {self.namespace}/{self.pod} port {self.port}"


def choose(service: Json, pods: list[Json], *, port: int) -> Target | None:
    """Return the pod and port that a port of a service leads to; None if no pod is ready. Pure."""
    ports = (service.get("spec") or {}).get("ports") or ()
    wanted = next((each for each in ports if each.get("port") == port), None)
    for pod in pods:
        metadata, status = pod.get("metadata") or {}, pod.get("status") or {}
        conditions = status.get("conditions") or ()
        is_ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
        if is_ready and not metadata.get("deletionTimestamp"):
            number = _number((wanted or {}).get("targetPort", port), pod, otherwise=port)
            return Target(namespace=str(metadata.get("namespace")), pod=str(metadata.get("name")), port=number)
    return None


def _number(wanted: object, pod: Json, *, otherwise: int) -> int:
    if isinstance(wanted, int):
        return wanted
    containers = (pod.get("spec") or {}).get("containers") or ()
    named = [port for each in containers for port in each.get("ports") or () if port.get("name") == wanted]
    return int(named[0]["containerPort"]) if named else otherwise


async def find(client: KubeClient, *, namespace: str, service: str, port: int) -> Target:
    """Return a pod behind a service that can be forwarded to."""
    try:
        found = await client.get(_SERVICES, service, namespace=namespace)
        chosen = (found.get("spec") or {}).get("selector") or {}
        labels = ",".join(f"{name}={value}" for name, value in chosen.items())
        pods = await client.list(_PODS, namespace=namespace, selector=Selector(labels=labels)) if labels else []
    except errors.KubeError as error:
        raise NoAccess(f"service {namespace}/{service} cannot be read: {error.message}") from error
    target = choose(found, list(pods), port=port)
    if target is None:
        raise NoAccess(f"service {namespace}/{service} has no ready pod; kubectl -n {namespace} get pods")
    return target


@contextlib.asynccontextmanager
async def forward(address: ClusterAddress, target: Target, *, timeout_seconds: float = 10.0) -> AsyncIterator[str]:
    """Yield `http://127.0.0.1:PORT`, which leads to the target while the block lasts."""
    tunnel = _Tunnel(address, target, timeout_seconds=timeout_seconds)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=False) as session:
        await tunnel.check(session)
        crew = Crew()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            crew.start(f"forward to {target}", tunnel.carry(session, reader, writer))

        server = await asyncio.start_server(accept, host="127.0.0.1", port=0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            await crew.stop()


class _Tunnel:
    """The way to one target."""

    def __init__(self, address: ClusterAddress, target: Target, *, timeout_seconds: float) -> None:
        self._address = address
        self._target = target
        self._timeout = timeout_seconds
        self._keyring = Keyring(address.credentials, clock=Clock())
        self._tls = TlsContexts(address)

    async def check(self, session: aiohttp.ClientSession) -> None:
        """Open one way and close it, so that a refusal is known before anybody relies on it."""
        try:
            async with asyncio.timeout(self._timeout), self._open(session) as socket:
                await socket.close()
        except TimeoutError as error:
            raise NoAccess(f"a port-forward to {self._target} did not open within {self._timeout:g} s") from error

    async def carry(
        self, session: aiohttp.ClientSession, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Carry one connection to its end; when the way breaks, the connection is closed and its user sees that."""
        try:
            async with self._open(session) as socket:
                await first([_send(reader, socket), _receive(socket, writer)])
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
                await _greet(socket, target)
                yield socket
        except aiohttp.WSServerHandshakeError as error:
            raise NoAccess(f"the API server refuses a port-forward to {target} (HTTP {error.status})") from error
        except (aiohttp.ClientError, OSError, errors.KubeError) as error:
            raise NoAccess(f"a port-forward to {target} cannot be opened ({error})") from error


async def _greet(socket: aiohttp.ClientWebSocketResponse, target: Target) -> None:
    """Read the port's number on both channels, which the kubelet sends when the port is open."""
    missing = {_DATA, _ERROR}
    while missing:
        message = await socket.receive()
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            raise NoAccess(f"the port-forward to {target} was closed before it was open")
        channel, content = message.data[0], message.data[1:]
        if channel not in missing or int.from_bytes(content[:2], "little") != target.port:
            raise NoAccess(f"what answered the port-forward to {target} does not speak {PROTOCOL}")
        missing.discard(channel)


async def _send(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    while chunk := await reader.read(_CHUNK):
        await socket.send_bytes(bytes([_DATA]) + chunk)
    # The protocol cannot say that one side is done, so the other side decides when it ends.
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
