"""Run one agent on a cluster with a server in memory; every case of the agent suite uses this.

An environment has its own namespace, consumer and server address, so that many can share one cluster.
"""

import asyncio
import io
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

from maestropy.agent.controllers.reconcile_context import ReconcileIntervals
from maestropy.agent.decide import ownership
from maestropy.agent.runtime.wiring import Agent, AgentConfig, AgentDependencies
from maestropy.agent.state.applied_manifest_works import APPLIED_MANIFEST_WORKS
from maestropy.aio import clock as clocks
from maestropy.journal import emit
from maestropy.kube import errors
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config.address import ClusterAddress
from maestropy.kube.discovery import Discovery
from maestropy.kube.request import Patch, PatchType, ResourceType, WriteOptions
from maestropy.wire.works import resource_id, status, work
from tests.conformance.memory_server import MemoryServer

Json = dict[str, Any]
Value = TypeVar("Value")
TIMEOUT_SECONDS = 60.0
# Intervals of production, so that no case passes because of a short timer; only minutes are shortened.
INTERVALS = ReconcileIntervals(executor=timedelta(seconds=0.5), spec_arrival=timedelta(seconds=1))
_UNLIMITED = ClientSettings(qps=0)
_STATUS_LETTERS = {"True": "T", "False": "F", "Unknown": "U"}


class Cluster:
    """The cluster, used as its administrator."""

    def __init__(self, address: ClusterAddress) -> None:
        self.address = address
        # Not the agent's user agent, because the API server derives the field manager from it.
        self._client = KubeClient(address, settings=ClientSettings(user_agent="administrator", qps=0))
        self._discovery = Discovery(self._client, monotonic=clocks.Clock().monotonic, seconds_between_reads=0.0)

    async def __aenter__(self) -> "Cluster":
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__()

    async def get(self, manifest: Mapping[str, Any]) -> Json | None:
        """Return the live object of a manifest."""
        try:
            resource = await self._resource(manifest)
            return await self._client.get(resource, _name(manifest), namespace=_namespace(manifest))
        except (errors.NotFound, errors.UnknownKind):
            return None

    async def list(self, kind: Mapping[str, Any]) -> Sequence[Json]:
        return await self._client.list(await self._resource(kind), namespace=_namespace(kind))

    async def create(self, manifest: Mapping[str, Any]) -> Json:
        return await self._client.create(await self._resource(manifest), manifest)

    async def edit(self, manifest: Mapping[str, Any], patch: Mapping[str, Any], *, subresource: str = "") -> Json:
        """Change a live object by a merge patch."""
        resource = await self._resource(manifest)
        write = WriteOptions(subresource=subresource)
        change = Patch(type=PatchType.MERGE, body=patch)
        return await self._client.patch(
            resource, _name(manifest), change=change, namespace=_namespace(manifest), write=write
        )

    async def apply(self, manifest: Mapping[str, Any], *, manager: str, force: bool = False) -> Json:
        """Apply an object by server-side apply, as another field manager."""
        write = WriteOptions(field_manager=manager, force=force)
        return await self._client.apply(await self._resource(manifest), manifest, write=write)

    async def delete(self, manifest: Mapping[str, Any]) -> None:
        try:
            resource = await self._resource(manifest)
            await self._client.delete(resource, _name(manifest), namespace=_namespace(manifest))
        except (errors.NotFound, errors.UnknownKind):
            return

    async def create_applied_work(self, body: Json) -> Json:
        return await self._client.create(APPLIED_MANIFEST_WORKS, body)

    async def applied_works(self) -> Sequence[Json]:
        return await self._client.list(APPLIED_MANIFEST_WORKS)

    async def _resource(self, manifest: Mapping[str, Any]) -> ResourceType:
        return await self._discovery.resolve(manifest["apiVersion"], manifest["kind"])


class AgentEnvironment:
    """An agent, its server and its namespace."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespace: str,
        server: MemoryServer | None = None,
        client: ClientSettings = _UNLIMITED,
    ) -> None:
        self.cluster = cluster
        self._client = client
        self.namespace = namespace
        self.server = server or MemoryServer(f"{namespace}.test:8091", consumer=namespace)
        self._log = io.BytesIO()
        self._journal = emit.Journal(self._log, clock=clocks.Clock().epoch, verbosity=2)
        self.agent: Agent | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def log(self) -> str:
        """The log of the agent."""
        self._journal.flush()
        return self._log.getvalue().decode()

    async def start(self, intervals: ReconcileIntervals = INTERVALS, *, is_awaited: bool = True) -> None:
        """Start the agent and wait until it is ready."""
        ready: asyncio.Future[Agent] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(intervals, ready), name=f"agent of {self.namespace}")
        self.agent = await ready
        if is_awaited:
            await self.wait_until(self._is_ready, what="the agent to be ready")

    async def stop(self) -> None:
        """Kill the agent at any point."""
        task, self._task, self.agent = self._task, None, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def restart(self, intervals: ReconcileIntervals = INTERVALS) -> None:
        await self.stop()
        await self.start(intervals)

    def publish(self, name: str, *manifests: Any, labels: Mapping[str, str] | None = None, **spec: Any) -> str:
        """Create or update a work; return its resource ID."""
        return self.server.put(self.manifest_work(name, *manifests, labels=labels, **spec)).uid

    def manifest_work(
        self, name: str, *manifests: Any, labels: Mapping[str, str] | None = None, **spec: Any
    ) -> work.ManifestWork:
        uid = self.id_of(name)
        new_work = work.new(uid, namespace=self.server.consumer, manifests=manifests).with_metadata(uid=uid)
        return new_work.with_labels(labels or {}).with_spec(**spec)

    def id_of(self, name: str) -> str:
        return resource_id.resource_id("suite", namespace=self.server.consumer, name=name)

    def delete(self, name: str, *, has_version: bool = True) -> None:
        self.server.delete(self.id_of(name), has_version=has_version)

    def latest_status(self, name: str) -> work.ManifestWork | None:
        """Return the latest status of a work."""
        statuses = self.server.statuses.get(self.id_of(name))
        return statuses[-1] if statuses else None

    async def wait_for_status(
        self, name: str, predicate: Callable[[work.ManifestWork], bool], *, what: str, seconds: float = TIMEOUT_SECONDS
    ) -> work.ManifestWork:
        """Wait until the latest status of a work matches."""

        def matching() -> work.ManifestWork | None:
            newest = self.latest_status(name)
            return newest if newest is not None and predicate(newest) else None

        try:
            async with asyncio.timeout(seconds), self.server.changed:
                while (reported := matching()) is None:
                    self._fail_if_stopped()
                    await self.server.changed.wait()
                return reported
        except TimeoutError:
            newest = self.latest_status(name)
            raise AssertionError(
                f"no status with {what}; the latest is {newest and newest.generation}: {newest and newest.status.body}"
                f"\nLog of the agent:\n{self.log[-4000:]}"
            ) from None

    async def wait_for_conditions(
        self,
        name: str,
        *,
        applied: str | None = None,
        available: str | None = None,
        seconds: float = TIMEOUT_SECONDS,
        **conditions: str,
    ) -> work.ManifestWork:
        """Wait for conditions of the current generation, written as work and manifests: `F:TTF`."""
        requested = {status.APPLIED: applied, status.AVAILABLE: available, **conditions}
        expected = {kind: summary for kind, summary in requested.items() if summary is not None}
        generation = self.server.works[self.id_of(name)].generation

        def is_matching(reported: work.ManifestWork) -> bool:
            return reported.generation == generation and all(
                condition_summary(reported, kind) == summary for kind, summary in expected.items()
            )

        return await self.wait_for_status(
            name, is_matching, what=f"{expected} for generation {generation}", seconds=seconds
        )

    async def wait_until_applied(self, name: str) -> work.ManifestWork:
        """Wait until all manifests of a work are applied and available."""
        count = len(self.server.works[self.id_of(name)].manifests)
        return await self.wait_for_conditions(name, applied="T:" + "T" * count, available="T:" + "T" * count)

    async def wait_until_deleted(self, name: str, *, seconds: float = TIMEOUT_SECONDS) -> work.ManifestWork:
        reported = await self.wait_for_status(
            name, lambda reported: reported.status.is_deleted, what="Deleted", seconds=seconds
        )
        assert self.id_of(name) not in self.server.works
        return reported

    async def wait_until(
        self,
        predicate: Callable[[], Awaitable[Value | None]],
        *,
        what: str,
        seconds: float = TIMEOUT_SECONDS,
    ) -> Value:
        """Wait until the predicate returns a true value."""
        try:
            async with asyncio.timeout(seconds):
                while not (value := await predicate()):
                    self._fail_if_stopped()
                    await asyncio.sleep(0.02)
                return value
        except TimeoutError:
            raise AssertionError(f"not in time: {what}\nLog of the agent:\n{self.log[-4000:]}") from None

    async def wait_for_object(self, manifest: Mapping[str, Any], **expected: Any) -> Json:
        """Wait until an object exists with these values, each under its path with `__` for a dot."""

        async def matching() -> Json | None:
            live = await self.cluster.get(manifest)
            is_matching = live is not None and all(
                at(live, path.split("__")) == value for path, value in expected.items()
            )
            return live if is_matching else None

        return await self.wait_until(matching, what=f"{manifest['kind']} {_name(manifest)} with {expected}")

    async def wait_until_gone(self, *manifests: Mapping[str, Any]) -> None:
        """Wait until none of these objects exists."""
        for manifest in manifests:

            async def is_gone(manifest: Mapping[str, Any] = manifest) -> bool:
                return await self.cluster.get(manifest) is None

            await self.wait_until(is_gone, what=f"{manifest['kind']} {_name(manifest)} to go")

    def applied_work_name(self, name: str) -> str:
        return ownership.applied_work_name(ownership.hub_hash(self.server.address), self.id_of(name))

    def applied_work_ref(self, name: str) -> Json:
        return {
            "apiVersion": work.API_VERSION,
            "kind": ownership.KIND,
            "metadata": {"name": self.applied_work_name(name)},
        }

    async def applied_work(self, name: str) -> Json | None:
        return await self.cluster.get(self.applied_work_ref(name))

    async def applied_resources(self, name: str) -> list[str]:
        """Return the applied resources of a work's AppliedManifestWork, as `resource/name`."""
        record = await self.applied_work(name) or {}
        return [
            f"{resource['resource']}/{resource['name']}"
            for resource in (record.get("status") or {}).get("appliedResources") or ()
        ]

    async def wait_for_applied_resources(self, name: str, *entries: str) -> None:
        async def is_listed() -> bool:
            return await self.applied_resources(name) == [*entries]

        await self.wait_until(is_listed, what=f"the AppliedManifestWork of {name} to list {entries}")

    async def wait_until_idle(self, *, has_server: bool = True) -> None:
        """Wait until the agent is idle; what it has not done by then it will not do."""
        assert self.agent is not None
        agent = self.agent
        idle_checks = 0
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while idle_checks < 5:
                await asyncio.sleep(0.02)
                is_idle = not agent.pending_count and not (has_server and agent.connection.waiting)
                idle_checks = idle_checks + 1 if is_idle else 0

    async def cancel_retries(self) -> None:
        """Cancel all scheduled retries and resyncs of the agent."""
        assert self.agent is not None
        await self.wait_until_idle()
        # There is no other way to simulate a wait of an hour.
        queue = self.agent._queue
        while queue._timers:
            queue._timers.popitem()[1].cancel()

    async def _is_ready(self) -> bool:
        return self.agent is not None and self.agent.is_ready

    async def _run(self, intervals: ReconcileIntervals, ready: "asyncio.Future[Agent]") -> None:
        try:
            async with KubeClient(self.cluster.address, settings=self._client) as client:
                dependencies = AgentDependencies(
                    client=client,
                    transport=self.server,
                    journal=self._journal,
                    jitter=random.random,
                    clock=clocks.Clock(),
                    new_id=clocks.new_id,
                )
                agent_config = AgentConfig(
                    consumer=self.server.consumer, client_id=f"{self.namespace}-work-agent", intervals=intervals
                )
                agent = Agent(dependencies, agent_config)
                ready.set_result(agent)
                await agent.run()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
            raise
        finally:
            async with self.server.changed:
                self.server.changed.notify_all()

    def _fail_if_stopped(self) -> None:
        if self._task is not None and self._task.done():
            error = self._task.exception()
            raise AssertionError(f"the agent failed: {error!r}\n{self.log[-4000:]}") from error


@asynccontextmanager
async def agent_environment(cluster: Cluster, namespace: str) -> AsyncIterator[AgentEnvironment]:
    """Run an environment in a new namespace; both end with the block."""
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    env = AgentEnvironment(cluster, namespace=namespace)

    async def has_account() -> bool:
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": namespace},
        }
        return await cluster.get(account) is not None

    # Without it the namespace accepts no Pods.
    await env.wait_until(has_account, what="the service account of the namespace")
    try:
        await env.start()
        yield env
        env._fail_if_stopped()
    finally:
        await env.stop()
        await cluster.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})


def condition_summary(reported: work.ManifestWork, kind: str) -> str:
    """Return a condition of the work and of its manifests as `T:TF`; `-` where there is none."""
    return f"{_status_letter(reported.status.conditions, kind)}:" + "".join(
        _status_letter(entry.conditions, kind) for entry in reported.status.manifests
    )


def condition(reported: work.ManifestWork | status.ManifestStatus, kind: str) -> status.Condition:
    """Return one condition of a work or of a manifest."""
    conditions = reported.status.conditions if isinstance(reported, work.ManifestWork) else reported.conditions
    (matching,) = [entry for entry in conditions if entry.type == kind]
    return matching


def values(reported: work.ManifestWork, ordinal: int = 0) -> dict[str, Any]:
    """Return the feedback values of one manifest by name, in their order."""
    return {value.name: value.value for value in reported.status.manifests[ordinal].feedback}


def at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def owners(live: Json) -> list[Json]:
    references: list[Json] = live["metadata"].get("ownerReferences") or []
    return references


def _status_letter(conditions: Sequence[status.Condition], kind: str) -> str:
    return next((_STATUS_LETTERS[entry.status] for entry in conditions if entry.type == kind), "-")


def _name(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"]["name"])


def _namespace(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"].get("namespace", ""))
