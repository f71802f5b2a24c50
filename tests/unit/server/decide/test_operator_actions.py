"""What operator actions plan, and when they are refused."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from maestropy.server.decide.actions import adoption, delivery, plans, retirement, sweep
from maestropy.server.decide.actions.plans import Plan, Refusal
from maestropy.store import rows
from maestropy.wire import ordering

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
WORK = rows.NamedWork("w1", 3, is_deleting=False, name="hello", consumer="c1", source="s")
PAUSE = rows.Pause("c1", LONG_AGO, "ann from 10.0.0.1", "node upgrade")
FACTS = rows.ConsumerFacts(
    id="id1",
    name="c1",
    pause=None,
    seen_at=None,
    works=3,
    deleting=1,
    waiting=2,
    has_go_servers=False,
    servers_since=LONG_AGO,
)
VERSIONS = [rows.WorkVersion("w1", 3, is_deleting=False), rows.WorkVersion("w2", 1, is_deleting=True)]


def test_resend_says_what_the_agent_does() -> None:
    plan = delivery.resend(WORK, is_waiting=False, pause=None)
    assert plan.is_change
    assert plan.effects[0] == "Send version 3 of work c1/hello (w1) to the agent of consumer c1 again."
    assert "for one that has it, nothing changes" in plan.effects[1]
    deletion = delivery.resend(WORK._replace(is_deleting=True), is_waiting=False, pause=None)
    assert deletion.effects[0].startswith("Send the deletion of work c1/hello (w1)")


def test_resend_of_a_waiting_work_changes_nothing() -> None:
    plan = delivery.resend(WORK, is_waiting=True, pause=None)
    assert not plan.is_change
    assert plan.effects[0].startswith("Nothing: work c1/hello (w1) waits for delivery already")


def test_paused_consumer_is_named_with_who_when_and_why() -> None:
    said = "delivery to consumer c1 is paused by ann from 10.0.0.1 since 2026-11-17T11:00:00Z: node upgrade; "
    assert plans.paused(PAUSE) == f"{said}maestro consumer resume c1"
    assert said in delivery.resend(WORK, is_waiting=False, pause=PAUSE).warnings[0]
    assert said in delivery.resync(FACTS._replace(pause=PAUSE), [WORK]).warnings[0]
    again = delivery.pause(FACTS._replace(pause=PAUSE), [WORK])
    assert not again.is_change
    assert said in again.effects[0]


@pytest.mark.parametrize(
    ("is_connected", "seen_at", "ends_streams", "warning"),
    [
        pytest.param(True, NOW, True, None, id="connected"),
        pytest.param(False, LONG_AGO, True, "one was seen at 2026-11-17T11:00:00Z", id="away"),
        pytest.param(False, None, True, "none was seen before", id="never-seen"),
        pytest.param(None, NOW, False, None, id="behind-a-message-broker"),
    ],
)
def test_resync_says_what_happens_to_the_stream_of_the_agent(
    is_connected: bool | None, seen_at: datetime | None, ends_streams: bool, warning: str | None
) -> None:
    plan = delivery.resync(FACTS._replace(seen_at=seen_at), [WORK], is_connected=is_connected)
    assert any("end the streams of its agents" in effect for effect in plan.effects) is ends_streams
    assert [warning in text for text in plan.warnings if warning] == [True] * bool(warning)
    assert len(plan.warnings) == bool(warning)


@pytest.mark.parametrize(("has_go_servers", "warnings"), [(False, 1), (True, 2)])
def test_pause_warns_of_what_does_not_know_pauses(has_go_servers: bool, warnings: int) -> None:
    plan = delivery.pause(FACTS._replace(has_go_servers=has_go_servers), [WORK])
    assert plan.is_change
    assert len(plan.warnings) == warnings
    assert ("A Go server runs on this database" in plan.warnings[0]) is has_go_servers


def test_resume_sends_all_works() -> None:
    assert not delivery.resume(FACTS, []).is_change
    plan = delivery.resume(FACTS._replace(pause=PAUSE), [WORK])
    assert plan.effects[0] == (
        "Resume the delivery to consumer c1, paused since 2026-11-17T11:00:00Z by ann from 10.0.0.1: node upgrade."
    )
    assert plan.effects[1] == "Send all of its works (3), as fast as its agent takes them; 2 waited."


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"seen_at": NOW}, "The agent of consumer c1 was seen at 2026-11-17T12:00:00Z", id="connected"),
        pytest.param({"seen_at": NOW - retirement.SILENCE + timedelta(seconds=1)}, "was seen at", id="seen-lately"),
        pytest.param({"has_go_servers": True}, "stop the Go servers first", id="go-server"),
        pytest.param({"servers_since": NOW}, "The servers run only since", id="new-server"),
        pytest.param({"servers_since": None}, "No server is ready", id="no-server"),
    ],
)
@pytest.mark.parametrize("fate", ["release", "delete"])
def test_retirement_is_refused(changes: dict[str, object], reason: str, fate: retirement.Fate) -> None:
    refusal = retirement.plan(FACTS._replace(**changes), [], VERSIONS, fate=fate, now=NOW, sees_agents=True)  # type: ignore[arg-type]
    assert isinstance(refusal, Refusal)
    assert reason in refusal.reason


@pytest.mark.parametrize("seen_at", [None, NOW - retirement.SILENCE])
def test_dead_consumer_is_retired(seen_at: datetime | None) -> None:
    released = retirement.plan(
        FACTS._replace(seen_at=seen_at), [WORK], VERSIONS, fate="release", now=NOW, sees_agents=True
    )
    assert isinstance(released, Plan)
    assert released.effects[0] == "Remove 3 works of consumer c1 from the database, and the consumer itself."
    deleted = retirement.plan(
        FACTS._replace(seen_at=seen_at), [WORK], VERSIONS, fate="delete", now=NOW, sees_agents=True
    )
    assert isinstance(deleted, Plan)
    assert deleted.effects[0] == "Mark 2 works of consumer c1 for deletion. 1 are being deleted already."
    assert deleted.pin != released.pin


@pytest.mark.parametrize("fate", ["release", "delete"])
def test_retirement_warns_of_a_quiet_agent_behind_a_message_broker(fate: retirement.Fate) -> None:
    plans_by_sight = {
        sees: retirement.plan(FACTS, [WORK], VERSIONS, fate=fate, now=NOW, sees_agents=sees) for sees in (True, False)
    }
    assert plans_by_sight[True].warnings == ()  # type: ignore[union-attr]
    assert "Check on the cluster that no agent runs" in plans_by_sight[False].warnings[0]  # type: ignore[union-attr]


def test_plan_of_a_retirement_changes_with_the_works() -> None:
    def pin(versions: list[rows.WorkVersion]) -> str:
        plan = retirement.plan(FACTS, [], versions, fate="release", now=NOW, sees_agents=True)
        assert isinstance(plan, Plan)
        return plan.pin

    assert pin(VERSIONS) == pin(list(VERSIONS))
    newer = [VERSIONS[0]._replace(version=4), VERSIONS[1]]
    deleting = [VERSIONS[0]._replace(is_deleting=True), VERSIONS[1]]
    assert len({pin(VERSIONS), pin(newer), pin(deleting), pin(VERSIONS[:1]), pin([])}) == 5


def test_deletion_of_nothing_points_to_the_release() -> None:
    plan = retirement.plan(FACTS._replace(works=1), [], [], fate="delete", now=NOW, sees_agents=True)
    assert isinstance(plan, Plan)
    assert not plan.is_change
    assert "maestro consumer retire c1 --release" in plan.effects[1]


@pytest.mark.parametrize("metadata", [b'{"name":"hello"}', b"", b"damaged"])
@pytest.mark.parametrize("last", ["", "2000808179729960960", "no number"])
def test_source_of_a_released_work_gets_a_newer_status(metadata: bytes, last: str) -> None:
    stored = rows.StoredStatus(
        id="w1",
        version=3,
        source="s",
        consumer="c1",
        created_at=LONG_AGO,
        deleted_at=None,
        sequence_id=last,
        status_hash="",
        observed_version="",
        metadata=metadata,
    )
    document = json.loads(retirement.release_status(stored, event_id="e1", by="ann", now=NOW))
    (condition,) = document["data"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Deleted", "True", "Released")
    assert (document["resourceid"], document["clustername"], document["released"]) == ("w1", "c1", "true")
    if last.isdecimal():
        assert ordering.is_newer(document["sequenceid"], last)
    if metadata.startswith(b"{"):
        assert document["metadata"]["deletionTimestamp"] == "2026-11-17T12:00:00Z"


def test_sweep_removes_only_the_chosen_classes() -> None:
    orphans = [rows.Orphan("hold", "gone", LONG_AGO), rows.Orphan("pause", "gone", LONG_AGO)]
    agents = [rows.AgentSide("c1", "OtherDatabase", 2, 1)]
    both, one = (sweep.plan(orphans, agents, classes=classes) for classes in (sweep.CLASSES, {"hold"}))
    assert len(both.effects) == 2
    assert one.effects == (
        "Remove 1 x data-safety hold of a consumer that does not exist: gone (2026-11-17T11:00:00Z).",
    )
    assert "maestro consumer adopt c1 --dry-run" in one.warnings[0]
    assert one.warnings[1] == "1 rows of other classes stay"
    assert one.pin != both.pin
    assert sweep.subjects(orphans, classes={"hold"}) == {"hold": ["gone"]}
    assert not sweep.plan([], [], classes=sweep.CLASSES).is_change


JUST_NOW = NOW - retirement.SILENCE + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("orphan", "connected", "is_present"),
    [
        pytest.param(rows.Orphan("hold", "c", LONG_AGO), {"c"}, True, id="connected-here"),
        pytest.param(rows.Orphan("hold", "c", LONG_AGO, JUST_NOW), (), True, id="seen-by-another-instance"),
        pytest.param(rows.Orphan("hold", "c", JUST_NOW), (), True, id="hold-reported-lately"),
        pytest.param(rows.Orphan("hold", "c", LONG_AGO, NOW - retirement.SILENCE), {"d"}, False, id="agent-is-gone"),
        pytest.param(rows.Orphan("hold", "c", LONG_AGO), (), False, id="agent-never-seen"),
        pytest.param(rows.Orphan("agent", "c", JUST_NOW, JUST_NOW), (), True, id="record-of-a-present-agent"),
        pytest.param(rows.Orphan("pause", "c", JUST_NOW), {"c"}, False, id="pause-is-no-agent"),
    ],
)
def test_rows_of_an_agent_that_may_be_there_are_not_swept(
    orphan: rows.Orphan, connected: set[str], is_present: bool
) -> None:
    present = sweep.of_present_agents([orphan], connected=connected, now=NOW)
    assert present == [orphan] * is_present
    plan = sweep.plan([orphan], [], classes=sweep.CLASSES, present=present)
    assert plan.is_change is not is_present
    assert any("maestro consumer create c" in text for text in plan.warnings) is (is_present and orphan.kind == "hold")


def test_adoption_counts_what_is_applied_and_deleted() -> None:
    plan = adoption.plan(
        "c1", why="OtherDatabase: why", work_count=4, works=["a", "b", "c"], absent_works=["c"], pin="h1"
    )
    assert "Apply 2 works that the database has." in plan.effects
    assert plan.effects[2].startswith("Delete the objects of 1 work that it does not have")
    assert plan.warnings == ("1 work more are held, and the agent has not named them",)
