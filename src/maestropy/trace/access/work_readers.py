"""Open the database and the clusters for a work trace, or a dump. What cannot be opened is recorded, not fatal."""

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import ConfigError
from maestropy.trace import offline
from maestropy.trace.access import cluster_selection, port_forward, prerequisites
from maestropy.trace.access.breakglass import Breakglass, Permissions
from maestropy.trace.access.cluster import ClusterTarget, TracedCluster
from maestropy.trace.access.confirmation import Confirmer
from maestropy.trace.access.options import WorkAccess
from maestropy.trace.access.pod_database import MaestroDbPod, PodLocation
from maestropy.trace.access.prerequisites import Prerequisite
from maestropy.trace.database import DsnDatabase
from maestropy.trace.errors import InvalidArguments, NoAccess
from maestropy.trace.rest_reader import RestReader
from maestropy.trace.work.gather import Readers
from maestropy.trace.work.model import AccessStatus
from maestropy.trace.work.readers import ClusterReader, DatabaseReader, SqlDatabaseReader

_SERVICE, _SERVICE_PORT = "maestro", 8000
"""The REST API on the service cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSetup:
    """All that opening needs."""

    access: WorkAccess
    confirmer: Confirmer
    stack: AsyncExitStack
    is_quiet: bool = False

    def warn(self, text: str) -> None:
        if not self.is_quiet:
            self.confirmer.notify(f"⚠ WARNING: {text}")

    @property
    def location(self) -> PodLocation:
        access = self.access
        return PodLocation(
            namespace=access.namespace, pod=access.db_pod, timeout_seconds=max(1, round(access.timeout_seconds))
        )

    @property
    def cluster_options(self) -> cluster_selection.ClusterOptions:
        access = self.access
        return cluster_selection.ClusterOptions(
            svc_context=access.svc_context,
            svc_kubeconfig=access.svc_kubeconfig,
            mgmt_contexts=access.mgmt_contexts,
            mgmt_kubeconfigs=access.mgmt_kubeconfigs,
            agent_namespace=access.agent_namespace,
            timeout_seconds=access.timeout_seconds,
        )

    @property
    def kubeconfig_location(self) -> cluster_selection.KubeconfigLocation:
        return cluster_selection.KubeconfigLocation(environ=os.environ, home=Path.home())

    @property
    def database_access(self) -> str:
        """The database access that the options select, before any cluster is read."""
        access = self.access
        if access.db != "auto":
            return access.db
        return "dsn" if access.db_dsn else "rest" if access.rest_url else "auto"


async def open_readers(setup: AccessSetup) -> Readers:
    """Open everything that can be opened."""
    if setup.access.offline is not None:
        return _offline(setup.access.offline)
    clusters: list[ClusterReader] = []
    lost: list[AccessStatus] = []
    if not setup.access.no_cluster:
        await _open_clusters(setup, clusters=clusters, lost=lost)
    try:
        database, problem = await _database(setup), ""
    except NoAccess as error:
        database, problem = None, str(error)
    return Readers(database=database, database_problem=problem, clusters=clusters, unreachable_clusters=lost)


def _offline(directory: Path) -> Readers:
    dump = offline.load(directory)
    clusters = [
        offline.OfflineCluster(label=name or "dump", consumer=name, content=content)
        for name, content in dump.clusters.items()
    ]
    if not dump.rows and not dump.tombstones:
        return Readers(database=None, database_problem=f"{directory} holds no rows and no bundles", clusters=clusters)
    return Readers(
        database=offline.OfflineDatabase(dump=dump, description=f"database (dump in {directory})"), clusters=clusters
    )


async def _open_clusters(setup: AccessSetup, *, clusters: list[ClusterReader], lost: list[AccessStatus]) -> None:
    access = setup.access
    if not access.mgmt_contexts and not access.mgmt_kubeconfigs:
        setup.warn("No management cluster access specified. Using current context.")
    try:
        targets = cluster_selection.management_clusters(setup.cluster_options, setup.kubeconfig_location)
    except NoAccess as error:
        lost.append(AccessStatus(description="management cluster", is_readable=False, problem=str(error)))
        return
    for target in targets:
        try:
            clusters.append(await setup.stack.enter_async_context(TracedCluster(target)))
        except NoAccess as error:
            lost.append(
                AccessStatus(
                    description=f"cluster {target.label}",
                    is_readable=False,
                    problem=str(error),
                    consumer=target.consumer,
                    kubectl=target.kubectl,
                )
            )


async def _database(setup: AccessSetup) -> DatabaseReader | None:
    access = setup.access
    match setup.database_access:
        case "none":
            return None
        case "dsn":
            if not access.db_dsn:
                raise InvalidArguments("--db dsn needs --db-dsn, or MAESTRO_DB_DSN")
            runner = DsnDatabase(dsn=access.db_dsn, timeout_seconds=setup.location.timeout_seconds)
            return SqlDatabaseReader(runner, reads_holds=True)
        case "rest":
            return await _rest(setup)
        case database_access:
            return await _pod(setup, database_access)


async def _rest(setup: AccessSetup) -> DatabaseReader:
    try:
        settings: dict[str, Any] = {"timeout": setup.access.timeout_seconds, **setup.access.rest_settings}
        if setup.access.rest_url:
            settings["api_url"] = setup.access.rest_url
        elif setup.access.svc_context or setup.access.svc_kubeconfig:
            settings["api_url"] = await _forwarded_rest(setup)
        client = AsyncMaestro(**settings)
        client.settings.needs("api_url")
    except ConfigError as error:
        raise InvalidArguments(f"--rest-url: {error}") from error
    return RestReader(client=await setup.stack.enter_async_context(client))


async def _forwarded_rest(setup: AccessSetup) -> str:
    """Open a port-forward to the server's REST API through the service cluster, and return its address."""
    cluster = await setup.stack.enter_async_context(TracedCluster(service_target(setup)))
    client, namespace = cluster.client, setup.access.namespace
    target = await port_forward.find(client, namespace=namespace, service=_SERVICE, port=_SERVICE_PORT)
    forwarding = port_forward.forward(client.address, target, timeout_seconds=setup.access.timeout_seconds)
    return await setup.stack.enter_async_context(forwarding)


async def _pod(setup: AccessSetup, database_access: str) -> DatabaseReader:
    access = setup.access
    if not access.svc_context and not access.svc_kubeconfig:
        setup.warn("No service cluster access specified. Using current context.")
    cluster = await setup.stack.enter_async_context(TracedCluster(service_target(setup)))
    if database_access == "auto":
        database_access = await prerequisites.has_database_pod(cluster, setup.location)
    if database_access == "maestro-db":
        return SqlDatabaseReader(MaestroDbPod(cluster=cluster, location=setup.location))
    if database_access == "breakglass":
        permissions = Permissions(query=access.confirms_query, scaling=access.confirms_scaling)
        breakglass = Breakglass(cluster, setup.location, confirmer=setup.confirmer, permissions=permissions)
        return SqlDatabaseReader(await setup.stack.enter_async_context(breakglass))
    raise NoAccess(
        f"Cannot connect to database: no maestro-db pod and no postgres-breakglass deployment in namespace "
        f"{access.namespace} on {cluster.label}; check --svc-context and --namespace, or give --db-dsn or --rest-url"
    )


def service_target(setup: AccessSetup) -> ClusterTarget:
    """Return the service cluster."""
    return cluster_selection.service_cluster(setup.cluster_options, setup.kubeconfig_location)


async def check(setup: AccessSetup) -> Sequence[Prerequisite]:
    """Check everything a trace needs."""
    checks: list[Prerequisite] = []
    match setup.database_access:
        case "auto" | "maestro-db" | "breakglass":
            checks += await _checked_service(setup)
        case "dsn":
            checks.append(await _checked_dsn(setup))
        case database_access:
            checks.append(
                Prerequisite(what="database", is_met=database_access != "none", says=f"--db {database_access}")
            )
    try:
        targets = cluster_selection.management_clusters(setup.cluster_options, setup.kubeconfig_location)
    except NoAccess as error:
        return [*checks, Prerequisite(what="management cluster", is_met=False, says=str(error))]
    for target in targets:
        try:
            async with TracedCluster(target) as cluster:
                checks += await prerequisites.check_management(cluster)
        except NoAccess as error:
            checks.append(Prerequisite(what=f"management cluster {target.label}", is_met=False, says=str(error)))
    return checks


async def _checked_service(setup: AccessSetup) -> Sequence[Prerequisite]:
    try:
        async with TracedCluster(service_target(setup)) as cluster:
            return await prerequisites.check_service(cluster, setup.location)
    except NoAccess as error:
        return [Prerequisite(what="service cluster", is_met=False, says=str(error))]


async def _checked_dsn(setup: AccessSetup) -> Prerequisite:
    database = DsnDatabase(dsn=setup.access.db_dsn, timeout_seconds=setup.location.timeout_seconds)
    try:
        counted = await database.documents("SELECT json_build_object('rows', count(*))::text FROM resources", ())
    except NoAccess as error:
        return Prerequisite(what="database", is_met=False, says=str(error))
    return Prerequisite(what=database.description, is_met=True, says=f"{counted[0]['rows']} works")
