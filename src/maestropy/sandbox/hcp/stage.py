"""Put the practice HCP on its stage: start everything, send the bundles, and play the operators that are not here."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import yaml
from starlette.types import ASGIApp

from maestropy.aio.clock import Clock
from maestropy.aio.tasks import Crew
from maestropy.kube import config, discovery, errors
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.request import Patch, ResourceType, Write
from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.fleet import Fleet, Wanted, fleet
from maestropy.sandbox.hcp import cast, services
from maestropy.sandbox.hcp.cast import Scenario
from maestropy.sdk.work import Work
from maestropy.transport.http_listener import HttpListener

_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.02
SOURCE = f"{cast.ENVIRONMENT}-0f5b9a5e-3a0d-4a51-8d0a-6b1f4d2f7c11"
"""The environment and the shard, as Clusters Service names itself to Maestro."""
_WORKS = {"hosted-cluster": cast.work, "managed-cluster": cast.managed_cluster}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where everything is."""

    resource_id: str
    frontend_url: str
    cs_url: str
    maestro_url: str
    kubeconfig: Path
    fleet: Fleet

    @property
    def arguments(self) -> list[str]:
        """The words after `maestro trace hcp` that walk along this HCP."""
        urls = ["--frontend-url", self.frontend_url, "--cs-url", self.cs_url, "--maestro-url", self.maestro_url]
        return [self.resource_id, *urls, "--mgmt-kubeconfig", str(self.kubeconfig)]


@asynccontextmanager
async def stage(folder: Path, scenario: Scenario) -> AsyncIterator[Stage]:
    """Run the practice fleet while entered, in the state of `scenario`."""
    # Undelivered: the cluster's agent is another consumer's, so nobody takes what is sent to this one.
    joined = cast.CONSUMER if scenario.is_delivered else "another-management-cluster"
    now = f"{Clock().now():%Y-%m-%dT%H:%M:%SZ}"
    async with fleet(Wanted(folder=folder, consumers=(joined,), source=SOURCE)) as running:
        kubeconfig = _renamed(running.kubeconfigs[joined], folder / "management.kubeconfig")
        await _fill(running, kubeconfig, scenario=scenario, now=now)
        async with (
            _served(services.frontend(scenario, now=now)) as frontend_url,
            _served(services.clusters_service(scenario, now=now)) as cs_url,
        ):
            yield Stage(
                resource_id=cast.ARM_ID,
                frontend_url=frontend_url,
                cs_url=cs_url,
                maestro_url=running.api_url,
                kubeconfig=kubeconfig,
                fleet=running,
            )


async def _fill(running: Fleet, kubeconfig: Path, *, scenario: Scenario, now: str) -> None:
    if not scenario.is_delivered:
        await running.client.consumers.create(cast.CONSUMER)
    works = running.client.works(cast.CONSUMER)
    async with KubeClient(config.from_kubeconfig([kubeconfig]), settings=ClientSettings(qps=0)) as client:
        players = _Players(client)
        await players.prepare()
        for name, manifest in _WORKS.items():
            work = Work(name, labels=cast.LABELS).add(manifest(), feedback={"status": ".status"})
            await works.create(work)
        if not scenario.is_delivered:
            return
        await players.play(scenario, now=now)
        await _until_told(running)
        if scenario.is_deleted:
            for name in _WORKS:
                await works.delete(name)
            await players.let_go()


class _Players:
    """Those who are not here: ACM's work agent and HyperShift's operator."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._kinds = discovery.Discovery(client, monotonic=Clock().monotonic, seconds_between_reads=0)

    async def prepare(self) -> None:
        """Make the kinds and namespaces."""
        for each in cast.definitions():
            await self._create(each)
        for name in ("local-cluster", cast.NAMESPACE, cast.CONTROL_PLANE):
            await self._create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def play(self, scenario: Scenario, *, now: str) -> None:
        """Do what the operators would do once the agent has applied the bundles."""
        work, managed = cast.work(), cast.managed_cluster()
        for each in (work, managed):
            await self._until_there(each)
        await self._write_status(work, cast.work_status(scenario, now=now))
        await self._write_status(managed, cast.managed_status(scenario, now=now))
        for each in (cast.hosted_cluster(), cast.node_pool(), *cast.pods(scenario)):
            await self._create(each)
        await self._write_status(cast.hosted_cluster(), cast.hosted_status(scenario, now=now))
        await self._write_status(cast.node_pool(), cast.node_pool_status(scenario, now=now))

    async def let_go(self) -> None:
        """Delete as ACM would: the HostedCluster stays, because its finalizer does."""
        await self._until_going(cast.work())
        await self._delete(cast.hosted_cluster())
        await self._delete(cast.node_pool())

    async def _create(self, manifest: Json) -> None:
        resource = await self._resolved(manifest)
        with suppress(errors.AlreadyExists):
            await self._client.create(resource, manifest)

    async def _delete(self, manifest: Json) -> None:
        resource = await self._resolved(manifest)
        name, namespace = manifest["metadata"]["name"], manifest["metadata"].get("namespace", "")
        await self._client.delete(resource, name, namespace=namespace)

    async def _write_status(self, manifest: Json, status: Json) -> None:
        resource = await self._resolved(manifest)
        name, namespace = manifest["metadata"]["name"], manifest["metadata"].get("namespace", "")
        change = Patch(body={"status": status})
        await self._client.patch(resource, name, change=change, namespace=namespace, write=Write(subresource="status"))

    async def _until_there(self, manifest: Json) -> None:
        await _until(lambda: self._get(manifest), what=f"{manifest['kind']} on the cluster")

    async def _until_going(self, manifest: Json) -> None:
        async def is_going() -> bool:
            found = await self._get(manifest)
            return found is None or bool(found["metadata"].get("deletionTimestamp"))

        await _until(is_going, what=f"the deletion of {manifest['kind']}")

    async def _get(self, manifest: Json) -> Json | None:
        resource = await self._resolved(manifest)
        try:
            name, namespace = manifest["metadata"]["name"], manifest["metadata"].get("namespace", "")
            return await self._client.get(resource, name, namespace=namespace)
        except errors.NotFound:
            return None

    async def _resolved(self, manifest: Json) -> ResourceType:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while True:
                try:
                    return await self._kinds.resolve(manifest["apiVersion"], manifest["kind"])
                except errors.UnknownKind:
                    await asyncio.sleep(_PAUSE_SECONDS)


async def _until_told(running: Fleet) -> None:
    """Wait until Maestro has been told what is inside the ManifestWork."""

    async def is_told() -> bool:
        found = await running.client.bundles.page()
        return "EtcdAvailable-Status" in str(found)

    await _until(is_told, what="the feedback in Maestro")


@asynccontextmanager
async def _served(app: ASGIApp) -> AsyncIterator[str]:
    listener, crew = HttpListener(app, host="127.0.0.1", port=0), Crew()
    serving = crew.start("practice-http", listener.serve(tls=None))
    try:
        yield f"http://127.0.0.1:{listener.port}"
    finally:
        listener.stop()
        await serving
        await crew.stop()


async def _until(condition: Callable[[], Awaitable[object]], *, what: str) -> None:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not await condition():  # noqa: ASYNC110 - the state is another process's; it can only be looked at
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError as error:
        raise SandboxError(f"{what} did not come within {_PATIENCE_SECONDS:g} s") from error


def _renamed(kubeconfig: Path, path: Path) -> Path:
    """Write the kubeconfig with its context named after the AKS cluster, as `az aks get-credentials` does."""
    content = yaml.safe_load(kubeconfig.read_text())
    content["contexts"][0]["name"] = content["current-context"] = cast.MANAGEMENT
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content))
    return path
