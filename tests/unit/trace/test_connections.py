"""Connects and disconnects of an agent, paired."""

import pytest

from maestropy.trace.connections import CONNECTED, DISCONNECTED, OVERLAP_SECONDS, Connections

LONG = 10 * OVERLAP_SECONDS


@pytest.mark.parametrize(
    ("entries", "is_connected", "since"),
    [
        ([], False, 0.0),
        ([(CONNECTED, 1)], True, 1),
        ([(CONNECTED, 1), (DISCONNECTED, 2)], False, 2),
        ([(CONNECTED, 1), (DISCONNECTED, 2), (CONNECTED, 3)], True, 3),
        ([(CONNECTED, 1), (CONNECTED, LONG), (DISCONNECTED, LONG + 5)], True, LONG),
        ([(CONNECTED, 1), (CONNECTED, 2), (DISCONNECTED, 3), (DISCONNECTED, 4)], False, 4),
        ([(DISCONNECTED, 2)], False, 2),
        ([(DISCONNECTED, 2), (CONNECTED, 3)], True, 3),
        ([(CONNECTED, 1), (CONNECTED, 5), (DISCONNECTED, LONG)], False, LONG),
        ([(CONNECTED, 1), (CONNECTED, LONG), (CONNECTED, 2 * LONG), (DISCONNECTED, 3 * LONG)], False, 3 * LONG),
        ([(CONNECTED, 5), (DISCONNECTED, 4)], True, 5),
        ([(DISCONNECTED, 5), (CONNECTED, 4)], False, 5),
        ([(CONNECTED, 1), ("work.status", 2)], True, 1),
    ],
    ids=[
        "nothing", "connected", "left", "back", "old-one-ends-after-the-new-one-began", "both-end", "end-in-the-middle",
        "back-after-end-in-the-middle", "killed-server-wrote-no-end", "killed-twice", "late-end", "late-begin",
        "other-kind",
    ],
)  # fmt: skip
def test_entries_tell_whether_an_agent_is_connected(
    entries: list[tuple[str, float]], is_connected: bool, since: float
) -> None:
    found = Connections()
    for kind, at in entries:
        found = found.after(kind, at)
    assert (found.is_connected, found.since) == (is_connected, since)


def test_connections_without_ends_are_not_kept_for_ever() -> None:
    found = Connections()
    for number in range(1000):
        found = found.after(CONNECTED, number * LONG)
    assert len(found.begun) <= 2
