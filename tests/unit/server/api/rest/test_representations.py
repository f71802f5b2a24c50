"""JSON of resource bundles and consumers, key by key as in the Go server."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.server.api.rest import field_selection, representations
from maestropy.store.consumers import ConsumerRow
from maestropy.store.lists.resource_lists import ResourceRow

CREATED = datetime(2026, 8, 20, 10, 0, 41, 123400, tzinfo=UTC)
UPDATED = datetime(2026, 8, 20, 10, 6, 2, tzinfo=UTC)
DELETED = datetime(2026, 8, 20, 12, 0, 0, 999999, tzinfo=UTC)
RESOURCE_BUNDLE_KEYS = frozenset(field_selection.RESOURCE_BUNDLE_KEYS)
CONSUMER_KEYS = frozenset(field_selection.CONSUMER_KEYS)


def row(**changes: Any) -> ResourceRow:
    plain = ResourceRow(
        id="55c6",
        name="55c6",
        consumer_name="cluster1",
        version=3,
        created_at=CREATED,
        updated_at=UPDATED,
        deleted_at=None,
        is_rendered=True,
        data=b'{"manifests":[{"n":9007199254740993, "f":1.0}],"manifestConfigs":[{"a":1}],'
        b'"deleteOption":{"propagationPolicy":"Foreground"},"executer":{}}',
        metadata=b'{"uid":"55c6","name":"my-work","creationTimestamp":null}',
        status=b'{"resourceversion":3,"sequenceid":"77","data":{"conditions":[{"type":"Applied"}],"resourceStatus":[]}}',
    )
    return plain._replace(**changes)


def shown(bundle: ResourceRow) -> dict[str, Any]:
    rendered: dict[str, Any] = json.loads(representations.resource_bundle(bundle, RESOURCE_BUNDLE_KEYS))
    return rendered


def test_complete_resource_bundle() -> None:
    assert representations.resource_bundle(row(deleted_at=DELETED), RESOURCE_BUNDLE_KEYS) == (
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
    ("executer", "shown_executor"),
    [('{"subject":{"type":"ServiceAccount"}}', {"subject": {"type": "ServiceAccount"}}), ("{}", None), ("null", None)],
)
def test_executor_is_shown_only_where_it_is_asked_for(executer: str, shown_executor: object) -> None:
    bundle = row(data=f'{{"manifests":[],"executer":{executer}}}'.encode())
    assert "executor" not in shown(bundle)
    rendered = json.loads(representations.resource_bundle(bundle, field_selection.included_keys("executor")))
    assert rendered.pop("executor", None) == shown_executor
    assert rendered == shown(bundle)


@pytest.mark.parametrize(
    "stored",
    [None, b"null", b"{}", b"7", b'"text"', b"[]"],
    ids=["sql-null", "json-null", "empty-object", "number", "text", "list"],
)
def test_status_key_is_absent_without_a_status(stored: bytes | None) -> None:
    assert "status" not in shown(row(status=stored))


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param(b'{"resourceversion":"4"}', {"ObservedVersion": 4, "SequenceID": ""}, id="version-as-text"),
        pytest.param(b'{"resourceversion":"x"}', {"ObservedVersion": 0, "SequenceID": ""}, id="version-not-a-number"),
        pytest.param(b'{"sequenceid":12}', {"ObservedVersion": 0, "SequenceID": "12"}, id="sequence-as-number"),
        pytest.param(
            b'{"resourceversion":1,"data":{"conditions":[1]}}',
            {"ObservedVersion": 1, "SequenceID": "", "conditions": [1]},
            id="absent-list-is-omitted",
        ),
        pytest.param(
            b'{"resourceversion":"1","sequenceid":"7","data_base64":"eyJjb25kaXRpb25zIjpbMV19"}',
            {"ObservedVersion": 1, "SequenceID": "7", "conditions": [1]},
            id="stored-by-a-go-server-behind-pubsub",
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
def test_absent_spec_gives_empty_lists_and_objects(data: bytes | None) -> None:
    rendered = shown(row(data=data))

    assert (rendered["manifests"], rendered["manifest_configs"], rendered["delete_option"]) == ([], [], {})


@pytest.mark.parametrize("stored", [None, b"", b"null", b"{}", b"[1]"], ids=["none", "empty", "null", "object", "list"])
def test_absent_metadata_is_an_empty_object(stored: bytes | None) -> None:
    assert shown(row(metadata=stored))["metadata"] == {}


def test_null_columns() -> None:
    rendered = shown(row(name=None, consumer_name=None, created_at=None, updated_at=None))

    assert (rendered["name"], rendered["consumer_name"]) == ("", "")
    assert rendered["created_at"] == rendered["updated_at"] == "0001-01-01T00:00:00Z"
    assert rendered["metadata"]["creationTimestamp"] == "0001-01-01T00:00:00Z"


@given(st.sets(st.sampled_from(field_selection.RESOURCE_BUNDLE_KEYS)))
def test_only_selected_keys_are_rendered(keys: set[str]) -> None:
    rendered = json.loads(representations.resource_bundle(row(deleted_at=DELETED), frozenset(keys)))

    assert list(rendered) == sorted(keys)


def test_labels_key_is_absent_without_labels() -> None:
    consumer = ConsumerRow(id="i", name="n", labels=None, created_at=CREATED, updated_at=UPDATED)

    assert representations.consumer(consumer, CONSUMER_KEYS) == (
        b'{"created_at":"2026-08-20T10:00:41.1234Z","href":"/api/maestro/v1/consumers/i","id":"i",'
        b'"kind":"Consumer","name":"n","updated_at":"2026-08-20T10:06:02Z"}'
    )


def test_list() -> None:
    assert representations.whole_list([b"1", b"2"], kind="K", page=2, total=9) == (
        b'{"items":[1,2],"kind":"K","page":2,"size":2,"total":9}'
    )
