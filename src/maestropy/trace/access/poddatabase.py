"""Ask the database through the pod that has it: `maestro-db`, a plain psql beside the server's database.

The statement goes to psql's standard input. No identifier is ever part of a command line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.kube import errors
from maestropy.kube.objects import Json
from maestropy.kube.request import ResourceType, Selector
from maestropy.trace import psql
from maestropy.trace.access import podexec
from maestropy.trace.access.cluster import Cluster, trouble
from maestropy.trace.errors import NoAccess

PODS = ResourceType(group="", version="v1", plural="pods", kind="Pod", namespaced=True)
DATABASE_PODS = "name=maestro-db"
_SPARE_SECONDS = 15.0
"""For the way there and back, beside what the statement itself may take."""

# The image's own variables say who and what; both spellings are in use. exec: psql's exit code is to be the program's.
_PSQL = (
    'exec psql -X -q -v ON_ERROR_STOP=1 -U "${POSTGRES_USER:-${POSTGRESQL_USER:-maestro}}" '
    '-d "${POSTGRES_DB:-${POSTGRESQL_DATABASE:-maestro}}"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where the database pods are."""

    namespace: str = "maestro"
    pod: str = ""
    """Empty means the first ready one."""
    timeout_seconds: int = 15


async def ready_pods(cluster: Cluster, spot: Spot, *, labels: str) -> Sequence[str]:
    """Return the names of the pods with these labels that are ready."""
    try:
        found = await cluster.client.list(PODS, namespace=spot.namespace, selector=Selector(labels=labels))
    except errors.KubeError as error:
        raise trouble(error, label=cluster.label, doing=f"list pods in namespace {spot.namespace}") from error
    return sorted(str(each["metadata"]["name"]) for each in found if is_ready(each))


def is_ready(pod: Json) -> bool:
    """Whether a pod can be asked: ready, and nobody deletes it."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    is_going = bool((pod.get("metadata") or {}).get("deletionTimestamp"))
    return not is_going and any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaestroDbPod:
    """The `maestro-db` pod of the service cluster."""

    cluster: Cluster
    spot: Spot

    @property
    def place(self) -> str:
        """Who is asked."""
        return f"database (maestro-db pod on {self.cluster.label})"

    async def documents(self, sql: str, parameters: Sequence[str]) -> Sequence[dict[str, Any]]:
        """Run one statement in the pod."""
        pod = self.spot.pod
        if not pod:
            pods = await ready_pods(self.cluster, self.spot, labels=DATABASE_PODS)
            if not pods:
                raise NoAccess(
                    f"no ready pod {DATABASE_PODS} in namespace {self.spot.namespace} on {self.cluster.label}; "
                    f"check: kubectl -n {self.spot.namespace} get pods, or use --db breakglass|dsn|rest"
                )
            pod = pods[0]
        reviewed = psql.question(sql, parameters, timeout_seconds=self.spot.timeout_seconds)
        program = podexec.Program(
            namespace=self.spot.namespace, pod=pod, command=("sh", "-c", _PSQL), stdin=psql.script(reviewed).encode()
        )
        return await run_psql(self.cluster, program, seconds=self.spot.timeout_seconds)


async def run_psql(cluster: Cluster, program: podexec.Program, *, seconds: float) -> Sequence[dict[str, Any]]:
    """Run a script and return the documents it printed."""
    outcome = await podexec.run(
        cluster.choice.address, program, timeout_seconds=seconds + _SPARE_SECONDS, label=cluster.label
    )
    if outcome.exit_code != 0:
        reason = psql.complaint(bytes(outcome.stderr)) if outcome.stderr else outcome.trouble or "it ended early"
        raise NoAccess(
            f"Cannot connect to database: psql in pod {program.pod} failed: {reason}; check the pod and namespace"
        )
    return list(psql.documents(bytes(outcome.stdout)))
