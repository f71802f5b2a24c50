# ruff: noqa: E501 - documents of the API server are as long as they are
"""A simulated API server with pods of servers and agents: lists them and serves their logs, also while they grow."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import yaml
from aiohttp import web

from maestropy.kube.config.address import ClusterAddress, Credentials
from maestropy.trace.access.cluster import ClusterTarget
from maestropy.trace.access.pod_logs import ComponentPods
from tests.trace_request_logs import AGENT, SERVERS, LoggedRequest, lines_g4

LABELS = {**dict.fromkeys(SERVERS, "app=maestro"), AGENT: "app=maestro-agent"}


def stamped(line: str, at: float) -> bytes:
    """Return a line as the API server gives it with timestamps."""
    moment = datetime.fromtimestamp(at, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond * 1000:09d}Z {line}\n".encode()


@dataclass
class LogApi:
    """A small API server with pods that write."""

    written: dict[str, list[bytes]] = field(default_factory=dict)
    previous: dict[str, bytes] = field(default_factory=dict)
    requested: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    breaks: int = 0
    """How many connections are cut after their first lines."""
    denied: str = ""
    """A pod whose log may not be read."""
    broken: str = ""
    """A pod whose log request fails with an internal error."""
    endless: str = ""
    """A pod whose log has no end."""
    strange: list[object] = field(default_factory=list)
    """More items in the list of the servers' pods."""
    is_closing: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def write(self, logged: LoggedRequest) -> None:
        for pod, at, line in lines_g4(logged):
            self.written.setdefault(pod, []).append(stamped(line, at))
        self.changed.set()

    async def list_pods(self, request: web.Request) -> web.Response:
        label, namespace = request.query.get("labelSelector", ""), request.match_info["namespace"]
        home = "maestro" if label == "app=maestro" else "maestro-agent"
        names = [name for name in self.written if LABELS.get(name) == label] if namespace == home else []
        items = [
            {
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"containers": [{"name": "service"}], "nodeName": "node-1"},
                "status": {
                    "phase": "Running",
                    "containerStatuses": [{"name": "service", "image": "maestro:1", "restartCount": int(name in self.previous or name == SERVERS[1])}],
                },
            }
            for name in names
        ]  # fmt: skip
        items += self.strange if label == "app=maestro" and names else []  # type: ignore[arg-type]  # no pods, really
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})

    async def log(self, request: web.Request) -> web.StreamResponse:
        pod, query = request.match_info["pod"], dict(request.query)
        self.requested.append({"pod": pod, **query})
        if pod == self.denied:
            status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": f"pods {pod} is forbidden", "code": 403}  # fmt: skip
            return web.json_response(status, status=403)
        if pod == self.broken:
            return web.Response(status=500, text="\x1b[2Jinternal")
        if query.get("previous"):
            if pod in self.previous:
                return web.Response(body=self.previous[pod])
            status = {"kind": "Status", "status": "Failure", "message": f"previous terminated container service in {pod} not found", "code": 400}  # fmt: skip
            return web.json_response(status, status=400)
        response = web.StreamResponse()
        await response.prepare(request)
        while pod == self.endless and not self.is_closing:
            await response.write(b"x" * 65536)
        since = query.get("sinceTime", "").removesuffix("Z").encode()
        component = 0
        while True:
            for line in self.written[pod][component:]:
                # A second is as exact as it can be asked for.
                if line[:19] >= since:
                    await response.write(line)
                component += 1
            if not query.get("follow") or self.is_closing:
                return response
            if self.breaks and component:
                self.breaks -= 1
                return response
            self.changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), 0.2)

    def component(self, name: str) -> ComponentPods:
        address = ClusterAddress(server=self.url, credentials=Credentials())
        namespaces = ("maestro",) if name == "server" else ("maestro-agent", "maestro")
        return ComponentPods(name=name, target=ClusterTarget(label=name, address=address), namespaces=namespaces,
                     label="app=maestro" if name == "server" else "app=maestro-agent")  # fmt: skip


@contextlib.asynccontextmanager
async def serving(api: LogApi) -> AsyncIterator[None]:
    app = web.Application()
    app.router.add_get("/api/v1/namespaces/{namespace}/pods", api.list_pods)
    app.router.add_get("/api/v1/namespaces/{namespace}/pods/{pod}/log", api.log)
    runner = web.AppRunner(app, shutdown_timeout=5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield
    finally:
        api.is_closing = True
        api.changed.set()
        await runner.cleanup()


def kubeconfig(path: Path, api: LogApi) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "both",
        "clusters": [{"name": "c", "cluster": {"server": api.url}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "me"}} for name in ("svc", "mgmt", "both")],
        "users": [{"name": "me", "user": {}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path
