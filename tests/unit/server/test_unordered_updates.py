"""Status updates whose order is not known are remembered for a while."""

from maestropy.server.unordered_updates import KEPT_SECONDS, MAX_ITEMS, UnorderedUpdates


def test_the_last_update_of_a_resource_is_remembered_until_its_status_is_stored() -> None:
    updates = UnorderedUpdates(monotonic=lambda: 0.0)
    assert updates.sequence_id("w1") == ""
    updates.add("w1", "7")
    updates.add("w1", "5")
    assert updates.sequence_id("w1") == "5"
    updates.discard("w1")
    updates.discard("w1")
    assert updates.sequence_id("w1") == ""


def test_updates_are_forgotten_after_some_time() -> None:
    times = [0.0]
    updates = UnorderedUpdates(monotonic=lambda: times[0])
    updates.add("w1", "7")
    times[0] = KEPT_SECONDS - 1
    assert updates.sequence_id("w1") == "7"
    times[0] = KEPT_SECONDS
    assert updates.sequence_id("w1") == ""


def test_the_number_of_updates_is_bounded() -> None:
    updates = UnorderedUpdates(monotonic=lambda: 0.0)
    for number in range(MAX_ITEMS + 2):
        updates.add(f"w{number}", "7")
        updates.add("w0", "8")
    assert updates.sequence_id("w0") == "8", "the last one that was added is kept"
    assert updates.sequence_id("w2") == ""
    assert updates.sequence_id(f"w{MAX_ITEMS + 1}") == "7"
