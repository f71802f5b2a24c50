"""Run the demo: create, update, drift correction, failures and deletion of a work, step by step.

It starts PostgreSQL, a server process with gRPC and REST, a sandbox cluster and an agent in a temporary directory,
which is deleted afterwards.
"""

import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.kube.client import KubeClient
from maestropy.kube.config import load as config
from maestropy.kube.request import ResourceType
from maestropy.sandbox.cluster_agent import run_agent
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sandbox.postgres import EmbeddedPostgres
from maestropy.sandbox.server_process import ServerProcess
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import MaestroError
from maestropy.sdk.work import Work
from maestropy.sdk.works import AsyncWorks

_CONSUMER = "cluster1"
_DEPLOYMENTS = ResourceType(group="apps", version="v1", plural="deployments", kind="Deployment", namespaced=True)
_TIMEOUT_SECONDS = 20.0


@dataclass
class _Progress:
    """Prints each step and its duration."""

    console: Console = field(default_factory=lambda: Console(highlight=False, soft_wrap=True))

    def detail(self, text: str) -> None:
        self.console.print(f"    {text}", style="dim")

    @asynccontextmanager
    async def step(self, text: str) -> AsyncIterator[None]:
        started = time.perf_counter()
        yield
        self.console.print(f"[green]✓[/green] {text} [dim]({time.perf_counter() - started:.2f} s)[/dim]")


async def run() -> None:
    """Run all steps of the demo."""
    progress = _Progress()
    with tempfile.TemporaryDirectory(prefix="maestro-demo-") as folder:
        async with AsyncExitStack() as stack:
            await _run_steps(progress, Path(folder), stack)
    progress.console.print("[bold]All steps ran against real processes; all files are deleted.[/bold]")


async def _run_steps(progress: _Progress, folder: Path, stack: AsyncExitStack) -> None:
    log = stack.enter_context((folder / "agent.log").open("wb", buffering=0))
    async with progress.step("start PostgreSQL, from a Python package"):
        dsn = await stack.enter_async_context(EmbeddedPostgres(folder / "postgres", is_ephemeral=True))
    async with progress.step("start a server process: REST, gRPC for sources, gRPC for agents"):
        server = await stack.enter_async_context(ServerProcess(dsn, log=folder / "server.log"))
    client = AsyncMaestro(
        environ={},
        api_url=f"http://127.0.0.1:{server.ports.rest}",
        grpc_url=f"127.0.0.1:{server.ports.sources}",
        source="demo",
    )
    await stack.enter_async_context(client)
    async with progress.step(f"start a Kubernetes API and an agent that connects as consumer {_CONSUMER}"):
        await client.consumers.create(_CONSUMER)
        cluster = await stack.enter_async_context(SandboxCluster())
        journal = Journal(log, clock=clocks.Clock().epoch, verbosity=2)
        broker = f"127.0.0.1:{server.ports.agents}"
        await stack.enter_async_context(
            run_agent(cluster.kubeconfig, consumer=_CONSUMER, broker=broker, journal=journal)
        )
    kube = await stack.enter_async_context(KubeClient(config.from_kubeconfig([cluster.kubeconfig])))
    works = client.works(_CONSUMER)
    await _show_lifecycle(progress, works, kube)
    await _show_failures(progress, works, server)


async def _show_lifecycle(progress: _Progress, works: AsyncWorks, kube: KubeClient) -> None:
    async with progress.step("create a work with a Deployment: it is applied, becomes ready, its status is reported"):
        await works.apply(_web(replicas=2))
        web = await works.wait_for("web", lambda work: work.feedback("ready") == 2, timeout=_TIMEOUT_SECONDS)
    progress.detail(f"version {web.version}, {_conditions(web)}, ready replicas: {web.feedback('ready')}")
    async with progress.step("update the work to three replicas"):
        await works.apply(_web(replicas=3))
        web = await works.wait_for("web", lambda work: work.feedback("ready") == 3, timeout=_TIMEOUT_SECONDS)
    progress.detail(f"version {web.version}, {_conditions(web)}, ready replicas: {web.feedback('ready')}")
    uid = (await kube.get(_DEPLOYMENTS, "web", namespace="default"))["metadata"]["uid"]
    async with progress.step("delete the Deployment on the cluster: the agent creates it again"):
        await kube.delete(_DEPLOYMENTS, "web", namespace="default")
        await works.wait_for("web", lambda work: work.feedback("uid") not in (uid, None), timeout=_TIMEOUT_SECONDS)


async def _show_failures(progress: _Progress, works: AsyncWorks, server: ServerProcess) -> None:
    async with progress.step(
        "create a work with a manifest of an unknown kind: the status reports it, the other manifest is applied"
    ):
        unknown = {
            "apiVersion": "example.com/v1",
            "kind": "Teapot",
            "metadata": {"name": "pot", "namespace": "default"},
        }
        await works.apply(Work("mixed").add([unknown, _config_map()]))
        mixed = await works.wait_for(
            "mixed", lambda work: work.condition("Applied") is not None, timeout=_TIMEOUT_SECONDS
        )
    for manifest in mixed.manifests:
        applied = manifest.condition("Applied")
        progress.detail(f"{manifest.kind} {manifest.name}: {applied.message if applied else 'no condition'}")
    async with progress.step("update the work with an old resource version: the server rejects it"):
        reason = ""
        try:
            await works.patch("web", {"metadata": {"labels": {"late": "yes"}}}, version=1)
        except MaestroError as error:
            reason = str(error)
    progress.detail(reason)
    async with progress.step("kill -9 the server and start a new one: client and agent reconnect"):
        await server.kill()
        await server.start()
        await works.apply(_web(replicas=1))
        await works.wait_for("web", lambda work: work.feedback("ready") == 1, timeout=_TIMEOUT_SECONDS)
    async with progress.step("delete the works: the agent deletes the objects and confirms"):
        await works.delete("web", wait=True, timeout=_TIMEOUT_SECONDS)
        await works.delete("mixed", wait=True, timeout=_TIMEOUT_SECONDS)
    progress.detail(f"works left: {len([work async for work in works.list()])}")


def _web(*, replicas: int) -> Work:
    labels = {"app": "web"}
    deployment: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    }
    feedback = {"ready": ".status.readyReplicas", "uid": ".metadata.uid"}
    return Work("web").add(deployment, feedback=feedback, update_strategy="ServerSideApply")


def _config_map() -> dict[str, Any]:
    metadata = {"name": "greeting", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"hello": "world"}}


def _conditions(work: Work) -> str:
    return ", ".join(f"{condition.type}={condition.status}" for condition in work.conditions)
