"""Apply works directly on a Kubernetes API, for adapters that have a kubeconfig and no Maestro.

The only module of this package that needs a Kubernetes client. A ConfigMap of every work (`kubernetes_record`) is
written before its objects and completed after them, so the next run continues after a killed one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from maestropy.adapter.decide.ownership import DIGEST
from maestropy.adapter.transports import kubernetes_record
from maestropy.aio.clock import Clock
from maestropy.kube import errors as kube
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as config
from maestropy.kube.config.address import ClusterAddress
from maestropy.kube.discovery import Discovery
from maestropy.kube.request import DeleteOptions, ObjectSelector, Patch, ResourceType, WriteOptions
from maestropy.sdk import errors
from maestropy.sdk.work import Work
from maestropy.wire import timestamps

CONSUMER = "kubernetes"
"""The consumer name of the only cluster."""

_RECORDS = ResourceType(group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True)
_MANAGER = "maestro-adapter"
_PAUSE_SECONDS = 0.25

_MEANINGS: tuple[tuple[type[kube.KubeError], type[errors.MaestroError]], ...] = (
    (kube.BadConfig, errors.ConfigError),
    (kube.MalformedObject, errors.Invalid),
    (kube.UnknownKind, errors.Invalid),
    (kube.Timeout, errors.Timeout),
    (kube.Unreachable, errors.Unavailable),
    (kube.Unauthorized, errors.Unauthorized),
    (kube.Forbidden, errors.Forbidden),
    (kube.NotFound, errors.NotFound),
    (kube.AlreadyExists, errors.AlreadyExists),
    (kube.Conflict, errors.Conflict),
    (kube.Invalid, errors.Invalid),
    (kube.TooManyRequests, errors.Unavailable),
    (kube.ServerError, errors.Unavailable),
)


class KubeTransport:
    """The transport over one Kubernetes API; ConfigMaps of works are in `namespace`."""

    def __init__(self, client: KubeClient, *, namespace: str, clock: Clock | None = None) -> None:
        self._client = client
        self._namespace = namespace
        self._clock = clock or Clock()
        self._discovery = Discovery(client, monotonic=self._clock.monotonic)

    async def query(self, *, labels: Mapping[str, str], consumer: str, name: str) -> Sequence[Work]:
        """Return works by labels, or one by name; all of them are on this cluster, whatever the consumer is."""
        del consumer
        async with _translated("find works"):
            if name:
                try:
                    record = await self._client.get(
                        _RECORDS, kubernetes_record.name_of(name), namespace=self._namespace
                    )
                except kube.NotFound:
                    return []
                records: Sequence[Mapping[str, Any]] = [record]
            else:
                label_selector = ",".join(
                    f"{key}={value}" for key, value in {**labels, kubernetes_record.MARK: "true"}.items()
                )
                records = await self._client.list(
                    _RECORDS, namespace=self._namespace, selector=ObjectSelector(labels=label_selector)
                )
            works = [await self._read(record) for record in records]
        return [work for work in works if work is not None]

    async def create(self, work: Work, *, consumer: str) -> Work:
        """Write the ConfigMap, then the objects."""
        placed = _for(work, consumer)
        async with _translated(f"create work {work.name}"):
            unfinished = placed.with_annotations({DIGEST: None})
            record = kubernetes_record.record(unfinished, namespace=self._namespace, version=1)
            await self._client.create(_RECORDS, record)
            return await self._complete(placed, version=1, pruned=())

    async def patch(self, work: Work, *, consumer: str, patch: Mapping[str, Any], version: int) -> Work:
        """Replace the ConfigMap, apply the objects, and delete those that are no longer desired."""
        del patch  # the complete work is known, and objects are applied server-side
        placed = _for(work, consumer)
        async with _translated(f"update work {work.name}"):
            stored = await self._client.get(_RECORDS, kubernetes_record.name_of(work.name), namespace=self._namespace)
            stored_version = int((stored["metadata"].get("annotations") or {}).get(kubernetes_record.VERSION) or 0)
            if stored_version != version:
                raise errors.Conflict(f"version {version} is not the latest, the latest version: {stored_version}")
            content = kubernetes_record.content(stored)
            desired = [kubernetes_record.reference(manifest) for manifest in placed.manifest_work.manifests]
            pruned = [
                reference for reference in (*content["manifests"], *content["leaving"]) if reference not in desired
            ]
            record = kubernetes_record.record(
                placed.with_annotations({DIGEST: None}), namespace=self._namespace, version=version + 1, pruned=pruned
            )
            record["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
            await self._client.update(_RECORDS, record)
            return await self._complete(placed, version=version + 1, pruned=pruned)

    async def delete(self, name: str, *, consumer: str) -> None:
        """Mark the ConfigMap and delete the objects; a query that finds no object left deletes the ConfigMap."""
        del consumer
        async with _translated(f"delete work {name}"):
            moment = timestamps.from_datetime(self._clock.now()).rfc3339_seconds()
            mark = Patch(body={"metadata": {"annotations": {kubernetes_record.DELETING: moment}}})
            try:
                stored = await self._client.patch(
                    _RECORDS, kubernetes_record.name_of(name), change=mark, namespace=self._namespace
                )
            except kube.NotFound:
                return
            content = kubernetes_record.content(stored)
            for reference in reversed([*content["manifests"], *content["leaving"]]):
                await self._remove(reference)

    async def wait(
        self, *, labels: Mapping[str, str], until: Callable[[Sequence[Work]], bool], seconds: float
    ) -> Sequence[Work]:
        """Poll until the condition is true, or the time is over."""
        end = self._clock.monotonic() + seconds
        while True:
            works = await self.query(labels=labels, consumer="", name="")
            if until(works) or self._clock.monotonic() >= end:
                return works
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _complete(self, work: Work, *, version: int, pruned: Sequence[Mapping[str, Any]]) -> Work:
        for manifest in work.manifest_work.manifests:
            resource = await self._discovery.resolve(str(manifest.get("apiVersion")), str(manifest.get("kind")))
            await self._client.apply(resource, manifest, write=WriteOptions(field_manager=_MANAGER, force=True))
        for reference in pruned:
            await self._remove(reference)
        record = kubernetes_record.record(work, namespace=self._namespace, version=version)
        stored = await self._read(await self._client.update(_RECORDS, record))
        assert stored
        return stored

    async def _read(self, record: Mapping[str, Any]) -> Work | None:
        """Return the work of a ConfigMap; delete the ConfigMap of a deleting work that has no object left."""
        content = kubernetes_record.content(record)
        live = [await self._get(reference) for reference in content["manifests"]]
        work = kubernetes_record.work_of(record, live)
        if work.is_deleting and not any(live):
            await self._remove(record)
            return None
        return work

    async def _get(self, reference: Mapping[str, Any]) -> Mapping[str, Any] | None:
        try:
            resource = await self._discovery.resolve(reference["apiVersion"], reference["kind"])
            return await self._client.get(
                resource, reference["metadata"]["name"], namespace=reference["metadata"].get("namespace", "")
            )
        except (kube.NotFound, kube.UnknownKind):
            return None

    async def _remove(self, reference: Mapping[str, Any]) -> None:
        try:
            resource = await self._discovery.resolve(
                str(reference.get("apiVersion") or "v1"), str(reference.get("kind"))
            )
            await self._client.delete(
                resource,
                reference["metadata"]["name"],
                namespace=reference["metadata"].get("namespace", ""),
                deletion=DeleteOptions(propagation="Foreground"),
            )
        except (kube.NotFound, kube.UnknownKind):
            return


@asynccontextmanager
async def opened(kubeconfig: str, *, namespace: str = "", environ: Mapping[str, str]) -> AsyncIterator[KubeTransport]:
    """Connect to the cluster of a kubeconfig, or of the pod this runs in."""
    async with _translated("find a Kubernetes API"):
        address: ClusterAddress = config.locate(kubeconfig, environ=environ, home=Path.home())
    async with KubeClient(address, settings=ClientSettings(user_agent=_MANAGER)) as client:
        yield KubeTransport(client, namespace=namespace or address.namespace or "default")


def _for(work: Work, consumer: str) -> Work:
    return Work.wrap(work.manifest_work.with_metadata(namespace=consumer))


@asynccontextmanager
async def _translated(doing: str) -> AsyncIterator[None]:
    try:
        yield
    except kube.KubeError as error:
        kind = next(
            (sdk_error for kube_error, sdk_error in _MEANINGS if isinstance(error, kube_error)), errors.ServerError
        )
        raise kind(error.message, doing=doing) from error
