"""Run the service cluster of the practice fleet: a sandbox cluster whose pods can be reached by port-forwards.

The API of the sandbox cluster is served as it is. Only `pods/portforward` is served here, as a kubelet does it
(`v4.channel.k8s.io`, one WebSocket per connection), and leads to the local ports of the simulated services. A port that
no pod of this cluster declares is not reached.
"""

import asyncio
import base64
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

from maestropy.aio.clock import Clock
from maestropy.aio.tasks import wait_for_first
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as config
from maestropy.kube.objects import Json
from maestropy.kube.request import ResourceType
from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sandbox.kubeapi.http import certificate

PROTOCOL = "v4.channel.k8s.io"
CONTEXT = "dev-westus3-svc-1"
_DATA, _ERROR = 0, 1
_CHUNK = 64 * 1024
_READY_SECONDS = 30.0
_NAMESPACES = ResourceType(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)
_SERVICES = ResourceType(group="", version="v1", plural="services", kind="Service", namespaced=True)
_PODS = ResourceType(group="", version="v1", plural="pods", kind="Pod", namespaced=True)
_HOP_HEADERS = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade"})
"""Headers of one connection, which are not passed on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedService:
    """A service of the cluster and the local port of its simulator."""

    namespace: str
    name: str
    port: int
    """The port of the service and of its pod."""
    local_port: int

    @property
    def pod(self) -> str:
        """The name of its pod."""
        return f"{self.name}-0"


@asynccontextmanager
async def service_cluster(directory: Path, services: tuple[ForwardedService, ...]) -> AsyncIterator[Path]:
    """Run the service cluster while entered; yield its kubeconfig."""
    async with AsyncExitStack() as stack:
        sandbox = await stack.enter_async_context(SandboxCluster(tls=False))
        session = await stack.enter_async_context(aiohttp.ClientSession(auto_decompress=False, trust_env=False))
        ports = {(service.namespace, service.pod, service.port): service.local_port for service in services}
        front = _Front(session, sandbox=sandbox.url, ports=ports)
        issued = certificate.issue(directory, now=Clock().now())
        url = await stack.enter_async_context(front.serve(issued))
        kubeconfig = directory / "kubeconfig"
        _write_kubeconfig(kubeconfig, url=url, authority=issued.authority, token=sandbox.token)
        await _create(kubeconfig, services)
        yield kubeconfig


class _Front:
    """Serves port-forwards, and passes every other request on to the sandbox cluster."""

    def __init__(
        self, session: aiohttp.ClientSession, *, sandbox: str, ports: Mapping[tuple[str, str, int], int]
    ) -> None:
        self._session = session
        self._sandbox = sandbox
        self._ports = ports

    @asynccontextmanager
    async def serve(self, issued: certificate.ServingCertificate) -> AsyncIterator[str]:
        """Listen on loopback while entered; yield the URL."""
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_get("/api/v1/namespaces/{namespace}/pods/{pod}/portforward", self._forward)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        runner = web.AppRunner(app, shutdown_timeout=0.3)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=issued.context).start()
            yield f"https://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_HEADERS}
        async with self._session.request(
            request.method,
            f"{self._sandbox}{request.raw_path}",
            headers=headers,
            data=await request.read() or None,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_HEADERS}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        # The sandbox cluster decides whether the client may see the pod.
        authorization = {"Authorization": request.headers.get("Authorization", "")}
        url = f"{self._sandbox}/api/v1/namespaces/{namespace}/pods/{pod}"
        async with self._session.get(url, headers=authorization) as answer:
            if answer.status != 200:
                return web.Response(status=answer.status, body=await answer.read(), content_type="application/json")
        written = request.query.get("ports", "")
        port = int(written) if written.isascii() and written.isdigit() and len(written) < 6 else 0
        local = self._ports.get((namespace, pod, port))
        if local is None:
            return web.Response(status=400, text=f"pod {pod} has no port {written[:10]}")
        socket = web.WebSocketResponse(protocols=(PROTOCOL,))
        await socket.prepare(request)
        for channel in (_DATA, _ERROR):
            await socket.send_bytes(bytes([channel]) + struct.pack("<H", port))
        await _carry(socket, local)
        return socket


async def _carry(socket: web.WebSocketResponse, port: int) -> None:
    """Carry one connection to a local port until either side ends it."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        await socket.send_bytes(bytes([_ERROR]) + str(error).encode())
        return
    try:
        await wait_for_first([_to_service(socket, writer), _to_client(reader, socket)])
    except (ConnectionError, OSError):
        pass
    finally:
        writer.close()


async def _to_service(socket: web.WebSocketResponse, writer: asyncio.StreamWriter) -> None:
    async for message in socket:
        if message.type is aiohttp.WSMsgType.BINARY and message.data[:1] == bytes([_DATA]):
            writer.write(message.data[1:])
            await writer.drain()


async def _to_client(reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
    while chunk := await reader.read(_CHUNK):
        await socket.send_bytes(bytes([_DATA]) + chunk)


async def _create(kubeconfig: Path, services: tuple[ForwardedService, ...]) -> None:
    """Create the services with their pods, and wait until the pods are ready."""
    async with KubeClient(config.from_kubeconfig([kubeconfig]), settings=ClientSettings(qps=0)) as client:
        for namespace in dict.fromkeys(service.namespace for service in services):
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await client.create(_NAMESPACES, manifest)
        for service in services:
            await client.create(_SERVICES, _service(service))
            await client.create(_PODS, _pod(service))
        try:
            async with asyncio.timeout(_READY_SECONDS):
                for service in services:
                    while not await _is_ready(client, service):  # noqa: ASYNC110 - a pod's state can only be polled
                        await asyncio.sleep(0.02)
        except TimeoutError as error:
            raise SandboxError(f"timed out after {_READY_SECONDS:g} s waiting for pods of the services") from error


async def _is_ready(client: KubeClient, service: ForwardedService) -> bool:
    pod = await client.get(_PODS, service.pod, namespace=service.namespace)
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _service(service: ForwardedService) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service.name, "namespace": service.namespace},
        "spec": {"selector": {"app": service.name}, "ports": [{"port": service.port, "targetPort": "http"}]},
    }


def _pod(service: ForwardedService) -> Json:
    ports = [{"name": "http", "containerPort": service.port}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": service.pod, "namespace": service.namespace, "labels": {"app": service.name}},
        "spec": {"containers": [{"name": "service", "image": service.name, "ports": ports}]},
    }


def _write_kubeconfig(path: Path, *, url: str, authority: Path, token: str) -> None:
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(authority.read_bytes()).decode()}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": "practice"}}],
        "users": [{"name": "practice", "user": {"token": token}}],
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content))
