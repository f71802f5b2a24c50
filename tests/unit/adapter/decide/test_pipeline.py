"""Which effects, which status and which failure follow from scripted results."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from maestropy.adapter.decide import object_status, ownership, pipeline
from maestropy.adapter.decide.adapter_status import AdapterStatus
from maestropy.adapter.decide.effects import Apply, Await, Delete, Effect, EffectResult, Fetch, Locate, PutStatus, Query
from maestropy.adapter.decide.pipeline import EventOutcome, PipelineOptions
from maestropy.adapter.desired_state import DesiredState, Handler, NotReady, StatusReport
from maestropy.adapter.errors import Interrupted
from maestropy.adapter.resource import Resource
from maestropy.adapter.transports import dry_run
from maestropy.adapter.transports.performer import drive
from maestropy.sdk import errors
from maestropy.sdk.work import Work
from tests.unit.adapter.samples import CLUSTER, EVENT, reported, work

MINE = ownership.with_ownership(object_status.with_generation_rules(work()), adapter="a", resource=CLUSTER)
OLD = ownership.with_ownership(object_status.with_generation_rules(work("old-abc")), adapter="a", resource=CLUSTER)


class Script:
    """A performer with scripted results; a list of results is used up one by one."""

    def __init__(self, **results: Any) -> None:
        self.results: dict[str, Any] = {"fetch": CLUSTER, "locate": "c1", **results}
        self.effects: list[Effect] = []

    async def perform(self, effect: Effect) -> EffectResult:
        self.effects.append(effect)
        result = self.results.get(type(effect).__name__.lower())
        if isinstance(result, list) and isinstance(effect, (Query, Apply, Await)):
            result = result.pop(0)
        if isinstance(result, Exception):
            raise result
        if result is None and isinstance(effect, Apply):
            return effect.work
        return result

    @property
    def names(self) -> list[str]:
        return [type(effect).__name__ for effect in self.effects]

    @property
    def status(self) -> AdapterStatus:
        return next(effect.status for effect in self.effects if isinstance(effect, PutStatus))


def ran(script: Script, handler: Handler, **options: Any) -> EventOutcome:
    settle_seconds = options.pop("settle_seconds", 0)
    pipeline_options = PipelineOptions(adapter="a", handler=handler, settle_seconds=settle_seconds, **options)
    return asyncio.run(drive(pipeline.run(EVENT, pipeline_options), script))


def desiring(*works: Work, **options: Any) -> Handler:
    return lambda _, __: DesiredState(works, **options)


def shown(status: AdapterStatus) -> dict[str, str]:
    return {condition.type: f"{condition.status} {condition.reason}" for condition in status.conditions}


def test_missing_work_is_created() -> None:
    script = Script(query=[[]])
    ran(script, desiring(work()))
    assert script.names == ["Fetch", "Query", "Locate", "Apply", "PutStatus"]
    assert shown(script.status) == {
        "Applied": "Unknown NotSynced",
        "Available": "Unknown NotSynced",
        "Health": "True Healthy",
        "Finalized": "False NotDeleting",
    }


def test_unchanged_work_is_skipped_and_its_status_reported() -> None:
    script = Script(query=[[reported(MINE, Applied="True", Available="True")]])
    ran(script, desiring(work()))
    assert script.names == ["Fetch", "Query", "PutStatus"]
    assert shown(script.status)["Available"] == "True AvailableReason"
    assert script.status.generation == 5


def test_status_of_an_older_version_is_ignored() -> None:
    script = Script(query=[[reported(MINE, version=2, observed=1, Applied="True", Available="True")]])
    ran(script, desiring(work()))
    assert shown(script.status)["Available"] == "Unknown NotSynced"


@pytest.mark.parametrize(
    ("feedback", "available"),
    [
        pytest.param(None, "Unknown NotSynced", id="no-feedback-yet"),
        pytest.param("not json", "Unknown FeedbackUnreadable", id="not-json"),
        pytest.param("[1]", "Unknown FeedbackUnreadable", id="not-an-object"),
        pytest.param("{}", "Unknown NoAvailableCondition", id="no-condition-yet"),
        pytest.param('{"conditions": 1}', "Unknown FeedbackUnreadable", id="malformed-conditions"),
        pytest.param(
            '{"conditions": [{"type": "Progressing", "status": "True"}]}', "False Provisioning", id="progressing"
        ),
        pytest.param(
            '{"conditions": [{"type": "Available", "status": "False", "reason": "EtcdWaitingForQuorum"}]}',
            "False EtcdWaitingForQuorum",
            id="own-reason",
        ),
        pytest.param(
            '{"conditions": [{"type": "Available", "status": "yes"}]}',
            "Unknown FeedbackUnreadable",
            id="unknown-condition-status",
        ),
    ],
)
def test_available_follows_from_status_feedback(feedback: str | None, available: str) -> None:
    script = Script(query=[[reported(MINE, feedback=feedback, Applied="True")]])
    ran(script, desiring(work(), read=lambda observed: StatusReport(available=observed.status("ConfigMap"))))
    assert shown(script.status)["Available"] == available
    assert script.status.health.status == "True"


def test_work_no_longer_desired_is_deleted() -> None:
    script = Script(query=[[reported(MINE, Applied="True", Available="True"), reported(OLD)]])
    ran(script, desiring(work()))
    assert [effect.name for effect in script.effects if isinstance(effect, Delete)] == ["old-abc"]


def test_new_work_goes_to_the_consumer_of_existing_works() -> None:
    script = Script(query=[[reported(OLD)]], locate="elsewhere")
    ran(script, desiring(work(), work("old-abc")))
    assert [effect.consumer for effect in script.effects if isinstance(effect, Apply)] == ["c1"]
    assert not any(isinstance(effect, Locate) for effect in script.effects)


def test_concurrent_create_by_the_same_adapter_is_kept() -> None:
    script = Script(
        query=[[], [reported(MINE, Applied="True", Available="True")]], apply=[errors.AlreadyExists("it is there")]
    )
    outcome = ran(script, desiring(work()))
    assert script.names == ["Fetch", "Query", "Locate", "Apply", "Query", "PutStatus"]
    assert outcome.failure is None
    assert shown(script.status)["Available"] == "True AvailableReason"


def test_concurrent_create_by_another_adapter_is_reported() -> None:
    foreign = reported(
        ownership.with_ownership(object_status.with_generation_rules(work()), adapter="b", resource=CLUSTER)
    )
    script = Script(query=[[], [foreign]], apply=[errors.AlreadyExists("it is there")])
    ran(script, desiring(work()))
    assert shown(script.status)["Applied"] == "False OwnedByAnother"
    assert "adapter 'b' for Cluster abc" in script.status.applied.message


def test_repeated_conflict_is_retryable() -> None:
    conflict = errors.Conflict("not the latest")
    older = reported(
        ownership.with_ownership(
            object_status.with_generation_rules(work()), adapter="a", resource=replace(CLUSTER, generation=4)
        )
    )
    script = Script(query=[[older], [older], [older]], apply=[conflict, conflict, conflict])
    outcome = ran(script, desiring(work()))
    assert outcome.is_retryable
    assert "PutStatus" not in script.names


@pytest.mark.parametrize(
    ("error", "is_retryable", "reason"),
    [
        (errors.Unavailable("no connection"), True, "Unavailable"),
        (errors.Timeout("late"), True, "Timeout"),
        (errors.Conflict("faster"), True, "Conflict"),
        (errors.Unauthorized("who?"), False, "Unauthorized"),
        (errors.Forbidden("no"), False, "Forbidden"),
        (errors.ConsumerNotFound("none"), False, "ConsumerNotFound"),
        (errors.Invalid("bad"), False, "Invalid"),
        (errors.ConfigError("unset"), False, "ConfigError"),
        (errors.ServerError("broken"), False, "ServerError"),
        (ValueError("bug in the adapter"), False, "ExecutionFailed"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_failure_is_retried_or_reported(error: Exception, *, is_retryable: bool, reason: str) -> None:
    script = Script(query=error)
    outcome = ran(script, desiring(work()))
    assert outcome.failure
    assert outcome.failure.reason == reason
    assert outcome.is_retryable is is_retryable
    # A transient failure is reported only if the event is not delivered again.
    assert ("PutStatus" in script.names) is not is_retryable
    reporting = Script(query=error)
    ran(reporting, desiring(work()), reports_transient=True)
    assert shown(reporting.status)["Health"] == f"False {reason}"
    assert reporting.status.available.status == "Unknown"


def test_event_for_a_missing_resource_has_no_effects() -> None:
    script = Script(fetch=None)
    assert ran(script, desiring(work())) == EventOutcome(status=None, is_skipped=True)
    assert script.names == ["Fetch"]


@pytest.mark.parametrize("query", [[[]], errors.Invalid("bad")], ids=["success", "failure"])
def test_status_that_cannot_be_reported_is_retryable(query: Any) -> None:
    script = Script(query=query, putstatus=errors.Unavailable("the API is unavailable"))
    assert ran(script, desiring(work())).is_retryable


def test_failure_that_cannot_be_reported_names_both_failures() -> None:
    script = Script(fetch=errors.Unavailable("HTTP 500"), putstatus=errors.Unavailable("HTTP 502"))
    failure = ran(script, desiring(work()), reports_transient=True).failure
    assert failure is not None
    assert failure.message.startswith("HTTP 502; ")
    assert "; the status tells of an earlier failure: HTTP 500; " in failure.message


def test_resource_deleted_before_the_status_is_no_failure() -> None:
    script = Script(query=[[]], putstatus=errors.NotFound("gone"))
    assert ran(script, desiring(work())).failure is None


def test_not_ready_is_reported_without_effects() -> None:
    script = Script()
    ran(script, lambda _, __: NotReady(reason="NoNetwork", message="the network does not exist yet"))
    assert script.names == ["Fetch", "PutStatus"]
    assert shown(script.status)["Applied"] == "False NoNetwork"
    assert shown(script.status)["Health"] == "True Healthy"


@pytest.mark.parametrize(
    ("remaining", "finalized"),
    [([], "True Deleted"), ([reported(MINE)], "False Deleting")],
    ids=["deleted", "still-deleting"],
)
def test_finalized_is_true_only_without_remaining_works(remaining: Sequence[Work], finalized: str) -> None:
    deleting: Resource = replace(CLUSTER, is_deleting=True)
    script = Script(fetch=deleting, query=[[reported(MINE)]], **{"await": [remaining]})
    ran(script, desiring(work()))
    assert script.names == ["Fetch", "Query", "Delete", "Await", "PutStatus"]
    assert shown(script.status)["Finalized"] == finalized


@pytest.mark.parametrize(
    ("fetched", "finalized"),
    [
        pytest.param(replace(CLUSTER, is_deleting=True), "False Invalid", id="deleting"),
        pytest.param(CLUSTER, "False NotDeleting", id="not-deleting"),
        pytest.param(errors.Invalid("no spec"), "False Invalid", id="not-read"),
    ],
)
def test_failure_says_not_deleting_only_of_a_resource_that_is_not_deleted(fetched: Any, finalized: str) -> None:
    script = Script(fetch=fetched, query=errors.Invalid("bad"))
    ran(script, desiring(work()))
    assert shown(script.status)["Finalized"] == finalized


def test_wait_ends_when_the_adapter_reports_available() -> None:
    ready = reported(MINE, feedback='{"conditions": [{"type": "Available", "status": "True"}]}', Applied="True")
    script = Script(query=[[reported(MINE, Applied="True")]], **{"await": [[ready]]})
    ran(
        script,
        desiring(work(), read=lambda observed: StatusReport(available=observed.status("ConfigMap"))),
        wait_seconds=60,
    )
    effect = next(effect for effect in script.effects if isinstance(effect, Await))
    assert effect.until([ready])
    assert not effect.until([reported(MINE, Applied="True")])
    assert not effect.until([])
    assert script.status.available.status == "True"


def test_work_not_applied_at_first_is_awaited() -> None:
    first, later = reported(MINE, Applied="False"), reported(MINE, Applied="True", Available="True")
    script = Script(query=[[first]], **{"await": [[later]]})
    ran(script, desiring(work()), settle_seconds=3)
    effect = next(effect for effect in script.effects if isinstance(effect, Await))
    assert (effect.seconds, effect.until([first]), effect.until([later])) == (3, False, True)
    assert shown(script.status)["Applied"] == "True AppliedReason"


async def test_dry_run_shows_every_effect() -> None:
    dry = dry_run.DryRun(dry_run.DryRunInputs(event=EVENT, resource=CLUSTER))
    options = PipelineOptions(adapter="a", handler=desiring(work()), settle_seconds=0)
    await drive(pipeline.run(EVENT, options), dry)
    assert isinstance(dry.effects[0], Fetch)
    text = "\n".join(line for effect in dry.effects for line in dry_run.lines(effect))
    assert "create  work the-target-cluster/w-abc (it does not exist yet)\n        ConfigMap default/m" in text
    assert "Applied=Unknown NotSynced" in text


@pytest.mark.parametrize(
    ("apply", "applied"),
    [
        pytest.param(errors.Invalid("bad"), "False Invalid", id="rejected"),
        pytest.param(errors.ConsumerNotFound("none"), "False ConsumerNotFound", id="no-consumer"),
        pytest.param(errors.Unavailable("no connection"), "Unknown Unavailable", id="perhaps-stored"),
    ],
)
def test_applied_is_false_only_if_the_work_was_rejected(apply: Exception, applied: str) -> None:
    script = Script(query=[[]], apply=[apply])
    ran(script, desiring(work()), reports_transient=True)
    assert shown(script.status)["Applied"] == applied


def _raising(_: object) -> StatusReport:
    raise KeyError("endpoint")


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        pytest.param(_raising, "ExecutionFailed", id="raises"),
        pytest.param(lambda _: "ready", "BadAdapter", id="returns-text"),
        pytest.param(lambda _: StatusReport(available="True"), "ExecutionFailed", id="available-is-text"),  # type: ignore[arg-type]  # the mistake under test
    ],
)
@pytest.mark.parametrize("wait_seconds", [0, 60], ids=["at-once", "waiting"])
def test_failed_read_leaves_applied_as_the_works_say(read: Any, reason: str, wait_seconds: float) -> None:
    script = Script(query=[[reported(MINE, Applied="True")]])
    outcome = ran(script, desiring(work(), read=read), wait_seconds=wait_seconds)
    assert script.names == ["Fetch", "Query", "PutStatus"]
    assert shown(script.status)["Applied"] == "True AppliedReason"
    assert shown(script.status)["Available"] == f"Unknown {reason}"
    assert shown(script.status)["Health"] == f"False {reason}"
    assert outcome.failure
    assert outcome.failure.reason == reason


@pytest.mark.parametrize(
    ("query", "applied"),
    [
        pytest.param([reported(MINE, Applied="True")], "True AppliedReason", id="applied"),
        pytest.param(Interrupted("stopped"), "Unknown NotSynced", id="not-known"),
    ],
)
def test_interrupted_wait_reports_the_works_as_they_are(query: Any, applied: str) -> None:
    script = Script(query=[[], query], **{"await": [Interrupted("stopped")]})
    outcome = ran(script, desiring(work()), wait_seconds=60)
    assert script.names[-3:] == ["Await", "Query", "PutStatus"]
    assert shown(script.status)["Applied"] == applied
    assert shown(script.status)["Health"] == "True Interrupted"
    assert outcome.failure is None


def test_interruption_before_the_works_are_known_is_not_reported() -> None:
    script = Script(query=Interrupted("stopped"))
    outcome = ran(script, desiring(work()), reports_transient=True)
    assert script.names == ["Fetch", "Query"]
    assert outcome.is_retryable
    assert outcome.status
    assert shown(outcome.status)["Applied"] == "Unknown Interrupted"


def test_interrupted_deletion_names_what_remains() -> None:
    deleting: Resource = replace(CLUSTER, is_deleting=True)
    remaining = [reported(MINE)]
    script = Script(fetch=deleting, query=[remaining, remaining], **{"await": [Interrupted("stopped")]})
    ran(script, desiring(work()), wait_seconds=60)
    assert shown(script.status)["Finalized"] == "False Deleting"
    assert shown(script.status)["Health"] == "True Interrupted"


def test_older_generation_is_refused_before_anything_is_written() -> None:
    newer = reported(
        ownership.with_ownership(work("old-abc"), adapter="a", resource=replace(CLUSTER, generation=6)),
        Applied="True",
        Available="True",
    )
    script = Script(query=[[newer]])
    outcome = ran(script, desiring(work()))
    assert script.names == ["Fetch", "Query", "PutStatus"]
    assert shown(script.status) == {
        "Applied": "False StaleGeneration",
        "Available": "Unknown StaleGeneration",
        "Health": "False StaleGeneration",
        "Finalized": "False NotDeleting",
    }
    assert script.status.applied.message == (
        "stale generation: 5 is older than 6, for which work old-abc was written; nothing was applied"
    )
    assert not outcome.is_retryable


def test_work_that_became_newer_meanwhile_is_not_rolled_back() -> None:
    newer = reported(ownership.with_ownership(work(), adapter="a", resource=replace(CLUSTER, generation=6)))
    script = Script(query=[[], [newer]], apply=[errors.AlreadyExists("exists")])
    ran(script, desiring(work()))
    assert script.names == ["Fetch", "Query", "Locate", "Apply", "Query", "PutStatus"]
    assert shown(script.status)["Applied"] == "False StaleGeneration"
