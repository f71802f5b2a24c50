"""A page is cut into batches by bytes, and text of a search can never fill a place that is not its own."""

from hypothesis import given
from hypothesis import strategies as st

from maestropy.store import listing

SIZES = st.lists(st.integers(min_value=0, max_value=5_000_000), max_size=60)
LIMITS = st.integers(min_value=1, max_value=4_000_000)


@given(SIZES, LIMITS)
def test_batches_hold_every_bundle_once_and_in_order(sizes: list[int], limit: int) -> None:
    entries = [(f"b{number}", size) for number, size in enumerate(sizes)]
    weight = dict(entries)

    batches = list(listing.Outline(total=len(sizes), entries=entries).batches(limit))

    assert [each for batch in batches for each in batch] == [name for name, _ in entries]
    assert all(len(batch) == 1 or sum(weight[each] for each in batch) <= limit for batch in batches)


@given(SIZES, LIMITS)
def test_a_page_that_fits_is_one_batch(sizes: list[int], limit: int) -> None:
    outline = listing.Outline(total=len(sizes), entries=[(str(n), size) for n, size in enumerate(sizes)])

    if outline.fits(limit):
        assert len(list(outline.batches(limit))) <= 1


def test_a_condition_that_names_a_place_is_left_alone() -> None:
    question = listing.Question(condition="a->':limit' = $1 AND ':order'", order="b", limit=7, offset=3)

    composed = listing.compose("WHERE :condition ORDER BY :order LIMIT :limit OFFSET :offset, x::limit", question)

    assert composed == "WHERE a->':limit' = $1 AND ':order' ORDER BY b LIMIT 7 OFFSET 3, x::limit"


def test_what_is_not_read_weighs_nothing() -> None:
    bare = listing.Columns(data=False, metadata=True, status=False)

    assert bare.weight() == "0::bigint"
    assert "payload" in listing.ALL_COLUMNS.weight()
    assert "status" in listing.ALL_COLUMNS.weight()
