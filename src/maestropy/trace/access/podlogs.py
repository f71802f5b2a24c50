"""The logs of pods through the API server: what they wrote, and what they write now. `kubectl logs`, without kubectl.

Following goes on for as long as somebody listens: a connection that breaks is opened again where it ended, without a
line twice, and pods that come later are followed as well. Only ever reads.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from maestropy.aio.tasks import Crew
from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.request import Request, ResourceType, Selector
from maestropy.trace.access.cluster import Choice, Cluster, trouble
from maestropy.trace.errors import NoAccess

PODS = ResourceType(group="", version="v1", plural="pods", kind="Pod", namespaced=True)
Sink = Callable[[str, bytes], None]
Telling = Callable[[str], None]
_IDLE = 300.0
_LOOK_AGAIN = 5.0
_AFTER_TROUBLE = 1.0
_LONGEST_LINE = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the pods of one component are."""

    name: str
    """server or agent."""
    choice: Choice
    namespaces: tuple[str, ...]
    """Looked through in this order; the first that has such pods is meant."""
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


async def pods_of(client: KubeClient, place: Place) -> Sequence[Json]:
    """Return the pods of a component; none at all is an error with the flags to change."""
    for namespace in place.namespaces:
        try:
            found = await client.list(PODS, namespace=namespace, selector=Selector(labels=place.label))
        except errors.KubeError as error:
            raise trouble(error, label=place.choice.label, doing=f"list pods in {namespace}") from error
        if found:
            return found
    places = " or ".join(place.namespaces)
    raise NoAccess(f"no pod in namespace {places} has the label {place.label}; set {place.options}")


def logs_of(pod: Json, *, only: str = "") -> list[Log]:
    """Return the logs of a pod's containers, of the one named `only` where that is given."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    restarts = {each["name"]: int(each.get("restartCount", 0)) for each in status.get("containerStatuses") or ()}
    names = [str(each["name"]) for each in (pod.get("spec") or {}).get("containers") or ()]
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


def asking(log: Log, extent: Extent) -> Request:
    """Return the request for a log."""
    query: dict[str, Any] = {"container": log.container, "timestamps": "true"}
    query |= {"follow": "true"} if extent.is_followed else {}
    query |= {"previous": "true"} if extent.is_previous else {}
    query |= {"sinceTime": extent.since_time} if extent.since_time else {}
    query |= {"sinceSeconds": str(extent.since_seconds)} if extent.since_seconds and not extent.since_time else {}
    path = f"/api/v1/namespaces/{quote(log.namespace, safe='')}/pods/{quote(log.pod, safe='')}/log"
    return Request(method="GET", path=path, query=tuple(query.items()), headers=(("Accept", "*/*"),))


async def read(client: KubeClient, log: Log, extent: Extent) -> AsyncIterator[bytes]:
    """Yield a log as it comes."""
    async with client.stream(asking(log, extent), idle=_IDLE) as chunks:
        async for chunk in chunks:
            yield chunk


async def follow(place: Place, sink: Sink, *, tell: Telling, since_seconds: int) -> None:
    """Hand on what the pods of a component write, and those that come later, for ever."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(Cluster(place.choice))
        crew = Crew()
        stack.push_async_callback(crew.stop)
        known: set[tuple[str, str]] = set()
        is_first = True
        while True:
            try:
                pods = await pods_of(cluster.client, place)
            except NoAccess as error:
                if is_first:
                    raise
                tell(str(error))
                pods = []
            for log in [log for pod in pods for log in logs_of(pod, only=place.container)]:
                if (log.pod, log.container) not in known:
                    known.add((log.pod, log.container))
                    tell(f"following {place.name} {log.name}")
                    extent = Extent(since_seconds=since_seconds, is_followed=True)
                    crew.start(f"follow {log.name}", _follow_one(cluster.client, log, extent, sink=sink, tell=tell))
            is_first = False
            await asyncio.sleep(_LOOK_AGAIN)


async def _follow_one(client: KubeClient, log: Log, extent: Extent, *, sink: Sink, tell: Telling) -> None:
    seen = _Seen()
    said = ""
    while True:
        try:
            async for chunk in read(client, log, extent):
                said = ""
                if news := seen.news(chunk):
                    sink(log.name, news)
        except errors.NotFound:
            tell(f"{log.name} is gone")
            return
        except errors.Timeout:
            pass  # a quiet log: the same again
        except errors.KubeError as error:
            # A container that waits to be started says so every time.
            if error.message != said:
                said = error.message
                tell(f"{log.name}: {said}")
        if seen.last:
            extent = Extent(since_time=f"{seen.last[:19].decode()}Z", is_followed=True)
        seen.begin_again()
        await asyncio.sleep(_AFTER_TROUBLE)


class _Seen:
    """Drops what was handed on before: a log can only be asked for from a second on."""

    def __init__(self) -> None:
        self.last = b""
        self._tail = b""
        self._until = b""

    def begin_again(self) -> None:
        """Expect lines that are known already."""
        self._until, self._tail = self.last, b""

    def news(self, chunk: bytes) -> bytes:
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
