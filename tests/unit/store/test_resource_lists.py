"""Lists of resources: pages are cut into batches by bytes, and a search cannot fill another placeholder."""

from hypothesis import given
from hypothesis import strategies as st

from maestropy.store.lists import query as queries
from maestropy.store.lists import resource_lists

SIZES = st.lists(st.integers(min_value=0, max_value=5_000_000), max_size=60)
LIMITS = st.integers(min_value=1, max_value=4_000_000)


@given(SIZES, LIMITS)
def test_batches_contain_every_resource_once_and_in_order(sizes: list[int], limit: int) -> None:
    entries = [(f"b{number}", size) for number, size in enumerate(sizes)]
    weight = dict(entries)

    batches = list(resource_lists.PageOutline(total=len(sizes), entries=entries).batches(limit))

    assert [resource_id for batch in batches for resource_id in batch] == [name for name, _ in entries]
    assert all(len(batch) == 1 or sum(weight[resource_id] for resource_id in batch) <= limit for batch in batches)


@given(SIZES, LIMITS)
def test_page_that_fits_is_one_batch(sizes: list[int], limit: int) -> None:
    outline = resource_lists.PageOutline(total=len(sizes), entries=[(str(n), size) for n, size in enumerate(sizes)])

    if outline.fits(limit):
        assert len(list(outline.batches(limit))) <= 1


def test_placeholder_inside_a_condition_is_not_filled() -> None:
    query = queries.ListQuery(condition="a->':limit' = $1 AND ':order'", order="b", limit=7, offset=3)

    composed = queries.compose("WHERE :condition ORDER BY :order LIMIT :limit OFFSET :offset, x::limit", query)

    assert composed == "WHERE a->':limit' = $1 AND ':order' ORDER BY b LIMIT 7 OFFSET 3, x::limit"


def test_columns_that_are_not_read_have_no_weight() -> None:
    bare = resource_lists.ResourceColumns(data=False, metadata=True, status=False)

    assert bare.weight() == "0::bigint"
    assert "payload" in resource_lists.ALL_COLUMNS.weight()
    assert "status" in resource_lists.ALL_COLUMNS.weight()
