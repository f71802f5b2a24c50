"""Open what a trace asks: the database and the clusters, or a dump. What cannot be opened is noted, not fatal."""

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maestropy.cli.trace_environment import Access
from maestropy.cli.trace_options import AccessOptions
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import ConfigError
from maestropy.trace import offline
from maestropy.trace.access import choosing, prerequisites
from maestropy.trace.access.breakglass import Breakglass, Permissions
from maestropy.trace.access.cluster import Choice, Cluster
from maestropy.trace.access.consent import Consent
from maestropy.trace.access.poddatabase import MaestroDbPod, Spot
from maestropy.trace.access.prerequisites import Prerequisite
from maestropy.trace.database import DsnDatabase
from maestropy.trace.errors import BadQuestion, NoAccess
from maestropy.trace.restside import RestSide
from maestropy.trace.work.gather import Sides
from maestropy.trace.work.model import Sight
from maestropy.trace.work.sides import ClusterSide, DatabaseSide, SqlSide


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """All that opening needs."""

    access: Access
    consent: Consent
    stack: AsyncExitStack
    is_quiet: bool = False

    @property
    def options(self) -> AccessOptions:
        """The ways to both sides."""
        return self.access.options

    def warn(self, text: str) -> None:
        """Say something that nobody has to answer."""
        if not self.is_quiet:
            self.consent.tell(f"⚠ WARNING: {text}")

    @property
    def spot(self) -> Spot:
        """Where database pods are."""
        options = self.options
        return Spot(namespace=options.namespace, pod=options.db_pod, timeout_seconds=max(1, round(options.timeout)))

    @property
    def wanted(self) -> choosing.Wanted:
        """What the command line says about clusters."""
        options = self.options
        return choosing.Wanted(
            svc_context=options.svc_context,
            svc_kubeconfig=options.svc_kubeconfig,
            mgmt_contexts=options.mgmt_context,
            mgmt_kubeconfigs=options.mgmt_kubeconfig,
            agent_namespace=options.agent_namespace,
            timeout_seconds=options.timeout,
        )

    @property
    def place(self) -> choosing.Place:
        """Where kubeconfigs are looked for."""
        return choosing.Place(environ=os.environ, home=Path.home())

    @property
    def way(self) -> str:
        """The way to the database that the options mean, before any cluster is asked."""
        options = self.options
        if options.db != "auto":
            return options.db
        return "dsn" if options.db_dsn else "rest" if options.rest_url else "auto"


async def open_sides(opening: Opening) -> Sides:
    """Open everything that can be opened."""
    if opening.options.offline is not None:
        return _offline(opening.options.offline)
    clusters: list[ClusterSide] = []
    lost: list[Sight] = []
    if not opening.options.no_cluster:
        await _open_clusters(opening, clusters=clusters, lost=lost)
    try:
        database, trouble = await _database(opening), ""
    except NoAccess as error:
        database, trouble = None, str(error)
    return Sides(database=database, database_trouble=trouble, clusters=clusters, lost_clusters=lost)


def _offline(directory: Path) -> Sides:
    dump = offline.load(directory)
    clusters = [
        offline.OfflineCluster(label=name or "dump", consumer=name, items=items)
        for name, items in dump.clusters.items()
    ]
    if not dump.rows and not dump.tombstones:
        return Sides(database=None, database_trouble=f"{directory} holds no rows and no bundles", clusters=clusters)
    return Sides(database=offline.OfflineDatabase(dump=dump, directory=directory), clusters=clusters)


async def _open_clusters(opening: Opening, *, clusters: list[ClusterSide], lost: list[Sight]) -> None:
    options = opening.options
    if not options.mgmt_context and not options.mgmt_kubeconfig:
        opening.warn("No management cluster access specified. Using current context.")
    try:
        choices = choosing.management_clusters(opening.wanted, opening.place)
    except NoAccess as error:
        lost.append(Sight(place="management cluster", is_clear=False, trouble=str(error)))
        return
    for choice in choices:
        try:
            clusters.append(await opening.stack.enter_async_context(Cluster(choice)))
        except NoAccess as error:
            place = f"cluster {choice.label}"
            lost.append(Sight(place=place, is_clear=False, trouble=str(error), consumer=choice.consumer))


async def _database(opening: Opening) -> DatabaseSide | None:
    options = opening.options
    match opening.way:
        case "none":
            return None
        case "dsn":
            if not options.db_dsn:
                raise BadQuestion("--db dsn needs --db-dsn, or MAESTRO_DB_DSN")
            return SqlSide(DsnDatabase(dsn=options.db_dsn, timeout_seconds=opening.spot.timeout_seconds))
        case "rest":
            return await _rest(opening)
        case way:
            return await _pod(opening, way)


async def _rest(opening: Opening) -> DatabaseSide:
    try:
        given: dict[str, Any] = {"timeout": opening.options.timeout, **opening.access.client}
        if opening.options.rest_url:
            given["api_url"] = opening.options.rest_url
        client = AsyncMaestro(**given)
        client.settings.needs("api_url")
    except ConfigError as error:
        raise BadQuestion(f"--rest-url: {error}") from error
    return RestSide(client=await opening.stack.enter_async_context(client))


async def _pod(opening: Opening, way: str) -> DatabaseSide:
    options = opening.options
    if not options.svc_context and not options.svc_kubeconfig:
        opening.warn("No service cluster access specified. Using current context.")
    cluster = await opening.stack.enter_async_context(Cluster(service_choice(opening)))
    if way == "auto":
        way = await prerequisites.has_database_pod(cluster, opening.spot)
    if way == "maestro-db":
        return SqlSide(MaestroDbPod(cluster=cluster, spot=opening.spot))
    if way == "breakglass":
        permissions = Permissions(query=options.yes, scaling=options.scale_up)
        breakglass = Breakglass(cluster, opening.spot, consent=opening.consent, permissions=permissions)
        return SqlSide(await opening.stack.enter_async_context(breakglass))
    raise NoAccess(
        f"Cannot connect to database: no maestro-db pod and no postgres-breakglass deployment in namespace "
        f"{options.namespace} on {cluster.label}; check --svc-context and --namespace, or give --db-dsn or --rest-url"
    )


def service_choice(opening: Opening) -> Choice:
    """Return the service cluster."""
    return choosing.service_cluster(opening.wanted, opening.place)


async def check(opening: Opening) -> Sequence[Prerequisite]:
    """Check everything a trace needs."""
    found: list[Prerequisite] = []
    match opening.way:
        case "auto" | "maestro-db" | "breakglass":
            found += await _checked_service(opening)
        case "dsn":
            found.append(await _checked_dsn(opening))
        case way:
            found.append(Prerequisite(what="database", is_met=way != "none", says=f"--db {way}"))
    try:
        choices = choosing.management_clusters(opening.wanted, opening.place)
    except NoAccess as error:
        return [*found, Prerequisite(what="management cluster", is_met=False, says=str(error))]
    for choice in choices:
        try:
            async with Cluster(choice) as cluster:
                found += await prerequisites.check_management(cluster)
        except NoAccess as error:
            found.append(Prerequisite(what=f"management cluster {choice.label}", is_met=False, says=str(error)))
    return found


async def _checked_service(opening: Opening) -> Sequence[Prerequisite]:
    try:
        async with Cluster(service_choice(opening)) as cluster:
            return await prerequisites.check_service(cluster, opening.spot)
    except NoAccess as error:
        return [Prerequisite(what="service cluster", is_met=False, says=str(error))]


async def _checked_dsn(opening: Opening) -> Prerequisite:
    database = DsnDatabase(dsn=opening.options.db_dsn, timeout_seconds=opening.spot.timeout_seconds)
    try:
        counted = await database.documents("SELECT json_build_object('rows', count(*))::text FROM resources", ())
    except NoAccess as error:
        return Prerequisite(what="database", is_met=False, says=str(error))
    return Prerequisite(what=database.place, is_met=True, says=f"{counted[0]['rows']} works")
