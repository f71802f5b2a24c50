"""Port-forwards against a peer that speaks the kubelet's protocol, and invalid responses of hops."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import yaml
from aiohttp import web

from maestropy.kube.config.address import ClusterAddress, Credentials
from maestropy.sandbox.hcp import documents, services
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.trace.access import cluster_selection, port_forward
from maestropy.trace.access.hcp import live_systems as hcp_live
from maestropy.trace.access.options import HcpAccess
from maestropy.trace.access.port_forward import ForwardTarget
from maestropy.trace.errors import NoAccess
from maestropy.trace.hcp import identity, walk
from maestropy.trace.hcp.model import HopState, Walk
from maestropy.trace.hcp.query import Snapshot, System
from maestropy.transport.http.listener import HttpListener

NOW = "2026-08-20T10:00:00Z"
SCENARIO = documents.SCENARIOS["etcd"]
TARGET = ForwardTarget(namespace="aro-hcp", pod="frontend-1", port=8443)


@contextlib.asynccontextmanager
async def listening(app: Any) -> AsyncIterator[int]:
    listener = HttpListener(app, host="127.0.0.1", port=0)
    serving = asyncio.ensure_future(listener.serve(tls=None))
    try:
        yield listener.port
    finally:
        listener.stop()
        await serving


class Kubelet:
    """An API server that knows services and pods and forwards ports as a kubelet does, to ports of this computer."""

    def __init__(self, ports: dict[str, int]) -> None:
        self.ports = ports
        self.opened = self.closed = 0
        self.seen: list[tuple[str, str]] = []
        self.refuses = 0
        self.greets: Callable[[int], list[bytes]] = lambda port: [
            bytes([channel]) + struct.pack("<H", port) for channel in (0, 1)
        ]
        self.cuts_after: int | None = None

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        app = web.Application()
        pods = "/api/v1/namespaces/{namespace}/pods"
        app.add_routes(
            [
                web.get("/api/v1/namespaces/{namespace}/services/{name}", self.service),
                web.get(pods, self.pods),
                web.get(pods + "/{pod}/portforward", self.forward),
            ]
        )
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def service(self, request: web.Request) -> web.Response:
        name, namespace = request.match_info["name"], request.match_info["namespace"]
        if f"{namespace}/{name}" not in self.ports:
            status = {"kind": "Status", "reason": "NotFound", "message": f'services "{name}" not found', "code": 404}
            return web.json_response(status, status=404)
        ports = [{"port": port, "targetPort": "http"} for port in (8000, 8443)]
        return web.json_response({"spec": {"selector": {"app": name}, "ports": ports}})

    async def pods(self, request: web.Request) -> web.Response:
        name = request.query["labelSelector"].partition("=")[2]
        namespace = request.match_info["namespace"]
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        spec = {"containers": [{"ports": [{"name": "http", "containerPort": self.ports[f"{namespace}/{name}"]}]}]}
        late = {"metadata": {"name": "not-ready", "namespace": namespace}, "spec": spec, "status": {}}
        pod = {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": ready}
        return web.json_response({"items": [late, pod]})

    async def forward(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.headers.get("Authorization", ""), request.headers["Sec-WebSocket-Protocol"]))
        if self.refuses:
            return web.Response(status=self.refuses)
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        self.opened += 1
        port = int(request.query["ports"])
        try:
            for greet in self.greets(port):
                await socket.send_bytes(greet)
            await self._carry(socket, port)
        finally:
            self.closed += 1
        return socket

    async def _carry(self, socket: web.WebSocketResponse, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        left = self.cuts_after

        async def back() -> None:
            nonlocal left
            while chunk := await reader.read(4096):
                await socket.send_bytes(b"\0" + (chunk if left is None else chunk[:left]))
                if left is not None:
                    await socket.close()
                    return

        returning = asyncio.ensure_future(back())
        try:
            async for message in socket:
                if message.type is aiohttp.WSMsgType.BINARY:
                    writer.write(message.data[1:])
        finally:
            returning.cancel()
            writer.close()


def address(url: str) -> ClusterAddress:
    return ClusterAddress(server=url, credentials=Credentials(token="let-me-in"))


async def test_port_forward_serves_http_and_closes() -> None:
    async with listening(services.frontend(SCENARIO, now=NOW)) as port:
        kubelet = Kubelet({})
        target = ForwardTarget(namespace="aro-hcp", pod="frontend-1", port=port)
        async with kubelet.serve() as url:
            async with port_forward.forward(address(url), target) as local:
                async with httpx.AsyncClient(verify=False) as client:
                    asked = [client.get(f"{local}{documents.ARM_ID}?api-version=x") for _ in range(20)]
                    results = await asyncio.gather(*asked)
                assert {result.status_code for result in results} == {200}
                assert results[0].json()["name"] == documents.NAME
            with pytest.raises(httpx.ConnectError):
                httpx.get(local, verify=False)
            async with asyncio.timeout(10):
                while kubelet.closed < kubelet.opened:
                    await asyncio.sleep(0.01)
        assert kubelet.opened > 1
        assert set(kubelet.seen) == {("Bearer let-me-in", "v4.channel.k8s.io")}


def wrong_port(_: int) -> list[bytes]:
    return [b"\0\1\1", b"\1\1\1"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"refuses": 403}, "rejects a port-forward", id="forbidden"),
        pytest.param({"refuses": 502}, "HTTP 502", id="kubelet-away"),
        pytest.param({"greets": wrong_port}, "does not support v4.channel.k8s.io", id="another-protocol"),
        pytest.param({"greets": lambda _: [b""]}, "closed before it was open", id="no-greeting"),
    ],
)
async def test_port_forward_is_tested_before_use(change: dict[str, Any], words: str) -> None:
    kubelet = Kubelet({})
    vars(kubelet).update(change)
    async with kubelet.serve() as url:
        with pytest.raises(NoAccess, match=words):
            async with port_forward.forward(address(url), TARGET):
                pytest.fail("handed out")


async def test_unreachable_api_server_is_reported() -> None:
    with pytest.raises(NoAccess, match="cannot be opened"):
        async with port_forward.forward(address("http://127.0.0.1:9"), TARGET):
            pytest.fail("handed out")


def kubeconfig(folder: Path, url: str) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "svc",
        "clusters": [{"name": "svc", "cluster": {"server": url}}],
        "contexts": [{"name": "svc", "context": {"cluster": "svc", "user": "me"}}],
        "users": [{"name": "me", "user": {"token": "let-me-in"}}],
    }
    path = folder / "svc.kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def walked(access: HcpAccess, folder: Path) -> Walk:
    system = cluster_selection.KubeconfigLocation(environ={}, home=folder)
    async with hcp_live.LiveSystems(access, location=system) as live:
        from maestropy.aio.clock import Clock

        snapshot = Snapshot(now=Clock().now(), source=access.source)
        return await walk.run(identity.parse(documents.ARM_ID), runner=live, snapshot=snapshot)


@pytest.mark.parametrize("namespace", ["clusters-service", "cluster-service"], ids=["name-of-today", "name-of-before"])
async def test_walk_over_port_forwards(namespace: str, tmp_path: Path) -> None:
    async with (
        listening(services.frontend(SCENARIO, now=NOW)) as frontend,
        listening(services.clusters_service(SCENARIO, now=NOW)) as cs,
    ):
        kubelet = Kubelet({"aro-hcp/aro-hcp-frontend": frontend, f"{namespace}/clusters-service": cs})
        async with kubelet.serve() as url:
            found = await walked(HcpAccess(svc_kubeconfig=kubeconfig(tmp_path, url)), tmp_path)
    states = {hop.name: hop.state for hop in found.hops}
    assert states["frontend"] is states["clusters-service"] is HopState.BEHIND
    assert states["shard"] is HopState.OK
    assert states["maestro"] is states["hosted-cluster"] is HopState.UNKNOWN
    assert 'services "maestro" not found' in found.hop("maestro").reason
    assert "no context is named after dev-westus3-mgmt-1" in found.hop("hosted-cluster").reason
    assert found.context.known.cid == documents.CID
    assert found.verdict.code == "HCP-001"


async def test_broken_port_forward_is_unknown(tmp_path: Path) -> None:
    async with listening(services.frontend(SCENARIO, now=NOW)) as frontend:
        kubelet = Kubelet({"aro-hcp/aro-hcp-frontend": frontend})
        kubelet.cuts_after = 30
        async with kubelet.serve() as url:
            found = await walked(HcpAccess(svc_kubeconfig=kubeconfig(tmp_path, url)), tmp_path)
    assert found.hop("frontend").state is HopState.UNKNOWN
    assert "cannot be reached" in found.hop("frontend").reason


@pytest.mark.parametrize(
    "system", [System.FRONTEND, System.CLUSTERS_SERVICE, System.MAESTRO], ids=lambda each: each.name
)
@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        pytest.param(401, "{}", "denies access (401)", id="401"),
        pytest.param(403, '{"error": {"code": "Denied", "message": "no"}}', "403, Denied: no", id="403"),
        pytest.param(404, "<html>nginx</html>", "is this its address?", id="404-of-a-proxy"),
        pytest.param(500, "oops", "responded with 500", id="500"),
        pytest.param(503, '{"kind": "Error", "reason": "no database"}', "503, no database", id="503"),
        pytest.param(200, '{"kind": "ClusterLi', "not JSON, or truncated", id="cut-json"),
        pytest.param(200, "[]", "not JSON, or truncated", id="not-an-object"),
    ],
)
async def test_invalid_response_is_unknown_and_the_walk_continues(
    system: System, status: int, body: str, words: str, tmp_path: Path
) -> None:
    async def result(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    app = web.Application()
    app.router.add_get("/{path:.*}", result)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    bad = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with (
        listening(services.frontend(SCENARIO, now=NOW)) as frontend,
        listening(services.clusters_service(SCENARIO, now=NOW)) as cs,
    ):
        urls = {System.FRONTEND: f"http://127.0.0.1:{frontend}", System.CLUSTERS_SERVICE: f"http://127.0.0.1:{cs}"}
        found = await walked(HcpAccess(urls={**urls, system: bad}), tmp_path)
    await runner.cleanup()
    hop = {System.FRONTEND: "frontend", System.CLUSTERS_SERVICE: "clusters-service", System.MAESTRO: "maestro"}[system]
    # Without Clusters Service there is no id to ask Maestro for.
    assert found.hop(hop).state is HopState.UNKNOWN
    assert words in found.hop(hop).reason
    assert HopState.BAD not in {each.state for each in found.hops}


async def test_old_clusters_service_is_supported(tmp_path: Path) -> None:
    """Only the old root, and no search by resource name."""
    found_cluster = documents.cs_cluster(SCENARIO, now=NOW)
    asked: list[str] = []

    async def clusters(request: web.Request) -> web.Response:
        search = request.query["search"]
        asked.append(search)
        if "resource_name" in search:
            return web.json_response({"kind": "Error", "reason": "unknown field"}, status=400)
        other = {**found_cluster, "id": "0" * 32, "azure": {**found_cluster["azure"], "resource_name": "other"}}
        return web.json_response({"kind": "ClusterList", "total": 2, "items": [other, found_cluster]})

    app = web.Application()
    app.router.add_get("/api/clusters_mgmt/v1/clusters", clusters)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    found = await walked(HcpAccess(urls={System.CLUSTERS_SERVICE: url}), tmp_path)
    await runner.cleanup()
    assert found.context.known.cid == documents.CID
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("token", "words"),
    [
        pytest.param("", "is it the management cluster?", id="kinds-not-installed"),
        pytest.param("stranger", "does not let us read", id="no-rights"),
        pytest.param("wrong", "cluster", id="not-logged-in"),
    ],
)
async def test_forbidden_management_cluster_is_unknown(token: str, words: str, tmp_path: Path) -> None:
    async with SandboxCluster(controllers=False) as cluster:
        cluster.add_token("stranger", "stranger")
        path = tmp_path / "mgmt"
        cluster.write_kubeconfig(path, token=token or None)
        async with listening(services.clusters_service(SCENARIO, now=NOW)) as cs:
            urls = {System.CLUSTERS_SERVICE: f"http://127.0.0.1:{cs}"}
            found = await walked(HcpAccess(urls=urls, mgmt_kubeconfig=str(path)), tmp_path)
    for hop in ("works", "hosted-cluster", "managed-cluster"):
        assert found.hop(hop).state is HopState.UNKNOWN
        assert words in found.hop(hop).reason
    assert found.verdict.code == "HCP-001"
    assert any(
        "is it the right management cluster?" in contradiction.says for contradiction in found.verdict.contradictions
    )


async def test_operation_is_queried_in_its_region(tmp_path: Path) -> None:
    asked: list[str] = []

    async def result(request: web.Request) -> web.Response:
        asked.append(request.path)
        if "hcpOperationStatuses" in request.path:
            told = {"id": request.path, "name": "op-1", "status": "Failed", "error": {"message": "no quota"}}
            return web.json_response(told)
        return web.json_response(documents.arm_cluster(SCENARIO, now=NOW))

    app = web.Application()
    app.router.add_get("/{path:.*}", result)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    known = replace(identity.parse(documents.ARM_ID), operation="op-1")
    access = HcpAccess(urls={System.FRONTEND: url})
    async with hcp_live.LiveSystems(
        access, location=cluster_selection.KubeconfigLocation(environ={}, home=tmp_path)
    ) as live:
        found = await walk.run(known, runner=live, snapshot=Snapshot(now=datetime(2026, 8, 20, tzinfo=UTC)))
    await runner.cleanup()
    assert asked[-1].endswith("/locations/westus3/hcpOperationStatuses/op-1")
    assert "op-1 Failed no quota" in {fact.value for fact in found.hop("frontend").facts}
