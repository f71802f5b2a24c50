"""Backoff of drift corrections."""

from maestropy.agent.state.drift_backoff import DriftBackoff


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_backoff_grows_after_immediate_corrections() -> None:
    time = Time()
    drift_backoff = DriftBackoff(monotonic=time, max_seconds=10)
    waits = []
    for _ in range(8):
        waits.append(drift_backoff.backoff_seconds("key"))
        time.now += waits[-1]
        drift_backoff.record_correction("key")
    assert waits == [0, 0, 0, 1, 2, 4, 8, 10]
    assert drift_backoff.backoff_seconds("another") == 0


def test_quiet_time_resets_backoff() -> None:
    time = Time()
    drift_backoff = DriftBackoff(monotonic=time, max_seconds=10)
    for _ in range(6):
        drift_backoff.record_correction("key")
    time.now += 100
    assert drift_backoff.backoff_seconds("key") == 0
    drift_backoff.record_correction("key")
    assert drift_backoff.backoff_seconds("key") == 0


def test_forgotten_object_has_no_backoff() -> None:
    drift_backoff = DriftBackoff(monotonic=Time(), max_seconds=10)
    for _ in range(6):
        drift_backoff.record_correction("key")
    drift_backoff.forget("key")
    assert drift_backoff.backoff_seconds("key") == 0
