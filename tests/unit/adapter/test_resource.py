"""A malformed resource is refused and names the field: it is never read as an empty one, nor as a deleted one."""

import json
from typing import Any

import pytest

from maestropy.adapter import event as events
from maestropy.adapter import resource as resources
from maestropy.adapter.decide.effects import CallApi
from maestropy.adapter.errors import MalformedEvent
from maestropy.adapter.transports import dry_run
from maestropy.sdk.errors import Invalid
from tests.unit.adapter.samples import EVENT

OBJECT: dict[str, Any] = {"id": "abc", "kind": "Cluster", "generation": 5, "spec": {}}

MALFORMED = [
    pytest.param({"spec": None}, "spec is null, and must be an object", id="null-spec"),
    pytest.param({"spec": "x"}, "spec is 'x', and must be an object", id="text-spec"),
    pytest.param({"spec": []}, "spec is [], and must be an object", id="list-spec"),
    pytest.param({"labels": 5}, "labels is 5, and must be an object", id="labels"),
    pytest.param({"labels": {"a": 5}}, "labels.a is 5, and must be a string", id="label"),
    pytest.param({"generation": 10**18}, "must be", id="generation-above-the-limit"),
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


def test_resource_of_another_kind_is_refused() -> None:
    with pytest.raises(Invalid, match="its kind is 'NodePool', and the event is of a 'Cluster'"):
        resources.parse({**OBJECT, "kind": "NodePool"}, EVENT)


def test_kind_of_an_event_type_is_that_of_its_resource() -> None:
    assert resources.parse({**OBJECT, "kind": "CLUSTER"}, EVENT).kind == "Cluster"


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


def test_generation_that_is_too_large_says_so() -> None:
    with pytest.raises(Invalid, match="and must be a whole number from 1 to 2147483647") as raised:
        resources.parse({**OBJECT, "generation": 10**300}, EVENT)
    assert len(str(raised.value)) < 300


def test_a_dry_run_names_the_host_that_a_real_run_asks() -> None:
    shown = dry_run.lines(CallApi(method="GET", url="http://other.example/api/x"))
    assert shown[1].strip() == "a real run asks HYPERFLEET_API_URL for /api/x, whatever host the task names"
    assert dry_run.lines(CallApi(method="GET", url="/clusters/a")) == ["call    GET /clusters/a"]
