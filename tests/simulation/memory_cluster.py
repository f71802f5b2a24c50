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
from simulation.virtual_loop import EPOCH
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from maestropy.agent import crds
from maestropy.aio.clock import Clock
from maestropy.aio.tasks import Crew
from maestropy.kube import errors
from maestropy.kube.address import ClusterAddress
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.request import Request
from maestropy.sandbox.kubeapi import crds as definitions
from maestropy.sandbox.kubeapi import discovery, kinds, seeds
from maestropy.sandbox.kubeapi.access import Access
from maestropy.sandbox.kubeapi.app import Api
from maestropy.sandbox.kubeapi.definitions import Definitions
from maestropy.sandbox.kubeapi.faults import Faults
from maestropy.sandbox.kubeapi.gc import Collector
from maestropy.sandbox.kubeapi.lists import Lists
from maestropy.sandbox.kubeapi.objects import Objects, Options
from maestropy.sandbox.kubeapi.store import Resource, Store, Stored
from maestropy.sandbox.kubeapi.verbs import Verbs

CONFIG_MAPS = ("", "configmaps")
_HISTORY = 200


class MemoryCluster:
    """One cluster; it outlives its agents."""

    def __init__(self, *, clock: Clock, new_id: Callable[[], str]) -> None:
        self.store = Store(history=_HISTORY)
        registry = kinds.Registry(_kinds())
        self.objects = Objects(store=self.store, registry=registry, now=clock.now, new_id=new_id)
        access, pages = Access(self.store, admin_token=""), Lists(self.store)
        verbs = Verbs(objects=self.objects, access=access, pages=pages, now=clock.now)
        self.faults = Faults(self._forget)
        self.api = Api(verbs=verbs, registry=registry, access=access, faults=self.faults)
        self._registry = registry
        self._pages = pages
        self._definitions, self._collector = Definitions(self.objects), Collector(self.objects)
        self.store.load(*_foundation())

    def start(self, crew: Crew) -> None:
        """Let the controllers of the cluster work."""
        crew.start("definitions", self._definitions.run())
        crew.start("collector", self._collector.run())

    def config_maps(self) -> dict[str, Stored]:
        """Return the objects that bundles of the simulation are made of, by name."""
        return {each.name: each for each in self.store.select(CONFIG_MAPS, "default")}

    def release(self, stored: Stored) -> None:
        """Take the finalizers off an object, as the controller does that put them there."""

        def change(obj: dict[str, Any]) -> dict[str, Any]:
            metadata = {key: value for key, value in obj["metadata"].items() if key != "finalizers"}
            return {**obj, "metadata": metadata}

        self.objects.amend(stored, change)

    def _forget(self) -> None:
        for kind in self._registry.stored():
            log = self.store.log(kind.resource)
            log.forget_all()
            log.forgotten = self.store.version + 1
            log.wake()
        self.store.version += 1
        self._pages.forget()


class MemoryKubeClient(KubeClient):
    """The client of an agent, with a wire that is played."""

    def __init__(self, cluster: MemoryCluster, *, clock: Clock, travel: Callable[[], Awaitable[None]]) -> None:
        super().__init__(ClusterAddress(server="http://simulated"), settings=ClientSettings(qps=0), clock=clock)
        self._cluster = cluster
        self._travel = travel
        """Takes its time, and raises `Unreachable` when the way is cut."""

    async def _attempt(self, wish: Request) -> Any:
        if wish.path in ("/api", "/apis"):
            await self._travel()
            await self._travel()
            return _catalogue(wish.path, dict(wish.headers).get("Accept", ""))
        response = await self._ask(wish)
        await self._travel()
        return orjson.loads(response.body)

    @asynccontextmanager
    async def stream(self, wish: Request, *, idle: float) -> AsyncIterator[AsyncIterator[bytes]]:
        response = await self._ask(wish)
        assert isinstance(response, StreamingResponse)
        body = response.body_iterator
        try:
            yield self._chunks(body)
        finally:
            await body.aclose()  # type: ignore[union-attr]  # it is a generator of ours

    async def _chunks(self, body: Any) -> AsyncIterator[bytes]:
        async for chunk in body:
            await self._travel()
            yield chunk

    async def _ask(self, wish: Request) -> Response:
        await self._travel()
        response = await self._cluster.api.answer(_http(wish))
        if response.status_code >= 300:
            after = response.headers.get("retry-after")
            raise errors.from_status(
                response.status_code, orjson.loads(response.body), retry_after=float(after) if after else None
            )
        return response


def _http(wish: Request) -> HttpRequest:
    path, _, query = wish.target.partition("?")
    headers = [("user-agent", "work-agent"), ("accept", "application/json")]
    given = {name.lower(): value for name, value in [*headers, *wish.headers]}
    scope = {
        "type": "http",
        "method": wish.method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "server": ("simulated", 80),
        "scheme": "http",
        "root_path": "",
    }
    body = wish.body or b""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return HttpRequest(scope, receive)


@functools.cache
def _kinds() -> tuple[kinds.Kind, ...]:
    """The kinds of a cluster on which an agent has been before."""
    return (*kinds.builtin(), *definitions.kinds_of(_records()))


@functools.cache
def _foundation() -> tuple[list[tuple[Resource, dict[str, Any]]], int]:
    """What every new cluster holds, made once: it takes as long as a short run."""
    store, ids = Store(history=_HISTORY), itertools.count()
    began = datetime.fromtimestamp(EPOCH, UTC)
    objects = Objects(
        store=store, registry=kinds.Registry(kinds.builtin()), now=lambda: began, new_id=lambda: f"uid-{next(ids)}"
    )
    served = Definitions(objects)
    seeds.plant(objects, with_node=False)
    # Reading it takes an agent longer than all it does in a simulation.
    definition = objects.registry.named("apiextensions.k8s.io", "CustomResourceDefinition")
    assert definition is not None
    objects.create(definition, "", _records(), Options(manager="administrator"))
    served.settle()
    return [(stored.resource, stored.obj) for stored in store.everything()], store.version


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
