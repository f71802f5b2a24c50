"""Review whether a work's executor may apply a manifest or read its object, and cache the results.

A work is reconciled whenever one of its objects changes; five reviews for each reconcile would be most of the agent's
requests. A new generation of the work and every periodic resync review again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from maestropy.agent.decide import executor
from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.request import Impersonation, ResourceType, WriteOptions
from maestropy.wire.works import options, status

_REVIEWS = ResourceType(
    group="authorization.k8s.io",
    version="v1",
    plural="subjectaccessreviews",
    kind="SubjectAccessReview",
    namespaced=False,
)

_MIN_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorAction:
    """One manifest that an executor is to apply for one generation of a work."""

    executor: options.Executor
    meta: status.ResourceMeta
    is_owned: bool
    applied_work_uid: str
    """The UID of its AppliedManifestWork."""
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorRead:
    """One object whose state is to be reported for one generation of a work."""

    executor: options.Executor
    meta: status.ResourceMeta
    generation: int


class ExecutorAccess:
    """Cached access reviews of executors."""

    def __init__(self, client: KubeClient, *, monotonic: Callable[[], float], seconds: float) -> None:
        self._client = client
        self._monotonic = monotonic
        self._seconds = seconds
        self._denials: dict[ExecutorAction | ExecutorRead, tuple[float, str]] = {}
        self._max_kept = _MIN_KEPT
        """Expired results are dropped when this many are kept."""

    async def denial(self, action: ExecutorAction, *, resource: ResourceType, manifest: Json) -> str:
        """Return why the executor may not apply the manifest, or an empty string."""
        known = self._known(action)
        if known is not None:
            return known
        return self._keep(action, await self._review(action, resource=resource, manifest=manifest))

    async def read_denial(self, read: ExecutorRead) -> str:
        """Return why nothing of the object may be reported, or an empty string."""
        known = self._known(read)
        if known is not None:
            return known
        is_allowed = await self._is_allowed(executor.read_review(read.executor, read.meta))
        return self._keep(read, "" if is_allowed else executor.read_denial(read.executor, read.meta))

    def _known(self, action: ExecutorAction | ExecutorRead) -> str | None:
        known = self._denials.get(action)
        return known[1] if known is not None and self._monotonic() < known[0] else None

    def _keep(self, action: ExecutorAction | ExecutorRead, denial: str) -> str:
        now = self._monotonic()
        if len(self._denials) >= self._max_kept:
            self._denials = {known_action: kept for known_action, kept in self._denials.items() if now < kept[0]}
            self._max_kept = max(_MIN_KEPT, 2 * len(self._denials))
        self._denials[action] = (now + self._seconds, denial)
        return denial

    async def _is_allowed(self, review: Json) -> bool:
        response = await self._client.create(_REVIEWS, review)
        return bool((response.get("status") or {}).get("allowed"))

    async def _review(self, action: ExecutorAction, *, resource: ResourceType, manifest: Json) -> str:
        meta = action.meta
        checks = executor.access_checks(action.executor, meta, is_owned=action.is_owned)
        for review in checks.reviews:
            if not await self._is_allowed(review):
                return executor.denial(meta)
        if checks.dry_run_as:
            impersonation = Impersonation(user=checks.dry_run_as, groups=tuple(executor.groups(action.executor)))
            try:
                await self._client.create(
                    resource, manifest, write=WriteOptions(dry_run=True, impersonate=impersonation)
                )
            except errors.Forbidden:
                return executor.denial(meta, is_escalation=True)
            except errors.AlreadyExists:
                return ""
        return ""
