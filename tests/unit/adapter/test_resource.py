"""A malformed resource is refused and names the field: it is never read as an empty one, nor as a deleted one."""

import json
from typing import Any

import pytest

from maestropy.adapter import event as events
from maestropy.adapter import resource as resources
from maestropy.adapter.errors import MalformedEvent
from maestropy.sdk.errors import Invalid
from tests.unit.adapter.samples import EVENT

OBJECT: dict[str, Any] = {"id": "abc", "kind": "Cluster", "generation": 5, "spec": {}}

MALFORMED = [
    pytest.param({"spec": None}, "spec is null, and must be an object", id="null-spec"),
    pytest.param({"spec": "x"}, "spec is 'x', and must be an object", id="text-spec"),
    pytest.param({"spec": []}, "spec is [], and must be an object", id="list-spec"),
    pytest.param({"labels": 5}, "labels is 5, and must be an object", id="labels"),
    pytest.param({"deleted_time": 7}, "deleted_time is 7, and must be an RFC 3339 time", id="number-deleted-time"),
    pytest.param({"deleted_time": "soon"}, "deleted_time is 'soon', and must be an RFC 3339", id="text-deleted-time"),
    pytest.param({"deleted_at": False}, "deleted_at is False, and must be an RFC 3339 time", id="bool-deleted-at"),
]


@pytest.mark.parametrize(("changes", "message"), MALFORMED)
def test_malformed_resource_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as raised:
        resources.parse({**OBJECT, **changes}, EVENT)
    assert message in str(raised.value)


@pytest.mark.parametrize(("changes", "message"), MALFORMED)
def test_event_with_a_malformed_resource_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedEvent) as raised:
        events.parse(json.dumps({**OBJECT, **changes}))
    assert message in str(raised.value)


def test_missing_spec_is_refused() -> None:
    with pytest.raises(Invalid, match="spec is missing"):
        resources.parse({"id": "abc"}, EVENT)


def test_resource_of_another_event_is_refused() -> None:
    with pytest.raises(Invalid, match="its id is 'zzz', and the event is of 'abc'"):
        resources.parse({**OBJECT, "id": "zzz"}, EVENT)


@pytest.mark.parametrize(
    ("changes", "is_deleting"),
    [
        pytest.param({}, False, id="absent"),
        pytest.param({"deleted_time": None, "labels": None}, False, id="null"),
        pytest.param({"deleted_time": "2026-08-20T10:00:07.5+02:00"}, True, id="deleted-time"),
        pytest.param({"deleted_at": "2026-08-20T10:00:07Z"}, True, id="deleted-at"),
    ],
)
def test_deletion_is_a_time(changes: dict[str, Any], is_deleting: bool) -> None:
    assert resources.parse({**OBJECT, **changes}, EVENT).is_deleting is is_deleting
