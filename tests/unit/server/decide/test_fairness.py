"""Batches of pending spec events: every consumer is served, and a resource is sent once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.server.decide import fairness
from maestropy.store.rows import PendingEvent


def pending(text: str) -> list[PendingEvent]:
    """Read events such as `a1 a1 b1`: two of resource a1 of consumer a, one of b1 of b."""
    return [PendingEvent(f"e{number}", name, "Update", name[0]) for number, name in enumerate(text.split())]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("a1", [["a1"]], id="one"),
        pytest.param("a1 a2 a3 b1", [["a1", "b1"], ["a2", "a3"]], id="long-queue-does-not-delay-a-short-one"),
        pytest.param("a1 a1 a1 a2", [["a1", "a2"]], id="several-events-of-one-resource"),
        pytest.param("a1 b1 c1 d1 a2", [["a1", "b1"], ["c1", "d1"], ["a2"]], id="more-consumers-than-fit"),
    ],
)
def test_fair_batches(events: str, expected: list[list[str]]) -> None:
    assert [list(batch) for batch in fairness.fair_batches(pending(events), at_most=2)] == expected


@given(st.lists(st.builds(lambda c, n: f"{c}{n}", st.sampled_from("abc"), st.integers(0, 5))), st.integers(1, 4))
def test_every_event_is_in_exactly_one_batch(names: list[str], at_most: int) -> None:
    events = pending(" ".join(names))
    batches = list(fairness.fair_batches(events, at_most=at_most))
    assert sorted(event.id for batch in batches for group in batch.values() for event in group) == sorted(
        event.id for event in events
    )
    assert all(len(batch) <= at_most for batch in batches)
    assert sum(map(len, batches)) == len({event.resource_id for event in events})


def test_consumer_without_room_is_left_out_and_the_others_go_on() -> None:
    batches = fairness.fair_batches(pending("a1 a2 b1 b2 c1"), at_most=2, is_ready=lambda consumer: consumer != "b")
    assert [list(batch) for batch in batches] == [["a1", "c1"], ["a2"]]


def test_consumer_that_fills_up_is_left_out_from_then_on() -> None:
    sent: list[str] = []
    batches = fairness.fair_batches(
        pending("a1 a2 a3 a4 b1 b2"), at_most=2, is_ready=lambda consumer: consumer == "b" or len(sent) < 2
    )
    for batch in batches:
        sent.extend(batch)
    assert sent == ["a1", "b1", "b2"]


def test_no_batch_when_no_consumer_is_ready() -> None:
    assert list(fairness.fair_batches(pending("a1 b1"), at_most=2, is_ready=lambda _: False)) == []
