"""What to send after a reconnect."""

import json

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
        pytest.param(resync.Row("a", 2), {}, True, id="agent-does-not-have-it"),
        pytest.param(resync.Row("a", 2), {"a": 1}, True, id="agent-is-behind"),
        pytest.param(resync.Row("a", 2), {"a": 2}, False, id="agent-is-current"),
        pytest.param(resync.Row("a", 2), {"a": 3}, False, id="agent-is-ahead"),
        pytest.param(resync.Row("a", 0), {"a": 0}, True, id="no-version-is-always-sent"),
        pytest.param(resync.Row("a", 2, is_deleting=True), {"a": 9}, True, id="deletions-are-always-sent"),
    ],
)
def test_one_row(row: resync.Row, reported: dict[str, int], is_sent: bool) -> None:
    found = resync.spec_answer([row], reported)
    assert found.send == (("a",) if is_sent else ())
    assert found.orphans == {}


def test_orphans_are_deleted_also_when_the_server_has_nothing() -> None:
    reported = {"a": 1, "b": 2}
    assert resync.spec_answer([], reported) == resync.SpecAnswer(send=(), orphans={"a": 1, "b": 2})
    assert resync.spec_answer([resync.Row("a", 1)], reported).orphans == {"b": 2}
    assert reported == {"a": 1, "b": 2}


@given(versions, versions, st.sets(ids))
def test_afterwards_the_agent_has_what_the_server_has(
    stored: dict[str, int], reported: dict[str, int], deleting: set[str]
) -> None:
    rows = [resync.Row(key, version, is_deleting=key in deleting) for key, version in stored.items()]
    answer = resync.spec_answer(rows, reported)
    after = dict(reported)
    for key in answer.orphans:
        del after[key]
    for key in answer.send:
        after[key] = stored[key]
    assert after.keys() == stored.keys()
    assert all(after[key] >= stored[key] for key in stored)
    assert deleting & stored.keys() <= set(answer.send)


def test_status_answers() -> None:
    ours = [("a", "h1"), ("b", "h2")]
    assert resync.status_answer(ours, {}) == ["a", "b"]
    assert resync.status_answer(ours, {"a": "h1"}) == []
    assert resync.status_answer(ours, {"a": "h0", "x": "h1"}) == ["a"]


@given(hashes.filter(bool), hashes, st.integers(1, 3))
def test_asking_in_batches_gets_the_same_as_asking_at_once(
    known: dict[str, str], ours: dict[str, str], size: int
) -> None:
    bodies = resync.status_hash_batches(known.items(), max_items=size)
    answers = [key for body in bodies for key in resync.status_answer(ours.items(), resync.decode_hashes(body))]
    assert sorted(answers) == sorted(resync.status_answer(ours.items(), known))


@given(hashes, st.integers(1, 4), st.integers(90, 200))
@example({"\x1f" * 6: "h1"}, 1, 90)  # nothing is longer than six characters that are each written as six
def test_batches_hold_everything_within_limits(known: dict[str, str], items: int, size: int) -> None:
    bodies = list(resync.status_hash_batches(known.items(), max_items=items, max_bytes=size))
    assert bodies
    found: dict[str, str] = {}
    for body in bodies:
        assert len(body) <= size
        batch = resync.decode_hashes(body)
        assert len(batch) <= items
        found |= batch
    assert found == known


def test_batch_limits_by_default() -> None:
    uuids = [(f"{number:036d}", "f" * 64) for number in range(2500)]
    bodies = list(resync.status_hash_batches(uuids))
    assert [len(resync.decode_hashes(body)) for body in bodies] == [1000, 1000, 500]
    long_ids = [(f"{number:0900d}", "f" * 64) for number in range(1000)]
    assert all(len(body) <= 524288 - 4096 for body in resync.status_hash_batches(long_ids))
    with pytest.raises(errors.Invalid, match="resourceID"):
        list(resync.status_hash_batches([("x" * 600_000, "")]))


def test_nothing_known_asks_for_everything() -> None:
    assert list(resync.status_hash_batches([])) == [b'{"statusHashes":[]}']


@given(versions, hashes)
def test_bodies_round_trip(some_versions: dict[str, int], some_hashes: dict[str, str]) -> None:
    assert resync.decode_versions(resync.encode_versions(some_versions)) == some_versions
    assert resync.decode_hashes(resync.encode_hashes(some_hashes)) == some_hashes


def test_bodies_are_spelled_as_others_do() -> None:
    assert json.loads(resync.encode_versions({"a": 1})) == {
        "resourceVersions": [{"resourceID": "a", "resourceVersion": 1}]
    }
    assert json.loads(resync.encode_hashes({"a": "h"})) == {"statusHashes": [{"resourceID": "a", "statusHash": "h"}]}
    assert resync.encode_versions({}) == b'{"resourceVersions":[]}'


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b'{"resourceVersions":null,"statusHashes":null}'])
def test_empty_bodies(body: bytes) -> None:
    assert resync.decode_versions(body) == {}
    assert resync.decode_hashes(body) == {}


def test_duplicates_are_tolerated() -> None:
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
def test_bad_versions_name_the_field(body: bytes) -> None:
    with pytest.raises(errors.Malformed, match="resourceVersions"):
        resync.decode_versions(body)


@pytest.mark.parametrize(
    "body", [b"[]", b'{"statusHashes":"x"}', b'{"statusHashes":[{"resourceID":"a","statusHash":1}]}']
)
def test_bad_hashes_name_the_field(body: bytes) -> None:
    with pytest.raises(errors.Malformed, match="statusHashes"):
        resync.decode_hashes(body)
