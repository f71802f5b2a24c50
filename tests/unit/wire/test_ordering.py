"""Sequence IDs and resource versions are compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors, ordering

FIRST = "2000808179721572352"
SECOND = "2000808179729960960"

snowflakes = st.builds(
    ordering.Snowflake,
    time_ms=st.integers(ordering.EPOCH_MS, ordering.EPOCH_MS + 2**41 - 1),
    node=st.just(1),
    step=st.integers(0, 4095),
)


def test_sequence_id_is_split_into_its_parts() -> None:
    assert ordering.parse(FIRST) == ordering.Snowflake(time_ms=1765864817921, node=1, step=0)
    assert str(ordering.parse(SECOND)) == SECOND


@pytest.mark.parametrize(
    ("candidate", "than", "expected"),
    [
        pytest.param(SECOND, FIRST, True, id="later-millisecond"),
        pytest.param(FIRST, SECOND, False, id="older-sequence-id"),
        pytest.param(FIRST, FIRST, False, id="same-sequence-id"),
        pytest.param("2000808179721572353", FIRST, True, id="same-millisecond-later-step"),
        pytest.param(FIRST, "", True, id="first-status-update"),
    ],
)
def test_newer_sequence_id(candidate: str, than: str, expected: bool) -> None:
    assert ordering.is_newer(candidate, than) is expected


def test_sequence_ids_of_two_nodes_cannot_be_compared() -> None:
    other = str(ordering.Snowflake(time_ms=1765864817922, node=2, step=0))
    with pytest.raises(errors.InvalidContent, match="Sequence IDs are not from the same node"):
        ordering.is_newer(other, FIRST)


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "abc", " 1", "1 ", "٣", "9223372036854775808", "1" * 5000])
def test_malformed_sequence_id_is_rejected(text: str) -> None:
    with pytest.raises(errors.MalformedMessage, match="sequenceid"):
        ordering.is_newer(text, FIRST)
    with pytest.raises(errors.MalformedMessage, match="sequenceid"):
        ordering.is_newer(text, text or "x")


@given(snowflakes, snowflakes)
def test_sequence_ids_are_ordered_as_numbers(one: ordering.Snowflake, two: ordering.Snowflake) -> None:
    assert ordering.split(int(one)) == one
    assert ordering.parse(str(one)) == one
    assert ordering.is_newer(str(one), str(two)) is (int(one) > int(two))


@given(st.lists(st.integers(ordering.EPOCH_MS, ordering.EPOCH_MS + 10), min_size=1, max_size=50), st.integers(0, 4095))
def test_next_id_never_goes_back_with_the_clock(clock: list[int], step: int) -> None:
    last = int(ordering.Snowflake(time_ms=ordering.EPOCH_MS + 5, node=1, step=step))
    for now_ms in clock:
        sequence_id = ordering.next_id(last, now_ms=now_ms)
        assert ordering.is_newer(str(sequence_id), str(last))
        assert ordering.split(sequence_id).node == 1
        last = sequence_id


def test_next_id_uses_the_time_of_the_clock() -> None:
    assert ordering.split(ordering.next_id(0, now_ms=1765864817921)) == (1765864817921, 1, 0)
    assert ordering.split(ordering.next_id(int(FIRST), now_ms=1765864817921)) == (1765864817921, 1, 1)
    full = int(ordering.Snowflake(time_ms=1765864817921, node=1, step=4095))
    assert ordering.split(ordering.next_id(full, now_ms=1765864817921)) == (1765864817922, 1, 0)
    assert ordering.split(ordering.next_id(full, now_ms=1765864817999)) == (1765864817999, 1, 0)


@pytest.mark.parametrize(
    ("ahead_ms", "expected"),
    [
        pytest.param(-(10**9), False, id="long-ago"),
        pytest.param(ordering.AHEAD_MAX_MS, False, id="as-far-as-allowed"),
        pytest.param(ordering.AHEAD_MAX_MS + 1, True, id="further"),
    ],
)
def test_sequence_id_far_ahead_of_the_time(ahead_ms: int, *, expected: bool) -> None:
    now_ms = ordering.parse(FIRST).time_ms - ahead_ms
    assert ordering.is_ahead(FIRST, now_ms=now_ms) is expected
    assert ordering.is_ahead(str(2**63 - 1), now_ms=1765864817921)


def test_version_zero_or_the_stored_version_is_current() -> None:
    assert ordering.is_current(0, 7)
    assert ordering.is_current(7, 7)
    assert not ordering.is_current(6, 7)
