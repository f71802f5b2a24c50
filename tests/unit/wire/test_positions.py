"""Positions in the write-ahead log: their form, and what a client keeps of those that it was given."""

from dataclasses import replace

import pytest

from maestropy.wire import errors
from maestropy.wire.positions import Position, Seen

POSITION = Position(system=7709220907240697153, timeline=1, lsn=0x3000D90)


def test_text_is_read_back() -> None:
    assert str(POSITION) == "6afca791e718ad41-00000001-0000000003000d90"
    assert Position.parse(str(POSITION)) == POSITION


@pytest.mark.parametrize(
    "text",
    ["", "0/3000D90", str(POSITION).upper(), f"{POSITION} ", f"{POSITION}\n", f"-{POSITION}", "٣" * 16 + "-1-1"],
)
def test_other_text_is_rejected(text: str) -> None:
    with pytest.raises(errors.MalformedMessage, match="send what a response to a write had, or leave it out"):
        Position.parse(text)


def test_highest_position_is_kept() -> None:
    seen = Seen()
    assert str(seen) == ""
    for lsn in (10, 30, 20):
        seen.end(seen.begin(), str(replace(POSITION, lsn=lsn)))
    assert str(seen) == str(replace(POSITION, lsn=30))


@pytest.mark.parametrize("other", [replace(POSITION, timeline=2, lsn=5), replace(POSITION, system=1, lsn=5)])
def test_position_of_another_history_takes_the_place_of_the_former(other: Position) -> None:
    seen = Seen()
    seen.end(seen.begin(), str(POSITION))
    seen.end(seen.begin(), str(other))
    assert str(seen) == str(other)


def test_write_without_a_position_leaves_none() -> None:
    seen = Seen()
    seen.end(seen.begin(), str(POSITION))
    under_way = seen.begin()
    seen.end(seen.begin(), "")
    assert str(seen) == ""
    # It may have been stored before the write that has no position.
    seen.end(under_way, str(replace(POSITION, lsn=POSITION.lsn + 1)))
    assert str(seen) == ""
    seen.end(seen.begin(), str(POSITION))
    assert str(seen) == str(POSITION)
