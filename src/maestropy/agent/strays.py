"""Stage: records whose work the agent does not know are marked, and ended later; `decide.eviction` says when."""

from maestropy.agent.decide import eviction
from maestropy.agent.turn import Parts
from maestropy.aio.keyed import Again
from maestropy.kube.objects import Json


class Strays:
    """Takes the turns of records without a work, and takes them back when the work comes."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def judge(self, record: Json) -> Again | None:
        """Decide about a record whose work we do not know."""
        grace = self._parts.rhythm.eviction_grace
        now = self._parts.now()
        answered_at = self._parts.answered_at()
        due = answered_at.seconds + self._parts.rhythm.arrival.total_seconds() if answered_at is not None else 0
        if due > now.seconds:
            return Again(due - now.seconds)
        match eviction.judge(record, is_work_known=False, policy=self._policy(), now=now):
            case eviction.Mark(patch=patch):
                await self._parts.records.mark(record, dict(patch))
                return Again(min(grace.total_seconds(), self._parts.resync_seconds()))
            case eviction.Look(at=at):
                return Again(max(0.5, at.seconds - now.seconds))
            case eviction.Evict():
                self._parts.journal.info(
                    "AppliedManifestWork evicted after eviction grace period",
                    {"agentID": self._parts.identity.agent_id},
                )
                await self._parts.records.delete(record)
                return Again(0)
            case _:
                return Again(self._parts.resync_seconds())

    async def welcome(self, record: Json) -> Json:
        """Call off the eviction of a record whose work is known after all."""
        match eviction.judge(record, is_work_known=True, policy=self._policy(), now=self._parts.now()):
            case eviction.Mark(patch=patch):
                return await self._parts.records.mark(record, dict(patch))
            case _:
                return record

    def _policy(self) -> eviction.Policy:
        return eviction.Policy(
            identity=self._parts.identity,
            grace_seconds=int(self._parts.rhythm.eviction_grace.total_seconds()),
            answered_at=self._parts.answered_at(),
        )
