"""Query the database through the `maestro-db` pod, which has psql beside the server's database.

The statement is sent to the standard input of psql. Identifiers are never part of a command line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.kube import errors
from maestropy.kube.objects import Json
from maestropy.kube.request import ObjectSelector, ResourceType
from maestropy.trace import psql
from maestropy.trace.access import pod_exec
from maestropy.trace.access.cluster import TracedCluster, no_access
from maestropy.trace.errors import NoAccess

PODS = ResourceType(group="", version="v1", plural="pods", kind="Pod", namespaced=True)
DATABASE_PODS = "name=maestro-db"
_SPARE_SECONDS = 15.0
"""Added to the statement timeout for starting psql and for the network."""

# The image sets user and database in variables of either spelling. With exec, the exit code is that of psql.
_PSQL = (
    'exec psql -X -q -v ON_ERROR_STOP=1 -U "${POSTGRES_USER:-${POSTGRESQL_USER:-maestro}}" '
    '-d "${POSTGRES_DB:-${POSTGRESQL_DATABASE:-maestro}}"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLocation:
    """Where the database pods are."""

    namespace: str = "maestro"
    pod: str = ""
    """Empty: the first ready one."""
    timeout_seconds: int = 15


async def ready_pods(cluster: TracedCluster, location: PodLocation, *, labels: str) -> Sequence[str]:
    """Return the names of the pods with these labels that are ready."""
    try:
        pods = await cluster.client.list(PODS, namespace=location.namespace, selector=ObjectSelector(labels=labels))
    except errors.KubeError as error:
        raise no_access(error, label=cluster.label, action=f"list pods in namespace {location.namespace}") from error
    return sorted(str(pod["metadata"]["name"]) for pod in pods if is_ready(pod))


def is_ready(pod: Json) -> bool:
    """Whether a pod is ready and not being deleted."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    is_going = bool((pod.get("metadata") or {}).get("deletionTimestamp"))
    return not is_going and any(
        condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MaestroDbPod:
    """The `maestro-db` pod of the service cluster."""

    cluster: TracedCluster
    location: PodLocation

    @property
    def description(self) -> str:
        return f"database (maestro-db pod on {self.cluster.label})"

    async def documents(self, sql: str, parameters: Sequence[str]) -> Sequence[dict[str, Any]]:
        """Run one statement in the pod."""
        pod = self.location.pod
        if not pod:
            pods = await ready_pods(self.cluster, self.location, labels=DATABASE_PODS)
            if not pods:
                raise NoAccess(
                    f"no ready pod {DATABASE_PODS} in namespace {self.location.namespace} on {self.cluster.label}; "
                    f"check: {self.cluster.kubectl_command(f'-n {self.location.namespace} get pods')}, "
                    "or use --db breakglass|dsn|rest"
                )
            pod = pods[0]
        reviewed = psql.query(sql, parameters, timeout_seconds=self.location.timeout_seconds)
        program = pod_exec.Program(
            namespace=self.location.namespace,
            pod=pod,
            command=("sh", "-c", _PSQL),
            stdin=psql.script(reviewed).encode(),
        )
        return await run_psql(self.cluster, program, seconds=self.location.timeout_seconds)


async def run_psql(cluster: TracedCluster, program: pod_exec.Program, *, seconds: float) -> Sequence[dict[str, Any]]:
    """Run a script and return the documents it printed."""
    outcome = await pod_exec.run(
        cluster.target.address, program, timeout_seconds=seconds + _SPARE_SECONDS, label=cluster.label
    )
    if outcome.exit_code != 0:
        reason = psql.complaint(bytes(outcome.stderr)) if outcome.stderr else outcome.problem or "it ended early"
        raise NoAccess(
            f"Cannot connect to database: psql in pod {program.pod} failed: {reason}; check the pod and namespace"
        )
    return list(psql.documents(bytes(outcome.stdout)))
