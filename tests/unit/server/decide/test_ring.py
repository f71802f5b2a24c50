"""Ownership of consumers must equal what every other instance computes, Go instances included."""

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from maestropy.server.decide import hash_ring

PODS = [f"maestro-7d9f8c6b5-{suffix}" for suffix in ("abcde", "fghij", "klmno", "pqrst")]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"cluster1", 0xB4E4550744A537F4),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_xxh64_vectors(data: bytes, expected: int) -> None:
    assert hash_ring.xxh64(data) == expected


@given(st.binary(max_size=200))
def test_xxh64_equals_the_library(data: bytes) -> None:
    assert hash_ring.xxh64(data) == xxhash.xxh64_intdigest(data)


@pytest.mark.parametrize(
    ("instances", "owners", "cluster1", "cluster2"),
    [
        (["maestro-0"], [0, 0, 0, 0, 0, 0, 0], 0, 0),
        (["maestro-0", "maestro-1"], [1, 0, 1, 1, 0, 1, 0], 0, 1),
        (["maestro-0", "maestro-1", "maestro-2"], [1, 2, 2, 1, 0, 1, 2], 2, 2),
        (list("abcdefg"), [3, 0, 6, 2, 1, 4, 3], 3, 6),
        (PODS, [2, 0, 3, 1, 1, 0, 2], 2, 3),
    ],
    ids=["one", "two", "three", "seven", "pods"],
)
def test_tables_computed_by_the_go_library(
    instances: list[str], owners: list[int], cluster1: int, cluster2: int
) -> None:
    table = hash_ring.build(instances)
    assert [instances.index(owner) for owner in table.owners] == owners
    assert table.owner("cluster1") == instances[cluster1]
    assert table.owner("cluster2") == instances[cluster2]


def test_no_ready_instance_owns_nothing() -> None:
    assert hash_ring.build([]).owner("cluster1") is None


names = st.lists(st.text("abc-0123", min_size=1, max_size=8), min_size=1, max_size=30, unique=True)


@given(names, st.integers(1, 20))
def test_any_number_of_instances_can_share_any_number_of_partitions(instances: list[str], partitions: int) -> None:
    table = hash_ring.build(instances, partitions=partitions)
    assert len(table.owners) == partitions
    assert set(table.owners) <= set(instances)
    assert hash_ring.build(reversed(instances), partitions=partitions) == table
    if len(instances) >= partitions:
        assert max(map(table.owners.count, table.owners)) <= 2


def test_more_instances_than_partitions_get_one_each() -> None:
    table = hash_ring.build([f"maestro-{number}" for number in range(12)])
    assert len(set(table.owners)) == 7
