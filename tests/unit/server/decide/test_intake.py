"""Every situation a report can meet, and what becomes of it."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from maestropy.server.decide import intake
from maestropy.store import rows
from maestropy.wire import errors, event, order

EARLY = str(int(order.Snowflake(1_700_000_000_000, order.AGENT_NODE, 0)))
MIDDLE = str(int(order.Snowflake(1_700_000_000_000, order.AGENT_NODE, 1)))
LATE = str(int(order.Snowflake(1_700_000_000_001, order.AGENT_NODE, 0)))
FOREIGN = str(int(order.Snowflake(1_700_000_000_002, 2, 0)))
DAY = datetime(2026, 8, 20, 10, 11, 12, 345678, tzinfo=UTC)


def status_event(*kinds: str, status: str = "True", **changes: object) -> event.Event:
    extensions: dict[str, object] = {
        event.RESOURCE_ID: "w1",
        event.RESOURCE_VERSION: 3,
        event.CLUSTER_NAME: "c1",
        event.ORIGINAL_SOURCE: "maestro",
        event.SEQUENCE_ID: MIDDLE,
        event.STATUS_HASH: "new",
    } | changes
    kept = {name: value for name, value in extensions.items() if value is not None}
    data = json.dumps({"conditions": [{"type": kind, "status": status} for kind in kinds]}).encode()
    return event.Event(id="s1", source="agent", type=event.STATUS_UPDATE, extensions=kept, data=data)  # type: ignore[arg-type]


def read(received: event.Event) -> intake.Report:
    return intake.read_report(received, source_id="maestro", operation_id="")


HELD = rows.Observed(
    id="w1",
    version=3,
    source="a",
    consumer="c1",
    created_at=DAY,
    deleted_at=None,
    sequence_id=EARLY,
    status_hash="old",
    observed_version="3",
    metadata=b'{"name":"work","labels":{"a":"b"}}',
)
DELETING = replace(HELD, deleted_at=DAY)
FIRST = replace(HELD, sequence_id="", status_hash="", observed_version="")
REPORT = read(status_event("Applied"))
REMOVED = read(status_event("Applied", "Deleted"))


def removed(created: object) -> intake.Report:
    """An end, by an agent that says when the bundle was created."""
    return read(status_event("Deleted", **{event.METADATA: json.dumps({"creationTimestamp": created})}))


@pytest.mark.parametrize(
    ("held", "report", "verdict"),
    [
        pytest.param(HELD, REPORT, intake.Update(), id="newer"),
        pytest.param(FIRST, REPORT, intake.Update(), id="the-first"),
        pytest.param(replace(HELD, sequence_id="soon"), REPORT, intake.Update(), id="after-a-damaged-one"),
        pytest.param(DELETING, removed("2026-08-20T10:11:12Z"), intake.Finish(), id="the-end-of-this-one"),
        pytest.param(DELETING, removed("2026-08-20T12:11:12+02:00"), intake.Finish(), id="the-end-in-another-zone"),
        pytest.param(DELETING, removed(None), intake.Finish(), id="the-end-of-nobody-knows-which"),
        pytest.param(DELETING, removed("long ago"), intake.Finish(), id="the-end-in-words-nobody-reads"),
        pytest.param(
            DELETING, removed("2026-08-20T10:11:11Z"), intake.Redeliver(), id="the-late-end-of-an-earlier-one"
        ),
        pytest.param(
            HELD, removed("2026-08-20T10:11:11Z"), intake.Redeliver(), id="the-late-end-of-one-that-came-back"
        ),
        pytest.param(None, REPORT, intake.Ignore("there is no such resource"), id="about-nothing"),
        pytest.param(
            replace(HELD, sequence_id=MIDDLE),
            REPORT,
            intake.Ignore("its sequence is not newer than the stored one"),
            id="delivered-twice",
        ),
        pytest.param(
            replace(HELD, sequence_id=LATE),
            REPORT,
            intake.Ignore("its sequence is not newer than the stored one"),
            id="overtaken",
        ),
        pytest.param(
            replace(HELD, version=4),
            REPORT,
            intake.Ignore("it belongs to version 3, the resource has 4", stale=True),
            id="about-an-older-spec",
        ),
        pytest.param(
            replace(HELD, version=2),
            REPORT,
            intake.Ignore("it belongs to version 3, the resource has 2", stale=True),
            id="about-a-spec-that-is-not-ours",
        ),
        pytest.param(
            replace(HELD, status_hash="new"), REPORT, intake.Ignore("the status is unchanged"), id="nothing-new"
        ),
        pytest.param(
            replace(HELD, status_hash="new", observed_version="2"),
            REPORT,
            intake.Update(),
            id="the-same-status-of-a-newer-spec",
        ),
        pytest.param(
            replace(HELD, status_hash=""),
            replace(REPORT, status_hash=""),
            intake.Update(),
            id="agents-without-hashes-are-believed",
        ),
        pytest.param(
            HELD,
            replace(REPORT, consumer="c2"),
            intake.Reject("unmatched consumer name c2 for resource w1"),
            id="of-another-cluster",
        ),
        pytest.param(DELETING, REMOVED, intake.Finish(), id="removed"),
        pytest.param(
            replace(DELETING, version=9), REMOVED, intake.Finish(), id="removed-before-the-last-update-arrived"
        ),
        pytest.param(
            replace(DELETING, sequence_id=""), REMOVED, intake.Finish(), id="removed-before-anything-was-reported"
        ),
        pytest.param(
            replace(DELETING, status_hash="new"), REMOVED, intake.Finish(), id="removed-with-a-hash-we-have-seen"
        ),
        pytest.param(HELD, REMOVED, intake.Redeliver(), id="removed-though-nobody-deletes-it"),
        pytest.param(FIRST, REMOVED, intake.Redeliver(), id="the-last-word-about-an-earlier-bundle-of-this-id"),
        pytest.param(
            replace(DELETING, sequence_id=LATE),
            REMOVED,
            intake.Ignore("its sequence is not newer than the stored one"),
            id="removal-overtaken",
        ),
        pytest.param(
            DELETING,
            replace(REMOVED, consumer="c2"),
            intake.Reject("unmatched consumer name c2 for resource w1"),
            id="removed-by-another-cluster",
        ),
        pytest.param(DELETING, REPORT, intake.Update(), id="on-the-way-out"),
    ],
)
def test_verdict(held: rows.Observed | None, report: intake.Report, verdict: intake.Verdict) -> None:
    assert intake.judge(held, report) == verdict


ECHO = intake.Ignore("it told the end of an earlier resource of this id")


@pytest.mark.parametrize(
    ("last_word", "verdict"),
    [
        pytest.param("", intake.Finish(), id="there-was-no-earlier-one"),
        pytest.param(EARLY, intake.Finish(), id="told-after-the-end-of-the-earlier-one"),
        pytest.param(MIDDLE, ECHO, id="the-very-report-that-ended-the-earlier-one"),
        pytest.param(LATE, ECHO, id="told-before-the-earlier-one-ended"),
        pytest.param("soon", intake.Finish(), id="what-is-remembered-is-damaged"),
        pytest.param(FOREIGN, intake.Finish(), id="what-is-remembered-is-of-another-agent"),
    ],
)
def test_the_end_of_an_earlier_bundle_of_the_same_second(last_word: str, verdict: intake.Verdict) -> None:
    held, report = replace(DELETING, sequence_id=""), removed("2026-08-20T10:11:12Z")
    assert intake.could_be_of_another(held, report)
    assert intake.judge(held, report, last_word=last_word) == verdict


@pytest.mark.parametrize(
    ("held", "report"),
    [
        pytest.param(None, REMOVED, id="nothing-there"),
        pytest.param(DELETING, REMOVED, id="the-agent-has-spoken-of-this-one"),
        pytest.param(FIRST, REPORT, id="no-end"),
    ],
)
def test_most_reports_need_no_look_at_earlier_bundles(held: rows.Observed | None, report: intake.Report) -> None:
    assert not intake.could_be_of_another(held, report)


def test_a_sequence_of_another_node_cannot_be_compared() -> None:
    verdict = intake.judge(HELD, read(status_event("Applied", sequenceid=FOREIGN)))
    assert isinstance(verdict, intake.Reject)
    assert "not from the same node" in verdict.reason


@pytest.mark.parametrize(
    ("received", "is_deleted"),
    [
        pytest.param(status_event("Deleted"), True, id="deleted"),
        pytest.param(status_event("Deleted", status="False"), False, id="not-deleted-yet"),
        pytest.param(status_event("Applied"), False, id="applied"),
        pytest.param(replace(status_event(), data=b""), False, id="no-data"),
        pytest.param(replace(status_event(), data=b'{"conditions":null}'), False, id="no-conditions"),
    ],
)
def test_what_says_that_all_is_gone(received: event.Event, *, is_deleted: bool) -> None:
    assert read(received).deleted is is_deleted


@pytest.mark.parametrize(
    ("received", "named"),
    [
        (status_event(resourceid=None), "resourceid"),
        (status_event(resourceid=""), "resourceid"),
        (status_event(resourceversion=None), "resourceversion"),
        (status_event(clustername=None), "clustername"),
        (status_event(originalsource=None), "originalsource"),
        (status_event(originalsource="another"), "unmatched original source id another"),
        (status_event(sequenceid=None), "sequenceid"),
        (status_event(sequenceid="x"), "sequenceid"),
        (status_event(sequenceid=str(2**63)), "sequenceid"),
        (replace(status_event(), data=b"[]"), "event data"),
        (replace(status_event(), data=b'{"conditions":[5]}'), "event data"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_report_that_cannot_be_read_names_the_attribute(received: event.Event, named: str) -> None:
    with pytest.raises(errors.WireError, match=named):
        read(received)


@pytest.mark.parametrize(
    ("held", "metadata"),
    [
        pytest.param(
            HELD, {"name": "work", "labels": {"a": "b"}, "creationTimestamp": "2026-08-20T10:11:12Z"}, id="living"
        ),
        pytest.param(
            DELETING,
            {
                "name": "work",
                "labels": {"a": "b"},
                "creationTimestamp": "2026-08-20T10:11:12Z",
                "deletionTimestamp": "2026-08-20T10:11:12Z",
            },
            id="leaving",
        ),
        pytest.param(replace(HELD, metadata=b""), {}, id="no-metadata"),
        pytest.param(replace(HELD, metadata=b"null"), {}, id="metadata-that-is-no-object"),
    ],
)
def test_a_report_is_stored_under_the_metadata_of_its_source(held: rows.Observed, metadata: dict[str, object]) -> None:
    received = status_event("Applied", metadata='{"name":"w1"}')
    stored = json.loads(intake.stored_status(held, read(received)))
    assert stored.pop("metadata") == metadata
    assert stored.pop("data") == json.loads(received.data)
    assert stored["sequenceid"] == MIDDLE
    assert stored["resourceversion"] == 3
    assert (stored["id"], stored["source"], stored["type"]) == ("s1", "agent", event.STATUS_UPDATE)


@pytest.mark.parametrize("metadata", [b"", b"null", b"5", b'{"name":"wo', b'{"name":"\xff"}'], ids=repr)
def test_damaged_metadata_do_not_cost_the_status(metadata: bytes) -> None:
    stored = json.loads(intake.stored_status(replace(HELD, metadata=metadata), REPORT))
    assert stored["metadata"] == {}
    assert stored["sequenceid"] == MIDDLE
