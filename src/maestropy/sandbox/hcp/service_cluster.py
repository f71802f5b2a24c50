"""Run the service cluster of the practice fleet: a sandbox cluster whose pods can be reached by port-forwards.

An annotation of each pod leads its port to the local port of the simulated service.
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as config
from maestropy.kube.objects import Json
from maestropy.kube.request import ResourceType
from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sandbox.kubeapi.streams.targets import FORWARD

CONTEXT = "dev-westus3-svc-1"
_READY_SECONDS = 30.0
_NAMESPACES = ResourceType(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)
_SERVICES = ResourceType(group="", version="v1", plural="services", kind="Service", namespaced=True)
_PODS = ResourceType(group="", version="v1", plural="pods", kind="Pod", namespaced=True)


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
    async with SandboxCluster() as sandbox:
        kubeconfig = directory / "kubeconfig"
        assert sandbox.ca_file
        _write_kubeconfig(kubeconfig, url=sandbox.url, authority=sandbox.ca_file, token=sandbox.token)
        await _create(kubeconfig, services)
        yield kubeconfig


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
        "metadata": {
            "name": service.pod,
            "namespace": service.namespace,
            "labels": {"app": service.name},
            "annotations": {FORWARD: f"{service.port}={service.local_port}"},
        },
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
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content))
