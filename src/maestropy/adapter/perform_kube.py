"""Works on a Kubernetes API directly, for adapters that have a kubeconfig and no Maestro.

The only module of the kit that knows a Kubernetes client; whoever does not use it need not have one. A record of every
work (`kuberecord`) is written before its objects and completed after them, so a run that is killed in between is taken
up by the next one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from maestropy.adapter import kuberecord
from maestropy.adapter.stamping import DIGEST
from maestropy.aio.clock import Clock
from maestropy.kube import config
from maestropy.kube import errors as kube
from maestropy.kube.address import ClusterAddress
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.discovery import Discovery
from maestropy.kube.request import Deletion, Patch, ResourceType, Selector, Write
from maestropy.sdk import errors
from maestropy.sdk.work import Work
from maestropy.wire import instant

CONSUMER = "kubernetes"
"""What the one cluster is called where a consumer is asked for."""

_RECORDS = ResourceType(group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True)
_MANAGER = "maestro-adapter"
_PAUSE_SECONDS = 0.25

_MEANINGS: tuple[tuple[type[kube.KubeError], type[errors.MaestroError]], ...] = (
    (kube.BadConfig, errors.ConfigError),
    (kube.Malformed, errors.Invalid),
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
    """The transport over one Kubernetes API; records live in `namespace`."""

    def __init__(self, client: KubeClient, *, namespace: str, clock: Clock | None = None) -> None:
        self._client = client
        self._namespace = namespace
        self._clock = clock or Clock()
        self._discovery = Discovery(client, monotonic=self._clock.monotonic)

    async def query(self, *, labels: Mapping[str, str], consumer: str, name: str) -> Sequence[Work]:
        """Return works by labels, or one by name; all of them are on this cluster, whatever the consumer."""
        del consumer
        async with _translated("find works"):
            if name:
                try:
                    record = await self._client.get(_RECORDS, kuberecord.name_of(name), namespace=self._namespace)
                except kube.NotFound:
                    return []
                found: Sequence[Mapping[str, Any]] = [record]
            else:
                wanted = ",".join(f"{key}={value}" for key, value in {**labels, kuberecord.MARK: "true"}.items())
                found = await self._client.list(_RECORDS, namespace=self._namespace, selector=Selector(labels=wanted))
            works = [await self._read(each) for each in found]
        return [each for each in works if each is not None]

    async def create(self, work: Work, *, consumer: str) -> Work:
        """Write the record, then the objects."""
        mine = _for(work, consumer)
        async with _translated(f"create work {work.name}"):
            unfinished = mine.with_annotations({DIGEST: None})
            record = kuberecord.record(unfinished, namespace=self._namespace, version=1)
            await self._client.create(_RECORDS, record)
            return await self._complete(mine, version=1, leaving=())

    async def patch(self, work: Work, *, consumer: str, patch: Mapping[str, Any], version: int) -> Work:
        """Write the record anew, then the objects, and remove those that are no longer wanted."""
        del patch  # what is wanted is known in full; objects are applied on the server's side
        mine = _for(work, consumer)
        async with _translated(f"update work {work.name}"):
            stored = await self._client.get(_RECORDS, kuberecord.name_of(work.name), namespace=self._namespace)
            known = int((stored["metadata"].get("annotations") or {}).get(kuberecord.VERSION) or 0)
            if known != version:
                raise errors.Conflict(f"version {version} is not the latest, the latest version: {known}")
            told = kuberecord.content(stored)
            wanted = [kuberecord.reference(each) for each in mine.manifest_work.manifests]
            leaving = [each for each in (*told["manifests"], *told["leaving"]) if each not in wanted]
            record = kuberecord.record(
                mine.with_annotations({DIGEST: None}), namespace=self._namespace, version=version + 1, leaving=leaving
            )
            record["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
            await self._client.update(_RECORDS, record)
            return await self._complete(mine, version=version + 1, leaving=leaving)

    async def delete(self, name: str, *, consumer: str) -> None:
        """Mark the record and delete the objects; the record goes when a query finds none of them left."""
        del consumer
        async with _translated(f"delete work {name}"):
            moment = instant.from_datetime(self._clock.now()).rfc3339_seconds()
            mark = Patch(body={"metadata": {"annotations": {kuberecord.DELETING: moment}}})
            try:
                stored = await self._client.patch(
                    _RECORDS, kuberecord.name_of(name), change=mark, namespace=self._namespace
                )
            except kube.NotFound:
                return
            told = kuberecord.content(stored)
            for each in reversed([*told["manifests"], *told["leaving"]]):
                await self._remove(each)

    async def wait(
        self, *, labels: Mapping[str, str], until: Callable[[Sequence[Work]], bool], seconds: float
    ) -> Sequence[Work]:
        """Look again and again until the works are as wanted."""
        end = self._clock.monotonic() + seconds
        while True:
            found = await self.query(labels=labels, consumer="", name="")
            if until(found) or self._clock.monotonic() >= end:
                return found
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _complete(self, work: Work, *, version: int, leaving: Sequence[Mapping[str, Any]]) -> Work:
        for each in work.manifest_work.manifests:
            resource = await self._discovery.resolve(str(each.get("apiVersion")), str(each.get("kind")))
            await self._client.apply(resource, each, write=Write(field_manager=_MANAGER, force=True))
        for each in leaving:
            await self._remove(each)
        record = kuberecord.record(work, namespace=self._namespace, version=version)
        found = await self._read(await self._client.update(_RECORDS, record))
        assert found
        return found

    async def _read(self, record: Mapping[str, Any]) -> Work | None:
        """Return a record as a work; one that was to go and has nothing left is removed and is none."""
        told = kuberecord.content(record)
        live = [await self._get(each) for each in told["manifests"]]
        found = kuberecord.work_of(record, live)
        if found.is_deleting and not any(live):
            await self._remove(record)
            return None
        return found

    async def _get(self, who: Mapping[str, Any]) -> Mapping[str, Any] | None:
        try:
            resource = await self._discovery.resolve(who["apiVersion"], who["kind"])
            return await self._client.get(
                resource, who["metadata"]["name"], namespace=who["metadata"].get("namespace", "")
            )
        except (kube.NotFound, kube.UnknownKind):
            return None

    async def _remove(self, who: Mapping[str, Any]) -> None:
        try:
            resource = await self._discovery.resolve(str(who.get("apiVersion") or "v1"), str(who.get("kind")))
            await self._client.delete(
                resource,
                who["metadata"]["name"],
                namespace=who["metadata"].get("namespace", ""),
                deletion=Deletion(propagation="Foreground"),
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
        kind = next((ours for theirs, ours in _MEANINGS if isinstance(error, theirs)), errors.ServerError)
        raise kind(error.message, doing=doing) from error
