"""A guided check: what a trace needs, what of it is there, and how to get the rest. It changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from maestropy.kube import errors
from maestropy.kube.request import ResourceType, Selector
from maestropy.trace.access.breakglass import DEPLOYMENT
from maestropy.trace.access.cluster import APPLIED_WORKS, DEPLOYMENTS, Cluster
from maestropy.trace.access.poddatabase import DATABASE_PODS, Spot, ready_pods
from maestropy.trace.errors import NoAccess

_NAMESPACES = ResourceType(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prerequisite:
    """One thing a trace needs."""

    what: str
    is_met: bool
    says: str
    """What was found, or how to get it."""


async def check_service(cluster: Cluster, spot: Spot) -> Sequence[Prerequisite]:
    """Check the cluster of the server: reachable, the namespace, and a way to the database."""
    reached = await _reached(cluster, "service cluster")
    if not reached.is_met:
        return [reached]
    found = [reached, await _namespace(cluster, spot.namespace)]
    try:
        pods = await ready_pods(cluster, spot, labels=DATABASE_PODS)
        found.append(_database(pods, has_breakglass=await _has_breakglass(cluster, spot.namespace), spot=spot))
    except NoAccess as error:
        found.append(Prerequisite(what="database pod", is_met=False, says=str(error)))
    return found


async def check_management(cluster: Cluster) -> Sequence[Prerequisite]:
    """Check a cluster of an agent: reachable, and its applied works can be read."""
    reached = await _reached(cluster, "management cluster")
    if not reached.is_met:
        return [reached]
    what = f"AppliedManifestWorks on {cluster.label}"
    try:
        found = await cluster.client.list(APPLIED_WORKS, selector=Selector(metadata_only=True))
    except errors.NotFound:
        says = "the cluster does not serve them; is it a management cluster? check --mgmt-context"
        return [reached, Prerequisite(what=what, is_met=False, says=says)]
    except errors.KubeError as error:
        says = f"{error.message}; ask for get and list on appliedmanifestworks.work.open-cluster-management.io"
        return [reached, Prerequisite(what=what, is_met=False, says=says)]
    consumer = cluster.consumer or await cluster.agent_consumer()
    whose = f"consumer {consumer}" if consumer else "the consumer is not known; give --mgmt-context CONSUMER=CONTEXT"
    return [reached, Prerequisite(what=what, is_met=True, says=f"{len(found)} found; {whose}")]


async def _reached(cluster: Cluster, role: str) -> Prerequisite:
    what = f"{role} {cluster.label}"
    try:
        version = await cluster.can_reach()
    except NoAccess as error:
        return Prerequisite(what=what, is_met=False, says=str(error))
    return Prerequisite(what=what, is_met=True, says=f"Kubernetes {version} at {cluster.choice.address.server}")


async def _namespace(cluster: Cluster, name: str) -> Prerequisite:
    what = f"namespace {name} on {cluster.label}"
    try:
        await cluster.client.get(_NAMESPACES, name)
    except errors.NotFound:
        says = "there is none; check --svc-context, or name the server's namespace with --namespace"
        return Prerequisite(what=what, is_met=False, says=says)
    except errors.KubeError as error:
        # Who may read pods in a namespace need not be allowed to read the namespace itself.
        return Prerequisite(what=what, is_met=True, says=f"cannot be read ({error.message}); assumed")
    return Prerequisite(what=what, is_met=True, says="found")


async def _has_breakglass(cluster: Cluster, namespace: str) -> bool:
    try:
        await cluster.client.get(DEPLOYMENTS, DEPLOYMENT, namespace=namespace)
    except errors.KubeError:
        return False
    return True


def _database(pods: Sequence[str], *, has_breakglass: bool, spot: Spot) -> Prerequisite:
    if pods:
        return Prerequisite(what="database pod", is_met=True, says=f"maestro-db: {pods[0]}; use --db maestro-db")
    if has_breakglass:
        return Prerequisite(what="database pod", is_met=True, says=f"{DEPLOYMENT}; use --db breakglass")
    says = (
        f"neither a ready maestro-db pod nor a deployment {DEPLOYMENT} in namespace {spot.namespace}; "
        "give --db-dsn postgresql://…, or --rest-url https://…"
    )
    return Prerequisite(what="database pod", is_met=False, says=says)


async def has_database_pod(cluster: Cluster, spot: Spot) -> str:
    """Return which way the service cluster offers to its database: `maestro-db`, `breakglass`, or neither."""
    if spot.pod or await ready_pods(cluster, spot, labels=DATABASE_PODS):
        return "maestro-db"
    return "breakglass" if await _has_breakglass(cluster, spot.namespace) else ""
