"""Connects and disconnects of an agent, paired."""

import pytest

from maestropy.trace.connections import CONNECTED, DISCONNECTED, OVERLAP_SECONDS, Connections, last_seen

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


@pytest.mark.parametrize(
    ("entries", "is_connected", "since"),
    [
        ([(CONNECTED, 1, 0), (DISCONNECTED, LONG, 30)], False, 30),
        ([(CONNECTED, 1, 0), (CONNECTED, 5, 0), (DISCONNECTED, 40, 30)], False, 30),
        ([(CONNECTED, 1, 0), (CONNECTED, 50, 0), (DISCONNECTED, LONG, 30)], True, 50),
        ([(CONNECTED, 1, 0), (DISCONNECTED, LONG, 30), (CONNECTED, LONG + 1, 0)], True, LONG + 1),
    ],
    ids=["killed-server", "killed-twice", "connected-since", "back"],
)
def test_end_that_another_server_wrote_is_that_of_connections_before_the_agent_was_last_seen(
    entries: list[tuple[str, float, float]], is_connected: bool, since: float
) -> None:
    found = Connections()
    for kind, at, seen in entries:
        found = found.after(kind, at, seen=seen)
    assert (found.is_connected, found.since) == (is_connected, since)


@pytest.mark.parametrize(
    ("detail", "seen"),
    [
        ({"last_seen": "1970-01-01T00:00:09.5Z"}, 9.5),
        ('{"last_seen": "1970-01-01T00:00:09"}', 9.0),
        ({"instance": "a"}, 0.0),
        ({"last_seen": ["soon"]}, 0.0),
        ("soon", 0.0),
        (None, 0.0),
    ],
    ids=["rest", "dump", "own-end", "no-text", "no-json", "none"],
)
def test_detail_tells_when_an_agent_was_last_seen(detail: object, seen: float) -> None:
    assert last_seen(detail) == seen


def test_connections_without_ends_are_not_kept_for_ever() -> None:
    found = Connections()
    for number in range(1000):
        found = found.after(CONNECTED, number * LONG)
    assert len(found.begun) <= 2
