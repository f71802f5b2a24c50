"""Each consumer gets its turn, and a bundle is sent once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.server.decide import turns
from maestropy.store.rows import Pending


def pending(text: str) -> list[Pending]:
    """Read events such as `a1 a1 b1`: two of bundle a1 of consumer a, one of b1 of b."""
    return [Pending(f"e{number}", name, "Update", name[0]) for number, name in enumerate(text.split())]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("a1", [["a1"]], id="one"),
        pytest.param("a1 a2 a3 b1", [["a1", "b1"], ["a2", "a3"]], id="a-long-queue-does-not-hide-the-short-one"),
        pytest.param("a1 a1 a1 a2", [["a1", "a2"]], id="several-events-of-a-bundle-are-one"),
        pytest.param("a1 b1 c1 d1 a2", [["a1", "b1"], ["c1", "d1"], ["a2"]], id="more-consumers-than-fit"),
    ],
)
def test_rounds(found: str, expected: list[list[str]]) -> None:
    assert [list(group) for group in turns.rounds(pending(found), at_most=2)] == expected


@given(st.lists(st.builds(lambda c, n: f"{c}{n}", st.sampled_from("abc"), st.integers(0, 5))), st.integers(1, 4))
def test_every_event_is_in_exactly_one_group(names: list[str], at_most: int) -> None:
    found = pending(" ".join(names))
    groups = list(turns.rounds(found, at_most=at_most))
    assert sorted(each.id for group in groups for events in group.values() for each in events) == sorted(
        each.id for each in found
    )
    assert all(len(group) <= at_most for group in groups)
    assert sum(map(len, groups)) == len({each.resource_id for each in found})
