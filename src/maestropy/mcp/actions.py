"""Operator actions in two steps: a dry run that returns a plan token, and the action with this token.

A token is good once, for some minutes, in the session that made it, and for exactly the action, target and reason of
the dry run. This is repeated before the action is performed: if its facts differ from those that were shown, the action
is refused.
"""

import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from maestropy.aio.clock import Clock, new_id
from maestropy.mcp.answers import Result, ToolError
from maestropy.mcp.definitions import PerformAction, PlanAction
from maestropy.mcp.texts import Ours
from maestropy.sdk.actions import OperatorAction
from maestropy.sdk.client import AsyncMaestro

_SECONDS: Final = 600.0
_MOST_PLANS: Final = 50
_REQUESTED_BY: Final = "maestro mcp"
Perform = Callable[..., Awaitable[OperatorAction]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    action: str
    target: str
    reason: str
    facts: OperatorAction
    until: float


class Actions:
    """The plans of one session."""

    def __init__(self, client: AsyncMaestro, *, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or Clock()
        self._plans: dict[str, _Plan] = {}

    async def plan_action(self, asked: PlanAction) -> Result:
        """Say what an action would do, and return a token for it."""
        facts = await self._performer(asked)(dry_run=True)
        if not facts.is_change:
            return _result(facts, Ours("Nothing would change: it is so already. There is no plan to perform."))
        token = new_id()
        self._plans[token] = _Plan(
            action=str(asked.action),
            target=asked.target,
            reason=asked.reason,
            facts=facts,
            until=self._clock.monotonic() + _SECONDS,
        )
        while len(self._plans) > _MOST_PLANS:
            self._plans.pop(next(iter(self._plans)))
        summary = Ours("Dry run: nothing was changed. Show the effects to the user before perform_action.")
        return _result(facts, summary, plan=Ours(token), validSeconds=int(_SECONDS))

    async def perform_action(self, asked: PerformAction) -> Result:
        """Perform a planned action."""
        again = "Call plan_action for it, show the effects to the user, and use the token of that answer."
        # A token that was used, also in vain, is used up.
        plan = self._plans.pop(asked.plan, None)
        if plan is None or plan.until < self._clock.monotonic():
            raise ToolError("this plan is not of this session, is used up or expired", remedy=again)
        if (plan.action, plan.target, plan.reason) != (asked.action, asked.target, asked.reason):
            raise ToolError("the plan is for another action, target or reason", remedy=again)
        perform = self._performer(asked)
        now = await perform(dry_run=True)
        if replace(now, plan="") != replace(plan.facts, plan=""):
            raise ToolError("something has changed since the dry run, so the plan is not performed", remedy=again)
        done = await perform()
        return _result(done, Ours("Done." if done.is_change else "Nothing was changed: it was so already."))

    def _performer(self, asked: PlanAction) -> Perform:
        methods: dict[str, Perform] = {
            "pause": self._client.consumers.pause,
            "resume": self._client.consumers.resume,
            "resync": self._client.consumers.resync,
            "resend": self._client.resource_bundles.resend,
        }
        if "/" in asked.target:
            # In the path of a request it would name another endpoint, and the answer would be about that.
            noun = "work" if asked.action == "resend" else "consumer"
            raise ToolError(
                f"no such {noun}: {asked.target}", remedy=f"No name has a slash; name the {noun} as find does."
            )
        method = methods[str(asked.action)]
        return functools.partial(method, asked.target, reason=asked.reason, requested_by=_REQUESTED_BY)


def _result(facts: OperatorAction, summary: str, **more: Any) -> Result:
    head = {
        "action": Ours(facts.action),
        "consumer": facts.consumer,
        "summary": summary,
        "isDryRun": facts.is_dry_run,
        "changes": facts.is_change,
        "effects": list(facts.effects),
        "warnings": list(facts.warnings),
        "workCount": facts.work_count,
        **more,
    }
    items = [
        {
            "work": work.name,
            "id": work.id,
            "version": work.version,
            "isDeleting": work.is_deleting,
            "evidence": f"row:{work.id}",
        }
        for work in facts.works
    ]
    return Result(head=head, items=items)
