"""One cluster as the tracer reads it: applied works, kinds, objects. It only ever reads.

Failures become NoAccess with the remedy in the sentence; a missing object is None or an empty list, never an error.
"""

import asyncio
from collections.abc import Awaitable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Self, TypeVar

from maestropy.aio.clock import Clock
from maestropy.kube import errors
from maestropy.kube.address import ClusterAddress
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.discovery import read_catalogue
from maestropy.kube.objects import Json
from maestropy.kube.request import Request, ResourceType, Selector
from maestropy.trace.errors import NoAccess
from maestropy.trace.work.model import WORK_GROUP, Kind

T = TypeVar("T")

APPLIED_WORKS = ResourceType(
    group=WORK_GROUP, version="v1", plural="appliedmanifestworks", kind="AppliedManifestWork", namespaced=False
)
DEPLOYMENTS = ResourceType(group="apps", version="v1", plural="deployments", kind="Deployment", namespaced=True)
_HASH = 64
"""Characters of the hub hash before a work's name."""
_SINGLY = 50
"""Up to so many applied works are read one by one, after a list of bare names; more are filtered from a full list."""
_NO_NAME = frozenset(",=\\")
"""Characters that no name has, and that would mean something else in a field selector."""
_AGENT_LABELS = ("app=maestro-agent", "app.kubernetes.io/name=maestro-agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which cluster, and what we were told about it."""

    label: str
    address: ClusterAddress
    kubectl: str = ""
    consumer: str = ""
    agent_namespace: str = "maestro-agent"
    timeout_seconds: float = 30.0


class Cluster:
    """A cluster while entered."""

    def __init__(self, choice: Choice, *, clock: Clock | None = None) -> None:
        self.choice = choice
        self._clock = clock or Clock()
        self._names: Sequence[str] | None = None
        self._catalogue: Mapping[tuple[str, str], ResourceType] | None = None
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()

    @property
    def label(self) -> str:
        """Its name in reports."""
        return self.choice.label

    @property
    def consumer(self) -> str:
        """The consumer it is said to be."""
        return self.choice.consumer

    @property
    def kubectl(self) -> str:
        """The flags that lead kubectl there."""
        return self.choice.kubectl

    async def __aenter__(self) -> Self:
        settings = ClientSettings(user_agent="maestro-trace", timeout=self.choice.timeout_seconds)
        try:
            self.client = await self._stack.enter_async_context(
                KubeClient(self.choice.address, settings=settings, clock=self._clock)
            )
        except errors.KubeError as error:
            raise self._trouble(error, "read its address") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def applied_works(self, work_names: Collection[str]) -> Sequence[Json]:
        """Return the AppliedManifestWorks of these works."""
        wanted = set(work_names)
        if len(wanted) > _SINGLY:
            whole = await self._ask("list AppliedManifestWorks", self.client.list(APPLIED_WORKS))
            if whole is None:
                raise self._is_no_management_cluster()
            return [each for each in whole if (each.get("spec") or {}).get("manifestWorkName") in wanted]
        names = [name for name in await self._applied_names() if _is_for(name, wanted)]
        found = await asyncio.gather(*(self.applied_work(name) for name in names))
        return [each for each in found if each and (each.get("spec") or {}).get("manifestWorkName") in wanted]

    async def applied_work(self, name: str) -> Json | None:
        """Return one AppliedManifestWork by its own name."""
        return await self._ask("get the AppliedManifestWork", self.client.get(APPLIED_WORKS, name))

    async def _applied_names(self) -> Sequence[str]:
        """Return all names, read once, without the objects: thousands of them are some hundred kilobytes."""
        async with self._lock:
            if self._names is None:
                selector = Selector(metadata_only=True)
                found = await self._ask("list AppliedManifestWorks", self.client.list(APPLIED_WORKS, selector=selector))
                if found is None:
                    raise self._is_no_management_cluster()
                self._names = [str((each.get("metadata") or {}).get("name", "")) for each in found]
        return self._names

    async def kinds(self, spellings: Collection[str], *, group: str) -> Sequence[Kind]:
        """Return the kinds that these spellings may mean, one version of each."""
        async with self._lock:
            if self._catalogue is None:
                self._catalogue = await self._ask("read which kinds there are", read_catalogue(self.client, known={}))
        wanted = {each.lower() for each in spellings}
        chosen: dict[tuple[str, str], ResourceType] = {}
        for resource in (self._catalogue or {}).values():
            is_named = resource.kind.lower() in wanted or resource.plural in wanted
            if is_named and (not group or resource.group == group):
                chosen.setdefault((resource.group, resource.plural), resource)
        return sorted(_kind(each) for each in chosen.values())

    async def objects(self, kind: Kind, *, namespace: str, name: str) -> Sequence[Json]:
        """Return the objects of that name; without a namespace in all of them."""
        resource = _resource(kind)
        if _NO_NAME & set(name):
            return []
        if namespace or not kind.namespaced:
            asking = self.client.get(resource, name, namespace=namespace)
            found = await self._ask(f"get {kind}", asking)
            return [found] if found else []
        selector = Selector(fields=f"metadata.name={name}")
        return await self._ask(f"list {kind}", self.client.list(resource, selector=selector)) or []

    async def agent_consumer(self) -> str:
        """Return what the agent's deployment names as its consumer; a guess that may fail quietly."""
        for labels in _AGENT_LABELS:
            try:
                found = await self.client.list(
                    DEPLOYMENTS, namespace=self.choice.agent_namespace, selector=Selector(labels=labels)
                )
            except errors.KubeError:
                return ""
            names = {name for each in found if (name := _consumer_flag(each))}
            if len(names) == 1:
                return names.pop()
        return ""

    async def can_reach(self) -> str:
        """Return the version of the API server."""
        found = await self._ask("answer", self.client.send(Request(method="GET", path="/version")))
        return str((found or {}).get("gitVersion", ""))

    async def _ask(self, doing: str, answer: Awaitable[T]) -> T | None:
        """Wait for an answer; what is not there is None."""
        try:
            return await answer
        except (errors.NotFound, errors.UnknownKind, errors.Malformed):
            return None
        except errors.KubeError as error:
            raise self._trouble(error, doing) from error

    def _is_no_management_cluster(self) -> NoAccess:
        return NoAccess(
            f"cluster {self.label} serves no AppliedManifestWorks: is it the management cluster? "
            "check --mgmt-context; kubectl get crd appliedmanifestworks.work.open-cluster-management.io"
        )

    def _trouble(self, error: errors.KubeError, doing: str) -> NoAccess:
        return trouble(error, label=self.label, doing=doing)


def trouble(error: errors.KubeError, *, label: str, doing: str) -> NoAccess:
    """Say who refused what, and what to do about it."""
    match error:
        case errors.BadConfig():
            remedy = "check the kubeconfig and the context's name: kubectl config get-contexts"
        case errors.Unauthorized():
            remedy = "the login is not accepted or has expired: log in again"
        case errors.Forbidden():
            remedy = "ask for that right, or name the namespace; see yours with: kubectl auth can-i --list"
        case errors.Unreachable():
            remedy = "check the network (VPN, proxy) and the address: kubectl cluster-info"
        case _:
            remedy = "try again"
    return NoAccess(f"cluster {label} does not let us {doing}: {error.message}; {remedy}")


def _is_for(name: str, wanted: Collection[str]) -> bool:
    return name[_HASH + 1 :] in wanted or any(name.endswith(f"-{each}") for each in wanted)


def _kind(resource: ResourceType) -> Kind:
    return Kind(
        group=resource.group,
        version=resource.version,
        kind=resource.kind,
        plural=resource.plural,
        namespaced=resource.namespaced,
    )


def _resource(kind: Kind) -> ResourceType:
    return ResourceType(
        group=kind.group, version=kind.version, plural=kind.plural, kind=kind.kind, namespaced=kind.namespaced
    )


def _consumer_flag(deployment: Json) -> str:
    containers = (((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}).get("containers") or ()
    words = [str(word) for each in containers for word in (*(each.get("command") or ()), *(each.get("args") or ()))]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        flag, separator, value = word.partition("=")
        if flag in {"--consumer-name", "--spoke-cluster-name"}:
            return value if separator else following
    return ""
