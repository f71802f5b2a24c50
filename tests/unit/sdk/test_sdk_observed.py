"""What is news to a watcher."""

from hypothesis import given
from hypothesis import strategies as st

from maestropy.sdk.observed import EventType, Observed
from maestropy.sdk.work import Work
from maestropy.wire import status, work

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


def seen(uid: str = "u1", version: int = 1, sequence: int = 0, **more: str) -> Work:
    found = work.new(uid).with_metadata(uid=uid, generation=version, **more)
    if sequence:
        found = found.with_annotations({work.SEQUENCE_ID_ANNOTATION: str((sequence << 22) + (1 << 12))})
    return Work.wrap(found)


def gone(found: Work) -> Work:
    told = status.WorkStatus({"conditions": [{"type": "Deleted", "status": "True"}]})
    return Work.wrap(found.manifest_work.with_status(told))


def kinds(events: list[object]) -> list[EventType]:
    return [each.type for each in events]  # type: ignore[attr-defined]


def test_a_list_and_a_stream_that_overlap_tell_everything_once() -> None:
    memory = Observed()
    memory.begin()
    assert kinds(memory.listed(seen(sequence=5))) == [ADDED]
    assert memory.complete() == []
    assert memory.heard(seen(sequence=4)) == []
    assert memory.heard(seen(sequence=5)) == []
    assert kinds(memory.heard(seen(sequence=6))) == [MODIFIED]
    assert kinds(memory.heard(seen(version=2, sequence=7))) == [MODIFIED]
    assert memory.heard(seen(version=1, sequence=8)) == []


def test_a_second_list_tells_only_differences() -> None:
    memory = Observed()
    for found in (seen("a", sequence=1), seen("b", sequence=1), seen("c"), seen("d")):
        memory.listed(found)
    memory.begin()
    assert memory.listed(seen("a", sequence=1)) == []
    assert kinds(memory.listed(seen("b", sequence=2))) == [MODIFIED]
    assert kinds(memory.listed(seen("c", deletionTimestamp="2026-01-01T00:00:00Z"))) == [MODIFIED]
    assert memory.listed(seen("c", deletionTimestamp="2026-01-01T00:00:00Z")) == []
    assert kinds(memory.listed(seen("e"))) == [ADDED]
    assert [(each.type, each.work.id) for each in memory.complete()] == [(DELETED, "d")]


def test_a_list_that_broke_off_deletes_nothing() -> None:
    memory = Observed()
    memory.listed(seen("a"))
    memory.begin()
    memory.begin()
    memory.listed(seen("a"))
    assert memory.complete() == []


def test_a_work_made_anew_is_another_one() -> None:
    memory = Observed()
    memory.listed(seen(version=9, sequence=9, creationTimestamp="2026-01-01T00:00:00Z"))
    anew = seen(version=1, creationTimestamp="2026-01-02T00:00:00Z")
    assert kinds(memory.listed(anew)) == [DELETED, ADDED]
    late = gone(seen(version=9, sequence=10, creationTimestamp="2026-01-01T00:00:00Z"))
    assert memory.heard(late) == []


def test_the_last_word_is_told_once() -> None:
    memory = Observed()
    memory.listed(seen(sequence=1))
    assert kinds(memory.heard(gone(seen(sequence=2)))) == [DELETED]
    assert memory.heard(gone(seen(sequence=2))) == []
    assert memory.lost(seen()) == []


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3), st.integers(0, 6), st.booleans()), max_size=40))
def test_events_of_one_work_alternate_and_never_go_back(history: list[tuple[str, int, int, bool]]) -> None:
    memory = Observed()
    alive: dict[str, tuple[int, int]] = {}
    for uid, version, sequence, is_last in history:
        found = seen(uid, version, sequence)
        for told in memory.heard(gone(found) if is_last else found):
            if told.type is DELETED:
                del alive[uid]
                continue
            assert (told.type is ADDED) is (uid not in alive)
            assert uid not in alive or (version, sequence) > alive[uid]
            alive[uid] = (version, sequence)
