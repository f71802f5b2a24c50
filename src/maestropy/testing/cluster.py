"""Read and change a cluster in a test: check the objects an agent applied, set a status as an operator would."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from maestropy.aio.clock import Clock
from maestropy.kube import errors, request
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as config
from maestropy.kube.discovery import Discovery
from maestropy.sdk._manifests import sources
from maestropy.testing.loop import LoopThread

Result = TypeVar("Result")

_PAUSE_SECONDS = 0.02


class Cluster:
    """One cluster of a fleet, with blocking calls."""

    def __init__(self, client: KubeClient, *, loop: LoopThread, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        """For kubectl and other clients."""
        self._client = client
        self._loop = loop
        self._discovery = Discovery(client, monotonic=Clock().monotonic, seconds_between_reads=0)

    def get(self, api_version: str, kind: str, name: str, *, namespace: str = "") -> dict[str, Any] | None:
        """Return an object; None if it does not exist.

        >>> cluster.get("v1", "ConfigMap", "hello", namespace="default")["data"]
        """
        return self._loop.call(self._get(api_version, kind, name, namespace))

    def wait_for(
        self, api_version: str, kind: str, name: str, *, namespace: str = "", seconds: float = 60
    ) -> dict[str, Any]:
        """Wait for an object and return it."""
        return self._until(lambda: self.get(api_version, kind, name, namespace=namespace), f"{kind} {name}", seconds)

    def wait_until_gone(
        self, api_version: str, kind: str, name: str, *, namespace: str = "", seconds: float = 60
    ) -> None:
        """Wait until an object is gone."""
        gone = lambda: self.get(api_version, kind, name, namespace=namespace) is None or None  # noqa: E731 - one use
        self._until(gone, f"the end of {kind} {name}", seconds)

    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create or change an object, with another field manager than the agent."""
        return self._loop.call(self._apply(manifest))

    def set_status(
        self, api_version: str, kind: str, name: str, *, status: Mapping[str, Any], namespace: str = ""
    ) -> dict[str, Any]:
        """Set the status of an object, as its operator would.

        >>> cluster.set_status("example.com/v1", "Widget", "w", namespace="default", status={"ready": True})
        """
        return self._loop.call(self._set_status(api_version, kind, name, namespace, status))

    def add_kind(self, api_version: str, kind: str, *, plural: str = "", namespaced: bool = True) -> None:
        """Create a CustomResourceDefinition that allows any spec and any status."""
        group, _, version = api_version.partition("/")
        names = {"kind": kind, "plural": plural or sources.plural(kind), "singular": kind.lower()}
        free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        served = {
            "name": version,
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}},
        }
        self.apply(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{names['plural']}.{group}"},
                "spec": {
                    "group": group,
                    "names": names,
                    "scope": "Namespaced" if namespaced else "Cluster",
                    "versions": [served],
                },
            }
        )
        self._until(lambda: self._loop.call(self._is_served(api_version, kind)), f"kind {kind}", 10)

    async def _get(self, api_version: str, kind: str, name: str, namespace: str) -> dict[str, Any] | None:
        try:
            resource = await self._discovery.resolve(api_version, kind)
            return dict(await self._client.get(resource, name, namespace=namespace if resource.namespaced else ""))
        except (errors.NotFound, errors.UnknownKind):
            return None

    async def _apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        resource = await self._discovery.resolve(str(manifest["apiVersion"]), str(manifest["kind"]))
        write = request.WriteOptions(field_manager="test", force=True)
        return dict(await self._client.apply(resource, manifest, write=write))

    async def _set_status(
        self, api_version: str, kind: str, name: str, namespace: str, status: Mapping[str, Any]
    ) -> dict[str, Any]:
        resource = await self._discovery.resolve(api_version, kind)
        return dict(
            await self._client.patch(
                resource,
                name,
                change=request.Patch(body={"status": status}),
                namespace=namespace,
                write=request.WriteOptions(subresource="status"),
            )
        )

    async def _is_served(self, api_version: str, kind: str) -> bool | None:
        try:
            await self._discovery.resolve(api_version, kind)
        except errors.UnknownKind:
            return None
        return True

    def _until(self, read: Callable[[], Result | None], description: str, seconds: float) -> Result:
        started = time.monotonic()
        while (result := read()) is None:
            if time.monotonic() - started > seconds:
                raise TimeoutError(f"waited {seconds:g} seconds for {description}")
            time.sleep(_PAUSE_SECONDS)
        return result


def client_for(kubeconfig: Path) -> KubeClient:
    """Return a client with the rights of the kubeconfig."""
    return KubeClient(config.from_kubeconfig([kubeconfig]), settings=ClientSettings(user_agent="test", qps=0))
