"""Verdicts on the status updates of agents."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from maestropy.server.decide import status_intake, status_order
from maestropy.store import rows
from maestropy.wire import errors, ordering
from maestropy.wire.events import event

EARLY = str(int(ordering.Snowflake(1_700_000_000_000, ordering.AGENT_NODE, 0)))
MIDDLE = str(int(ordering.Snowflake(1_700_000_000_000, ordering.AGENT_NODE, 1)))
LATE = str(int(ordering.Snowflake(1_700_000_000_001, ordering.AGENT_NODE, 0)))
FOREIGN = str(int(ordering.Snowflake(1_700_000_000_002, 2, 0)))
NOW_MS = 1_700_000_000_500
ORDER = status_order.OrderFacts(now_ms=NOW_MS)
LIMIT_MS = NOW_MS + ordering.AHEAD_MAX_MS
LATEST = str(int(ordering.Snowflake(LIMIT_MS, ordering.AGENT_NODE, 0)))
TOMORROW = str(int(ordering.Snowflake(NOW_MS + 86_400_000, ordering.AGENT_NODE, 0)))
MAX_INT64 = str(2**63 - 1)
DAY = datetime(2026, 8, 20, 10, 11, 12, 345678, tzinfo=UTC)


def status_event(*kinds: str, status: str = "True", **changes: object) -> event.CloudEvent:
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
    return event.CloudEvent(id="s1", source="agent", type=event.STATUS_UPDATE, extensions=kept, data=data)  # type: ignore[arg-type]


def read(received: event.CloudEvent) -> status_intake.StatusUpdate:
    return status_intake.read_status_update(received, source_id="maestro", operation_id="")


STORED = rows.StoredStatus(
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
DELETING = replace(STORED, deleted_at=DAY)
FIRST = replace(STORED, sequence_id="", status_hash="", observed_version="")
UPDATE = read(status_event("Applied"))
DELETED_UPDATE = read(status_event("Applied", "Deleted"))


def deleted_update(created: object) -> status_intake.StatusUpdate:
    """Return a Deleted status of an agent that reports when the resource was created."""
    return read(status_event("Deleted", **{event.METADATA: json.dumps({"creationTimestamp": created})}))


PREVIOUS_INCARNATION = status_intake.Ignore("it is the status of a previous incarnation of this resource ID")


@pytest.mark.parametrize(
    ("stored_row", "update", "verdict"),
    [
        pytest.param(STORED, UPDATE, status_intake.Store(), id="newer-status"),
        pytest.param(FIRST, UPDATE, status_intake.Store(), id="first-status"),
        pytest.param(
            replace(STORED, sequence_id="soon"), UPDATE, status_intake.Store(), id="stored-sequence-id-damaged"
        ),
        pytest.param(
            DELETING, deleted_update("2026-08-20T10:11:12Z"), status_intake.Remove(), id="deleted-same-creation-time"
        ),
        pytest.param(
            DELETING,
            deleted_update("2026-08-20T12:11:12+02:00"),
            status_intake.Remove(),
            id="deleted-creation-time-in-another-zone",
        ),
        pytest.param(DELETING, deleted_update(None), status_intake.Remove(), id="deleted-without-creation-time"),
        pytest.param(
            DELETING, deleted_update("long ago"), status_intake.Remove(), id="deleted-with-unreadable-creation-time"
        ),
        pytest.param(
            DELETING,
            deleted_update("2026-08-20T10:11:11Z"),
            status_intake.Redeliver(),
            id="deleted-status-of-previous-incarnation",
        ),
        pytest.param(
            STORED,
            deleted_update("2026-08-20T10:11:11Z"),
            status_intake.Redeliver(),
            id="deleted-status-of-previous-incarnation-while-not-deleting",
        ),
        pytest.param(None, UPDATE, status_intake.Ignore("there is no such resource"), id="unknown-resource"),
        pytest.param(
            replace(STORED, sequence_id=MIDDLE, status_hash="new"),
            UPDATE,
            status_intake.Ignore("the status is unchanged"),
            id="duplicate-delivery",
        ),
        pytest.param(
            replace(STORED, sequence_id=MIDDLE, status_hash=""),
            replace(UPDATE, status_hash=""),
            status_intake.Ignore("the status is unchanged"),
            id="duplicate-delivery-without-status-hash",
        ),
        pytest.param(
            replace(STORED, sequence_id=LATE, status_hash="new"),
            UPDATE,
            status_intake.Ignore("the status is unchanged"),
            id="unchanged-status-with-older-sequence-id",
        ),
        pytest.param(
            replace(STORED, status_hash="new"),
            replace(UPDATE, sequence_id=MAX_INT64),
            status_intake.Ignore("the status is unchanged"),
            id="unchanged-status-with-sequence-id-far-ahead",
        ),
        pytest.param(
            replace(STORED, version=4, sequence_id=LATE),
            UPDATE,
            status_intake.Ignore("it belongs to version 3, the resource has 4", is_stale=True),
            id="stale-version-with-older-sequence-id",
        ),
        pytest.param(
            STORED, replace(UPDATE, sequence_id=LATEST), status_intake.Store(), id="sequence-id-ahead-within-allowance"
        ),
        pytest.param(
            replace(STORED, sequence_id=TOMORROW), UPDATE, status_intake.Store(), id="stored-sequence-id-far-ahead"
        ),
        pytest.param(
            replace(STORED, sequence_id=MAX_INT64),
            UPDATE,
            status_intake.Store(),
            id="stored-sequence-id-far-ahead-and-of-another-node",
        ),
        pytest.param(
            replace(DELETING, sequence_id=MAX_INT64),
            DELETED_UPDATE,
            status_intake.Remove(),
            id="deleted-with-stored-sequence-id-far-ahead",
        ),
        pytest.param(
            replace(DELETING, sequence_id=LATE),
            deleted_update("2026-08-20T10:11:11Z"),
            PREVIOUS_INCARNATION,
            id="deleted-status-of-previous-incarnation-with-older-sequence-id",
        ),
        pytest.param(
            replace(STORED, version=4),
            UPDATE,
            status_intake.Ignore("it belongs to version 3, the resource has 4", is_stale=True),
            id="stale-version",
        ),
        pytest.param(
            replace(STORED, version=2),
            UPDATE,
            status_intake.Ignore("it belongs to version 3, the resource has 2", is_stale=True),
            id="version-newer-than-stored",
        ),
        pytest.param(
            replace(STORED, status_hash="new"),
            UPDATE,
            status_intake.Ignore("the status is unchanged"),
            id="unchanged-status-hash",
        ),
        pytest.param(
            replace(STORED, status_hash="new", observed_version="2"),
            UPDATE,
            status_intake.Store(),
            id="unchanged-status-of-newer-version",
        ),
        pytest.param(
            replace(STORED, status_hash=""),
            replace(UPDATE, status_hash=""),
            status_intake.Store(),
            id="no-status-hash",
        ),
        pytest.param(
            STORED,
            replace(UPDATE, consumer="c2"),
            status_intake.Reject("unmatched consumer name c2 for resource w1"),
            id="other-consumer",
        ),
        pytest.param(DELETING, DELETED_UPDATE, status_intake.Remove(), id="deleted-while-deleting"),
        pytest.param(
            replace(DELETING, version=9),
            DELETED_UPDATE,
            status_intake.Remove(),
            id="deleted-before-last-update-arrived",
        ),
        pytest.param(
            replace(DELETING, sequence_id=""),
            DELETED_UPDATE,
            status_intake.Remove(),
            id="deleted-as-first-status",
        ),
        pytest.param(
            replace(DELETING, status_hash="new"),
            DELETED_UPDATE,
            status_intake.Remove(),
            id="deleted-with-unchanged-status-hash",
        ),
        pytest.param(STORED, DELETED_UPDATE, status_intake.Redeliver(), id="deleted-without-request"),
        pytest.param(FIRST, DELETED_UPDATE, status_intake.Redeliver(), id="deleted-as-first-status-without-request"),
        pytest.param(
            DELETING,
            replace(DELETED_UPDATE, consumer="c2"),
            status_intake.Reject("unmatched consumer name c2 for resource w1"),
            id="deleted-by-other-consumer",
        ),
        pytest.param(DELETING, UPDATE, status_intake.Store(), id="status-while-deleting"),
    ],
)
def test_verdict(
    stored_row: rows.StoredStatus | None, update: status_intake.StatusUpdate, verdict: status_intake.Verdict
) -> None:
    assert status_intake.decide(stored_row, update, order=ORDER) == verdict


RESYNC_RESPONSE = replace(UPDATE, received=replace(UPDATE.received, type=event.STATUS_RESYNC_RESPONSE))
AHEAD, OLDER, OTHER_NODE = status_order.Cause


@pytest.mark.parametrize(
    ("stored_row", "update", "cause", "is_error"),
    [
        pytest.param(replace(STORED, sequence_id=LATE), UPDATE, OLDER, True, id="older-sequence-id"),
        pytest.param(replace(STORED, sequence_id=MIDDLE), UPDATE, OLDER, True, id="same-sequence-id-other-status"),
        pytest.param(replace(STORED, sequence_id=LATE), RESYNC_RESPONSE, OLDER, False, id="resync-response"),
        pytest.param(replace(DELETING, sequence_id=LATE), DELETED_UPDATE, OLDER, True, id="deleted-older"),
        pytest.param(STORED, replace(UPDATE, sequence_id=TOMORROW), AHEAD, True, id="one-day-ahead"),
        pytest.param(STORED, replace(UPDATE, sequence_id=MAX_INT64), AHEAD, True, id="largest-sequence-id"),
        pytest.param(FIRST, replace(UPDATE, sequence_id=MAX_INT64), AHEAD, True, id="largest-sequence-id-first-status"),
        pytest.param(DELETING, replace(DELETED_UPDATE, sequence_id=TOMORROW), AHEAD, True, id="deleted-one-day-ahead"),
        pytest.param(STORED, replace(UPDATE, sequence_id=FOREIGN), OTHER_NODE, True, id="other-node"),
    ],
)
def test_new_status_whose_order_is_not_known_is_not_dropped(
    stored_row: rows.StoredStatus, update: status_intake.StatusUpdate, cause: status_order.Cause, *, is_error: bool
) -> None:
    verdict = status_intake.decide(stored_row, update, order=ORDER)
    assert isinstance(verdict, status_intake.Unordered)
    assert verdict.problem.cause is cause
    assert verdict.is_error is is_error
    assert f"sequenceid {update.sequence_id}" in verdict.problem.text


def test_resync_response_is_an_error_when_the_agent_cannot_be_asked_again() -> None:
    order = replace(ORDER, can_ask=False)
    verdict = status_intake.decide(replace(STORED, sequence_id=LATE), RESYNC_RESPONSE, order=order)
    assert isinstance(verdict, status_intake.Unordered)
    assert verdict.is_error


@pytest.mark.parametrize(
    ("update", "agents_get_errors", "is_stored"),
    [
        pytest.param(UPDATE, True, True, id="sent-again-after-an-error"),
        pytest.param(UPDATE, False, False, id="may-have-waited-at-the-broker"),
        pytest.param(RESYNC_RESPONSE, False, True, id="answer-to-the-question-of-the-server"),
        pytest.param(replace(RESYNC_RESPONSE, sequence_id=EARLY), True, False, id="the-same-message-twice"),
        pytest.param(replace(UPDATE, sequence_id=TOMORROW), True, True, id="clock-still-ahead"),
    ],
)
def test_status_that_is_sent_again_is_stored_under_a_sequence_id_of_the_server(
    update: status_intake.StatusUpdate, *, agents_get_errors: bool, is_stored: bool
) -> None:
    stored_row = replace(STORED, sequence_id=LATE)
    order = replace(ORDER, unordered_sequence_id=EARLY, agents_get_errors=agents_get_errors)
    verdict = status_intake.decide(stored_row, update, order=order)
    assert isinstance(verdict, status_intake.Store if is_stored else status_intake.Unordered)
    if isinstance(verdict, status_intake.Store):
        assert ordering.is_newer(verdict.sequence_id, LATE), "sources never see a sequence ID that goes back"
        assert not ordering.is_ahead(verdict.sequence_id, now_ms=NOW_MS)
        document = json.loads(status_intake.status_document(stored_row, update, sequence_id=verdict.sequence_id))
        assert document["sequenceid"] == verdict.sequence_id
        assert document["statushash"] == "new"


@pytest.mark.parametrize("agents_get_errors", [True, False])
def test_deleted_status_that_is_sent_again_removes_the_resource(*, agents_get_errors: bool) -> None:
    order = replace(ORDER, unordered_sequence_id=EARLY, agents_get_errors=agents_get_errors)
    verdict = status_intake.decide(replace(DELETING, sequence_id=LATE), DELETED_UPDATE, order=order)
    assert isinstance(verdict, status_intake.Remove)
    assert ordering.is_newer(verdict.sequence_id, LATE)


@pytest.mark.parametrize(
    ("previous_sequence_id", "verdict"),
    [
        pytest.param("", status_intake.Remove(), id="no-previous-incarnation"),
        pytest.param(EARLY, status_intake.Remove(), id="newer-than-last-status"),
        pytest.param(MIDDLE, PREVIOUS_INCARNATION, id="same-as-last-status"),
        pytest.param(LATE, PREVIOUS_INCARNATION, id="older-than-last-status"),
        pytest.param("soon", status_intake.Remove(), id="last-sequence-id-damaged"),
        pytest.param(FOREIGN, status_intake.Remove(), id="last-sequence-id-of-another-agent"),
        pytest.param(TOMORROW, status_intake.Remove(), id="last-sequence-id-far-ahead"),
    ],
)
def test_deleted_status_of_previous_incarnation_created_in_the_same_second_is_ignored(
    previous_sequence_id: str, verdict: status_intake.Verdict
) -> None:
    stored_row, update = replace(DELETING, sequence_id=""), deleted_update("2026-08-20T10:11:12Z")
    assert status_intake.needs_previous_sequence_id(stored_row, update)
    decided = status_intake.decide(stored_row, update, order=ORDER, previous_sequence_id=previous_sequence_id)
    assert decided == verdict


@pytest.mark.parametrize(
    ("created_at", "verdict"),
    [
        pytest.param("2026-08-20T10:11:12.345678Z", status_intake.Remove(), id="this-incarnation"),
        pytest.param("2026-08-20T10:11:12.045678Z", status_intake.Redeliver(), id="previous-one-of-the-same-second"),
        pytest.param("yesterday", status_intake.Remove(), id="damaged-so-the-second-counts"),
    ],
)
def test_exact_creation_time_says_which_incarnation_is_deleted(created_at: str, verdict: status_intake.Verdict) -> None:
    metadata = {event.METADATA: json.dumps({"creationTimestamp": "2026-08-20T10:11:12Z"})}
    update = read(status_event("Deleted", **metadata, **{event.CREATED_AT: created_at}))
    fresh = replace(DELETING, sequence_id="")
    assert status_intake.decide(fresh, update, order=ORDER, previous_sequence_id=EARLY) == verdict
    assert event.CREATED_AT not in status_intake.status_document(DELETING, update)


@pytest.mark.parametrize(
    ("stored_row", "previous_sequence_id", "verdict"),
    [
        pytest.param(DELETING, EARLY, status_intake.Redeliver(), id="perhaps-of-the-previous-incarnation"),
        pytest.param(DELETING, "", status_intake.Remove(), id="no-previous-incarnation"),
        pytest.param(replace(DELETING, metadata=b""), EARLY, status_intake.Remove(), id="agents-know-no-creation-time"),
    ],
)
def test_deleted_status_without_creation_time(
    stored_row: rows.StoredStatus, previous_sequence_id: str, verdict: status_intake.Verdict
) -> None:
    fresh = replace(stored_row, sequence_id="")
    decided = status_intake.decide(fresh, DELETED_UPDATE, order=ORDER, previous_sequence_id=previous_sequence_id)
    assert decided == verdict


@pytest.mark.parametrize(
    ("stored_row", "update"),
    [
        pytest.param(None, DELETED_UPDATE, id="unknown-resource"),
        pytest.param(DELETING, DELETED_UPDATE, id="incarnation-has-a-status"),
        pytest.param(FIRST, UPDATE, id="not-a-deleted-status"),
    ],
)
def test_previous_sequence_id_is_not_needed(
    stored_row: rows.StoredStatus | None, update: status_intake.StatusUpdate
) -> None:
    assert not status_intake.needs_previous_sequence_id(stored_row, update)


@pytest.mark.parametrize(
    ("received", "is_deleted"),
    [
        pytest.param(status_event("Deleted"), True, id="deleted"),
        pytest.param(status_event("Deleted", status="False"), False, id="condition-false"),
        pytest.param(status_event("Applied"), False, id="applied"),
        pytest.param(replace(status_event(), data=b"{}"), False, id="empty-object"),
        pytest.param(replace(status_event(), data=b'{"conditions":null}'), False, id="no-conditions"),
    ],
)
def test_only_a_true_deleted_condition_means_deleted(received: event.CloudEvent, *, is_deleted: bool) -> None:
    assert read(received).is_deleted is is_deleted


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
        (replace(status_event(), data=b""), "the status update has no data"),
        (replace(status_event(), data=b'{"conditions":[5]}'), "event data"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_malformed_status_update_names_the_attribute(received: event.CloudEvent, named: str) -> None:
    with pytest.raises(errors.WireError, match=named):
        read(received)


@pytest.mark.parametrize(
    ("stored_row", "metadata"),
    [
        pytest.param(
            STORED,
            {"name": "work", "labels": {"a": "b"}, "creationTimestamp": "2026-08-20T10:11:12Z"},
            id="not-deleting",
        ),
        pytest.param(
            DELETING,
            {
                "name": "work",
                "labels": {"a": "b"},
                "creationTimestamp": "2026-08-20T10:11:12Z",
                "deletionTimestamp": "2026-08-20T10:11:12Z",
            },
            id="deleting",
        ),
        pytest.param(replace(STORED, metadata=b""), {}, id="no-metadata"),
        pytest.param(replace(STORED, metadata=b"null"), {}, id="metadata-not-an-object"),
    ],
)
def test_status_is_stored_with_the_metadata_of_the_source(
    stored_row: rows.StoredStatus, metadata: dict[str, object]
) -> None:
    received = status_event("Applied", metadata='{"name":"w1"}')
    stored = json.loads(status_intake.status_document(stored_row, read(received)))
    assert stored.pop("metadata") == metadata
    assert stored.pop("data") == json.loads(received.data)
    assert stored["sequenceid"] == MIDDLE
    assert stored["resourceversion"] == 3
    assert (stored["id"], stored["source"], stored["type"]) == ("s1", "agent", event.STATUS_UPDATE)


@pytest.mark.parametrize("metadata", [b"", b"null", b"5", b'{"name":"wo', b'{"name":"\xff"}'], ids=repr)
def test_damaged_metadata_does_not_lose_the_status(metadata: bytes) -> None:
    stored = json.loads(status_intake.status_document(replace(STORED, metadata=metadata), UPDATE))
    assert stored["metadata"] == {}
    assert stored["sequenceid"] == MIDDLE
