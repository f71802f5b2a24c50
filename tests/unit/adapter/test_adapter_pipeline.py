"""The pipeline on worlds that do not exist: which effects, which report, which failure."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from adapter_samples import CLUSTER, EVENT, reported, work

from maestropy.adapter import dryrun, pipeline, stamping
from maestropy.adapter.effects import Answer, Apply, Await, Delete, Effect, Fetch, Locate, Query, Tell
from maestropy.adapter.perform import drive
from maestropy.adapter.pipeline import Outcome, Part
from maestropy.adapter.report import Report
from maestropy.adapter.resource import Resource
from maestropy.adapter.wish import Handler, Hold, Reading, Wish
from maestropy.sdk import errors
from maestropy.sdk.work import Work

MINE = stamping.stamped(work(), adapter="a", resource=CLUSTER)
OLD = stamping.stamped(work("old-abc"), adapter="a", resource=CLUSTER)


class Script:
    """A world that answers what it is told; a list of answers is used up one by one."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {"fetch": CLUSTER, "locate": "c1", **answers}
        self.asked: list[Effect] = []

    async def perform(self, effect: Effect) -> Answer:
        self.asked.append(effect)
        found = self.answers.get(type(effect).__name__.lower())
        if isinstance(found, list) and isinstance(effect, (Query, Apply, Await)):
            found = found.pop(0)
        if isinstance(found, Exception):
            raise found
        if found is None and isinstance(effect, Apply):
            return effect.work
        return found  # type: ignore[no-any-return]

    @property
    def names(self) -> list[str]:
        return [type(each).__name__ for each in self.asked]

    @property
    def report(self) -> Report:
        return next(each.report for each in self.asked if isinstance(each, Tell))


def ran(script: Script, handler: Handler, **part: Any) -> Outcome:
    given = Part(adapter="a", handler=handler, settle_seconds=part.pop("settle_seconds", 0), **part)
    return asyncio.run(drive(pipeline.run(EVENT, given), script))


def wanting(*works: Work, **wish: Any) -> Handler:
    return lambda _, __: Wish(works, **wish)


def shown(report: Report) -> dict[str, str]:
    return {each.type: f"{each.status} {each.reason}" for each in report.conditions}


def test_nothing_there_yet() -> None:
    script = Script(query=[[]])
    ran(script, wanting(work()))
    assert script.names == ["Fetch", "Query", "Locate", "Apply", "Tell"]
    assert shown(script.report) == {
        "Applied": "Unknown NotSynced",
        "Available": "Unknown NotSynced",
        "Health": "True Healthy",
        "Finalized": "False NotDeleting",
    }


def test_there_and_reported() -> None:
    script = Script(query=[[reported(MINE, Applied="True", Available="True")]])
    ran(script, wanting(work()))
    assert script.names == ["Fetch", "Query", "Tell"]
    assert shown(script.report)["Available"] == "True AvailableTold"
    assert script.report.generation == 5


def test_a_status_of_an_older_version_is_not_read() -> None:
    script = Script(query=[[reported(MINE, version=2, observed=1, Applied="True", Available="True")]])
    ran(script, wanting(work()))
    assert shown(script.report)["Available"] == "Unknown NotSynced"


@pytest.mark.parametrize(
    ("feedback", "available"),
    [
        pytest.param(None, "Unknown NotSynced", id="no-feedback-yet"),
        pytest.param("not json", "Unknown FeedbackUnreadable", id="not-json"),
        pytest.param("[1]", "Unknown FeedbackUnreadable", id="no-object"),
        pytest.param("{}", "Unknown NoAvailableCondition", id="no-condition-yet"),
        pytest.param('{"conditions": 1}', "Unknown FeedbackUnreadable", id="conditions-that-are-none"),
        pytest.param(
            '{"conditions": [{"type": "Progressing", "status": "True"}]}', "False Provisioning", id="progress"
        ),
        pytest.param(
            '{"conditions": [{"type": "Available", "status": "False", "reason": "EtcdWaitingForQuorum"}]}',
            "False EtcdWaitingForQuorum",
            id="its-own-reason",
        ),
        pytest.param(
            '{"conditions": [{"type": "Available", "status": "yes"}]}', "Unknown FeedbackUnreadable", id="yes"
        ),
    ],
)
def test_available_from_an_objects_status(feedback: str | None, available: str) -> None:
    script = Script(query=[[reported(MINE, feedback=feedback, Applied="True")]])
    ran(script, wanting(work(), read=lambda seen: Reading(available=seen.status("ConfigMap"))))
    assert shown(script.report)["Available"] == available
    assert script.report.health.status == "True"


def test_what_is_no_longer_wanted_goes() -> None:
    script = Script(query=[[reported(MINE, Applied="True", Available="True"), reported(OLD)]])
    ran(script, wanting(work()))
    assert [each.name for each in script.asked if isinstance(each, Delete)] == ["old-abc"]


def test_a_new_work_goes_where_its_siblings_are() -> None:
    script = Script(query=[[reported(OLD)]], locate="elsewhere")
    ran(script, wanting(work(), work("old-abc")))
    assert [each.consumer for each in script.asked if isinstance(each, Apply)] == ["c1"]
    assert not any(isinstance(each, Locate) for each in script.asked)


def test_a_race_is_looked_at_again_and_ours_is_kept() -> None:
    script = Script(
        query=[[], [reported(MINE, Applied="True", Available="True")]], apply=[errors.AlreadyExists("it is there")]
    )
    outcome = ran(script, wanting(work()))
    assert script.names == ["Fetch", "Query", "Locate", "Apply", "Query", "Tell"]
    assert outcome.failure is None
    assert shown(script.report)["Available"] == "True AvailableTold"


def test_a_race_that_another_adapter_won_is_told() -> None:
    theirs = reported(stamping.stamped(work(), adapter="b", resource=CLUSTER))
    script = Script(query=[[], [theirs]], apply=[errors.AlreadyExists("it is there")])
    ran(script, wanting(work()))
    assert shown(script.report)["Applied"] == "False OwnedByAnother"
    assert "adapter 'b' for Cluster abc" in script.report.applied.message


def test_somebody_who_is_always_faster_ends_in_another_time() -> None:
    conflict = errors.Conflict("not the latest")
    older = reported(stamping.stamped(work(), adapter="a", resource=replace(CLUSTER, generation=4)))
    script = Script(query=[[older], [older], [older]], apply=[conflict, conflict, conflict])
    outcome = ran(script, wanting(work()))
    assert outcome.comes_again
    assert "Tell" not in script.names


@pytest.mark.parametrize(
    ("error", "comes_again", "reason"),
    [
        (errors.Unavailable("gone"), True, "Unavailable"),
        (errors.Timeout("late"), True, "Timeout"),
        (errors.Conflict("faster"), True, "Conflict"),
        (errors.Unauthorized("who?"), False, "Unauthorized"),
        (errors.Forbidden("no"), False, "Forbidden"),
        (errors.ConsumerNotFound("none"), False, "ConsumerNotFound"),
        (errors.Invalid("bad"), False, "Invalid"),
        (errors.ConfigError("unset"), False, "ConfigError"),
        (errors.ServerError("broken"), False, "ServerError"),
        (ValueError("theirs"), False, "ExecutionFailed"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_what_a_failure_means(error: Exception, *, comes_again: bool, reason: str) -> None:
    script = Script(query=error)
    outcome = ran(script, wanting(work()))
    assert outcome.failure
    assert outcome.failure.reason == reason
    assert outcome.comes_again is comes_again
    # A failure that may pass is told by whoever cannot be asked again, and by nobody else.
    assert ("Tell" in script.names) is not comes_again
    telling = Script(query=error)
    ran(telling, wanting(work()), tells_transient=True)
    assert shown(telling.report)["Health"] == f"False {reason}"
    assert telling.report.available.status == "Unknown"


def test_an_event_for_what_is_gone_needs_nothing() -> None:
    script = Script(fetch=None)
    assert ran(script, wanting(work())) == Outcome(report=None)
    assert script.names == ["Fetch"]


@pytest.mark.parametrize("query", [[[]], errors.Invalid("bad")], ids=["of-success", "of-failure"])
def test_a_report_that_nobody_takes_comes_again(query: Any) -> None:
    script = Script(query=query, tell=errors.Unavailable("the API is away"))
    assert ran(script, wanting(work())).comes_again


def test_a_resource_that_went_meanwhile_is_no_failure() -> None:
    script = Script(query=[[]], tell=errors.NotFound("gone"))
    assert ran(script, wanting(work())).failure is None


def test_a_hold_is_reported_and_does_nothing() -> None:
    script = Script()
    ran(script, lambda _, __: Hold(reason="NoNetwork", message="the network is not there yet"))
    assert script.names == ["Fetch", "Tell"]
    assert shown(script.report)["Applied"] == "False NoNetwork"
    assert shown(script.report)["Health"] == "True Healthy"


@pytest.mark.parametrize(
    ("left", "finalized"),
    [([], "True Deleted"), ([reported(MINE)], "False Deleting")],
    ids=["all-gone", "still-there"],
)
def test_a_deletion_is_final_only_when_nothing_is_left(left: Sequence[Work], finalized: str) -> None:
    gone: Resource = replace(CLUSTER, is_deleting=True)
    script = Script(fetch=gone, query=[[reported(MINE)]], **{"await": [left]})
    ran(script, wanting(work()))
    assert script.names == ["Fetch", "Query", "Delete", "Await", "Tell"]
    assert shown(script.report)["Finalized"] == finalized


def test_waiting_ends_with_what_the_adapter_reads() -> None:
    ready = reported(MINE, feedback='{"conditions": [{"type": "Available", "status": "True"}]}', Applied="True")
    script = Script(query=[[reported(MINE, Applied="True")]], **{"await": [[ready]]})
    ran(script, wanting(work(), read=lambda seen: Reading(available=seen.status("ConfigMap"))), wait_seconds=60)
    effect = next(each for each in script.asked if isinstance(each, Await))
    assert effect.until([ready])
    assert not effect.until([reported(MINE, Applied="True")])
    assert not effect.until([])
    assert script.report.available.status == "True"


def test_a_first_no_is_given_a_moment() -> None:
    first, later = reported(MINE, Applied="False"), reported(MINE, Applied="True", Available="True")
    script = Script(query=[[first]], **{"await": [[later]]})
    ran(script, wanting(work()), settle_seconds=3)
    effect = next(each for each in script.asked if isinstance(each, Await))
    assert (effect.seconds, effect.until([first]), effect.until([later])) == (3, False, True)
    assert shown(script.report)["Applied"] == "True AppliedTold"


def test_a_dry_run_changes_nothing_and_shows_everything() -> None:
    show = dryrun.DryRun(dryrun.Given(event=EVENT, resource=CLUSTER))
    part = Part(adapter="a", handler=wanting(work()), settle_seconds=0)
    asyncio.run(drive(pipeline.run(EVENT, part), show))
    assert isinstance(show.asked[0], Fetch)
    text = "\n".join(line for each in show.asked for line in dryrun.lines(each))
    assert "create  work the-target-cluster/w-abc (there is none yet)\n        ConfigMap default/m" in text
    assert "Applied=Unknown NotSynced" in text
