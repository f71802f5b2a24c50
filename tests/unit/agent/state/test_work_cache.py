"""The cached works after spec events in any order."""

from typing import Any

import pytest

from maestropy.agent.decide import deletion
from maestropy.agent.state.work_cache import EventAttributes, WorkCache
from maestropy.wire import timestamps
from maestropy.wire.works import work

NOW = timestamps.Timestamp(1_700_000_000, 0)
GONE = "2023-11-14T22:13:20Z"


def manifest_work(generation: int = 1, *, name: str = "id", value: str = "v", **metadata: Any) -> work.ManifestWork:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"k": value}}
    new_work = work.new(name, namespace="c1", manifests=[manifest])
    return new_work.with_metadata(uid="id", generation=generation, **metadata)


def manifest_work_without_spec(generation: int = 0, **metadata: Any) -> work.ManifestWork:
    return work.ManifestWork({"metadata": {"name": "id", "uid": "id", "generation": generation} | metadata})


@pytest.mark.parametrize(
    ("known", "incoming", "is_changed"),
    [
        pytest.param([manifest_work(2)], manifest_work(3), True, id="newer-version"),
        pytest.param([manifest_work(2)], manifest_work(2), True, id="same-version"),
        pytest.param([manifest_work(2)], manifest_work(1), False, id="stale-version"),
        pytest.param([manifest_work(2)], manifest_work(0), True, id="without-version"),
        pytest.param([manifest_work(2)], manifest_work_without_spec(2, deletionTimestamp=GONE), True, id="deletion"),
        pytest.param(
            [manifest_work(2)],
            manifest_work_without_spec(0, deletionTimestamp=GONE),
            True,
            id="deletion-without-version",
        ),
        pytest.param(
            [manifest_work(2)],
            manifest_work_without_spec(1, deletionTimestamp=GONE),
            True,
            id="deletion-with-stale-version",
        ),
        pytest.param(
            [manifest_work(2), manifest_work_without_spec(2, deletionTimestamp=GONE)],
            manifest_work(3),
            False,
            id="update-after-deletion",
        ),
        pytest.param(
            [manifest_work(2), manifest_work_without_spec(2, deletionTimestamp=GONE)],
            manifest_work_without_spec(2, deletionTimestamp=GONE),
            False,
            id="already-deleting",
        ),
    ],
)
def test_spec_event_changes_cached_work(
    known: list[work.ManifestWork], incoming: work.ManifestWork, *, is_changed: bool
) -> None:
    works = WorkCache()
    for earlier in known:
        works.put(earlier)
    assert (works.put(incoming) is not None) == is_changed


def test_deletion_of_unknown_work_does_not_replace_work_of_same_name() -> None:
    works = WorkCache()
    cached = works.put(manifest_work(2))
    assert works.put(manifest_work_without_spec(2, uid="id-forgotten", deletionTimestamp=GONE)) is None
    assert (works.by_name("id"), works.get("id-forgotten")) == (cached, None)
    assert works.put(manifest_work_without_spec(2, uid="another", name="another", deletionTimestamp=GONE)) is not None


def test_deletion_keeps_spec_and_name() -> None:
    works = WorkCache()
    works.put(manifest_work(4, name="a-name"))
    cached = works.put(manifest_work_without_spec(deletionTimestamp=GONE))
    assert cached is not None
    assert (cached.is_deleting, cached.name, cached.manifest_work.generation) == (True, "a-name", 4)
    assert cached.with_spec().spec == manifest_work(4).spec
    assert works.by_name("a-name") is cached
    assert works.by_name("id") is None


def test_invalid_spec_keeps_last_valid_spec() -> None:
    works = WorkCache()
    works.put(manifest_work(1, name="a-name"))
    cached = works.put(manifest_work_without_spec(2), problem="it is wrong")
    assert cached is not None
    assert (cached.problem, cached.manifest_work.generation, cached.name) == ("it is wrong", 2, "a-name")
    assert cached.with_spec().spec == manifest_work().spec
    cached = works.put(manifest_work(3, name="a-name", value="better"))
    assert cached is not None
    assert cached.problem == ""


def test_new_incarnation_replaces_deleted_work() -> None:
    works = WorkCache()
    old = works.put(manifest_work(5))
    works.put(manifest_work_without_spec(5, deletionTimestamp=GONE))
    assert old is not None
    old.status = old.status.with_condition(deletion.deleted(consumer="c1"), now=NOW)
    new = works.put(manifest_work(1))
    assert new is not None
    assert new is not old
    assert (new.manifest_work.generation, new.status.body, new.is_deleting) == (1, {}, False)
    # The acknowledgement for the previous incarnation does not remove the new one.
    works.drop(old)
    assert works.get("id") is new
    assert works.by_name("id") is new


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "deleting"])
def test_deletion_of_new_incarnation_is_not_confirmed_by_previous_one(*, is_deleted: bool) -> None:
    earlier, later = "2023-11-14T22:13:10Z", "2023-11-14T22:13:15Z"
    works = WorkCache()
    old = works.put(manifest_work(5, creationTimestamp=earlier))
    assert old is not None
    works.put(manifest_work_without_spec(5, creationTimestamp=earlier, deletionTimestamp=GONE))
    if is_deleted:
        old.status = old.status.with_condition(deletion.deleted(consumer="c1"), now=NOW)
    leaving = manifest_work_without_spec(1, creationTimestamp=later, deletionTimestamp=GONE)
    new = works.put(leaving)
    assert new is not None
    assert (new is old) != is_deleted
    assert (new.is_deleting, new.is_deleted, new.manifest_work.creation_timestamp) == (True, False, later)
    assert works.put(leaving) is None, "the same once more is no news"
    assert works.put(manifest_work_without_spec(5, creationTimestamp=earlier, deletionTimestamp=GONE)) is None, (
        "what is late is none either"
    )


def test_deletion_of_another_database_does_not_outlast_it() -> None:
    works = WorkCache()
    works.put(manifest_work(1), event=EventAttributes(id="e1", database="right", requests=1))
    deletion_event = EventAttributes(id="e2", database="wrong", requests=1)
    works.put(manifest_work_without_spec(1, deletionTimestamp=GONE), event=deletion_event)
    # Whatever the agent has of the work, the server sends its own.
    assert works.versions() == {"id": 0}
    assert works.event_ids() == {}
    late = EventAttributes(id="e1", database="right", requests=1)
    assert works.is_late(manifest_work(1), late), "a broker may deliver an old event"
    answer = EventAttributes(id="e1", database="right", requests=2, answers=2)
    assert not works.is_late(manifest_work(1), answer)
    cached = works.put(manifest_work(1), event=answer)
    assert cached is not None
    assert not cached.is_deleting
    assert cached.origin.database == "right"


def test_deletion_is_of_the_database_that_requested_it_last() -> None:
    works = WorkCache()
    works.put(manifest_work(1), event=EventAttributes(id="e1", database="right"))
    for database in ("wrong", "right"):
        deleting = manifest_work_without_spec(1, deletionTimestamp=GONE)
        cached = works.put(deleting, event=EventAttributes(id="e2", database=database))
        assert cached is not None
        assert cached.origin.database == database
