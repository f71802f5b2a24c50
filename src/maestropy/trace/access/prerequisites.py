"""Check what a trace needs: reachable clusters, a database, applied works. Read-only."""

from collections.abc import Sequence
from dataclasses import dataclass

from maestropy.kube import errors
from maestropy.kube.request import ObjectSelector, ResourceType
from maestropy.trace.access.breakglass import DEPLOYMENT
from maestropy.trace.access.cluster import APPLIED_WORKS, DEPLOYMENTS, TracedCluster
from maestropy.trace.access.pod_database import DATABASE_PODS, PodLocation, ready_pods
from maestropy.trace.errors import NoAccess

_NAMESPACES = ResourceType(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prerequisite:
    """One prerequisite of a trace."""

    what: str
    is_met: bool
    says: str
    """What was found, or how to get it."""


async def check_service(cluster: TracedCluster, location: PodLocation) -> Sequence[Prerequisite]:
    """Check the service cluster: reachable, the namespace, and access to the database."""
    reached = await _reached(cluster, "service cluster")
    if not reached.is_met:
        return [reached]
    checks = [reached, await _namespace(cluster, location.namespace)]
    try:
        pods = await ready_pods(cluster, location, labels=DATABASE_PODS)
        checks.append(
            _database(pods, has_breakglass=await _has_breakglass(cluster, location.namespace), location=location)
        )
    except NoAccess as error:
        checks.append(Prerequisite(what="database pod", is_met=False, says=str(error)))
    return checks


async def check_management(cluster: TracedCluster) -> Sequence[Prerequisite]:
    """Check a cluster of an agent: reachable, and its applied works can be read."""
    reached = await _reached(cluster, "management cluster")
    if not reached.is_met:
        return [reached]
    name = f"AppliedManifestWorks on {cluster.label}"
    try:
        applied_works = await cluster.client.list(APPLIED_WORKS, selector=ObjectSelector(metadata_only=True))
    except errors.NotFound:
        says = "the cluster does not serve them; is it a management cluster? check --mgmt-context"
        return [reached, Prerequisite(what=name, is_met=False, says=says)]
    except errors.KubeError as error:
        says = f"{error.message}; request get and list on appliedmanifestworks.work.open-cluster-management.io"
        return [reached, Prerequisite(what=name, is_met=False, says=says)]
    consumer = cluster.consumer or await cluster.agent_consumer()
    consumer_text = (
        f"consumer {consumer}" if consumer else "the consumer is not known; give --mgmt-context CONSUMER=CONTEXT"
    )
    return [reached, Prerequisite(what=name, is_met=True, says=f"{len(applied_works)} found; {consumer_text}")]


async def _reached(cluster: TracedCluster, role: str) -> Prerequisite:
    name = f"{role} {cluster.label}"
    try:
        version = await cluster.can_reach()
    except NoAccess as error:
        return Prerequisite(what=name, is_met=False, says=str(error))
    return Prerequisite(what=name, is_met=True, says=f"Kubernetes {version} at {cluster.target.address.server}")


async def _namespace(cluster: TracedCluster, name: str) -> Prerequisite:
    label = f"namespace {name} on {cluster.label}"
    try:
        await cluster.client.get(_NAMESPACES, name)
    except errors.NotFound:
        says = "not found; check --svc-context, or name the server's namespace with --namespace"
        return Prerequisite(what=label, is_met=False, says=says)
    except errors.KubeError as error:
        # The right to read pods in a namespace does not include the right to read the namespace itself.
        return Prerequisite(what=label, is_met=True, says=f"cannot be read ({error.message}); assumed")
    return Prerequisite(what=label, is_met=True, says="found")


async def _has_breakglass(cluster: TracedCluster, namespace: str) -> bool:
    try:
        await cluster.client.get(DEPLOYMENTS, DEPLOYMENT, namespace=namespace)
    except errors.KubeError:
        return False
    return True


def _database(pods: Sequence[str], *, has_breakglass: bool, location: PodLocation) -> Prerequisite:
    if pods:
        return Prerequisite(what="database pod", is_met=True, says=f"maestro-db: {pods[0]}; use --db maestro-db")
    if has_breakglass:
        return Prerequisite(what="database pod", is_met=True, says=f"{DEPLOYMENT}; use --db breakglass")
    says = (
        f"neither a ready maestro-db pod nor a deployment {DEPLOYMENT} in namespace {location.namespace}; "
        "give --db-dsn postgresql://…, or --rest-url https://…"
    )
    return Prerequisite(what="database pod", is_met=False, says=says)


async def has_database_pod(cluster: TracedCluster, location: PodLocation) -> str:
    """Return how the service cluster gives access to its database: `maestro-db`, `breakglass`, or neither."""
    if location.pod or await ready_pods(cluster, location, labels=DATABASE_PODS):
        return "maestro-db"
    return "breakglass" if await _has_breakglass(cluster, location.namespace) else ""
