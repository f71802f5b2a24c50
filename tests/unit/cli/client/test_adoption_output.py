"""What `maestro consumer adopt --dry-run` and the column HOLD say."""

from dataclasses import asdict, replace

from maestropy.cli.client import output
from maestropy.cli.client.formats import TABLE
from maestropy.sdk.actions import DeliveryPause
from maestropy.sdk.consumers import DataSafetyHold, PendingEvictions

HOLD = DataSafetyHold(
    id="h1",
    consumer="c1",
    reason="OtherDatabase",
    message="why",
    database_id="d",
    work_count=4,
    works=("w1", "w2", "w3"),
    absent_works=("w3", "w1"),
    since="2026-11-16T12:57:03.5Z",
)


def test_dry_run_names_what_would_be_applied_and_deleted() -> None:
    assert output.adoption(HOLD).splitlines() == [
        "Hold h1 of consumer c1, since 2026-11-16T12:57:03Z",
        "Reason: OtherDatabase: why",
        "Works that the database has, and that would be applied: 1",
        "  w2",
        "Works that the database does not have, and whose objects would be deleted: 2",
        "  w1",
        "  w3",
        "Works that the agent did not name, and that would be applied or deleted: 1",
    ]


def test_dry_run_shows_the_names_of_works_that_the_database_has() -> None:
    assert "  w2 web" in output.adoption(HOLD, names={"w2": "web"}).splitlines()


def test_pending_evictions_are_shown_beside_the_hold_with_their_deadline() -> None:
    pending = PendingEvictions(
        work_count=2, works=("w8", "w9"), since="2026-11-16T12:00:00Z", deadline="2026-11-16T13:00:00Z"
    )
    hold = replace(HOLD, pending=pending)
    countdown = "2 works since 2026-11-16T12:00:00Z, deleted from 2026-11-16T13:00:00Z on unless they come back"
    assert output.adoption(hold).splitlines()[-3:] == [
        f"Works that are evicted also without an adoption: {countdown}",
        "  w8",
        "  w9",
    ]
    assert output.hold_cell(HOLD) == "OtherDatabase (4 works)"
    assert output.hold_cell(hold) == "OtherDatabase (4 works), EvictionPending (2 works) until 2026-11-16T13:00:00Z"
    alone = replace(hold, reason="EvictionPending", work_count=2, works=("w8", "w9"), absent_works=("w8", "w9"))
    assert output.hold_cell(alone) == "EvictionPending (2 works) until 2026-11-16T13:00:00Z"
    assert output.adoption(alone).splitlines()[-1].endswith(countdown)
    row = {"id": "1", "data_safety_hold": {**vars_of(hold), "pending_evictions": asdict(pending)}}
    assert dict(output.consumer_fields(row))["Eviction"] == f"EvictionPending: {countdown}"


def vars_of(hold: DataSafetyHold) -> dict[str, object]:
    return {name: getattr(hold, name) for name in ("id", "reason", "message", "since", "work_count")}


def test_list_explains_the_holds() -> None:
    two = {"c1": HOLD, "gone": replace(HOLD, consumer="gone", reason="UnknownConsumer", work_count=1)}
    first, second = output.hold_lines(two, missing={"gone"}).splitlines()
    assert first.startswith("Consumer gone does not exist, and its agent keeps 1 work (UnknownConsumer).")
    assert second.startswith("Data-safety holds: 1 agent keeps works that the database does not ask for (c1); run")


def test_hold_column_is_shown_only_when_there_are_holds() -> None:
    consumers = {"items": [{"id": "1", "name": "c1"}, {"id": "2", "name": "c2"}]}
    columns = output.with_column(output.CONSUMERS, "HOLD", {"c1": "OtherDatabase (4 works)"})
    first, second, third = output.listing(consumers, output=TABLE, columns=columns).splitlines()
    assert first.split() == ["ID", "NAME", "LABELS", "CREATED", "HOLD"]
    assert second.endswith("OtherDatabase (4 works)")
    assert third.split() == ["2", "c2"]
    assert "HOLD" not in output.listing(consumers, output=TABLE, columns=output.CONSUMERS)


def test_list_names_the_first_pauses() -> None:
    pauses = [DeliveryPause(consumer=f"c{number}", paused_at="", paused_by="ann\x1b") for number in range(12)]
    lines = output.pause_lines(pauses).splitlines()
    assert len(lines) == 11
    assert lines[0] == "Delivery to consumer c0 is paused by ann\\x1b since ; maestro consumer resume c0"
    assert lines[-1] == "Delivery to 2 more consumers is paused"
    assert output.pause_lines([]) == ""
