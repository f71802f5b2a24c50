"""Lists and status events become watch events."""

from hypothesis import given
from hypothesis import strategies as st

from maestropy.sdk.watch_events import EventType, WatchEvent, WatchState
from maestropy.sdk.work import Work
from maestropy.wire.works import status, work

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


def work_of(uid: str = "u1", version: int = 1, sequence: int = 0, **more: str) -> Work:
    built = work.new(uid).with_metadata(uid=uid, generation=version, **more)
    if sequence:
        built = built.with_annotations({work.SEQUENCE_ID_ANNOTATION: str((sequence << 22) + (1 << 12))})
    return Work.wrap(built)


def deleted(existing: Work) -> Work:
    deleted_status = status.WorkStatus({"conditions": [{"type": "Deleted", "status": "True"}]})
    return Work.wrap(existing.manifest_work.with_status(deleted_status))


def kinds(events: list[WatchEvent]) -> list[EventType]:
    return [watch_event.type for watch_event in events]


def test_change_in_list_and_stream_is_sent_once() -> None:
    state = WatchState()
    state.begin()
    assert kinds(state.listed(work_of(sequence=5))) == [ADDED]
    assert state.complete() == []
    assert state.received(work_of(sequence=4)) == []
    assert state.received(work_of(sequence=5)) == []
    assert kinds(state.received(work_of(sequence=6))) == [MODIFIED]
    assert kinds(state.received(work_of(version=2, sequence=7))) == [MODIFIED]
    assert state.received(work_of(version=1, sequence=8)) == []


def test_sequence_id_of_a_clock_that_was_a_day_ahead_freezes_no_watch() -> None:
    state, day_ms = WatchState(), 86_400_000
    state.listed(work_of(sequence=day_ms + 5))
    assert kinds(state.received(work_of(sequence=6))) == [MODIFIED]
    assert state.received(work_of(sequence=5)) == []


def test_second_list_sends_only_differences() -> None:
    state = WatchState()
    for existing in (work_of("a", sequence=1), work_of("b", sequence=1), work_of("c"), work_of("d")):
        state.listed(existing)
    state.begin()
    assert state.listed(work_of("a", sequence=1)) == []
    assert kinds(state.listed(work_of("b", sequence=2))) == [MODIFIED]
    assert kinds(state.listed(work_of("c", deletionTimestamp="2026-01-01T00:00:00Z"))) == [MODIFIED]
    assert state.listed(work_of("c", deletionTimestamp="2026-01-01T00:00:00Z")) == []
    assert kinds(state.listed(work_of("e"))) == [ADDED]
    assert [(watch_event.type, watch_event.work.id) for watch_event in state.complete()] == [(DELETED, "d")]


def test_interrupted_list_deletes_nothing() -> None:
    state = WatchState()
    state.listed(work_of("a"))
    state.begin()
    state.begin()
    state.listed(work_of("a"))
    assert state.complete() == []


def test_recreated_work_is_deleted_and_added() -> None:
    state = WatchState()
    state.listed(work_of(version=9, sequence=9, creationTimestamp="2026-01-01T00:00:00Z"))
    recreated = work_of(version=1, creationTimestamp="2026-01-02T00:00:00Z")
    assert kinds(state.listed(recreated)) == [DELETED, ADDED]
    late = deleted(work_of(version=9, sequence=10, creationTimestamp="2026-01-01T00:00:00Z"))
    assert state.received(late) == []


def test_deleted_status_is_sent_once() -> None:
    state = WatchState()
    state.listed(work_of(sequence=1))
    assert kinds(state.received(deleted(work_of(sequence=2)))) == [DELETED]
    assert state.received(deleted(work_of(sequence=2))) == []
    assert state.excluded(work_of()) == []


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3), st.integers(0, 6), st.booleans()), max_size=40))
def test_versions_of_one_work_never_go_back(history: list[tuple[str, int, int, bool]]) -> None:
    state = WatchState()
    alive: dict[str, tuple[int, int]] = {}
    for uid, version, sequence, is_last in history:
        existing = work_of(uid, version, sequence)
        for watch_event in state.received(deleted(existing) if is_last else existing):
            if watch_event.type is DELETED:
                del alive[uid]
                continue
            assert (watch_event.type is ADDED) is (uid not in alive)
            assert uid not in alive or (version, sequence) > alive[uid]
            alive[uid] = (version, sequence)
