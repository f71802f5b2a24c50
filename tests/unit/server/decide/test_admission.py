"""Verdicts on the create, update and delete requests of sources."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.server.decide import admission, rejection
from maestropy.store import rows
from maestropy.wire import errors
from maestropy.wire.events import event, stored_event

DATA = b'{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"}}]}'
METADATA = b'{"name":"work","labels":{"a":"b"}}'


def parts(data: bytes = DATA, *, metadata: bytes = METADATA, event_id: str = "e1") -> stored_event.StoredParts:
    envelope = {"specversion": "1.0", "id": event_id, "source": "a", "type": event.SPEC_CREATE}
    return stored_event.StoredParts(envelope=json.dumps(envelope).encode(), metadata=metadata, data=data)


REQUEST = admission.SpecRequest(
    action=event.EventAction.UPDATE_REQUEST,
    id="w1",
    source="a",
    consumer="c1",
    version=3,
    event_id="e2",
    operation_id="",
    parts=parts(b'{"manifests":[]}', event_id="e2"),
)
DELETION = replace(REQUEST, action=event.EventAction.DELETE_REQUEST, version=0)
BY_OPERATOR = replace(DELETION, source="", consumer="", is_from_operator=True)
STORED = rows.StoredSpec(id="w1", version=3, source="a", consumer="c1", is_deleting=False, parts=parts())
UNREADABLE = stored_event.StoredParts(envelope=b"", metadata=b"null", data=b"")


@pytest.mark.parametrize(
    ("spec_request", "verdict"),
    [
        pytest.param(REQUEST, admission.Create(3), id="with-a-version"),
        pytest.param(replace(REQUEST, version=0), admission.Create(1), id="without-a-version"),
        pytest.param(
            replace(REQUEST, problem="kind: Required value"),
            rejection.Rejection(8, "the manifest bundle in the resource is invalid, kind: Required value", "create"),
            id="invalid-manifests",
        ),
    ],
)
def test_create(spec_request: admission.SpecRequest, verdict: admission.Verdict) -> None:
    assert admission.decide_create(spec_request) == verdict


@pytest.mark.parametrize(
    ("spec_request", "stored", "verdict"),
    [
        pytest.param(
            REQUEST, STORED, rejection.conflict("This Resource already exists", verb="create"), id="id-exists"
        ),
        pytest.param(
            replace(REQUEST, event_id="e1", parts=parts()),
            STORED,
            admission.Unchanged("this event has created the resource before"),
            id="retry-of-creating-event",
        ),
        pytest.param(
            replace(REQUEST, event_id="e1", parts=parts(), source="b"),
            STORED,
            rejection.conflict("This Resource already exists", verb="create"),
            id="same-event-of-other-source",
        ),
        pytest.param(
            replace(REQUEST, event_id="e1"),
            STORED,
            rejection.conflict("This Resource already exists", verb="create"),
            id="same-event-id-other-content",
        ),
        pytest.param(
            replace(REQUEST, event_id="e1", parts=parts()),
            replace(STORED, is_deleting=True),
            rejection.conflict("This Resource already exists", verb="create"),
            id="retry-while-deleting",
        ),
        pytest.param(REQUEST, None, rejection.unknown_consumer("c1"), id="unknown-consumer"),
    ],
)
def test_create_that_inserted_no_row(
    spec_request: admission.SpecRequest, stored: rows.StoredSpec | None, verdict: admission.Verdict
) -> None:
    assert admission.decide_failed_create(spec_request, stored) == verdict


OLD = rejection.conflict("the resource version is not the latest, the latest version: 3", verb="update")


@pytest.mark.parametrize(
    ("spec_request", "stored", "verdict"),
    [
        pytest.param(REQUEST, STORED, admission.Update(4), id="stored-version"),
        pytest.param(replace(REQUEST, version=0), STORED, admission.Update(4), id="any-version"),
        pytest.param(replace(REQUEST, version=2), STORED, OLD, id="stale-version"),
        pytest.param(replace(REQUEST, version=4), STORED, OLD, id="future-version"),
        pytest.param(REQUEST, None, rejection.not_found("w1"), id="unknown-resource"),
        pytest.param(
            REQUEST,
            replace(STORED, is_deleting=True),
            rejection.conflict("the resource is under deletion, id: w1", verb="update"),
            id="already-deleting",
        ),
        pytest.param(
            replace(REQUEST, parts=parts(event_id="e9")),
            STORED,
            admission.Unchanged("the spec is unchanged"),
            id="unchanged-spec",
        ),
        pytest.param(
            replace(REQUEST, parts=parts(event_id="e9")),
            replace(STORED, is_held_back=True),
            admission.Update(4),
            id="unchanged-spec-that-the-agent-waits-for",
        ),
        pytest.param(
            replace(REQUEST, version=2, event_id="e1", parts=parts()),
            STORED,
            admission.Unchanged("this event has updated the resource before"),
            id="retry-of-updating-event",
        ),
        pytest.param(
            replace(REQUEST, problem="bad"),
            STORED,
            rejection.invalid("the new manifest bundle in the resource is invalid, bad", verb="update"),
            id="invalid-manifests",
        ),
        pytest.param(
            replace(REQUEST, problem="bad", parts=parts()),
            STORED,
            admission.Unchanged("the spec is unchanged"),
            id="invalid-manifests-already-stored",
        ),
        pytest.param(
            replace(REQUEST, source="b"),
            STORED,
            rejection.forbidden("the resource w1 belongs to another source than b", verb="update"),
            id="other-source",
        ),
        pytest.param(
            replace(REQUEST, consumer="c2"),
            STORED,
            rejection.invalid(
                "clustername c2 is not the consumer of resource w1; delete it and create it anew", verb="update"
            ),
            id="other-consumer",
        ),
        pytest.param(
            replace(REQUEST, version=0),
            replace(STORED, version=event.INT32_MAX),
            rejection.conflict("the resource version cannot grow any more; delete and create it anew", verb="update"),
            id="highest-version",
        ),
        pytest.param(REQUEST, replace(STORED, parts=UNREADABLE), admission.Update(4), id="stored-spec-damaged"),
    ],
)
def test_update(
    spec_request: admission.SpecRequest, stored: rows.StoredSpec | None, verdict: admission.Verdict
) -> None:
    assert admission.decide_change(spec_request, stored) == verdict


@pytest.mark.parametrize(
    ("spec_request", "stored", "verdict"),
    [
        pytest.param(DELETION, STORED, admission.MarkDeleting(), id="owning-source"),
        pytest.param(replace(DELETION, version=1), STORED, admission.MarkDeleting(), id="any-version"),
        pytest.param(DELETION, None, admission.Unchanged("there is no such resource"), id="unknown-resource"),
        pytest.param(
            DELETION,
            replace(STORED, is_deleting=True),
            admission.Unchanged("the resource is being deleted already"),
            id="already-deleting",
        ),
        pytest.param(
            replace(DELETION, source="b"),
            STORED,
            rejection.forbidden("the resource w1 belongs to another source than b", verb="delete"),
            id="other-source",
        ),
        pytest.param(
            replace(DELETION, source="b"),
            replace(STORED, is_deleting=True),
            rejection.forbidden("the resource w1 belongs to another source than b", verb="delete"),
            id="other-source-already-deleting",
        ),
        pytest.param(BY_OPERATOR, STORED, admission.MarkDeleting(), id="operator"),
        pytest.param(
            BY_OPERATOR, None, admission.Unchanged("there is no such resource"), id="operator-unknown-resource"
        ),
    ],
)
def test_delete(
    spec_request: admission.SpecRequest, stored: rows.StoredSpec | None, verdict: admission.Verdict
) -> None:
    assert admission.decide_change(spec_request, stored) == verdict


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        pytest.param(parts(b'{"a":1,"b":2}'), parts(b'{ "b": 2, "a": 1 }'), True, id="key-order"),
        pytest.param(parts(b'{"a":[1,2]}'), parts(b'{"a":[2,1]}'), False, id="list-order"),
        pytest.param(parts(b'{"a":1}'), parts(b'{"a":true}'), False, id="true-is-not-1"),
        pytest.param(parts(b'{"a":0}'), parts(b'{"a":false}'), False, id="false-is-not-0"),
        pytest.param(parts(b'{"a":1}'), parts(b'{"a":1.0}'), False, id="1.0-is-not-1"),
        pytest.param(parts(b'{"a":null}'), parts(b"{}"), False, id="null-is-not-absent"),
        pytest.param(
            parts(b'{"a":9007199254740993}'),
            parts(b'{"a":9007199254740992}'),
            False,
            id="integers-beyond-float-precision",
        ),
        pytest.param(parts(b""), parts(b""), True, id="no-data"),
        pytest.param(parts(b""), parts(b"{}"), False, id="no-data-is-not-empty-object"),
        pytest.param(parts(event_id="x"), parts(event_id="y"), True, id="other-event-id"),
        pytest.param(
            parts(metadata=b'{"name":"w","resourceVersion":"1","generation":1,"creationTimestamp":null,"uid":"u"}'),
            parts(metadata=b'{"name":"w","resourceVersion":"2","generation":2}'),
            True,
            id="volatile-metadata",
        ),
        pytest.param(
            parts(metadata=b'{"name":"w"}'), parts(metadata=b'{"name":"w","labels":{"a":"b"}}'), False, id="added-label"
        ),
        pytest.param(
            parts(metadata=b'{"name":"w"}'), parts(metadata=b'{"name":"w","labels":{}}'), True, id="empty-labels"
        ),
        pytest.param(
            parts(metadata=json.dumps({"annotations": {event.OPERATION_ID_KEY: "1", "k": "v"}}).encode()),
            parts(metadata=json.dumps({"annotations": {event.OPERATION_ID_KEY: "2", "k": "v"}}).encode()),
            True,
            id="other-operation-id",
        ),
        pytest.param(parts(metadata=b""), parts(metadata=b"null"), True, id="metadata-not-an-object"),
    ],
)
def test_same_spec(left: stored_event.StoredParts, right: stored_event.StoredParts, *, is_same: bool) -> None:
    assert admission.is_same_spec(left, right) is is_same
    assert admission.is_same_spec(right, left) is is_same


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), values, max_size=4), st.randoms(use_true_random=False))
def test_key_order_does_not_change_the_spec(data: dict[str, object], random: object) -> None:
    names = list(data)
    random.shuffle(names)  # type: ignore[attr-defined]  # hypothesis types its random as object here
    shuffled = {name: data[name] for name in names}
    assert admission.is_same_spec(parts(json.dumps(data).encode()), parts(json.dumps(shuffled, indent=1).encode()))


def received(**changes: object) -> event.CloudEvent:
    extensions: dict[str, object] = {
        event.RESOURCE_ID: "w1",
        event.RESOURCE_VERSION: 1,
        event.CLUSTER_NAME: "c1",
        event.METADATA: "{}",
    } | changes
    kept = {name: value for name, value in extensions.items() if value is not None}
    return event.CloudEvent(id="e1", source="a", type=event.SPEC_CREATE, extensions=kept, data=DATA)  # type: ignore[arg-type]


def test_spec_request_is_read() -> None:
    tracing = json.dumps({event.OPERATION_ID_KEY: "op1"})
    spec_request = admission.read_spec_request(
        received(logtracing=tracing, resourceversion="7"), event.EventAction.CREATE_REQUEST
    )
    assert (spec_request.id, spec_request.version, spec_request.consumer, spec_request.source) == ("w1", 7, "c1", "a")
    assert (spec_request.event_id, spec_request.operation_id, spec_request.parts.data) == ("e1", "op1", DATA)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"resourceid": None}, "resourceid"),
        ({"resourceid": ""}, "resourceid"),
        ({"resourceid": "a\nb"}, "resourceid"),
        ({"resourceid": "x" * 300}, "resourceid"),
        ({"resourceversion": None}, "resourceversion"),
        ({"resourceversion": "many"}, "resourceversion"),
        ({"resourceversion": -1}, "resourceversion"),
        ({"resourceversion": 2**31}, "resourceversion"),
        ({"clustername": None}, "clustername"),
        ({"clustername": 5}, "clustername"),
        ({"metadata": "[]"}, "metadata"),
        ({"metadata": 5}, "metadata"),
        ({"deletiontimestamp": "soon"}, "deletiontimestamp"),
        ({"deletiontimestamp": 5}, "deletiontimestamp"),
    ],
    ids=str,
)
def test_malformed_spec_request_names_the_attribute(changes: dict[str, object], named: str) -> None:
    with pytest.raises(errors.WireError, match=named):
        admission.read_spec_request(received(**changes), event.EventAction.CREATE_REQUEST)


@pytest.mark.parametrize("tracing", ["", "{}", "{", '["' + event.OPERATION_ID_KEY + '"]', '{"right":"x"}'])
def test_unreadable_tracing_gives_no_operation_id(tracing: str) -> None:
    assert admission.operation_id(received(logtracing=tracing)) == ""


@pytest.mark.parametrize(
    "damaged", [parts(b'{"a":'), parts(b"\xff"), stored_event.StoredParts(envelope=b"{}", metadata=b"{", data=b"{}")]
)
def test_damaged_spec_equals_no_spec(damaged: stored_event.StoredParts) -> None:
    """So that a valid spec may replace it, and the other requests of the batch are not rejected with it."""
    valid = stored_event.StoredParts(envelope=b"{}", metadata=b'{"name":"w"}', data=b"{}")
    assert not admission.is_same_spec(valid, damaged)
