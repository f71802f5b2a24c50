"""A Kubernetes cluster without HTTP: the sandbox's API, asked directly.

Real: `maestropy.sandbox.kubeapi` (objects, versions, watches, server-side apply, garbage collection), and for the agent
the requests, errors, retries, discovery and watches of `maestropy.kube`. Played: the connection between the two, which
takes time and can be cut; a request that is cut may have been carried out.
"""

import functools
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import orjson
import yaml
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from maestropy.agent import crds
from maestropy.aio.clock import Clock
from maestropy.aio.tasks import TaskOwner
from maestropy.kube import errors
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config.address import ClusterAddress
from maestropy.kube.request import ApiRequest
from maestropy.sandbox.kubeapi import initial_objects
from maestropy.sandbox.kubeapi.access.authorizer import AccessControl
from maestropy.sandbox.kubeapi.controllers.custom_resource_definitions import CrdController
from maestropy.sandbox.kubeapi.controllers.garbage_collector import GarbageCollector
from maestropy.sandbox.kubeapi.faults import Faults
from maestropy.sandbox.kubeapi.http import discovery
from maestropy.sandbox.kubeapi.http.app import ApiServer
from maestropy.sandbox.kubeapi.http.handlers import RequestHandlers
from maestropy.sandbox.kubeapi.objects import Objects, ObjectWriteOptions
from maestropy.sandbox.kubeapi.schemas import crd_kinds as definitions
from maestropy.sandbox.kubeapi.schemas import kinds
from maestropy.sandbox.kubeapi.storage.lists import ListReader
from maestropy.sandbox.kubeapi.storage.store import ObjectStore, Resource, StoredObject
from tests.simulation.virtual_loop import EPOCH

CONFIG_MAPS = ("", "configmaps")
APPLIED_MANIFEST_WORKS = ("work.open-cluster-management.io", "appliedmanifestworks")
_HISTORY = 200


class MemoryCluster:
    """One cluster; it outlives its agents."""

    def __init__(self, *, clock: Clock, new_id: Callable[[], str]) -> None:
        self.store = ObjectStore(history=_HISTORY)
        registry = kinds.Registry(_kinds())
        self.objects = Objects(store=self.store, registry=registry, now=clock.now, new_id=new_id)
        access, lists = AccessControl(self.store, admin_token=""), ListReader(self.store)
        handlers = RequestHandlers(objects=self.objects, access=access, list_reader=lists, now=clock.now)
        self.faults = Faults(self._forget)
        self.api = ApiServer(handlers=handlers, registry=registry, access=access, faults=self.faults)
        self._registry = registry
        self._lists = lists
        self._definitions, self._collector = CrdController(self.objects), GarbageCollector(self.objects)
        self.store.load(*_foundation())

    def start(self, task_owner: TaskOwner) -> None:
        """Let the controllers of the cluster work."""
        task_owner.start("definitions", self._definitions.run())
        task_owner.start("collector", self._collector.run())

    def config_maps(self) -> dict[str, StoredObject]:
        """Return the objects that bundles of the simulation are made of, by name."""
        return {each.name: each for each in self.store.select(CONFIG_MAPS, "default")}

    def release(self, stored: StoredObject) -> None:
        """Take the finalizers off an object, as the controller does that put them there."""

        def change(obj: dict[str, Any]) -> dict[str, Any]:
            metadata = {key: value for key, value in obj["metadata"].items() if key != "finalizers"}
            return {**obj, "metadata": metadata}

        self.objects.guaranteed_update(stored, change)

    def _forget(self) -> None:
        for kind in self._registry.stored():
            cache = self.store.watch_cache(kind.resource)
            cache.compact()
            cache.compacted_version = self.store.version + 1
            cache.wake()
        self.store.version += 1
        self._lists.expire_continue_tokens()


class MemoryKubeClient(KubeClient):
    """The client of an agent, with a wire that is played."""

    def __init__(self, cluster: MemoryCluster, *, clock: Clock, travel: Callable[[], Awaitable[None]]) -> None:
        super().__init__(ClusterAddress(server="http://simulated"), settings=ClientSettings(qps=0), clock=clock)
        self._cluster = cluster
        self._travel = travel
        """Takes its time, and raises `Unreachable` when the way is cut."""

    async def _attempt(self, api_request: ApiRequest) -> Any:
        if api_request.path in ("/api", "/apis"):
            await self._travel()
            await self._travel()
            return _catalogue(api_request.path, dict(api_request.headers).get("Accept", ""))
        response = await self._ask(api_request)
        await self._travel()
        return orjson.loads(response.body)

    @asynccontextmanager
    async def stream(self, api_request: ApiRequest, *, idle: float) -> AsyncIterator[AsyncIterator[bytes]]:
        response = await self._ask(api_request)
        assert isinstance(response, StreamingResponse)
        body = response.body_iterator
        try:
            yield self._chunks(body)
        finally:
            await body.aclose()  # type: ignore[attr-defined]  # it is a generator of ours

    async def _chunks(self, body: Any) -> AsyncIterator[bytes]:
        async for chunk in body:
            await self._travel()
            yield chunk

    async def _ask(self, api_request: ApiRequest) -> Response:
        await self._travel()
        response = await self._cluster.api.respond(_http(api_request))
        if response.status_code >= 300:
            after = response.headers.get("retry-after")
            raise errors.from_status(
                response.status_code, orjson.loads(response.body), retry_after=float(after) if after else None
            )
        return response


def _http(api_request: ApiRequest) -> HttpRequest:
    path, _, query = api_request.target.partition("?")
    headers = [("user-agent", "work-agent"), ("accept", "application/json")]
    given = {name.lower(): value for name, value in [*headers, *api_request.headers]}
    scope = {
        "type": "http",
        "method": api_request.method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "server": ("simulated", 80),
        "scheme": "http",
        "root_path": "",
    }
    body = api_request.body or b""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return HttpRequest(scope, receive)


@functools.cache
def _kinds() -> tuple[kinds.ServedKind, ...]:
    """The kinds of a cluster on which an agent has been before."""
    return (*kinds.builtin(), *definitions.kinds_of(_records()))


@functools.cache
def _foundation() -> tuple[list[tuple[Resource, dict[str, Any]]], int]:
    """What every new cluster holds, made once: it takes as long as a short run."""
    store, ids = ObjectStore(history=_HISTORY), itertools.count()
    began = datetime.fromtimestamp(EPOCH, UTC)
    objects = Objects(
        store=store, registry=kinds.Registry(kinds.builtin()), now=lambda: began, new_id=lambda: f"uid-{next(ids)}"
    )
    served = CrdController(objects)
    initial_objects.create_missing(objects, with_node=False)
    # Reading it takes an agent longer than all it does in a simulation.
    definition = objects.registry.named("apiextensions.k8s.io", "CustomResourceDefinition")
    assert definition is not None
    objects.create(definition, "", _records(), ObjectWriteOptions(manager="administrator"))
    served.process_pending()
    return [(stored.resource, stored.obj) for stored in store.all_objects()], store.version


@functools.cache
def _catalogue(path: str, accept: str) -> Any:
    """What the clusters serve, which never changes here, as an answer to the agent."""
    assert discovery.AGGREGATED in accept
    return discovery.aggregated(kinds.Registry(_kinds()), core=path == "/api", api="v2")


@functools.cache
def _records() -> dict[str, Any]:
    """The definition of AppliedManifestWorks."""
    found: dict[str, Any] = yaml.safe_load((resources.files(crds) / "appliedmanifestworks.yaml").read_text())
    return found
