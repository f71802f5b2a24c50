"""What an agent remembers of works, whatever order the events come in."""

from typing import Any

import pytest

from maestropy.agent.decide import deletion
from maestropy.agent.works import Works
from maestropy.wire import instant, work

NOW = instant.Timestamp(1_700_000_000, 0)
GONE = "2023-11-14T22:13:20Z"


def wish(generation: int = 1, *, name: str = "id", value: str = "v", **metadata: Any) -> work.ManifestWork:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"k": value}}
    found = work.new(name, namespace="c1", manifests=[manifest])
    return found.with_metadata(uid="id", generation=generation, **metadata)


def bare(generation: int = 0, **metadata: Any) -> work.ManifestWork:
    return work.ManifestWork({"metadata": {"name": "id", "uid": "id", "generation": generation} | metadata})


@pytest.mark.parametrize(
    ("known", "incoming", "is_news"),
    [
        pytest.param([wish(2)], wish(3), True, id="newer"),
        pytest.param([wish(2)], wish(2), True, id="again"),
        pytest.param([wish(2)], wish(1), False, id="older"),
        pytest.param([wish(2)], wish(0), True, id="of-no-version"),
        pytest.param([wish(2)], bare(2, deletionTimestamp=GONE), True, id="deletion"),
        pytest.param([wish(2)], bare(0, deletionTimestamp=GONE), True, id="deletion-of-no-version"),
        pytest.param([wish(2)], bare(1, deletionTimestamp=GONE), True, id="deletion-of-an-old-version"),
        pytest.param([wish(2), bare(2, deletionTimestamp=GONE)], wish(3), False, id="update-after-deletion"),
        pytest.param(
            [wish(2), bare(2, deletionTimestamp=GONE)], bare(2, deletionTimestamp=GONE), False, id="deleted-twice"
        ),
    ],
)
def test_what_is_news(known: list[work.ManifestWork], incoming: work.ManifestWork, *, is_news: bool) -> None:
    works = Works()
    for each in known:
        works.put(each)
    assert (works.put(incoming) is not None) == is_news


def test_the_deletion_of_an_unknown_work_does_not_take_the_place_of_its_namesake() -> None:
    works = Works()
    held = works.put(wish(2))
    assert works.put(bare(2, uid="id-forgotten", deletionTimestamp=GONE)) is None
    assert (works.named("id"), works.get("id-forgotten")) == (held, None)
    assert works.put(bare(2, uid="another", name="another", deletionTimestamp=GONE)) is not None


def test_deletion_keeps_the_spec_and_the_name() -> None:
    works = Works()
    works.put(wish(4, name="a-name"))
    held = works.put(bare(deletionTimestamp=GONE))
    assert held is not None
    assert (held.is_leaving, held.name, held.wanted.generation) == (True, "a-name", 4)
    assert held.wish().spec == wish(4).spec
    assert works.named("a-name") is held
    assert works.named("id") is None


def test_unreadable_wish_keeps_the_last_good_one() -> None:
    works = Works()
    works.put(wish(1, name="a-name"))
    held = works.put(bare(2), problem="it is wrong")
    assert held is not None
    assert (held.problem, held.wanted.generation, held.name) == ("it is wrong", 2, "a-name")
    assert held.wish().spec == wish().spec
    held = works.put(wish(3, name="a-name", value="better"))
    assert held is not None
    assert held.problem == ""


def test_new_life_after_the_end() -> None:
    works = Works()
    old = works.put(wish(5))
    works.put(bare(5, deletionTimestamp=GONE))
    assert old is not None
    old.status = old.status.with_condition(deletion.deleted(consumer="c1"), now=NOW)
    new = works.put(wish(1))
    assert new is not None
    assert new is not old
    assert (new.wanted.generation, new.status.body, new.is_leaving) == (1, {}, False)
    # The server's word that the old one is gone does not touch the new one.
    works.drop(old)
    assert works.get("id") is new
    assert works.named("id") is new


@pytest.mark.parametrize("is_over", [True, False], ids=["after-the-end", "on-the-way-out"])
def test_the_deletion_of_a_successor_is_not_answered_with_the_end_of_the_earlier_one(*, is_over: bool) -> None:
    earlier, later = "2023-11-14T22:13:10Z", "2023-11-14T22:13:15Z"
    works = Works()
    old = works.put(wish(5, creationTimestamp=earlier))
    assert old is not None
    works.put(bare(5, creationTimestamp=earlier, deletionTimestamp=GONE))
    if is_over:
        old.status = old.status.with_condition(deletion.deleted(consumer="c1"), now=NOW)
    leaving = bare(1, creationTimestamp=later, deletionTimestamp=GONE)
    new = works.put(leaving)
    assert new is not None
    assert (new is old) != is_over
    assert (new.is_leaving, new.is_over, new.wanted.creation_timestamp) == (True, False, later)
    assert works.put(leaving) is None, "the same once more is no news"
    assert works.put(bare(5, creationTimestamp=earlier, deletionTimestamp=GONE)) is None, "what is late is none either"
