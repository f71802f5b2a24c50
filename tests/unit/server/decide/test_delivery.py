"""What agents and sources receive for a row."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from maestropy.server.decide import delivery
from maestropy.store import rows
from maestropy.wire import event, instant, record, resync

CREATED = datetime(2026, 8, 20, 10, 11, 12, 345678, tzinfo=UTC)
DELETED = datetime(2026, 8, 21, 10, 11, 12, 999999, tzinfo=UTC)
NOW = instant.Timestamp(1_800_000_000, 5)
DATA = b'{"manifests":[{"n":9007199254740993,"f":1.0}]}'

STORED = event.Event(
    id="e1",
    source="source-a",
    type=event.SPEC_CREATE,
    time=instant.Timestamp(1_700_000_000, 123456789),
    extensions={
        event.RESOURCE_ID: "w1",
        event.RESOURCE_VERSION: 0,
        event.CLUSTER_NAME: "c1",
        event.ORIGINAL_SOURCE: "",
        event.LOG_TRACING: "{}",
        event.METADATA: '{"name":"work","uid":"u","labels":{"a":"b"}}',
    },
    data=DATA,
)
SPEC = rows.Spec(
    id="w1",
    version=7,
    source="source-a",
    consumer="c1",
    created_at=CREATED,
    updated_at=CREATED,
    deleted_at=None,
    parts=record.to_parts(STORED),
)


def sent(spec: rows.Spec, action: event.Action = event.Action.UPDATE_REQUEST) -> event.Event:
    return delivery.spec_event(spec, action=action, source_id="maestro", fresh_id="fresh", now=NOW)


def test_a_spec_comes_from_us_under_its_resource_id() -> None:
    outgoing = sent(SPEC)
    assert (outgoing.id, outgoing.time) == (STORED.id, STORED.time)
    assert (outgoing.source, outgoing.type) == ("maestro", event.SPEC_UPDATE)
    assert outgoing.extensions[event.RESOURCE_VERSION] == 7
    assert outgoing.extensions[event.LOG_TRACING] == "{}"
    assert event.DELETION_TIMESTAMP not in outgoing.extensions
    assert json.loads(str(outgoing.extensions[event.METADATA])) == {
        "name": "w1",
        "uid": "u",
        "labels": {"a": "b"},
        "creationTimestamp": "2026-08-20T10:11:12Z",
    }
    assert outgoing.data == DATA


def test_a_deletion_is_news_every_time_it_is_sent() -> None:
    outgoing = sent(replace(SPEC, deleted_at=DELETED), event.Action.DELETE_REQUEST)
    assert (outgoing.id, outgoing.time, outgoing.type) == ("fresh", NOW, event.SPEC_DELETE)
    assert outgoing.extensions[event.DELETION_TIMESTAMP] == instant.from_datetime(DELETED)
    assert json.loads(str(outgoing.extensions[event.METADATA]))["deletionTimestamp"] == "2026-08-21T10:11:12Z"
    assert outgoing.data == DATA


def test_a_spec_without_metadata_gets_none() -> None:
    bare = replace(STORED, extensions={event.RESOURCE_ID: "w1"})
    assert event.METADATA not in sent(replace(SPEC, parts=record.to_parts(bare))).extensions


@pytest.mark.parametrize(
    ("event_type", "deleting", "action"),
    [
        ("Create", False, event.Action.CREATE_REQUEST),
        ("Update", False, event.Action.UPDATE_REQUEST),
        ("Delete", False, event.Action.UPDATE_REQUEST),
        ("Create", True, event.Action.DELETE_REQUEST),
        ("Update", True, event.Action.DELETE_REQUEST),
        ("Delete", True, event.Action.DELETE_REQUEST),
    ],
)
def test_what_is_going_away_is_only_ever_deleted(event_type: str, action: event.Action, *, deleting: bool) -> None:
    assert delivery.action_for(event_type, deleting=deleting) == action


def test_an_orphan_is_deleted_in_the_version_the_agent_has() -> None:
    outgoing = delivery.orphan_deletion(
        resync.Row("w9", 4, is_deleting=True), consumer="c1", source_id="maestro", fresh_id="fresh", now=NOW
    )
    assert (outgoing.id, outgoing.source, outgoing.type) == ("fresh", "maestro", event.SPEC_RESYNC_RESPONSE)
    assert outgoing.extensions == {
        event.RESOURCE_ID: "w9",
        event.RESOURCE_VERSION: 4,
        event.CLUSTER_NAME: "c1",
        event.ORIGINAL_SOURCE: "",
        event.DELETION_TIMESTAMP: NOW,
    }
    assert outgoing.data == b""


@pytest.mark.parametrize(
    ("status", "bundle", "data"),
    [
        pytest.param('{"conditions":[]}', b'{"a":1.0}', b'{"manifestBundle":{"a":1.0},"conditions":[]}', id="both"),
        pytest.param("{}", b'{"a":1}', b'{"manifestBundle":{"a":1}}', id="an-empty-status"),
        pytest.param("{ }", b'{"a":1}', b'{"manifestBundle":{"a":1}}', id="an-empty-status-with-a-blank"),
        pytest.param(None, b'{"a":1}', b'{"manifestBundle":{"a":1}}', id="no-status-data"),
        pytest.param('{"conditions":[]}', b"", b'{"conditions":[]}', id="no-bundle"),
    ],
)
def test_a_status_carries_its_spec(status: str | None, bundle: bytes, data: bytes) -> None:
    stored = {"id": "s1", "source": "agent", "type": event.STATUS_UPDATE, "sequenceid": "5", "metadata": {"name": "w"}}
    document = json.dumps(stored)[:-1] + (f',"data":{status}}}' if status else "}")
    outgoing = delivery.status_event(rows.Told(id="w1", source="a", status=document, data=bundle))
    assert outgoing.data == data
    assert (outgoing.id, outgoing.source, outgoing.type) == ("s1", "agent", event.STATUS_UPDATE)
    assert outgoing.extensions == {event.SEQUENCE_ID: "5", event.METADATA: '{"name": "w"}'}


def test_a_status_resync_is_addressed_by_the_name_of_the_consumer() -> None:
    question = delivery.status_resync_request(b"{}", consumer="c1", source_id="maestro", fresh_id="fresh", now=NOW)
    assert (question.type, question.source, question.data) == (event.STATUS_RESYNC_REQUEST, "maestro", b"{}")
    assert question.extensions == {event.CLUSTER_NAME: "c1", event.ORIGINAL_SOURCE: ""}


@pytest.mark.parametrize("metadata", [b'{"name":"work","labels":{"a":"b"}}', b""], ids=["with-metadata", "without"])
def test_a_displacing_deletion_is_of_another_id_under_the_same_name(metadata: bytes) -> None:
    spec = replace(SPEC, deleted_at=DELETED, parts=replace(SPEC.parts, metadata=metadata))
    plain = sent(spec, event.Action.DELETE_REQUEST)
    outgoing = delivery.displacing(plain)
    assert outgoing.extensions[event.RESOURCE_ID] == "w1-forgotten"
    assert json.loads(str(outgoing.extensions[event.METADATA]))["name"] == "w1"
    kept = (event.RESOURCE_VERSION, event.CLUSTER_NAME, event.DELETION_TIMESTAMP)
    assert [outgoing.extensions[each] for each in kept] == [plain.extensions[each] for each in kept]
    assert outgoing.type == event.SPEC_DELETE
