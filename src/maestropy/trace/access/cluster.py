"""Read one cluster for the tracer: applied works, kinds and objects. Read-only.

Failures become NoAccess with a remedy. A missing object is None or an empty list, never an error.
"""

import asyncio
from collections.abc import Awaitable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from maestropy.aio.clock import Clock
from maestropy.kube import errors
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config.address import ClusterAddress
from maestropy.kube.discovery import read_catalogue
from maestropy.kube.objects import Json
from maestropy.kube.request import ApiRequest, ObjectSelector, ResourceType
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
class ClusterTarget:
    """A cluster to connect to, with its consumer and kubectl flags."""

    label: str
    address: ClusterAddress
    kubectl: str = ""
    consumer: str = ""
    agent_namespace: str = "maestro-agent"
    timeout_seconds: float = 30.0


class TracedCluster:
    """A cluster while entered."""

    def __init__(self, target: ClusterTarget, *, clock: Clock | None = None) -> None:
        self.target = target
        self._clock = clock or Clock()
        self._names: Sequence[str] | None = None
        self._catalogue: Mapping[tuple[str, str], ResourceType] | None = None
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()

    @property
    def label(self) -> str:
        return self.target.label

    @property
    def consumer(self) -> str:
        return self.target.consumer

    @property
    def kubectl(self) -> str:
        return self.target.kubectl

    def kubectl_command(self, words: str) -> str:
        """Return a kubectl command that leads to this cluster, ready to paste."""
        return f"kubectl {self.kubectl} {words}" if self.kubectl else f"kubectl {words}"

    async def __aenter__(self) -> Self:
        settings = ClientSettings(user_agent="maestro-trace", timeout=self.target.timeout_seconds)
        try:
            self.client = await self._stack.enter_async_context(
                KubeClient(self.target.address, settings=settings, clock=self._clock)
            )
        except errors.KubeError as error:
            raise self._no_access(error, "read its address") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def applied_works(self, work_names: Collection[str]) -> Sequence[Json]:
        names_wanted = set(work_names)
        if len(names_wanted) > _SINGLY:
            whole = await self._ask("list AppliedManifestWorks", self.client.list(APPLIED_WORKS))
            if whole is None:
                raise self._is_no_management_cluster()
            return [
                document for document in whole if (document.get("spec") or {}).get("manifestWorkName") in names_wanted
            ]
        names = [name for name in await self._applied_names() if _is_for(name, names_wanted)]
        documents = await asyncio.gather(*(self.applied_work(name) for name in names))
        return [
            document
            for document in documents
            if document and (document.get("spec") or {}).get("manifestWorkName") in names_wanted
        ]

    async def applied_work(self, name: str) -> Json | None:
        return await self._ask("get the AppliedManifestWork", self.client.get(APPLIED_WORKS, name))

    async def _applied_names(self) -> Sequence[str]:
        """Return all names, read once, without the objects: thousands of them are some hundred kilobytes."""
        async with self._lock:
            if self._names is None:
                selector = ObjectSelector(metadata_only=True)
                documents = await self._ask(
                    "list AppliedManifestWorks", self.client.list(APPLIED_WORKS, selector=selector)
                )
                if documents is None:
                    raise self._is_no_management_cluster()
                self._names = [str((document.get("metadata") or {}).get("name", "")) for document in documents]
        return self._names

    async def kinds(self, spellings: Collection[str], *, group: str) -> Sequence[Kind]:
        """Return the kinds that these spellings may mean, one version of each."""
        async with self._lock:
            if self._catalogue is None:
                self._catalogue = await self._ask("read which kinds there are", read_catalogue(self.client, known={}))
        lowered = {spelling.lower() for spelling in spellings}
        chosen: dict[tuple[str, str], list[ResourceType]] = {}
        for resource in (self._catalogue or {}).values():
            is_named = resource.kind.lower() in lowered or resource.plural in lowered
            if is_named and (not group or resource.group == group):
                chosen.setdefault((resource.group, resource.plural), []).append(resource)
        return sorted(
            replace(_kind(served[0]), versions=tuple(resource.version for resource in served))
            for served in chosen.values()
        )

    async def objects(self, kind: Kind, *, namespace: str, name: str) -> Sequence[Json]:
        resource = _resource(kind)
        if _NO_NAME & set(name):
            return []
        if namespace or not kind.namespaced:
            asking = self.client.get(resource, name, namespace=namespace)
            document = await self._ask(f"get {kind}", asking)
            return [document] if document else []
        selector = ObjectSelector(fields=f"metadata.name={name}")
        return await self._ask(f"list {kind}", self.client.list(resource, selector=selector)) or []

    async def agent_consumer(self) -> str:
        """Return what the agent's deployment names as its consumer; a guess that may fail quietly."""
        for labels in _AGENT_LABELS:
            try:
                deployments = await self.client.list(
                    DEPLOYMENTS, namespace=self.target.agent_namespace, selector=ObjectSelector(labels=labels)
                )
            except errors.KubeError:
                return ""
            names = {name for deployment in deployments if (name := _consumer_flag(deployment))}
            if len(names) == 1:
                return names.pop()
        return ""

    async def can_reach(self) -> str:
        version = await self._ask("answer", self.client.send(ApiRequest(method="GET", path="/version")))
        return str((version or {}).get("gitVersion", ""))

    async def _ask(self, action: str, result: Awaitable[T]) -> T | None:
        """Await a response; a missing object is None."""
        try:
            return await result
        except (errors.NotFound, errors.UnknownKind, errors.MalformedObject):
            return None
        except errors.KubeError as error:
            raise self._no_access(error, action) from error

    def _is_no_management_cluster(self) -> NoAccess:
        return NoAccess(
            f"cluster {self.label} serves no AppliedManifestWorks: is it the management cluster? "
            "check --mgmt-context; "
            + self.kubectl_command("get crd appliedmanifestworks.work.open-cluster-management.io")
        )

    def _no_access(self, error: errors.KubeError, action: str) -> NoAccess:
        return no_access(error, label=self.label, action=action)


def no_access(error: errors.KubeError, *, label: str, action: str) -> NoAccess:
    """Return an error that names the cluster, the failed action and the remedy."""
    match error:
        case errors.BadConfig():
            remedy = "check the kubeconfig and the context's name: kubectl config get-contexts"
        case errors.Unauthorized():
            remedy = "the login is not accepted or has expired: log in again"
        case errors.Forbidden():
            remedy = "request the permission, or name the namespace; list yours with: kubectl auth can-i --list"
        case errors.Unreachable():
            remedy = "check the network (VPN, proxy) and the address: kubectl cluster-info"
        case _:
            remedy = "try again"
    return NoAccess(f"cluster {label} does not let us {action}: {error.message}; {remedy}")


def _is_for(name: str, work_names: Collection[str]) -> bool:
    return name[_HASH + 1 :] in work_names or any(name.endswith(f"-{work_name}") for work_name in work_names)


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
    arguments = [
        str(argument)
        for container in containers
        for argument in (*(container.get("command") or ()), *(container.get("args") or ()))
    ]
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        flag, separator, value = argument.partition("=")
        if flag in {"--consumer-name", "--spoke-cluster-name"}:
            return value if separator else following
    return ""
