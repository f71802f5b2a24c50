"""Answer the walk's questions live: services by address or managed port-forward, the management cluster by kubeconfig.

Everything is opened when the first question needs it, and closed at the end. What cannot be opened makes its questions
unknown, with the remedy in the sentence; nothing here raises for a single place.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import httpx

from maestropy.kube import errors
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.trace.access import choosing, hcp_kube, portforward
from maestropy.trace.access.cluster import Choice
from maestropy.trace.access.hcp_http import HttpService
from maestropy.trace.access.hcp_kube import Management
from maestropy.trace.errors import NoAccess
from maestropy.trace.hcp import identity, requests
from maestropy.trace.hcp.question import Answer, Place, Question, Topic, unknown

_SERVICES: Mapping[Place, tuple[Sequence[str], str, int]] = {
    Place.FRONTEND: (("aro-hcp",), "aro-hcp-frontend", 8443),
    # The second is what it was called before.
    Place.CLUSTERS_SERVICE: (("clusters-service", "cluster-service"), "clusters-service", 8000),
    Place.MAESTRO: (("maestro",), "maestro", 8000),
}
_FLAGS = {Place.FRONTEND: "--frontend-url", Place.CLUSTERS_SERVICE: "--cs-url", Place.MAESTRO: "--maestro-url"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What the command line says about how to reach everybody."""

    urls: Mapping[Place, str] = field(default_factory=dict)
    svc_kubeconfig: str = ""
    svc_context: str = ""
    mgmt_kubeconfig: str = ""
    mgmt_context: str = ""
    api_version: str = requests.API_VERSION
    timeout_seconds: float = 10.0

    @property
    def source(self) -> str:
        """What a report calls it."""
        given = [f"{place.value} {url}" for place, url in self.urls.items()]
        given += [f"service cluster {self.svc_context or self.svc_kubeconfig}"] if self.has_service else []
        given += [f"management cluster {self.mgmt_context or self.mgmt_kubeconfig}"] if self.has_management else []
        return ", ".join(given) or "nothing: no address and no kubeconfig was given"

    @property
    def has_service(self) -> bool:
        """Whether there is a way to the service cluster."""
        return bool(self.svc_kubeconfig or self.svc_context)

    @property
    def has_management(self) -> bool:
        """Whether there is a way to a management cluster."""
        return bool(self.mgmt_kubeconfig or self.mgmt_context)


class Live:
    """Everybody who can be asked, while entered."""

    def __init__(self, reach: Reach, *, place: choosing.Place) -> None:
        self._reach = reach
        self._place = place
        self._stack = AsyncExitStack()
        self._opening = {each: asyncio.Lock() for each in Place}
        self._services: dict[Place, HttpService | NoAccess] = {}
        self._cluster: Management | NoAccess | None = None
        self._service_cluster: tuple[KubeClient, str] | NoAccess | None = None
        self._management: identity.ManagementCluster | None = None
        self._doubt = ""

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        self._http = await self._stack.enter_async_context(
            # Port-forwarded services speak plain HTTP; reading all authorities of this host would take longest.
            httpx.AsyncClient(timeout=self._reach.timeout_seconds, trust_env=False, verify=_needs_tls(self._reach))
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def answer(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """Answer all questions, those to the management cluster last: the shard says which one it is."""
        told: dict[Question, Answer] = {}
        for are_to_cluster in (False, True):
            batch = [each for each in questions if (each.topic.place is Place.MANAGEMENT) is are_to_cluster]
            answers = await asyncio.gather(*(self._one(each) for each in batch))
            told |= dict(zip(batch, answers, strict=True))
            self._note(told)
        return [told[each] for each in questions]

    def _note(self, told: Mapping[Question, Answer]) -> None:
        for question, answer in told.items():
            for each in answer.documents[:1]:
                if question.topic is Topic.SHARD:
                    self._management = identity.management_cluster(each.value)

    async def _one(self, question: Question) -> Answer:
        place = question.topic.place
        try:
            if place is Place.BACKEND:
                return unknown("the RP backend cannot be asked")
            if place is Place.MANAGEMENT:
                told = await (await self._management_cluster()).answer(question)
                return replace(told, disagreements=(self._doubt,)) if self._doubt else told
            service = await self._service(place)
        except NoAccess as error:
            return unknown(str(error))
        reads = requests.reads(question, api_version=self._reach.api_version)
        return await service.answer(question, list(reads))

    async def _service(self, place: Place) -> HttpService:
        async with self._opening[place]:
            if place not in self._services:
                try:
                    base = self._reach.urls.get(place) or await self._forwarded(place)
                    self._services[place] = HttpService(self._http, base=base, place=place)
                except NoAccess as error:
                    self._services[place] = error
        found = self._services[place]
        if isinstance(found, NoAccess):
            raise found
        return found

    async def _forwarded(self, place: Place) -> str:
        reach = self._reach
        if not reach.svc_kubeconfig and not reach.svc_context:
            raise NoAccess(f"no way to {place.value} is given; give {_FLAGS[place]}, or --svc-kubeconfig")
        client, label = await self._service_kubernetes()
        namespaces, service, port = _SERVICES[place]
        trouble: NoAccess | None = None
        for namespace in namespaces:
            try:
                target = await portforward.find(client, namespace=namespace, service=service, port=port)
                way = portforward.forward(client.address, target, timeout_seconds=reach.timeout_seconds)
                return await self._stack.enter_async_context(way)
            except NoAccess as error:
                trouble = trouble or error
        raise NoAccess(f"{place.value} on {label}: {trouble}")

    async def _service_kubernetes(self) -> tuple[KubeClient, str]:
        async with self._opening[Place.BACKEND]:
            if self._service_cluster is None:
                wanted = choosing.Wanted(svc_context=self._reach.svc_context, svc_kubeconfig=self._reach.svc_kubeconfig)
                try:
                    choice = choosing.service_cluster(wanted, self._place)
                    self._service_cluster = await self._client(choice), choice.label
                except NoAccess as error:
                    self._service_cluster = error
        if isinstance(self._service_cluster, NoAccess):
            raise self._service_cluster
        return self._service_cluster

    async def _management_cluster(self) -> Management:
        async with self._opening[Place.MANAGEMENT]:
            if self._cluster is None:
                try:
                    choice = self._choose_management()
                    self._cluster = Management(await self._client(choice), label=choice.label)
                except NoAccess as error:
                    # Without a shard the choice may become possible later.
                    if self._management is None:
                        raise
                    self._cluster = error
        if isinstance(self._cluster, NoAccess):
            raise self._cluster
        return self._cluster

    def _choose_management(self) -> Choice:
        reach = self._reach
        if not reach.has_management and not reach.has_service:
            raise NoAccess("no way to the management cluster is given; give --mgmt-kubeconfig or --mgmt-context")
        file = reach.mgmt_kubeconfig or ("" if reach.mgmt_context else reach.svc_kubeconfig)
        known = hcp_kube.contexts([Path(file)] if file else self._usual_kubeconfigs())
        context = reach.mgmt_context or hcp_kube.choose_context(
            # A kubeconfig that was given for the service cluster may hold nothing else.
            known,
            self._management,
            takes_the_only_one=reach.has_management,
        )
        self._doubt = hcp_kube.doubt(context, known, self._management)
        files = (file,) if file else ()
        wanted = choosing.Wanted(mgmt_contexts=(context,), mgmt_kubeconfigs=files)
        return choosing.management_clusters(wanted, self._place)[0]

    def _usual_kubeconfigs(self) -> Sequence[Path]:
        named = [Path(each) for each in self._place.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
        return named or [self._place.home / ".kube" / "config"]

    async def _client(self, choice: Choice) -> KubeClient:
        settings = ClientSettings(user_agent="maestro-trace", timeout=self._reach.timeout_seconds)
        try:
            return await self._stack.enter_async_context(KubeClient(choice.address, settings=settings))
        except errors.KubeError as error:
            raise NoAccess(f"cluster {choice.label} cannot be used: {error.message}") from error


def _needs_tls(reach: Reach) -> bool:
    return any(url.startswith("https://") for url in reach.urls.values())
