"""The main job from end to end, told step by step: a real PostgreSQL, a real server process, real gRPC and REST.

No cluster takes part: a few lines below answer the server as an agent would. Everything lives in a temporary
directory and is gone afterwards.
"""

import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from pymaestro.aio import clock as clocks
from pymaestro.sandbox.postgres import EmbeddedPostgres
from pymaestro.sandbox.process import ServerProcess
from pymaestro.transport.grpc_client import Endpoint, GrpcClient
from pymaestro.transport.status import Refused
from pymaestro.wire import codec, envelope, event, identity, instant, order, resync, work

_SOURCE = "demo"
_CONSUMER = "cluster1"
_CONFIG_MAP: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "greeting", "namespace": "default"},
    "data": {"hello": "world"},
}


@dataclass
class _Story:
    """Says what happens, and how long it took."""

    console: Console = field(default_factory=lambda: Console(highlight=False))

    def say(self, text: str) -> None:
        self.console.print(f"  {text}")

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
            async with story.step("a PostgreSQL of its own, from a Python package"):
                dsn = await stack.enter_async_context(EmbeddedPostgres(Path(folder) / "postgres"))
            async with story.step("the server: REST, gRPC for sources, gRPC for agents"):
                server = await stack.enter_async_context(ServerProcess(dsn, log=Path(folder) / "server.log"))
            story.say(
                f"REST http://127.0.0.1:{server.ports.rest}, sources 127.0.0.1:{server.ports.sources}, "
                f"agents 127.0.0.1:{server.ports.agents}"
            )
            await _tell(story, server)
    story.console.print("[bold]Everything above really happened; nothing is left behind.[/bold]")


async def _tell(story: _Story, server: ServerProcess) -> None:
    base = f"http://127.0.0.1:{server.ports.rest}/api/maestro/v1"
    rest = httpx.AsyncClient(base_url=base)
    wanted = _work(_CONFIG_MAP)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(rest)
        async with story.step(f"POST /consumers: the cluster {_CONSUMER} is known"):
            (await rest.post("/consumers", json={"name": _CONSUMER})).raise_for_status()
        source = GrpcClient(Endpoint(url=f"127.0.0.1:{server.ports.sources}"))
        async with (
            source,
            story.step("a client publishes a ManifestWork with one ConfigMap; the answer means: on disk"),
        ):
            await source.publish(_wish(wanted, event.Action.CREATE_REQUEST))
        async with story.step("kill -9 of the server, and a new one on the same database"):
            await server.kill()
            await server.start()
        source = await stack.enter_async_context(GrpcClient(Endpoint(url=f"127.0.0.1:{server.ports.sources}")))
        statuses = await stack.enter_async_context(source.subscribe(envelope.Subscription(source=_SOURCE)))
        async with _StandIn(server.ports.agents) as agent:
            await _tell_life(story, rest, source=source, statuses=statuses, agent=agent, wanted=wanted)


async def _tell_life(
    story: _Story,
    rest: httpx.AsyncClient,
    *,
    source: GrpcClient,
    statuses: AsyncIterator[event.Event],
    agent: "_StandIn",
    wanted: work.ManifestWork,
) -> None:
    async with story.step("an agent connects and asks what it lacks: the work arrives"):
        received = await agent.next_spec()
    story.say(f"{received.type.rpartition('.')[2]} of version {received.integer(event.RESOURCE_VERSION)}")
    async with story.step("the agent reports Applied; the subscribed client hears of it"):
        await agent.report(received, "Applied")
        seen = codec.work_from_status_event(await anext(statuses))
    story.say(f"{wanted.name}: {_conditions(seen)}")
    changed = _work(_CONFIG_MAP | {"data": {"hello": "again"}})
    async with story.step("an update becomes version 2 and is delivered"):
        await source.publish(_wish(changed, event.Action.UPDATE_REQUEST, version=1))
        received = await agent.next_spec()
    async with story.step("a second update from the old version is refused"):
        try:
            await source.publish(_wish(wanted, event.Action.UPDATE_REQUEST, version=1))
        except Refused as refused:
            reason = str(refused)
    story.say(reason)
    async with story.step("deletion: asked for, carried out by the agent, confirmed to the client"):
        await source.publish(_wish(changed, event.Action.DELETE_REQUEST))
        received = await agent.next_spec()
        await agent.report(received, "Deleted")
        seen = codec.work_from_status_event(await anext(statuses))
    story.say(f"{wanted.name}: {_conditions(seen)}")
    left = (await rest.get("/resource-bundles")).json()["total"]
    story.say(f"GET /resource-bundles: {left} left")


class _StandIn:
    """Answers the server as an agent would, without a cluster."""

    def __init__(self, port: int) -> None:
        self._client = GrpcClient(Endpoint(url=f"127.0.0.1:{port}"))
        self._stack = AsyncExitStack()
        self._events: AsyncIterator[event.Event] | None = None
        self._sequence = 0

    async def __aenter__(self) -> "_StandIn":
        await self._stack.enter_async_context(self._client)
        wanted = envelope.Subscription(cluster_name=_CONSUMER, data_type=event.MANIFEST_BUNDLES)
        self._events = await self._stack.enter_async_context(self._client.subscribe(wanted))
        await self._client.publish(self._event(event.SPEC_RESYNC_REQUEST, {}, resync.encode_versions({})))
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def next_spec(self) -> event.Event:
        assert self._events is not None
        async for received in self._events:
            if ".spec." in received.type:
                return received
        raise RuntimeError("the server ended the stream")

    async def report(self, spec: event.Event, condition: str) -> None:
        self._sequence = order.next_id(self._sequence, now_ms=round(clocks.Clock().epoch() * 1000))
        version = spec.integer(event.RESOURCE_VERSION)
        told = {"type": condition, "status": "True", "observedGeneration": version, "reason": "Demo", "message": ""}
        extensions: dict[str, event.Attribute] = {
            event.ORIGINAL_SOURCE: spec.source,
            event.RESOURCE_ID: spec.text(event.RESOURCE_ID),
            event.RESOURCE_VERSION: version,
            event.SEQUENCE_ID: str(self._sequence),
        }
        data = json.dumps({"conditions": [told]}).encode()
        await self._client.publish(self._event(event.STATUS_UPDATE, extensions, data))

    def _event(self, kind: str, extensions: dict[str, event.Attribute], data: bytes) -> event.Event:
        extensions = {event.ORIGINAL_SOURCE: "", event.CLUSTER_NAME: _CONSUMER} | extensions
        return event.Event(
            id=clocks.new_id(), source=f"{_CONSUMER}-agent", type=kind, time=_now(), extensions=extensions, data=data
        )


def _now() -> instant.Timestamp:
    return instant.from_datetime(clocks.Clock().now())


def _work(manifest: dict[str, Any]) -> work.ManifestWork:
    uid = identity.resource_id(_SOURCE, namespace=_CONSUMER, name="my-first-work")
    return work.new("my-first-work", namespace=_CONSUMER, manifests=[manifest]).with_metadata(uid=uid)


def _wish(wanted: work.ManifestWork, action: event.Action, *, version: int = 0) -> event.Event:
    stamp = codec.Stamp(id=clocks.new_id(), source=_SOURCE, time=_now())
    return codec.spec_event(wanted.with_metadata(generation=version), action=action, stamp=stamp)


def _conditions(seen: work.ManifestWork) -> str:
    return ", ".join(f"{each.type}={each.status}" for each in seen.status.conditions)
