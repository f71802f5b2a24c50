"""Run the queries of an HCP walk live: services by URL or port-forward, the management cluster by kubeconfig.

Connections are opened when the first query needs them, and closed at the end. If a system cannot be opened, its queries
are unknown, with a remedy in the reason; nothing here raises for a single system.
"""

import asyncio
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

import httpx

from maestropy.kube import errors
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.trace.access import cluster_selection, port_forward
from maestropy.trace.access.cluster import ClusterTarget
from maestropy.trace.access.hcp import http_requests, management_cluster
from maestropy.trace.access.hcp.http_service import HttpService
from maestropy.trace.access.hcp.management_cluster import ManagementClusterReader
from maestropy.trace.access.options import HcpAccess, ManagementChoice, cluster_flags, kubectl_flags
from maestropy.trace.errors import NoAccess
from maestropy.trace.hcp import identity, lookup
from maestropy.trace.hcp.query import CommandFlags, HopQuery, HopQueryResult, System, Topic, unknown_result

_SERVICES: Mapping[System, tuple[Sequence[str], str, int]] = {
    System.FRONTEND: (("aro-hcp",), "aro-hcp-frontend", 8443),
    # The second is what it was called before.
    System.CLUSTERS_SERVICE: (("clusters-service", "cluster-service"), "clusters-service", 8000),
    System.MAESTRO: (("maestro",), "maestro", 8000),
}
_FLAGS = {System.FRONTEND: "--frontend-url", System.CLUSTERS_SERVICE: "--cs-url", System.MAESTRO: "--maestro-url"}


class LiveSystems:
    """The live systems of an HCP, while entered."""

    def __init__(self, access: HcpAccess, *, location: cluster_selection.KubeconfigLocation) -> None:
        self._access = access
        self._location = location
        self._stack = AsyncExitStack()
        self._opening = {system: asyncio.Lock() for system in System}
        self._services: dict[System, HttpService | NoAccess] = {}
        self._cluster: ManagementClusterReader | NoAccess | None = None
        self._service_cluster: tuple[KubeClient, str] | NoAccess | None = None
        self._management: identity.HcpManagementCluster | None = None
        self._consumer = ""
        self._context_mismatch = ""
        self._chosen: ManagementChoice | None = None

    @property
    def flags(self) -> CommandFlags:
        """The flags for printed commands; those of the management cluster are known once it was selected."""
        access, chosen = self._access, self._chosen or ManagementChoice()
        own = cluster_flags("mgmt-", kubeconfig=chosen.kubeconfig, context=chosen.context)
        services = cluster_flags("svc-", kubeconfig=access.svc_kubeconfig, context=access.svc_context)
        url = access.urls.get(System.MAESTRO, "")
        # Through the service cluster, the same REST API that the walk has read.
        maestro = f"--rest-url {shlex.quote(url)}" if url else f"--db rest {services}" if services else ""
        return CommandFlags(
            management=kubectl_flags(kubeconfig=chosen.kubeconfig, context=chosen.context),
            service=kubectl_flags(kubeconfig=access.svc_kubeconfig, context=access.svc_context),
            work=f"{maestro} {own or '--no-cluster'}" if maestro else "",
            logs=f"{services} {own}" if services and own else "",
        )

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        self._http = await self._stack.enter_async_context(
            # Port-forwarded services use plain HTTP; loading the CA certificates of this host would take longest.
            httpx.AsyncClient(timeout=self._access.timeout_seconds, trust_env=False, verify=_needs_tls(self._access))
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def run_queries(self, queries: Sequence[HopQuery]) -> Sequence[HopQueryResult]:
        """Run all queries, those of the management cluster last: the shard names it."""
        all_results: dict[HopQuery, HopQueryResult] = {}
        for are_to_cluster in (False, True):
            batch = [query for query in queries if (query.topic.system is System.MANAGEMENT) is are_to_cluster]
            results = await asyncio.gather(*(self._one(query) for query in batch))
            all_results |= dict(zip(batch, results, strict=True))
            self._note(all_results)
        return [all_results[query] for query in queries]

    def _note(self, results: Mapping[HopQuery, HopQueryResult]) -> None:
        for query, result in results.items():
            for document in result.documents[:1]:
                if query.topic is Topic.SHARD:
                    self._management = identity.management_cluster(document.value)
                    self._consumer = lookup.text(document.value, "maestro_config", "consumer_name")

    async def _one(self, query: HopQuery) -> HopQueryResult:
        system = query.topic.system
        try:
            if system is System.BACKEND:
                return unknown_result("the RP backend has no API")
            if system is System.MANAGEMENT:
                result = await (await self._management_cluster()).run_query(query)
                return replace(result, disagreements=(self._context_mismatch,)) if self._context_mismatch else result
            service = await self._service(system)
        except NoAccess as error:
            return unknown_result(str(error))
        reads = http_requests.reads(query, api_version=self._access.api_version)
        return await service.run_query(query, list(reads))

    async def _service(self, system: System) -> HttpService:
        async with self._opening[system]:
            if system not in self._services:
                try:
                    base = self._access.urls.get(system) or await self._forwarded(system)
                    self._services[system] = HttpService(self._http, base=base, system=system)
                except NoAccess as error:
                    self._services[system] = error
        service = self._services[system]
        if isinstance(service, NoAccess):
            raise service
        return service

    async def _forwarded(self, system: System) -> str:
        access = self._access
        if not access.svc_kubeconfig and not access.svc_context:
            raise NoAccess(f"no access to {system.value}; give {_FLAGS[system]}, or --svc-kubeconfig")
        client, label = await self._service_kubernetes()
        namespaces, service, port = _SERVICES[system]
        problem: NoAccess | None = None
        for namespace in namespaces:
            try:
                target = await port_forward.find(client, namespace=namespace, service=service, port=port)
                way = port_forward.forward(client.address, target, timeout_seconds=access.timeout_seconds)
                return await self._stack.enter_async_context(way)
            except NoAccess as error:
                problem = problem or error
        raise NoAccess(f"{system.value} on {label}: {problem}")

    async def _service_kubernetes(self) -> tuple[KubeClient, str]:
        async with self._opening[System.BACKEND]:
            if self._service_cluster is None:
                options = cluster_selection.ClusterOptions(
                    svc_context=self._access.svc_context, svc_kubeconfig=self._access.svc_kubeconfig
                )
                try:
                    choice = cluster_selection.service_cluster(options, self._location)
                    self._service_cluster = await self._client(choice), choice.label
                except NoAccess as error:
                    self._service_cluster = error
        if isinstance(self._service_cluster, NoAccess):
            raise self._service_cluster
        return self._service_cluster

    async def _management_cluster(self) -> ManagementClusterReader:
        async with self._opening[System.MANAGEMENT]:
            if self._cluster is None:
                try:
                    self._chosen = self._choose_management()
                    target = self._target(self._chosen)
                    self._cluster = ManagementClusterReader(await self._client(target), label=target.label)
                except NoAccess as error:
                    # Without a shard the choice may become possible later.
                    if self._management is None:
                        raise
                    self._cluster = error
        if isinstance(self._cluster, NoAccess):
            raise self._cluster
        return self._cluster

    def _choose_management(self) -> ManagementChoice:
        access = self._access
        if not access.has_management and not access.has_service:
            raise NoAccess("no access to the management cluster; give --mgmt-kubeconfig or --mgmt-context")
        if access.mgmt_choices:
            return self._stored_management()
        file = access.mgmt_kubeconfig or ("" if access.mgmt_context else access.svc_kubeconfig)
        known = management_cluster.contexts([Path(file)] if file else self._usual_kubeconfigs())
        context = access.mgmt_context or management_cluster.choose_context(
            # A kubeconfig given for the service cluster may contain no other cluster.
            known,
            self._management,
            takes_the_only_one=access.has_management,
        )
        self._context_mismatch = management_cluster.context_mismatch(context, known, self._management)
        return ManagementChoice(kubeconfig=file, context=context)

    def _stored_management(self) -> ManagementChoice:
        """Return the management cluster that the environment names for the consumer in the shard."""
        choices = self._access.mgmt_choices
        fitting = [choice for choice in choices if choice.consumer == self._consumer != ""]
        if not fitting and len(choices) == 1 and not choices[0].consumer:
            fitting = list(choices)
        if not fitting:
            consumers = ", ".join(choice.consumer or choice.context or choice.kubeconfig for choice in choices)
            raise NoAccess(
                f"environment {self._access.environment} names no management cluster for consumer "
                f"{self._consumer or '(not known: no shard was read)'}; give --mgmt-context (it has {consumers})"
            )
        return fitting[0]

    def _target(self, chosen: ManagementChoice) -> ClusterTarget:
        options = cluster_selection.ClusterOptions(
            mgmt_contexts=(chosen.context,) if chosen.context else (),
            mgmt_kubeconfigs=(chosen.kubeconfig,) if chosen.kubeconfig else (),
        )
        return cluster_selection.management_clusters(options, self._location)[0]

    def _usual_kubeconfigs(self) -> Sequence[Path]:
        named = [Path(path) for path in self._location.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
        return named or [self._location.home / ".kube" / "config"]

    async def _client(self, choice: ClusterTarget) -> KubeClient:
        settings = ClientSettings(user_agent="maestro-trace", timeout=self._access.timeout_seconds)
        try:
            return await self._stack.enter_async_context(KubeClient(choice.address, settings=settings))
        except errors.KubeError as error:
            raise NoAccess(f"cluster {choice.label} cannot be used: {error.message}") from error


def _needs_tls(access: HcpAccess) -> bool:
    return any(url.startswith("https://") for url in access.urls.values())
