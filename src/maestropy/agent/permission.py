"""Ask the cluster whether a work's executor may do what the work wants, and remember the answer for a while.

A work is looked at whenever one of its objects changes; asking five times for each look would be most of what an agent
says to its API server. A new version of the work, and every slow round, asks anew.
"""

from collections.abc import Callable
from dataclasses import dataclass

from maestropy.agent.decide import executor
from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.request import Impersonation, ResourceType, Write
from maestropy.wire import options, status

_REVIEWS = ResourceType(
    group="authorization.k8s.io",
    version="v1",
    plural="subjectaccessreviews",
    kind="SubjectAccessReview",
    namespaced=False,
)

_FEW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """May this account apply this object for this version of this work?"""

    executor: options.Executor
    meta: status.ResourceMeta
    is_owned: bool
    work: str
    """The uid of its record."""
    generation: int


class Permissions:
    """What executors may do."""

    def __init__(self, client: KubeClient, *, monotonic: Callable[[], float], seconds: float) -> None:
        self._client = client
        self._monotonic = monotonic
        self._seconds = seconds
        self._answers: dict[Question, tuple[float, str]] = {}
        self._most = _FEW
        """So many answers are kept before old ones are looked for."""

    async def denial(self, question: Question, *, resource: ResourceType, manifest: Json) -> str:
        """Return why not, or an empty string."""
        now = self._monotonic()
        known = self._answers.get(question)
        if known is not None and now < known[0]:
            return known[1]
        answer = await self._ask(question, resource=resource, manifest=manifest)
        if len(self._answers) >= self._most:
            self._answers = {asked: found for asked, found in self._answers.items() if now < found[0]}
            self._most = max(_FEW, 2 * len(self._answers))
        self._answers[question] = (now + self._seconds, answer)
        return answer

    async def _ask(self, question: Question, *, resource: ResourceType, manifest: Json) -> str:
        meta = question.meta
        asked = executor.questions(question.executor, meta, is_owned=question.is_owned)
        for review in asked.reviews:
            answer = await self._client.create(_REVIEWS, review)
            if not (answer.get("status") or {}).get("allowed"):
                return executor.denial(meta)
        if asked.dry_run_as:
            who = Impersonation(user=asked.dry_run_as, groups=tuple(executor.groups(question.executor)))
            try:
                await self._client.create(resource, manifest, write=Write(dry_run=True, impersonate=who))
            except errors.Forbidden:
                return executor.denial(meta, is_escalation=True)
            except errors.AlreadyExists:
                return ""
        return ""
