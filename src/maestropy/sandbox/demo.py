"""The main job from end to end, told step by step.

Real parts: PostgreSQL, a server process, gRPC and REST, an agent, and a Kubernetes API (the sandbox's). All of it
lives in a temporary directory and is gone afterwards.
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
from maestropy.kube import config
from maestropy.kube.client import KubeClient
from maestropy.kube.request import ResourceType
from maestropy.sandbox.cluster_agent import agent_on
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sandbox.postgres import EmbeddedPostgres
from maestropy.sandbox.process import ServerProcess
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import MaestroError
from maestropy.sdk.work import Work
from maestropy.sdk.works import AsyncWorks

_CONSUMER = "cluster1"
_DEPLOYMENTS = ResourceType(group="apps", version="v1", plural="deployments", kind="Deployment", namespaced=True)
_PATIENCE_SECONDS = 20.0


@dataclass
class _Story:
    """Says what happens, and how long it took."""

    console: Console = field(default_factory=lambda: Console(highlight=False, soft_wrap=True))

    def say(self, text: str) -> None:
        self.console.print(f"    {text}", style="dim")

    @asynccontextmanager
    async def step(self, text: str) -> AsyncIterator[None]:
        started = time.perf_counter()
        yield
        self.console.print(f"[green]✓[/green] {text} [dim]({time.perf_counter() - started:.2f} s)[/dim]")


async def run() -> None:
    """Tell the story."""
    story = _Story()
    with tempfile.TemporaryDirectory(prefix="maestro-demo-") as folder:
        async with AsyncExitStack() as stack:
            await _tell(story, Path(folder), stack)
    story.console.print("[bold]Everything above really happened; nothing is left behind.[/bold]")


async def _tell(story: _Story, folder: Path, stack: AsyncExitStack) -> None:
    log = stack.enter_context((folder / "agent.log").open("wb", buffering=0))
    async with story.step("a PostgreSQL of its own, from a Python package"):
        dsn = await stack.enter_async_context(EmbeddedPostgres(folder / "postgres", is_ephemeral=True))
    async with story.step("the server, a process of its own: REST, gRPC for sources, gRPC for agents"):
        server = await stack.enter_async_context(ServerProcess(dsn, log=folder / "server.log"))
    client = AsyncMaestro(
        environ={},
        api_url=f"http://127.0.0.1:{server.ports.rest}",
        grpc_url=f"127.0.0.1:{server.ports.sources}",
        source="demo",
    )
    await stack.enter_async_context(client)
    async with story.step(f"a Kubernetes API, and an agent on it that connects as {_CONSUMER}"):
        await client.consumers.create(_CONSUMER)
        cluster = await stack.enter_async_context(SandboxCluster())
        journal = Journal(log, clock=clocks.Clock().epoch, verbosity=2)
        broker = f"127.0.0.1:{server.ports.agents}"
        await stack.enter_async_context(
            agent_on(cluster.kubeconfig, consumer=_CONSUMER, broker=broker, journal=journal)
        )
    kube = await stack.enter_async_context(KubeClient(config.from_kubeconfig([cluster.kubeconfig])))
    works = client.works(_CONSUMER)
    await _tell_life(story, works, kube)
    await _tell_failures(story, works, server)


async def _tell_life(story: _Story, works: AsyncWorks, kube: KubeClient) -> None:
    async with story.step("a client asks for a Deployment; it is applied, runs, and its status is back"):
        await works.apply(_web(replicas=2))
        seen = await works.wait_for("web", lambda work: work.feedback("ready") == 2, timeout=_PATIENCE_SECONDS)
    story.say(f"version {seen.version}, {_conditions(seen)}, ready replicas: {seen.feedback('ready')}")
    async with story.step("an update to three replicas"):
        await works.apply(_web(replicas=3))
        seen = await works.wait_for("web", lambda work: work.feedback("ready") == 3, timeout=_PATIENCE_SECONDS)
    story.say(f"version {seen.version}, {_conditions(seen)}, ready replicas: {seen.feedback('ready')}")
    uid = (await kube.get(_DEPLOYMENTS, "web", namespace="default"))["metadata"]["uid"]
    async with story.step("somebody deletes the Deployment on the cluster; the agent puts it back"):
        await kube.delete(_DEPLOYMENTS, "web", namespace="default")
        await works.wait_for("web", lambda work: work.feedback("uid") not in (uid, None), timeout=_PATIENCE_SECONDS)


async def _tell_failures(story: _Story, works: AsyncWorks, server: ServerProcess) -> None:
    async with story.step(
        "a manifest of a kind the cluster does not have: the answer says so, its neighbour is applied"
    ):
        unknown = {
            "apiVersion": "example.com/v1",
            "kind": "Teapot",
            "metadata": {"name": "pot", "namespace": "default"},
        }
        await works.apply(Work("mixed").add([unknown, _config_map()]))
        seen = await works.wait_for(
            "mixed", lambda work: work.condition("Applied") is not None, timeout=_PATIENCE_SECONDS
        )
    for manifest in seen.manifests:
        applied = manifest.condition("Applied")
        story.say(f"{manifest.kind} {manifest.name}: {applied.message if applied else 'no answer'}")
    async with story.step("an update from an old version is refused"):
        reason = ""
        try:
            await works.patch("web", {"metadata": {"labels": {"late": "yes"}}}, version=1)
        except MaestroError as error:
            reason = str(error)
    story.say(reason)
    async with story.step("kill -9 of the server and a new one: client and agent come back by themselves"):
        await server.kill()
        await server.start()
        await works.apply(_web(replicas=1))
        await works.wait_for("web", lambda work: work.feedback("ready") == 1, timeout=_PATIENCE_SECONDS)
    async with story.step("deletion: asked for, carried out on the cluster, confirmed"):
        await works.delete("web", wait=True, timeout=_PATIENCE_SECONDS)
        await works.delete("mixed", wait=True, timeout=_PATIENCE_SECONDS)
    story.say(f"works left: {len([work async for work in works.list()])}")


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


def _conditions(seen: Work) -> str:
    return ", ".join(f"{each.type}={each.status}" for each in seen.conditions)
