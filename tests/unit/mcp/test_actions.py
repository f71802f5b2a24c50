"""An action is performed only as its dry run has shown it, in the same session, once."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from maestropy.aio.clock import Clock
from maestropy.mcp.actions import Actions
from maestropy.mcp.answers import ToolError
from maestropy.mcp.definitions import PerformAction, PlanAction
from maestropy.sdk.actions import OperatorAction

FACTS = OperatorAction(
    action="pause", consumer="c1", is_dry_run=True, is_change=True, effects=("Send nothing.",), work_count=2
)


class Consumers:
    """Answers as a server does, and remembers what was really performed."""

    def __init__(self) -> None:
        self.facts = FACTS
        self.done: list[tuple[str, str]] = []

    async def pause(self, key: str, *, dry_run: bool = False, reason: str = "", **_: Any) -> OperatorAction:
        if not dry_run:
            self.done.append((key, reason))
        return replace(self.facts, is_dry_run=dry_run)

    resume = resync = pause


class Times:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


def actions(consumers: Consumers, clock: Any = None) -> Actions:
    client: Any = SimpleNamespace(consumers=consumers, resource_bundles=SimpleNamespace(resend=None))
    return Actions(client, clock=clock or Clock())


async def planned(own: Actions, **more: Any) -> str:
    plan = (await own.plan_action(PlanAction(action="pause", target="c1", **more))).head["plan"]
    assert isinstance(plan, str)
    return plan


async def test_planned_action_is_performed_once() -> None:
    consumers = Consumers()
    own = actions(consumers)
    plan = await planned(own, reason="test")
    assert consumers.done == []
    asked = PerformAction(action="pause", target="c1", reason="test", plan=plan)
    assert (await own.perform_action(asked)).head["summary"] == "Done."
    assert consumers.done == [("c1", "test")]
    with pytest.raises(ToolError, match="used up"):
        await own.perform_action(asked)
    assert len(consumers.done) == 1


@pytest.mark.parametrize(
    "other",
    [{"action": "resume"}, {"target": "c2"}, {"reason": "another"}, {"plan": "00000000-0000-4000-8000-000000000000"}],
    ids=["action", "target", "reason", "plan"],
)
async def test_plan_is_for_exactly_this(other: dict[str, Any]) -> None:
    consumers = Consumers()
    own = actions(consumers)
    asked: dict[str, Any] = {"action": "pause", "target": "c1", "plan": await planned(own), **other}
    with pytest.raises(ToolError):
        await own.perform_action(PerformAction(**asked))
    assert consumers.done == []


async def test_refused_if_the_facts_have_changed() -> None:
    consumers = Consumers()
    own = actions(consumers)
    plan = await planned(own)
    consumers.facts = replace(FACTS, work_count=3)
    with pytest.raises(ToolError, match="changed since"):
        await own.perform_action(PerformAction(action="pause", target="c1", plan=plan))
    assert consumers.done == []


async def test_plan_of_another_session_and_an_expired_one_are_refused() -> None:
    consumers, clock = Consumers(), Times()
    own, other = actions(consumers, clock), actions(consumers)
    plan = await planned(own)
    with pytest.raises(ToolError):
        await other.perform_action(PerformAction(action="pause", target="c1", plan=plan))
    clock.now = 601.0
    with pytest.raises(ToolError, match="expired"):
        await own.perform_action(PerformAction(action="pause", target="c1", plan=plan))
    assert consumers.done == []


async def test_nothing_to_change_gives_no_plan() -> None:
    consumers = Consumers()
    consumers.facts = replace(FACTS, is_change=False)
    result = await actions(consumers).plan_action(PlanAction(action="pause", target="c1"))
    assert "plan" not in result.head


@pytest.mark.parametrize("target", ["c1/pause", "../consumers/c1", "/"])
async def test_target_with_a_slash_is_no_consumer(target: str) -> None:
    with pytest.raises(ToolError, match="no such consumer"):
        await actions(Consumers()).plan_action(PlanAction(action="pause", target=target))
