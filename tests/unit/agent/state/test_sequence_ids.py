"""Sequence IDs of an agent keep their order when its clock is wrong or set."""

import pytest

from maestropy.agent.state.sequence_ids import SequenceIds
from maestropy.aio import clock as clocks
from maestropy.wire import ordering

NOW = 1_765_864_817.0
NOW_MS = round(NOW * 1000)
DAY = 86_400.0


class Hands:
    """A clock that a test sets."""

    def __init__(self, *, epoch: float = NOW) -> None:
        self.epoch = epoch
        self.monotonic = 100.0

    def pass_time(self, seconds: float) -> None:
        self.epoch += seconds
        self.monotonic += seconds

    def clock(self) -> clocks.Clock:
        return clocks.Clock(epoch=lambda: self.epoch, monotonic=lambda: self.monotonic)


def time_ms(sequence_id: str) -> int:
    return ordering.parse(sequence_id).time_ms


def at(seconds: float) -> str:
    return str(int(ordering.Snowflake(round(seconds * 1000), ordering.AGENT_NODE, 7)))


def test_the_clock_of_the_host_counts_until_a_server_says_more() -> None:
    hands = Hands()
    ids = SequenceIds(hands.clock())
    first = ids.next()
    assert time_ms(first) == NOW_MS
    hands.epoch -= DAY
    assert ordering.is_newer(ids.next(), first)


@pytest.mark.parametrize("seconds", [-DAY, -1.0, 0.0, 200.0], ids=["clock-was-set-back", "second", "same", "ahead"])
def test_ids_continue_above_the_stored_ones(seconds: float) -> None:
    hands = Hands(epoch=NOW + min(seconds, 0.0))
    ids = SequenceIds(hands.clock())
    stored = at(NOW + max(seconds, 0.0))
    assert ids.note(["", at(NOW - 50), stored], database_ms=NOW_MS) == 0
    assert ordering.is_newer(ids.next(), stored)


@pytest.mark.parametrize("stored", ["", "damaged", at(NOW + DAY), str(2**63 - 1)], ids=["none", "text", "day", "max"])
def test_ids_follow_the_database_while_the_clock_is_a_day_ahead(stored: str) -> None:
    hands = Hands(epoch=NOW + DAY)
    ids = SequenceIds(hands.clock())
    assert time_ms(ids.next()) == NOW_MS + DAY * 1000
    assert ids.note([stored], database_ms=NOW_MS) == DAY * 1000
    hands.pass_time(2)
    second = ids.next()
    assert time_ms(second) == NOW_MS + 2000
    # The clock is corrected, with or without another word of the server.
    hands.epoch -= DAY
    hands.pass_time(2)
    third = ids.next()
    assert time_ms(third) == NOW_MS + 4000
    assert ids.note([second], database_ms=NOW_MS + 4000) == 0
    assert ordering.is_newer(ids.next(), third)
    assert time_ms(ids.next()) == NOW_MS + 4000


def test_a_clock_that_jumps_ahead_while_the_agent_runs() -> None:
    hands = Hands()
    ids = SequenceIds(hands.clock())
    stored = ids.next()
    hands.epoch += DAY
    rejected = ids.next()
    assert ordering.is_ahead(rejected, now_ms=NOW_MS)
    ids.note([stored], database_ms=NOW_MS)
    assert ordering.is_newer(ids.next(), stored)
    assert not ordering.is_ahead(ids.next(), now_ms=NOW_MS)
