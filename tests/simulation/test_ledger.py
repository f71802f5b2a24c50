"""The rule `deleted-stays-away`: what it must find, and what an agent may do before a deletion has reached it."""

import itertools

import msgspec
import pytest

from maestropy.aio.clock import Clock
from tests.simulation.ledger import Ledger
from tests.simulation.memory_cluster import CONFIG_MAPS, MemoryCluster
from tests.simulation.memory_postgres import Change, Engine, Row
from tests.simulation.sources import Content, SimulatedResource

RESOURCE = SimulatedResource(name="b0", source="source-0", consumer="c0")


def row(version: int, *, is_deleting: bool = False) -> Row:
    manifests = [{"data": {"token": f"b0.{version}"}}]
    return {
        "version": version,
        "created_at": "then",
        "deleted_at": "now" if is_deleting else None,
        "data": msgspec.json.encode({"manifests": manifests}),
        "status": None,
    }


def violations(*, parts: list[int], removed_version: int, created_version: int) -> list[str]:
    """Store versions with so many parts and a deletion; then remove the second part and create it again."""
    engine, cluster = Engine(), MemoryCluster(clock=Clock(), new_id=lambda: "uid")
    contents = {f"b0.{n}": Content(token=f"b0.{n}", parts=count) for n, count in enumerate(parts, start=1)}
    ledger = Ledger(engine, {RESOURCE.id: RESOURCE}, {"c0": cluster}, contents=contents)
    rows = [None, *(row(version) for version in range(1, len(parts) + 1)), row(len(parts), is_deleting=True)]

    def second_part(version: int) -> Row:
        manifest = contents[f"b0.{version}"].manifests(RESOURCE)[1]
        return {**manifest, "metadata": {**manifest["metadata"], "uid": f"uid-{version}"}}

    for before, after in itertools.pairwise(rows):
        assert after is not None
        engine.tables["resources"][RESOURCE.id] = after
        ledger._row_changed(Change("resources", RESOURCE.id, before, after))
        if after["version"] == removed_version and after["deleted_at"] is None:
            stored = cluster.store.put(CONFIG_MAPS, second_part(removed_version))
    cluster.store.delete(stored)
    assert ledger.violations == []
    cluster.store.put(CONFIG_MAPS, second_part(created_version))
    return [violation.rule for violation in ledger.violations]


def test_object_that_one_version_drops_and_the_next_has_again_may_return() -> None:
    """The agent carries out versions 2 and 3 while the deletion, which is stored, is on its way to it."""
    assert violations(parts=[2, 1, 2], removed_version=1, created_version=3) == []


@pytest.mark.parametrize(
    ("parts", "removed_version", "created_version"),
    [
        pytest.param([2], 1, 1, id="no-other-version"),
        pytest.param([2, 2, 2], 1, 3, id="no-version-drops-it"),
        pytest.param([2, 1, 2], 1, 1, id="older-than-the-version-that-drops-it"),
        pytest.param([2, 1, 2], 3, 3, id="removed-after-the-last-version-was-applied"),
        pytest.param([2, 2, 1], 1, 2, id="dropped-later"),
    ],
)
def test_deleted_object_must_not_return(parts: list[int], removed_version: int, created_version: int) -> None:
    found = violations(parts=parts, removed_version=removed_version, created_version=created_version)
    assert found == ["deleted-stays-away"]
