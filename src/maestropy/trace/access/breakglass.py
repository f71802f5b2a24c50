"""Query a critical database through its `postgres-breakglass` pod, with a confirmation for every step.

The steps: offer to scale the deployment up, wait until the pod is ready, show the SQL, ask for confirmation, run it,
offer to scale back. Scaling is the only write that the tracer ever makes. Without a terminal nothing is confirmed,
unless a flag confirms it beforehand: `--yes` for the query, `--scale-up` for the scaling.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from maestropy.kube import errors
from maestropy.kube.request import Patch
from maestropy.trace import psql
from maestropy.trace.access import pod_exec
from maestropy.trace.access.cluster import DEPLOYMENTS, TracedCluster, no_access
from maestropy.trace.access.confirmation import Confirmer, confirm
from maestropy.trace.access.pod_database import PodLocation, ready_pods, run_psql
from maestropy.trace.errors import Declined, NoAccess

DEPLOYMENT = "postgres-breakglass"
PODS = f"app={DEPLOYMENT}"
CONTAINER = "postgres"
_CONNECT = "/breakglass/connect.sh"
"""Fetches a token and runs psql; the script contains a secret and is never shown."""
_RULE = "─" * 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """What the flags confirmed beforehand."""

    query: bool = False
    scaling: bool = False
    ready_seconds: float = 60.0
    poll_seconds: float = 1.0


class Breakglass:
    """The critical database, while entered."""

    def __init__(
        self, cluster: TracedCluster, location: PodLocation, *, confirmer: Confirmer, permissions: Permissions
    ) -> None:
        self._cluster = cluster
        self._location = location
        self._confirmer = confirmer
        self._permissions = permissions
        self._has_scaled = False

    @property
    def description(self) -> str:
        return f"database ({DEPLOYMENT} pod on {self._cluster.label})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._has_scaled:
            await self._scale_back()

    async def documents(self, sql: str, parameters: Sequence[str]) -> Sequence[dict[str, Any]]:
        """Run one statement, after a yes."""
        self._confirmer.notify(f"Environment: ARO-HCP INT (CRITICAL)\nDatabase: {DEPLOYMENT}")
        pod = self._location.pod or await self._ready_pod()
        reviewed = psql.query(sql, parameters, timeout_seconds=self._location.timeout_seconds)
        self._confirmer.notify(f"{_RULE}\nSQL Query to execute:\n{_RULE}\n{reviewed}{_RULE}")
        self._confirmer.notify("⚠  CRITICAL ENVIRONMENT - Confirm before execution")
        if not await confirm(
            self._confirmer,
            "Execute this query on ARO-HCP INT database?",
            assumed=self._permissions.query,
            flag="--yes",
        ):
            raise Declined("the query was not executed; nothing was read")
        self._confirmer.notify(f"Executing query on {DEPLOYMENT}...")
        program = pod_exec.Program(
            namespace=self._location.namespace,
            pod=pod,
            container=CONTAINER,
            command=(_CONNECT,),
            stdin=psql.script(reviewed).encode(),
        )
        try:
            return await run_psql(self._cluster, program, seconds=self._location.timeout_seconds)
        except NoAccess as error:
            # The token is fetched once, when the pod starts, and is valid for about an hour.
            raise NoAccess(
                f"{error}; if the login failed the pod's token may have expired: "
                + self._kubectl(f"rollout restart deployment {DEPLOYMENT}")
            ) from error

    async def _ready_pod(self) -> str:
        pods = await ready_pods(self._cluster, self._location, labels=PODS)
        if pods:
            return pods[0]
        self._confirmer.notify(f"⚠  {DEPLOYMENT} pod is not running\nTo start the pod, run:\n  {self._command(1)}")
        if not await confirm(
            self._confirmer,
            "Would you like to scale up the pod now?",
            assumed=self._permissions.scaling,
            flag="--scale-up",
        ):
            raise Declined(f"{DEPLOYMENT} stays as it is; scale it up yourself: {self._command(1)}")
        self._confirmer.notify(f"Scaling up {DEPLOYMENT} deployment...")
        await self._scale(1)
        self._has_scaled = True
        seconds = self._permissions.ready_seconds
        self._confirmer.notify(f"Waiting for pod to be ready (timeout: {seconds:.0f}s)...")
        try:
            async with asyncio.timeout(seconds):
                pod = await self._wait_for_pod()
        except TimeoutError as error:
            raise NoAccess(
                f"the {DEPLOYMENT} pod did not become ready within {seconds:.0f} s; "
                f"check: {self._kubectl(f'describe pods -l {PODS}')}"
            ) from error
        self._confirmer.notify(f"✓ Pod ready: {pod}")
        return pod

    async def _wait_for_pod(self) -> str:
        while not (pods := await ready_pods(self._cluster, self._location, labels=PODS)):  # noqa: ASYNC110 - a pod is theirs, not ours: only looking tells
            await asyncio.sleep(self._permissions.poll_seconds)
        return pods[0]

    async def _scale_back(self) -> None:
        self._confirmer.notify(f"We scaled {DEPLOYMENT} up; it should not stay up.")
        try:
            is_agreed = await confirm(
                self._confirmer, "Scale it back to 0 now?", assumed=self._permissions.scaling, flag="--scale-up"
            )
        except Declined:
            is_agreed = False
        if not is_agreed:
            self._confirmer.notify(f"⚠  {DEPLOYMENT} is still up. When you are done, run:\n  {self._command(0)}")
            return
        await self._scale(0)
        self._confirmer.notify(f"✓ {DEPLOYMENT} scaled back to 0")

    async def _scale(self, replicas: int) -> None:
        change = Patch(body={"spec": {"replicas": replicas}})
        try:
            await self._cluster.client.patch(DEPLOYMENTS, DEPLOYMENT, change=change, namespace=self._location.namespace)
        except errors.NotFound as error:
            raise NoAccess(
                f"no deployment {DEPLOYMENT} in namespace {self._location.namespace} on {self._cluster.label}; "
                "check --svc-context and --namespace, or use --db maestro-db|dsn|rest"
            ) from error
        except errors.KubeError as error:
            raise no_access(error, label=self._cluster.label, action=f"scale {DEPLOYMENT}") from error

    def _command(self, replicas: int) -> str:
        return self._kubectl(f"scale deployment {DEPLOYMENT} --replicas {replicas}")

    def _kubectl(self, words: str) -> str:
        return self._cluster.kubectl_command(f"-n {self._location.namespace} {words}")
