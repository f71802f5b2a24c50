"""Resync responses, and the data of resync requests."""

import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maestropy.wire import errors, resync

ids = st.text(max_size=6)
versions = st.dictionaries(ids, st.integers(0, 5), max_size=8)
hashes = st.dictionaries(ids, st.sampled_from(["h1", "h2", "h3"]), max_size=8)


@pytest.mark.parametrize(
    ("row", "reported", "is_sent"),
    [
        pytest.param(resync.StoredVersion("a", 2), {}, True, id="unknown-to-agent"),
        pytest.param(resync.StoredVersion("a", 2), {"a": 1}, True, id="older-on-agent"),
        pytest.param(resync.StoredVersion("a", 2), {"a": 2}, False, id="same-version"),
        pytest.param(resync.StoredVersion("a", 2), {"a": 3}, False, id="newer-on-agent"),
        pytest.param(resync.StoredVersion("a", 0), {"a": 0}, True, id="version-zero-is-always-sent"),
        pytest.param(resync.StoredVersion("a", 2, is_deleting=True), {"a": 9}, True, id="deleting-is-always-sent"),
    ],
)
def test_spec_is_sent_if_the_agent_has_an_older_version(
    row: resync.StoredVersion, reported: dict[str, int], is_sent: bool
) -> None:
    decoded = resync.spec_resync_response([row], reported)
    assert decoded.send == (("a",) if is_sent else ())
    assert decoded.orphans == {}


def test_works_unknown_to_the_server_are_orphans() -> None:
    reported = {"a": 1, "b": 2}
    assert resync.spec_resync_response([], reported) == resync.SpecResyncResponse(send=(), orphans={"a": 1, "b": 2})
    assert resync.spec_resync_response([resync.StoredVersion("a", 1)], reported).orphans == {"b": 2}
    assert reported == {"a": 1, "b": 2}


@given(versions, versions, st.sets(ids))
def test_after_spec_resync_the_agent_has_the_works_of_the_server(
    stored: dict[str, int], reported: dict[str, int], deleting: set[str]
) -> None:
    rows = [resync.StoredVersion(key, version, is_deleting=key in deleting) for key, version in stored.items()]
    response = resync.spec_resync_response(rows, reported)
    after = dict(reported)
    for key in response.orphans:
        del after[key]
    for key in response.send:
        after[key] = stored[key]
    assert after.keys() == stored.keys()
    assert all(after[key] >= stored[key] for key in stored)
    assert deleting & stored.keys() <= set(response.send)


def test_status_is_sent_if_its_hash_differs() -> None:
    current = [("a", "h1"), ("b", "h2")]
    assert resync.status_resync_response(current, {}) == ["a", "b"]
    assert resync.status_resync_response(current, {"a": "h1"}) == []
    assert resync.status_resync_response(current, {"a": "h0", "x": "h1"}) == ["a"]


@given(hashes.filter(bool), hashes, st.integers(1, 3))
def test_batched_requests_get_the_same_statuses_as_one_request(
    requested: dict[str, str], current: dict[str, str], size: int
) -> None:
    bodies = resync.status_hash_batches(requested.items(), max_items=size)
    responses = [
        key for body in bodies for key in resync.status_resync_response(current.items(), resync.decode_hashes(body))
    ]
    assert sorted(responses) == sorted(resync.status_resync_response(current.items(), requested))


@given(hashes, st.integers(1, 4), st.integers(90, 200))
@example({"\x1f" * 6: "h1"}, 1, 90)  # the longest data: six characters that are each escaped to six
def test_batches_hold_all_hashes_within_the_limits(requested: dict[str, str], items: int, size: int) -> None:
    bodies = list(resync.status_hash_batches(requested.items(), max_items=items, max_bytes=size))
    assert bodies
    decoded: dict[str, str] = {}
    for body in bodies:
        assert len(body) <= size
        batch = resync.decode_hashes(body)
        assert len(batch) <= items
        decoded |= batch
    assert decoded == requested


def test_default_batch_limits() -> None:
    uuids = [(f"{number:036d}", "f" * 64) for number in range(2500)]
    bodies = list(resync.status_hash_batches(uuids))
    assert [len(resync.decode_hashes(body)) for body in bodies] == [1000, 1000, 500]
    long_ids = [(f"{number:0900d}", "f" * 64) for number in range(1000)]
    assert all(len(body) <= 524288 - 4096 for body in resync.status_hash_batches(long_ids))
    with pytest.raises(errors.InvalidContent, match="resourceID"):
        list(resync.status_hash_batches([("x" * 600_000, "")]))


def test_request_without_hashes_is_one_empty_batch() -> None:
    assert list(resync.status_hash_batches([])) == [b'{"statusHashes":[]}']


@given(versions, hashes)
def test_request_data_round_trip(some_versions: dict[str, int], some_hashes: dict[str, str]) -> None:
    assert resync.decode_versions(resync.encode_versions(some_versions)) == some_versions
    assert resync.decode_hashes(resync.encode_hashes(some_hashes)) == some_hashes


def test_request_data_has_the_member_names_of_the_protocol() -> None:
    assert json.loads(resync.encode_versions({"a": 1})) == {
        "resourceVersions": [{"resourceID": "a", "resourceVersion": 1}]
    }
    assert json.loads(resync.encode_hashes({"a": "h"})) == {"statusHashes": [{"resourceID": "a", "statusHash": "h"}]}
    assert resync.encode_versions({}) == b'{"resourceVersions":[]}'


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b'{"resourceVersions":null,"statusHashes":null}'])
def test_empty_request_data(body: bytes) -> None:
    assert resync.decode_versions(body) == {}
    assert resync.decode_hashes(body) == {}


def test_duplicate_resource_id_uses_the_later_version() -> None:
    twice = b'{"resourceVersions":[{"resourceID":"a","resourceVersion":1},{"resourceID":"a","resourceVersion":2}]}'
    assert resync.decode_versions(twice) == {"a": 2}


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{",
        b'{"resourceVersions":{}}',
        b'{"resourceVersions":[1]}',
        b'{"resourceVersions":[{}]}',
        b'{"resourceVersions":[{"resourceID":1}]}',
        b'{"resourceVersions":[{"resourceID":"a","resourceVersion":"1"}]}',
        b'{"resourceVersions":[{"resourceID":"a","resourceVersion":4294967296}]}',
        b'{"resourceVersions":[{"resourceID":"\xff"}]}',
    ],
)
def test_invalid_versions_are_rejected(body: bytes) -> None:
    with pytest.raises(errors.MalformedMessage, match="resourceVersions"):
        resync.decode_versions(body)


@pytest.mark.parametrize(
    "body", [b"[]", b'{"statusHashes":"x"}', b'{"statusHashes":[{"resourceID":"a","statusHash":1}]}']
)
def test_invalid_hashes_are_rejected(body: bytes) -> None:
    with pytest.raises(errors.MalformedMessage, match="statusHashes"):
        resync.decode_hashes(body)


def test_request_of_our_agent_survives_the_wire() -> None:
    hold = resync.ReportedHold(id="h", reason="r", message="m", database="d", count=3, works=("a", "b"))
    pending = resync.PendingEvictions(count=2, works=("c",), since="2026-01-01T00:00:00Z", deadline="later")
    for stated in (None, replace(hold, pending=pending), hold):
        request = resync.SpecResyncRequest(
            versions={"w1": 1, "w2": 0}, event_ids={"w1": "e1"}, states_hold=True, hold=stated
        )
        assert resync.decode_request(resync.encode_request(request)) == request
    marked = resync.with_marker(resync.encode_request(request), "marker")
    decoded = resync.decode_request(marked)
    assert decoded.marker == "marker"
    assert decoded.versions == {**request.versions, "marker": 0}
    assert decoded.hold == hold


def test_request_of_versions_only_is_that_of_a_go_agent() -> None:
    body = resync.encode_versions({"w1": 1})
    assert body == b'{"resourceVersions":[{"resourceID":"w1","resourceVersion":1}]}'
    assert resync.decode_request(body).has_versions_only


def test_parts_of_a_request_carry_the_hold_and_the_end_once() -> None:
    hold = resync.ReportedHold(id="h", reason="r", message="m", database="d", count=0, works=())
    request = resync.SpecResyncRequest(
        versions={f"w{number}": 1 for number in range(20)}, event_ids={}, states_hold=True, hold=hold
    )
    body = resync.with_marker(resync.encode_request(request), "marker")
    parts = [resync.decode_request(part) for part in resync.split_request(body, count=4)]
    assert {id_ for part in parts for id_ in part.versions} == {*request.versions, "marker"}
    assert [part.hold for part in parts if part.states_hold] == [hold]
    assert {part.marker for part in parts} == {"marker"}
    assert sum(part.marker in part.versions for part in parts) == 1


@pytest.mark.parametrize(
    "hold", [{"id": 1}, {"id": "x" * 2000}, {"works": ["w"] * (resync.HELD_NAMES + 1)}, {"count": -1}, [], "h"]
)
def test_invalid_hold_is_rejected(hold: object) -> None:
    with pytest.raises(errors.MalformedMessage):
        resync.decode_request(json.dumps({"resourceVersions": [], "hold": hold}).encode())


@pytest.mark.parametrize(
    ("orphans", "works", "percent", "expected"),
    [
        (0, 0, 20, False),
        (1, 1, 20, True),
        (1, 2, 20, True),
        (1, 3, 20, False),
        (4, 10, 20, False),
        (5, 10, 20, True),
        (10, 10, 20, True),
        (10, 21, 20, False),
        (11, 50, 20, True),
        (11, 55, 20, False),
        (12, 60, 20, False),
        (13, 60, 20, True),
        (200, 1000, 20, False),
        (201, 1000, 20, True),
        (10, 1000, 0, False),
        (11, 1000, 0, True),
        (30, 30, 100, False),
    ],
)
def test_limit_of_orphans(orphans: int, works: int, percent: int, *, expected: bool) -> None:
    assert resync.are_too_many_orphans(orphans, works, limit_percent=percent) is expected
