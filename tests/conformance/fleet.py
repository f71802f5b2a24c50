"""One agent on one cluster with one server in memory: what every case of the suite is written against.

A fleet has a namespace, a consumer and a server address of its own, so that many can live on one cluster.
"""

import asyncio
import io
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

from conformance.memory_server import MemoryServer

from maestropy.agent.agent import Agent, Character, Surroundings
from maestropy.agent.decide import ownership
from maestropy.agent.records import RECORDS
from maestropy.agent.turn import Rhythm
from maestropy.aio import clock as clocks
from maestropy.journal import emit
from maestropy.kube import errors
from maestropy.kube.address import ClusterAddress
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.discovery import Discovery
from maestropy.kube.request import Patch, PatchType, ResourceType, Write
from maestropy.wire import identity, status, work

Json = dict[str, Any]
Found = TypeVar("Found")
PATIENCE_SECONDS = 60.0
# As it is in production, so that nothing passes because of a short timer; only what would take minutes is shortened.
RHYTHM = Rhythm(executor=timedelta(seconds=0.5), arrival=timedelta(seconds=1))
_UNHURRIED = ClientSettings(qps=0)
_LETTERS = {"True": "T", "False": "F", "Unknown": "U"}


class Cluster:
    """The cluster, in the eyes of its administrator."""

    def __init__(self, address: ClusterAddress) -> None:
        self.address = address
        # Another name than the agent's, because the API server takes it as the manager of the fields written.
        self._client = KubeClient(address, settings=ClientSettings(user_agent="administrator", qps=0))
        self._discovery = Discovery(self._client, monotonic=clocks.Clock().monotonic, seconds_between_reads=0.0)

    async def __aenter__(self) -> "Cluster":
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__()

    async def get(self, manifest: Mapping[str, Any]) -> Json | None:
        """Return the living object that a manifest means."""
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
        """Change a living object by a merge patch."""
        resource = await self._resource(manifest)
        write = Write(subresource=subresource)
        change = Patch(type=PatchType.MERGE, body=patch)
        return await self._client.patch(
            resource, _name(manifest), change=change, namespace=_namespace(manifest), write=write
        )

    async def apply(self, manifest: Mapping[str, Any], *, manager: str, force: bool = False) -> Json:
        """Apply on the server's side, as another manager."""
        write = Write(field_manager=manager, force=force)
        return await self._client.apply(await self._resource(manifest), manifest, write=write)

    async def delete(self, manifest: Mapping[str, Any]) -> None:
        try:
            resource = await self._resource(manifest)
            await self._client.delete(resource, _name(manifest), namespace=_namespace(manifest))
        except (errors.NotFound, errors.UnknownKind):
            return

    async def create_record(self, body: Json) -> Json:
        return await self._client.create(RECORDS, body)

    async def records(self) -> Sequence[Json]:
        return await self._client.list(RECORDS)

    async def _resource(self, manifest: Mapping[str, Any]) -> ResourceType:
        return await self._discovery.resolve(manifest["apiVersion"], manifest["kind"])


class Fleet:
    """An agent, its server, its namespace."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespace: str,
        server: MemoryServer | None = None,
        client: ClientSettings = _UNHURRIED,
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
        """What the agent said."""
        self._journal.flush()
        return self._log.getvalue().decode()

    async def start(self, rhythm: Rhythm = RHYTHM, *, is_awaited: bool = True) -> None:
        """Start the agent and wait until it is at work."""
        ready: asyncio.Future[Agent] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(rhythm, ready), name=f"agent of {self.namespace}")
        self.agent = await ready
        if is_awaited:
            await self.until(self._is_ready, what="the agent to be ready")

    async def stop(self) -> None:
        """Kill the agent, wherever it is."""
        task, self._task, self.agent = self._task, None, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def restart(self, rhythm: Rhythm = RHYTHM) -> None:
        await self.stop()
        await self.start(rhythm)

    def publish(self, name: str, *manifests: Any, labels: Mapping[str, str] | None = None, **spec: Any) -> str:
        """Ask for a work, new or changed; return its id."""
        return self.server.put(self.wish(name, *manifests, labels=labels, **spec)).uid

    def wish(
        self, name: str, *manifests: Any, labels: Mapping[str, str] | None = None, **spec: Any
    ) -> work.ManifestWork:
        uid = self.id_of(name)
        found = work.new(uid, namespace=self.server.consumer, manifests=manifests).with_metadata(uid=uid)
        return found.with_labels(labels or {}).with_spec(**spec)

    def id_of(self, name: str) -> str:
        return identity.resource_id("suite", namespace=self.server.consumer, name=name)

    def delete(self, name: str, *, has_version: bool = True) -> None:
        self.server.delete(self.id_of(name), has_version=has_version)

    def told(self, name: str) -> work.ManifestWork | None:
        """Return the newest report about a work."""
        reports = self.server.reports.get(self.id_of(name))
        return reports[-1] if reports else None

    async def report(
        self, name: str, predicate: Callable[[work.ManifestWork], bool], *, what: str, seconds: float = PATIENCE_SECONDS
    ) -> work.ManifestWork:
        """Wait until the newest report about a work is as it should be."""

        def found() -> work.ManifestWork | None:
            newest = self.told(name)
            return newest if newest is not None and predicate(newest) else None

        try:
            async with asyncio.timeout(seconds), self.server.changed:
                while (report := found()) is None:
                    self._fail_if_dead()
                    await self.server.changed.wait()
                return report
        except TimeoutError:
            newest = self.told(name)
            raise AssertionError(
                f"no report with {what}; the newest is {newest and newest.generation}: {newest and newest.status.body}"
                f"\nThe agent said:\n{self.log[-4000:]}"
            ) from None

    async def sees(
        self,
        name: str,
        *,
        applied: str | None = None,
        available: str | None = None,
        seconds: float = PATIENCE_SECONDS,
        **conditions: str,
    ) -> work.ManifestWork:
        """Wait for conditions of the newest wish, each as the work's letter and the manifests' letters: `F:TTF`."""
        wanted = {status.APPLIED: applied, status.AVAILABLE: available, **conditions}
        asked = {kind: letters for kind, letters in wanted.items() if letters is not None}
        generation = self.server.wishes[self.id_of(name)].generation

        def fits(report: work.ManifestWork) -> bool:
            return report.generation == generation and all(
                letters(report, kind) == wanted for kind, wanted in asked.items()
            )

        return await self.report(name, fits, what=f"{asked} for generation {generation}", seconds=seconds)

    async def is_applied(self, name: str) -> work.ManifestWork:
        """Wait until everything a work wants is there."""
        count = len(self.server.wishes[self.id_of(name)].manifests)
        return await self.sees(name, applied="T:" + "T" * count, available="T:" + "T" * count)

    async def is_deleted(self, name: str, *, seconds: float = PATIENCE_SECONDS) -> work.ManifestWork:
        report = await self.report(name, lambda found: found.status.is_deleted, what="Deleted", seconds=seconds)
        assert self.id_of(name) not in self.server.wishes
        return report

    async def until(
        self,
        predicate: Callable[[], Awaitable[Found | None]],
        *,
        what: str,
        seconds: float = PATIENCE_SECONDS,
    ) -> Found:
        """Wait until something holds on the cluster."""
        try:
            async with asyncio.timeout(seconds):
                while not (found := await predicate()):
                    self._fail_if_dead()
                    await asyncio.sleep(0.02)
                return found
        except TimeoutError:
            raise AssertionError(f"not in time: {what}\nThe agent said:\n{self.log[-4000:]}") from None

    async def exists(self, manifest: Mapping[str, Any], **seen: Any) -> Json:
        """Wait until an object is there and shows these values, each under its dotted path with `__` for a dot."""

        async def found() -> Json | None:
            live = await self.cluster.get(manifest)
            fits = live is not None and all(at(live, path.split("__")) == value for path, value in seen.items())
            return live if fits else None

        return await self.until(found, what=f"{manifest['kind']} {_name(manifest)} with {seen}")

    async def is_gone(self, *manifests: Mapping[str, Any]) -> None:
        """Wait until none of these objects is there."""
        for manifest in manifests:

            async def is_gone(manifest: Mapping[str, Any] = manifest) -> bool:
                return await self.cluster.get(manifest) is None

            await self.until(is_gone, what=f"{manifest['kind']} {_name(manifest)} to go")

    def record_name(self, name: str) -> str:
        return ownership.record_name(ownership.hub_hash(self.server.address), self.id_of(name))

    def record_of(self, name: str) -> Json:
        return {"apiVersion": work.API_VERSION, "kind": ownership.KIND, "metadata": {"name": self.record_name(name)}}

    async def record(self, name: str) -> Json | None:
        return await self.cluster.get(self.record_of(name))

    async def recorded(self, name: str) -> list[str]:
        """Return what the record of a work lists, as `resource/name`."""
        record = await self.record(name) or {}
        return [
            f"{each['resource']}/{each['name']}" for each in (record.get("status") or {}).get("appliedResources") or ()
        ]

    async def records_exactly(self, name: str, *wanted: str) -> None:
        async def is_so() -> bool:
            return await self.recorded(name) == [*wanted]

        await self.until(is_so, what=f"the record of {name} to list {wanted}")

    async def settles(self, *, has_server: bool = True) -> None:
        """Wait until the agent has nothing to do now, so that what it did not do until then it will not do."""
        assert self.agent is not None
        agent = self.agent
        calm = 0
        async with asyncio.timeout(PATIENCE_SECONDS):
            while calm < 5:
                await asyncio.sleep(0.02)
                is_calm = not agent.busy and not (has_server and agent.link.waiting)
                calm = calm + 1 if is_calm else 0

    async def forget_retries(self) -> None:
        """Put off everything the agent would try again by itself."""
        assert self.agent is not None
        await self.settles()
        # There is no other way to wait for an hour.
        queue = self.agent._queue
        while queue._timers:
            queue._timers.popitem()[1].cancel()

    async def _is_ready(self) -> bool:
        return self.agent is not None and self.agent.is_ready

    async def _run(self, rhythm: Rhythm, ready: "asyncio.Future[Agent]") -> None:
        try:
            async with KubeClient(self.cluster.address, settings=self._client) as client:
                given = Surroundings(
                    client=client,
                    medium=self.server,
                    journal=self._journal,
                    jitter=random.random,
                    clock=clocks.Clock(),
                    new_id=clocks.new_id,
                )
                character = Character(
                    consumer=self.server.consumer, client_id=f"{self.namespace}-work-agent", rhythm=rhythm
                )
                agent = Agent(given, character)
                ready.set_result(agent)
                await agent.run()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
            raise
        finally:
            async with self.server.changed:
                self.server.changed.notify_all()

    def _fail_if_dead(self) -> None:
        if self._task is not None and self._task.done():
            error = self._task.exception()
            raise AssertionError(f"the agent died: {error!r}\n{self.log[-4000:]}") from error


@asynccontextmanager
async def fleet(cluster: Cluster, namespace: str) -> AsyncIterator[Fleet]:
    """A fleet in a new namespace; both end with the block."""
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    found = Fleet(cluster, namespace=namespace)

    async def has_account() -> bool:
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": namespace},
        }
        return await cluster.get(account) is not None

    # Without it the namespace takes no Pods.
    await found.until(has_account, what="the service account of the namespace")
    try:
        await found.start()
        yield found
        found._fail_if_dead()
    finally:
        await found.stop()
        await cluster.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})


def letters(report: work.ManifestWork, kind: str) -> str:
    """Return a condition of the work and of its manifests as `T:TF`; `-` where there is none."""
    return f"{_letter(report.status.conditions, kind)}:" + "".join(
        _letter(each.conditions, kind) for each in report.status.manifests
    )


def condition(found: work.ManifestWork | status.ManifestStatus, kind: str) -> status.Condition:
    """Return one condition of a work or of a manifest."""
    conditions = found.status.conditions if isinstance(found, work.ManifestWork) else found.conditions
    (one,) = [each for each in conditions if each.type == kind]
    return one


def values(report: work.ManifestWork, ordinal: int = 0) -> dict[str, Any]:
    """Return the feedback of one manifest, by name, in its order."""
    return {each.name: each.value for each in report.status.manifests[ordinal].feedback}


def at(found: Any, path: Sequence[str]) -> Any:
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def owners(live: Json) -> list[Json]:
    references: list[Json] = live["metadata"].get("ownerReferences") or []
    return references


def _letter(conditions: Sequence[status.Condition], kind: str) -> str:
    return next((_LETTERS[each.status] for each in conditions if each.type == kind), "-")


def _name(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"]["name"])


def _namespace(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"].get("namespace", ""))
