"""Read and follow the logs of pods through the API server: `kubectl logs` without kubectl. Read-only.

Following never ends by itself: a broken connection is opened again where it ended, without repeating a line, and new
pods are followed as well.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from maestropy.aio.tasks import TaskOwner
from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.request import ApiRequest, ObjectSelector
from maestropy.trace.access.cluster import ClusterTarget, TracedCluster, no_access
from maestropy.trace.access.pod_database import PODS as PODS
from maestropy.trace.errors import NoAccess

Sink = Callable[[str, bytes], None]
Notify = Callable[[str], None]
_IDLE = 300.0
_LOOK_AGAIN = 5.0
_AFTER_TROUBLE = 1.0
_LONGEST_LINE = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentPods:
    """Where the pods of one component are."""

    name: str
    """server or agent."""
    target: ClusterTarget
    namespaces: tuple[str, ...]
    """Searched in this order; the first one with such pods is used."""
    label: str
    container: str = ""
    """Empty: all containers."""
    options: str = ""
    """The flags to change when no pod is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One container's log."""

    namespace: str
    pod: str
    container: str
    is_only: bool
    """Whether the pod has no other container."""
    restarts: int = 0

    @property
    def name(self) -> str:
        """What its file and its pod are called."""
        return self.pod if self.is_only else f"{self.pod}_{self.container}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much of a log."""

    since_seconds: int = 0
    since_time: str = ""
    is_previous: bool = False
    is_followed: bool = False


async def pods_of(client: KubeClient, component: ComponentPods) -> Sequence[Json]:
    """Return the pods of a component; none at all is an error with the flags to change."""
    for namespace in component.namespaces:
        try:
            pods = await client.list(PODS, namespace=namespace, selector=ObjectSelector(labels=component.label))
        except errors.KubeError as error:
            raise no_access(error, label=component.target.label, action=f"list pods in {namespace}") from error
        if pods:
            return pods
    components = " or ".join(component.namespaces)
    raise NoAccess(f"no pod in namespace {components} has the label {component.label}; set {component.options}")


def logs_of(pod: Json, *, only: str = "") -> list[Log]:
    """Return the logs of a pod's containers, of the one named `only` where that is given."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    restarts = {
        str(container.get("name")): count
        for container in status.get("containerStatuses") or ()
        if isinstance(count := container.get("restartCount", 0), int)
    }
    names = [str(container["name"]) for container in (pod.get("spec") or {}).get("containers") or ()]
    return [
        Log(
            namespace=str(metadata.get("namespace", "")),
            pod=str(metadata["name"]),
            container=name,
            is_only=len(names) == 1 or bool(only),
            restarts=restarts.get(name, 0),
        )
        for name in names
        if not only or name == only
    ]


def log_request(log: Log, extent: Extent) -> ApiRequest:
    """Return the request for a log."""
    query: dict[str, Any] = {"container": log.container, "timestamps": "true"}
    query |= {"follow": "true"} if extent.is_followed else {}
    query |= {"previous": "true"} if extent.is_previous else {}
    query |= {"sinceTime": extent.since_time} if extent.since_time else {}
    query |= {"sinceSeconds": str(extent.since_seconds)} if extent.since_seconds and not extent.since_time else {}
    path = f"/api/v1/namespaces/{quote(log.namespace, safe='')}/pods/{quote(log.pod, safe='')}/log"
    return ApiRequest(method="GET", path=path, query=tuple(query.items()), headers=(("Accept", "*/*"),))


async def read(client: KubeClient, log: Log, extent: Extent) -> AsyncIterator[bytes]:
    """Yield the chunks of a log."""
    async with client.stream(log_request(log, extent), idle=_IDLE) as chunks:
        async for chunk in chunks:
            yield chunk


async def follow(component: ComponentPods, sink: Sink, *, notify: Notify, since_seconds: int) -> None:
    """Pass on what the pods of a component write, including new pods, without end."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(TracedCluster(component.target))
        task_owner = TaskOwner()
        stack.push_async_callback(task_owner.stop)
        known: set[tuple[str, str]] = set()
        is_first = True
        while True:
            try:
                pods = await pods_of(cluster.client, component)
            except NoAccess as error:
                if is_first:
                    raise
                notify(str(error))
                pods = []
            for log in [log for pod in pods for log in logs_of(pod, only=component.container)]:
                if (log.pod, log.container) not in known:
                    known.add((log.pod, log.container))
                    notify(f"following {component.name} {log.name}")
                    extent = Extent(since_seconds=since_seconds, is_followed=True)
                    task_owner.start(
                        f"follow {log.name}", _follow_one(cluster.client, log, extent, sink=sink, notify=notify)
                    )
            is_first = False
            await asyncio.sleep(_LOOK_AGAIN)


async def _follow_one(client: KubeClient, log: Log, extent: Extent, *, sink: Sink, notify: Notify) -> None:
    new_lines = _NewLines()
    last_problem = ""
    while True:
        try:
            async for chunk in read(client, log, extent):
                last_problem = ""
                if add := new_lines.add(chunk):
                    sink(log.name, add)
        except errors.NotFound:
            notify(f"{log.name} is gone")
            return
        except errors.Timeout:
            pass  # a quiet log: the same again
        except errors.KubeError as error:
            # The error of a container that has not started repeats.
            if error.message != last_problem:
                last_problem = error.message
                notify(f"{log.name}: {last_problem}")
        if new_lines.last:
            extent = Extent(since_time=f"{new_lines.last[:19].decode()}Z", is_followed=True)
        new_lines.reconnected()
        await asyncio.sleep(_AFTER_TROUBLE)


class _NewLines:
    """Drops lines that were passed on before: a log can only be requested from a full second on."""

    def __init__(self) -> None:
        self.last = b""
        self._tail = b""
        self._until = b""

    def reconnected(self) -> None:
        """Expect lines that are known already."""
        self._until, self._tail = self.last, b""

    def add(self, chunk: bytes) -> bytes:
        """Return the whole lines of `chunk` that are new."""
        *lines, self._tail = (self._tail + chunk).split(b"\n")
        if len(self._tail) > _LONGEST_LINE:
            self._tail = b""
        fresh = []
        for line in lines:
            stamp = line.split(b" ", 1)[0]
            if self._until and stamp <= self._until:
                continue
            self.last = max(self.last, stamp) if stamp[:2] == b"20" else self.last
            fresh.append(line + b"\n")
        return b"".join(fresh)
