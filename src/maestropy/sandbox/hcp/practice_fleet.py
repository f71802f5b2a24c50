"""Start the practice fleet: create the works of the HCP, and write the statuses of the operators that do not run."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from starlette.types import ASGIApp

from maestropy.aio.clock import Clock
from maestropy.aio.tasks import TaskOwner
from maestropy.kube import discovery, errors
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as config
from maestropy.kube.objects import Json
from maestropy.kube.request import Patch, ResourceType, WriteOptions
from maestropy.sandbox.directory_lock import DirectoryLock
from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.fleet import Fleet, FleetOptions, fleet
from maestropy.sandbox.hcp import documents, services
from maestropy.sandbox.hcp.documents import Scenario
from maestropy.sandbox.hcp.service_cluster import ForwardedService, service_cluster
from maestropy.sdk.work import Work
from maestropy.transport.http.listener import HttpListener

_TIMEOUT_SECONDS = 30.0
_POLL_SECONDS = 0.02
SOURCE = f"{documents.ENVIRONMENT}-0f5b9a5e-3a0d-4a51-8d0a-6b1f4d2f7c11"
"""The source ID that Clusters Service uses with Maestro: environment and shard."""
_MARKER = ".maestro-practice"
_SERVICE_CLUSTER = "service-cluster"
_CONTENT = ("postgres", "clusters", _SERVICE_CLUSTER)
"""The directories that a practice fleet creates in its folder."""
_WORKS = {"hosted-cluster": documents.work, "managed-cluster": documents.managed_cluster}


@dataclass(frozen=True, slots=True, kw_only=True)
class PracticeFleet:
    """The addresses of a running practice fleet."""

    resource_id: str
    frontend_url: str
    cs_url: str
    maestro_url: str
    kubeconfig: Path
    """Of the management cluster."""
    service_kubeconfig: Path
    """Of the service cluster, whose services can be reached by port-forwards."""
    fleet: Fleet

    @property
    def arguments(self) -> list[str]:
        """The arguments of `maestro trace hcp` for this HCP, with port-forwards."""
        service = ["--svc-kubeconfig", str(self.service_kubeconfig)]
        return [self.resource_id, *service, "--mgmt-kubeconfig", str(self.kubeconfig)]

    @property
    def url_arguments(self) -> list[str]:
        """The arguments of `maestro trace hcp` for this HCP, with the addresses of the services."""
        urls = ["--frontend-url", self.frontend_url, "--cs-url", self.cs_url, "--maestro-url", self.maestro_url]
        return [self.resource_id, *urls, "--mgmt-kubeconfig", str(self.kubeconfig)]


@asynccontextmanager
async def practice_fleet(folder: Path, scenario: Scenario) -> AsyncIterator[PracticeFleet]:
    """Run the practice fleet while entered, in the state of `scenario`.

    A folder of an earlier practice fleet is used again, from the beginning: its database and clusters are removed.
    """
    _prepare(folder)
    # Undelivered: the agent is registered for another consumer, so no agent receives the works.
    consumer = documents.CONSUMER if scenario.is_delivered else "another-management-cluster"
    now = f"{Clock().now():%Y-%m-%dT%H:%M:%SZ}"
    async with fleet(FleetOptions(folder=folder, consumers=(consumer,), source=SOURCE)) as running:
        kubeconfig = _with_context_name(running.kubeconfigs[consumer], folder / "management.kubeconfig")
        await _set_up(running, kubeconfig, scenario=scenario, now=now)
        async with (
            _served(services.frontend(scenario, now=now)) as frontend_url,
            _served(services.clusters_service(scenario, now=now)) as cs_url,
            service_cluster(folder / _SERVICE_CLUSTER, _forwarded(frontend_url, cs_url, running.api_url)) as service,
        ):
            yield PracticeFleet(
                resource_id=documents.ARM_ID,
                frontend_url=frontend_url,
                cs_url=cs_url,
                maestro_url=running.api_url,
                kubeconfig=kubeconfig,
                service_kubeconfig=service,
                fleet=running,
            )


def _prepare(folder: Path) -> None:
    """Remove what an earlier practice fleet left in the folder; a folder with other content is rejected."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        marker = folder / _MARKER
        if not marker.exists() and any(folder.iterdir()):
            raise SandboxError(
                f"{folder} is not empty and not a folder of an earlier practice fleet; choose another --folder"
            )
        # Another practice fleet may be running in it.
        lock = DirectoryLock.take(folder)
        try:
            for name in _CONTENT:
                shutil.rmtree(folder / name, ignore_errors=True)
            for log in (*folder.glob("agent-*.log"), *folder.glob("*.kubeconfig"), folder / "server.log"):
                log.unlink(missing_ok=True)
            (folder / _SERVICE_CLUSTER).mkdir()
            marker.write_text("A folder of `maestro trace hcp practice`; its content is removed at the next start.\n")
        finally:
            lock.release()
    except OSError as error:
        raise SandboxError(f"{folder} cannot be used: {error.strerror}; choose another --folder") from error


def _forwarded(frontend_url: str, cs_url: str, maestro_url: str) -> tuple[ForwardedService, ...]:
    """Return the services of the service cluster, with the names and ports that they have in ARO HCP."""
    named = (
        ("aro-hcp", "aro-hcp-frontend", 8443, frontend_url),
        ("clusters-service", "clusters-service", 8000, cs_url),
        ("maestro", "maestro", 8000, maestro_url),
    )
    return tuple(
        ForwardedService(namespace=namespace, name=name, port=port, local_port=urlsplit(url).port or 0)
        for namespace, name, port, url in named
    )


async def _set_up(running: Fleet, kubeconfig: Path, *, scenario: Scenario, now: str) -> None:
    if not scenario.is_delivered:
        await running.client.consumers.create(documents.CONSUMER)
    works = running.client.works(documents.CONSUMER)
    async with KubeClient(config.from_kubeconfig([kubeconfig]), settings=ClientSettings(qps=0)) as client:
        operators = _OperatorStandIns(client)
        await operators.create_definitions_and_namespaces()
        for name, manifest in _WORKS.items():
            work = Work(name, labels=documents.LABELS).add(manifest(), feedback={"status": ".status"})
            await works.create(work)
        if not scenario.is_delivered:
            return
        await operators.write_statuses(scenario, now=now)
        await _until_feedback(running)
        if scenario.is_deleted:
            for name in _WORKS:
                await works.delete(name)
            await operators.delete_hosted_cluster()


class _OperatorStandIns:
    """Writes what ACM's work agent and HyperShift's operator would write."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._kinds = discovery.Discovery(client, monotonic=Clock().monotonic, seconds_between_reads=0)

    async def create_definitions_and_namespaces(self) -> None:
        """Create the CustomResourceDefinitions and namespaces."""
        for definition in documents.definitions():
            await self._create(definition)
        for name in ("local-cluster", documents.NAMESPACE, documents.CONTROL_PLANE):
            await self._create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def write_statuses(self, scenario: Scenario, *, now: str) -> None:
        """Create the objects and write the statuses of the operators, once the agent has applied the works."""
        work, managed = documents.work(), documents.managed_cluster()
        for manifest in (work, managed):
            await self._until_created(manifest)
        await self._write_status(work, documents.work_status(scenario, now=now))
        await self._write_status(managed, documents.managed_status(scenario, now=now))
        for manifest in (documents.hosted_cluster(), documents.node_pool(), *documents.pods(scenario)):
            await self._create(manifest)
        await self._write_status(documents.hosted_cluster(), documents.hosted_status(scenario, now=now))
        await self._write_status(documents.node_pool(), documents.node_pool_status(scenario, now=now))

    async def delete_hosted_cluster(self) -> None:
        """Delete the HostedCluster as ACM does; its finalizer keeps it in deletion."""
        await self._until_deleting(documents.work())
        await self._delete(documents.hosted_cluster())
        await self._delete(documents.node_pool())

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
        await self._client.patch(
            resource, name, change=change, namespace=namespace, write=WriteOptions(subresource="status")
        )

    async def _until_created(self, manifest: Json) -> None:
        await _until(lambda: self._get(manifest), subject=f"{manifest['kind']} on the cluster")

    async def _until_deleting(self, manifest: Json) -> None:
        async def is_deleting() -> bool:
            obj = await self._get(manifest)
            return obj is None or bool(obj["metadata"].get("deletionTimestamp"))

        await _until(is_deleting, subject=f"the deletion of {manifest['kind']}")

    async def _get(self, manifest: Json) -> Json | None:
        resource = await self._resolved(manifest)
        try:
            name, namespace = manifest["metadata"]["name"], manifest["metadata"].get("namespace", "")
            return await self._client.get(resource, name, namespace=namespace)
        except errors.NotFound:
            return None

    async def _resolved(self, manifest: Json) -> ResourceType:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while True:
                try:
                    return await self._kinds.resolve(manifest["apiVersion"], manifest["kind"])
                except errors.UnknownKind:
                    await asyncio.sleep(_POLL_SECONDS)


async def _until_feedback(running: Fleet) -> None:
    """Wait until Maestro has the status feedback of the ManifestWork."""

    async def has_feedback() -> bool:
        page = await running.client.resource_bundles.page()
        return "EtcdAvailable-Status" in str(page)

    await _until(has_feedback, subject="the feedback in Maestro")


@asynccontextmanager
async def _served(app: ASGIApp) -> AsyncIterator[str]:
    listener, task_owner = HttpListener(app, host="127.0.0.1", port=0), TaskOwner()
    serving = task_owner.start("practice-http", listener.serve(tls=None))
    try:
        yield f"http://127.0.0.1:{listener.port}"
    finally:
        listener.stop()
        await serving
        await task_owner.stop()


async def _until(condition: Callable[[], Awaitable[object]], *, subject: str) -> None:
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while not await condition():  # noqa: ASYNC110 - the state of another process can only be polled
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        raise SandboxError(f"timed out after {_TIMEOUT_SECONDS:g} s waiting for {subject}") from error


def _with_context_name(kubeconfig: Path, path: Path) -> Path:
    """Write the kubeconfig with its context named after the AKS cluster, as `az aks get-credentials` does."""
    content = yaml.safe_load(kubeconfig.read_text())
    content["contexts"][0]["name"] = content["current-context"] = documents.MANAGEMENT
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content))
    return path
