"""Every situation a wish can meet, and what becomes of it."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.server.decide import admission, refusal
from maestropy.store import rows
from maestropy.wire import errors, event, record

DATA = b'{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"}}]}'
METADATA = b'{"name":"work","labels":{"a":"b"}}'


def parts(data: bytes = DATA, *, metadata: bytes = METADATA, event_id: str = "e1") -> record.Parts:
    envelope = {"specversion": "1.0", "id": event_id, "source": "a", "type": event.SPEC_CREATE}
    return record.Parts(envelope=json.dumps(envelope).encode(), metadata=metadata, data=data)


WISH = admission.Wish(
    action=event.Action.UPDATE_REQUEST,
    id="w1",
    source="a",
    consumer="c1",
    version=3,
    event_id="e2",
    operation_id="",
    parts=parts(b'{"manifests":[]}', event_id="e2"),
)
DELETION = replace(WISH, action=event.Action.DELETE_REQUEST, version=0)
BY_OPERATOR = replace(DELETION, source="", consumer="", by_operator=True)
HELD = rows.Held(id="w1", version=3, source="a", consumer="c1", deleting=False, parts=parts())
UNREADABLE = record.Parts(envelope=b"", metadata=b"null", data=b"")


@pytest.mark.parametrize(
    ("wish", "verdict"),
    [
        pytest.param(WISH, admission.Create(3), id="with-a-version"),
        pytest.param(replace(WISH, version=0), admission.Create(1), id="without-a-version"),
        pytest.param(
            replace(WISH, problem="kind: Required value"),
            refusal.Refusal(8, "the manifest bundle in the resource is invalid, kind: Required value", "create"),
            id="wrong-manifests",
        ),
    ],
)
def test_a_new_id(wish: admission.Wish, verdict: admission.Verdict) -> None:
    assert admission.judge_new(wish) == verdict


@pytest.mark.parametrize(
    ("wish", "held", "verdict"),
    [
        pytest.param(WISH, HELD, refusal.conflict("This Resource already exists", verb="create"), id="taken"),
        pytest.param(
            replace(WISH, event_id="e1", parts=parts()),
            HELD,
            admission.Nothing("this event has created the resource before"),
            id="retry-of-the-event-that-created-it",
        ),
        pytest.param(
            replace(WISH, event_id="e1", parts=parts(), source="b"),
            HELD,
            refusal.conflict("This Resource already exists", verb="create"),
            id="the-same-event-of-another-source",
        ),
        pytest.param(
            replace(WISH, event_id="e1"),
            HELD,
            refusal.conflict("This Resource already exists", verb="create"),
            id="the-same-event-id-with-another-content",
        ),
        pytest.param(
            replace(WISH, event_id="e1", parts=parts()),
            replace(HELD, deleting=True),
            refusal.conflict("This Resource already exists", verb="create"),
            id="retry-while-it-is-being-deleted",
        ),
        pytest.param(WISH, None, refusal.unknown_consumer("c1"), id="no-such-consumer"),
    ],
)
def test_a_creation_that_did_not_go_in(
    wish: admission.Wish, held: rows.Held | None, verdict: admission.Verdict
) -> None:
    assert admission.judge_collision(wish, held) == verdict


OLD = refusal.conflict("the resource version is not the latest, the latest version: 3", verb="update")


@pytest.mark.parametrize(
    ("wish", "held", "verdict"),
    [
        pytest.param(WISH, HELD, admission.Update(4), id="of-the-stored-version"),
        pytest.param(replace(WISH, version=0), HELD, admission.Update(4), id="of-whatever-is-there"),
        pytest.param(replace(WISH, version=2), HELD, OLD, id="of-an-older-version"),
        pytest.param(replace(WISH, version=4), HELD, OLD, id="of-a-version-that-is-not-yet"),
        pytest.param(WISH, None, refusal.not_found("w1"), id="of-nothing"),
        pytest.param(
            WISH,
            replace(HELD, deleting=True),
            refusal.conflict("the resource is under deletion, id: w1", verb="update"),
            id="while-it-is-being-deleted",
        ),
        pytest.param(
            replace(WISH, parts=parts(event_id="e9")), HELD, admission.Nothing("the spec is unchanged"), id="the-same"
        ),
        pytest.param(
            replace(WISH, version=2, event_id="e1", parts=parts()),
            HELD,
            admission.Nothing("this event has updated the resource before"),
            id="retry-of-the-event-that-made-this-version",
        ),
        pytest.param(
            replace(WISH, problem="bad"),
            HELD,
            refusal.invalid("the new manifest bundle in the resource is invalid, bad", verb="update"),
            id="wrong-manifests",
        ),
        pytest.param(
            replace(WISH, problem="bad", parts=parts()),
            HELD,
            admission.Nothing("the spec is unchanged"),
            id="wrong-manifests-that-are-stored-already",
        ),
        pytest.param(
            replace(WISH, source="b"),
            HELD,
            refusal.forbidden("the resource w1 belongs to another source than b", verb="update"),
            id="by-another-source",
        ),
        pytest.param(
            replace(WISH, consumer="c2"),
            HELD,
            refusal.invalid(
                "clustername c2 is not the consumer of resource w1; delete it and create it anew", verb="update"
            ),
            id="to-another-consumer",
        ),
        pytest.param(
            replace(WISH, version=0),
            replace(HELD, version=event.INT32_MAX),
            refusal.conflict("the resource version cannot grow any more; delete and create it anew", verb="update"),
            id="of-the-last-version-there-is",
        ),
        pytest.param(
            WISH, replace(HELD, parts=UNREADABLE), admission.Update(4), id="of-a-spec-that-cannot-be-read-any-more"
        ),
    ],
)
def test_an_update(wish: admission.Wish, held: rows.Held | None, verdict: admission.Verdict) -> None:
    assert admission.judge_change(wish, held) == verdict


@pytest.mark.parametrize(
    ("wish", "held", "verdict"),
    [
        pytest.param(DELETION, HELD, admission.MarkDeleting(), id="by-its-source"),
        pytest.param(replace(DELETION, version=1), HELD, admission.MarkDeleting(), id="versions-do-not-count"),
        pytest.param(DELETION, None, admission.Nothing("there is no such resource"), id="of-nothing"),
        pytest.param(
            DELETION,
            replace(HELD, deleting=True),
            admission.Nothing("the resource is being deleted already"),
            id="for-the-second-time",
        ),
        pytest.param(
            replace(DELETION, source="b"),
            HELD,
            refusal.forbidden("the resource w1 belongs to another source than b", verb="delete"),
            id="by-another-source",
        ),
        pytest.param(
            replace(DELETION, source="b"),
            replace(HELD, deleting=True),
            refusal.forbidden("the resource w1 belongs to another source than b", verb="delete"),
            id="by-another-source-while-it-is-being-deleted",
        ),
        pytest.param(BY_OPERATOR, HELD, admission.MarkDeleting(), id="by-an-operator"),
        pytest.param(BY_OPERATOR, None, admission.Nothing("there is no such resource"), id="by-an-operator-of-nothing"),
    ],
)
def test_a_deletion(wish: admission.Wish, held: rows.Held | None, verdict: admission.Verdict) -> None:
    assert admission.judge_change(wish, held) == verdict


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param(parts(b'{"a":1,"b":2}'), parts(b'{ "b": 2, "a": 1 }'), True, id="another-order-of-keys"),
        pytest.param(parts(b'{"a":[1,2]}'), parts(b'{"a":[2,1]}'), False, id="another-order-of-items"),
        pytest.param(parts(b'{"a":1}'), parts(b'{"a":true}'), False, id="true-is-not-1"),
        pytest.param(parts(b'{"a":0}'), parts(b'{"a":false}'), False, id="false-is-not-0"),
        pytest.param(parts(b'{"a":1}'), parts(b'{"a":1.0}'), False, id="1.0-is-not-1"),
        pytest.param(parts(b'{"a":null}'), parts(b"{}"), False, id="null-is-not-nothing"),
        pytest.param(
            parts(b'{"a":9007199254740993}'), parts(b'{"a":9007199254740992}'), False, id="neighbours-beyond-a-float"
        ),
        pytest.param(parts(b""), parts(b""), True, id="no-data-at-all"),
        pytest.param(parts(b""), parts(b"{}"), False, id="no-data-and-empty-data"),
        pytest.param(parts(event_id="x"), parts(event_id="y"), True, id="another-event"),
        pytest.param(
            parts(metadata=b'{"name":"w","resourceVersion":"1","generation":1,"creationTimestamp":null,"uid":"u"}'),
            parts(metadata=b'{"name":"w","resourceVersion":"2","generation":2}'),
            True,
            id="what-the-client-knows-of-the-stored-object",
        ),
        pytest.param(
            parts(metadata=b'{"name":"w"}'), parts(metadata=b'{"name":"w","labels":{"a":"b"}}'), False, id="a-label"
        ),
        pytest.param(
            parts(metadata=b'{"name":"w"}'), parts(metadata=b'{"name":"w","labels":{}}'), True, id="no-labels-twice"
        ),
        pytest.param(
            parts(metadata=json.dumps({"annotations": {event.OPERATION_ID_KEY: "1", "k": "v"}}).encode()),
            parts(metadata=json.dumps({"annotations": {event.OPERATION_ID_KEY: "2", "k": "v"}}).encode()),
            True,
            id="another-operation",
        ),
        pytest.param(parts(metadata=b""), parts(metadata=b"null"), True, id="metadata-that-is-no-object"),
    ],
)
def test_same_spec(one: record.Parts, other: record.Parts, *, is_same: bool) -> None:
    assert admission.is_same_spec(one, other) is is_same
    assert admission.is_same_spec(other, one) is is_same


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), values, max_size=4), st.randoms(use_true_random=False))
def test_no_order_of_keys_makes_another_spec(data: dict[str, object], random: object) -> None:
    names = list(data)
    random.shuffle(names)  # type: ignore[attr-defined]  # hypothesis types its random as object here
    shuffled = {name: data[name] for name in names}
    assert admission.is_same_spec(parts(json.dumps(data).encode()), parts(json.dumps(shuffled, indent=1).encode()))


def received(**changes: object) -> event.Event:
    extensions: dict[str, object] = {
        event.RESOURCE_ID: "w1",
        event.RESOURCE_VERSION: 1,
        event.CLUSTER_NAME: "c1",
        event.METADATA: "{}",
    } | changes
    kept = {name: value for name, value in extensions.items() if value is not None}
    return event.Event(id="e1", source="a", type=event.SPEC_CREATE, extensions=kept, data=DATA)  # type: ignore[arg-type]


def test_a_wish_is_read() -> None:
    tracing = json.dumps({event.OPERATION_ID_KEY: "op1"})
    wish = admission.read_wish(received(logtracing=tracing, resourceversion="7"), event.Action.CREATE_REQUEST)
    assert (wish.id, wish.version, wish.consumer, wish.source) == ("w1", 7, "c1", "a")
    assert (wish.event_id, wish.operation_id, wish.parts.data) == ("e1", "op1", DATA)


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
def test_a_wish_that_cannot_be_read_names_the_attribute(changes: dict[str, object], named: str) -> None:
    with pytest.raises(errors.WireError, match=named):
        admission.read_wish(received(**changes), event.Action.CREATE_REQUEST)


@pytest.mark.parametrize("tracing", ["", "{}", "{", '["' + event.OPERATION_ID_KEY + '"]', '{"other":"x"}'])
def test_tracing_that_says_nothing_harms_nothing(tracing: str) -> None:
    assert admission.operation_id(received(logtracing=tracing)) == ""


@pytest.mark.parametrize(
    "damaged", [parts(b'{"a":'), parts(b"\xff"), record.Parts(envelope=b"{}", metadata=b"{", data=b"{}")]
)
def test_a_damaged_spec_is_the_same_as_none(damaged: record.Parts) -> None:
    """So that whatever is sound may replace it, and the wishes beside it are not refused along with it."""
    sound = record.Parts(envelope=b"{}", metadata=b'{"name":"w"}', data=b"{}")
    assert not admission.is_same_spec(sound, damaged)
