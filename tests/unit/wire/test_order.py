"""Newer and older reports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors, order

FIRST = "2000808179721572352"
SECOND = "2000808179729960960"

snowflakes = st.builds(
    order.Snowflake,
    time_ms=st.integers(order.EPOCH_MS, order.EPOCH_MS + 2**41 - 1),
    node=st.just(1),
    step=st.integers(0, 4095),
)


def test_parts_of_a_real_id() -> None:
    assert order.parse(FIRST) == order.Snowflake(time_ms=1765864817921, node=1, step=0)
    assert str(order.parse(SECOND)) == SECOND


@pytest.mark.parametrize(
    ("candidate", "than", "expected"),
    [
        pytest.param(SECOND, FIRST, True, id="later-millisecond"),
        pytest.param(FIRST, SECOND, False, id="late-arrival"),
        pytest.param(FIRST, FIRST, False, id="delivered-twice"),
        pytest.param("2000808179721572353", FIRST, True, id="same-millisecond-later-step"),
        pytest.param(FIRST, "", True, id="first-report"),
    ],
)
def test_is_newer(candidate: str, than: str, expected: bool) -> None:
    assert order.is_newer(candidate, than) is expected


def test_ids_of_two_nodes_cannot_be_compared() -> None:
    other = str(order.Snowflake(time_ms=1765864817922, node=2, step=0))
    with pytest.raises(errors.Invalid, match="Sequence IDs are not from the same node"):
        order.is_newer(other, FIRST)


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "abc", " 1", "1 ", "٣", "9223372036854775808", "1" * 5000])
def test_malformed_ids_name_the_field(text: str) -> None:
    with pytest.raises(errors.Malformed, match="sequenceid"):
        order.is_newer(text, FIRST)
    with pytest.raises(errors.Malformed, match="sequenceid"):
        order.is_newer(text, text or "x")


@given(snowflakes, snowflakes)
def test_order_is_that_of_the_numbers(one: order.Snowflake, two: order.Snowflake) -> None:
    assert order.split(int(one)) == one
    assert order.parse(str(one)) == one
    assert order.is_newer(str(one), str(two)) is (int(one) > int(two))


@given(st.lists(st.integers(order.EPOCH_MS, order.EPOCH_MS + 10), min_size=1, max_size=50), st.integers(0, 4095))
def test_ids_never_go_back_even_if_the_clock_does(clock: list[int], step: int) -> None:
    last = int(order.Snowflake(time_ms=order.EPOCH_MS + 5, node=1, step=step))
    for now_ms in clock:
        found = order.next_id(last, now_ms=now_ms)
        assert order.is_newer(str(found), str(last))
        assert order.split(found).node == 1
        last = found


def test_next_id_follows_the_clock_when_it_can() -> None:
    assert order.split(order.next_id(0, now_ms=1765864817921)) == (1765864817921, 1, 0)
    assert order.split(order.next_id(int(FIRST), now_ms=1765864817921)) == (1765864817921, 1, 1)
    full = int(order.Snowflake(time_ms=1765864817921, node=1, step=4095))
    assert order.split(order.next_id(full, now_ms=1765864817921)) == (1765864817922, 1, 0)
    assert order.split(order.next_id(full, now_ms=1765864817999)) == (1765864817999, 1, 0)


def test_versions() -> None:
    assert order.is_current(0, 7)
    assert order.is_current(7, 7)
    assert not order.is_current(6, 7)
