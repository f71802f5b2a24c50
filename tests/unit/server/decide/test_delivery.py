"""CloudEvents that agents and sources receive for rows of the store."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from msgspec import structs

from maestropy.server.decide import delivery
from maestropy.store import rows
from maestropy.wire import codec, resync, timestamps
from maestropy.wire.events import event, stored_event

CREATED = datetime(2026, 8, 20, 10, 11, 12, 345678, tzinfo=UTC)
DELETED = datetime(2026, 8, 21, 10, 11, 12, 999999, tzinfo=UTC)
NOW = timestamps.Timestamp(1_800_000_000, 5)
DATA = b'{"manifests":[{"n":9007199254740993,"f":1.0}]}'

STORED = event.CloudEvent(
    id="e1",
    source="source-a",
    type=event.SPEC_CREATE,
    time=timestamps.Timestamp(1_700_000_000, 123456789),
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
SPEC = rows.ResourceSpec(
    id="w1",
    version=7,
    source="source-a",
    consumer="c1",
    created_at=CREATED,
    updated_at=CREATED,
    deleted_at=None,
    parts=stored_event.to_parts(STORED),
)


def sent(spec: rows.ResourceSpec, action: event.EventAction = event.EventAction.UPDATE_REQUEST) -> event.CloudEvent:
    attributes = codec.ContextAttributes(id="fresh", source="maestro", time=NOW)
    return delivery.spec_event(spec, action=action, source_id="maestro", attributes=lambda: attributes)


def test_spec_event_has_our_source_and_the_resource_id() -> None:
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


def test_delete_request_gets_a_new_event_id_each_time() -> None:
    outgoing = sent(structs.replace(SPEC, deleted_at=DELETED), event.EventAction.DELETE_REQUEST)
    assert (outgoing.id, outgoing.time, outgoing.type) == ("fresh", NOW, event.SPEC_DELETE)
    assert outgoing.extensions[event.DELETION_TIMESTAMP] == timestamps.from_datetime(DELETED)
    assert json.loads(str(outgoing.extensions[event.METADATA]))["deletionTimestamp"] == "2026-08-21T10:11:12Z"
    assert outgoing.data == DATA


def test_spec_without_metadata_gets_no_metadata() -> None:
    bare = replace(STORED, extensions={event.RESOURCE_ID: "w1"})
    assert event.METADATA not in sent(structs.replace(SPEC, parts=stored_event.to_parts(bare))).extensions


@pytest.mark.parametrize(
    ("event_type", "is_deleting", "action"),
    [
        ("Create", False, event.EventAction.CREATE_REQUEST),
        ("Update", False, event.EventAction.UPDATE_REQUEST),
        ("Delete", False, event.EventAction.UPDATE_REQUEST),
        ("Create", True, event.EventAction.DELETE_REQUEST),
        ("Update", True, event.EventAction.DELETE_REQUEST),
        ("Delete", True, event.EventAction.DELETE_REQUEST),
    ],
)
def test_deleting_resource_is_only_sent_as_delete_request(
    event_type: str, action: event.EventAction, *, is_deleting: bool
) -> None:
    assert delivery.action_for(event_type, is_deleting=is_deleting) == action


def test_orphan_is_deleted_in_the_version_of_the_agent() -> None:
    orphan = resync.StoredVersion("w9", 4, is_deleting=True)
    attributes = codec.ContextAttributes(id="fresh", source="maestro", time=NOW)
    outgoing = delivery.orphan_deletion(orphan, attributes=attributes, consumer="c1", database_id="db")
    assert (outgoing.id, outgoing.source, outgoing.type) == ("fresh", "maestro", event.SPEC_RESYNC_RESPONSE)
    requested = {
        event.RESOURCE_ID: "w9",
        event.RESOURCE_VERSION: 4,
        event.CLUSTER_NAME: "c1",
        event.ORIGINAL_SOURCE: "",
        event.DELETION_TIMESTAMP: NOW,
        event.DATABASE_ID: "db",
    }
    assert outgoing.extensions == {**requested, event.ORPHAN: True}
    assert outgoing.data == b""
    removal = delivery.removal(orphan, attributes=attributes, consumer="c1", database_id="db")
    assert (removal.type, removal.extensions) == (event.SPEC_DELETE, requested), "a source requested this one"


def test_removal_names_the_incarnation() -> None:
    removed = resync.StoredVersion("w9", 4, is_deleting=True, created="2026-02-01T00:00:00Z")
    attributes = codec.ContextAttributes(id="fresh", source="maestro", time=NOW)
    removal = delivery.removal(removed, attributes=attributes, consumer="c1", database_id="db")
    assert codec.work_from_spec_event(removal).creation_timestamp == "2026-02-01T00:00:00Z"


@pytest.mark.parametrize(
    ("status", "manifests", "data"),
    [
        pytest.param('{"conditions":[]}', b'{"a":1.0}', b'{"manifestBundle":{"a":1.0},"conditions":[]}', id="both"),
        pytest.param("{}", b'{"a":1}', b'{"manifestBundle":{"a":1}}', id="empty-status"),
        pytest.param("{ }", b'{"a":1}', b'{"manifestBundle":{"a":1}}', id="empty-status-with-blank"),
        pytest.param(None, b'{"a":1}', b'{"manifestBundle":{"a":1}}', id="no-status-data"),
        pytest.param('{"conditions":[]}', b"", b'{"conditions":[]}', id="no-manifest-manifests"),
    ],
)
def test_status_event_carries_the_manifest_bundle(status: str | None, manifests: bytes, data: bytes) -> None:
    stored = {"id": "s1", "source": "agent", "type": event.STATUS_UPDATE, "sequenceid": "5", "metadata": {"name": "w"}}
    document = json.dumps(stored)[:-1] + (f',"data":{status}}}' if status else "}")
    outgoing = delivery.status_event(rows.ResourceStatus(id="w1", source="a", status=document, data=manifests))
    assert outgoing.data == data
    assert (outgoing.id, outgoing.source, outgoing.type) == ("s1", "agent", event.STATUS_UPDATE)
    assert outgoing.extensions == {event.SEQUENCE_ID: "5", event.METADATA: '{"name": "w"}'}


def test_status_resync_request_is_addressed_to_the_consumer() -> None:
    request = delivery.status_resync_request(b"{}", consumer="c1", source_id="maestro", event_id="fresh", now=NOW)
    assert (request.type, request.source, request.data) == (event.STATUS_RESYNC_REQUEST, "maestro", b"{}")
    assert request.extensions == {event.CLUSTER_NAME: "c1", event.ORIGINAL_SOURCE: "", event.DATABASE_TIME: NOW}


@pytest.mark.parametrize("metadata", [b'{"name":"work","labels":{"a":"b"}}', b""], ids=["with-metadata", "without"])
def test_replacement_deletion_has_another_id_and_the_same_name(metadata: bytes) -> None:
    spec = structs.replace(SPEC, deleted_at=DELETED, parts=structs.replace(SPEC.parts, metadata=metadata))
    plain = sent(spec, event.EventAction.DELETE_REQUEST)
    outgoing = delivery.replacement_deletion(plain)
    assert outgoing.extensions[event.RESOURCE_ID] == "w1-forgotten"
    assert json.loads(str(outgoing.extensions[event.METADATA]))["name"] == "w1"
    kept = (event.RESOURCE_VERSION, event.CLUSTER_NAME, event.DELETION_TIMESTAMP)
    assert [outgoing.extensions[name] for name in kept] == [plain.extensions[name] for name in kept]
    assert outgoing.type == event.SPEC_DELETE
