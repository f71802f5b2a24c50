"""Rows become the JSON that clients of the reference know, key by key."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.server.rest import fields, views
from maestropy.store.consumers import ConsumerRow
from maestropy.store.listing import BundleRow

CREATED = datetime(2026, 8, 20, 10, 0, 41, 123400, tzinfo=UTC)
UPDATED = datetime(2026, 8, 20, 10, 6, 2, tzinfo=UTC)
DELETED = datetime(2026, 8, 20, 12, 0, 0, 999999, tzinfo=UTC)
BUNDLE_KEYS = frozenset(fields.BUNDLE_KEYS)
CONSUMER_KEYS = frozenset(fields.CONSUMER_KEYS)


def row(**changes: Any) -> BundleRow:
    plain = BundleRow(
        id="55c6",
        name="55c6",
        consumer_name="cluster1",
        version=3,
        created_at=CREATED,
        updated_at=UPDATED,
        deleted_at=None,
        rendered=True,
        data=b'{"manifests":[{"n":9007199254740993, "f":1.0}],"manifestConfigs":[{"a":1}],'
        b'"deleteOption":{"propagationPolicy":"Foreground"},"executer":{}}',
        metadata=b'{"uid":"55c6","name":"my-work","creationTimestamp":null}',
        status=b'{"resourceversion":3,"sequenceid":"77","data":{"conditions":[{"type":"Applied"}],"resourceStatus":[]}}',
    )
    return plain._replace(**changes)


def shown(bundle: BundleRow) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(views.bundle(bundle, BUNDLE_KEYS))
    return found


def test_a_bundle_in_full() -> None:
    assert views.bundle(row(deleted_at=DELETED), BUNDLE_KEYS) == (
        b'{"consumer_name":"cluster1","created_at":"2026-08-20T10:00:41.1234Z",'
        b'"delete_option":{"propagationPolicy":"Foreground"},"deleted_at":"2026-08-20T12:00:00.999999Z",'
        b'"href":"/api/maestro/v1/resource-bundles/55c6","id":"55c6","kind":"ResourceBundle",'
        b'"manifest_configs":[{"a":1}],"manifests":[{"n":9007199254740993, "f":1.0}],'
        b'"metadata":{"creationTimestamp":"2026-08-20T10:00:41Z","deletionTimestamp":"2026-08-20T12:00:00Z",'
        b'"name":"my-work","uid":"55c6"},"name":"55c6",'
        b'"status":{"ObservedVersion":3,"SequenceID":"77","conditions":[{"type":"Applied"}],"resourceStatus":[]},'
        b'"updated_at":"2026-08-20T10:06:02Z","version":3}'
    )


@pytest.mark.parametrize(
    "stored",
    [None, b"null", b"{}", b"7", b'"text"', b"[]"],
    ids=["sql-null", "json-null", "empty-object", "number", "text", "list"],
)
def test_without_a_status_there_is_no_key(stored: bytes | None) -> None:
    assert "status" not in shown(row(status=stored))


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param(b'{"resourceversion":"4"}', {"ObservedVersion": 4, "SequenceID": ""}, id="version-as-text"),
        pytest.param(b'{"resourceversion":"x"}', {"ObservedVersion": 0, "SequenceID": ""}, id="version-no-number"),
        pytest.param(b'{"sequenceid":12}', {"ObservedVersion": 0, "SequenceID": "12"}, id="sequence-as-number"),
        pytest.param(
            b'{"resourceversion":1,"data":{"conditions":[1]}}',
            {"ObservedVersion": 1, "SequenceID": "", "conditions": [1]},
            id="a-list-not-sent-is-left-out",
        ),
        pytest.param(b'{"resourceversion":1,"data":null}', {"ObservedVersion": 1, "SequenceID": ""}, id="no-data"),
        pytest.param(
            b'{"data":{"conditions":null,"resourceStatus":[2],"manifestBundle":{}}}',
            {"ObservedVersion": 0, "SequenceID": "", "resourceStatus": [2]},
            id="no-unknown-keys",
        ),
    ],
)
def test_status(stored: bytes, expected: dict[str, Any]) -> None:
    assert shown(row(status=stored))["status"] == expected


@pytest.mark.parametrize(
    "data",
    [None, b"", b"null", b"{}", b"3", b'{"manifests":null,"manifestConfigs":null,"deleteOption":null}'],
    ids=["sql-null", "empty", "json-null", "empty-object", "number", "nulls"],
)
def test_an_absent_spec_is_empty_lists_and_objects(data: bytes | None) -> None:
    found = shown(row(data=data))

    assert (found["manifests"], found["manifest_configs"], found["delete_option"]) == ([], [], {})


@pytest.mark.parametrize("stored", [None, b"", b"null", b"{}", b"[1]"], ids=["none", "empty", "null", "object", "list"])
def test_without_metadata_nothing_is_added(stored: bytes | None) -> None:
    assert shown(row(metadata=stored))["metadata"] == {}


def test_columns_that_may_be_null() -> None:
    found = shown(row(name=None, consumer_name=None, created_at=None, updated_at=None))

    assert (found["name"], found["consumer_name"]) == ("", "")
    assert found["created_at"] == found["updated_at"] == "0001-01-01T00:00:00Z"
    assert found["metadata"]["creationTimestamp"] == "0001-01-01T00:00:00Z"


@given(st.sets(st.sampled_from(fields.BUNDLE_KEYS)))
def test_only_what_is_asked_for_is_shown(keys: set[str]) -> None:
    found = json.loads(views.bundle(row(deleted_at=DELETED), frozenset(keys)))

    assert list(found) == sorted(keys)


def test_a_consumer_without_labels_has_no_such_key() -> None:
    consumer = ConsumerRow(id="i", name="n", labels=None, created_at=CREATED, updated_at=UPDATED)

    assert views.consumer(consumer, CONSUMER_KEYS) == (
        b'{"created_at":"2026-08-20T10:00:41.1234Z","href":"/api/maestro/v1/consumers/i","id":"i",'
        b'"kind":"Consumer","name":"n","updated_at":"2026-08-20T10:06:02Z"}'
    )


def test_a_list() -> None:
    assert views.whole_list([b"1", b"2"], kind="K", page=2, total=9) == (
        b'{"items":[1,2],"kind":"K","page":2,"size":2,"total":9}'
    )
