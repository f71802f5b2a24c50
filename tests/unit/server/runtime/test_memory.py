"""Memory is released once, after a burst."""

from maestropy.server.runtime.memory import MemoryRelease

MIB = 2**20


def test_memory_is_released_after_a_burst_and_not_during_it() -> None:
    release = MemoryRelease()
    due = [release.is_due(size * MIB) for size in (80, 85, 200, 400, 402)]
    assert due == [False, False, False, False, True]
    release.released(300 * MIB)
    assert [release.is_due(size * MIB) for size in (300, 310, 310)] == [False, False, False]
    assert [release.is_due(size * MIB) for size in (90, 100, 200, 200)] == [False, False, False, True]


def test_memory_that_was_in_use_is_released_later() -> None:
    release = MemoryRelease()
    assert [release.is_due(size * MIB) for size in (80, 300, 300)] == [False, False, True]
    release.released(300 * MIB)
    assert [release.is_due(300 * MIB) for _ in range(60)] == [False] * 59 + [True]
