"""Whose time counts when a host and the database disagree."""

import asyncio
import io
from contextlib import asynccontextmanager

import pytest

from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.server.shared_time import SharedTime


class Watch:
    """A database that knows nothing but the time."""

    def __init__(self, shows: float) -> None:
        self.shows = shows

    @asynccontextmanager
    async def connection(self):
        yield self

    async def fetchval(self, _: str) -> float:
        return self.shows


@pytest.mark.parametrize(
    ("theirs", "counts", "lines"),
    [
        pytest.param(1000.0, 1000.0, 0, id="agree"),
        pytest.param(1000.9, 1000.0, 0, id="nearly-agree"),
        pytest.param(4600.0, 4600.0, 1, id="an-hour-behind"),
        pytest.param(-2600.0, -2600.0, 1, id="an-hour-ahead"),
    ],
)
def test_the_database_is_right(theirs: float, counts: float, lines: int) -> None:
    log = io.BytesIO()
    journal = Journal(log, clock=lambda: 0.0, verbosity=0)
    time = SharedTime(clocks.Clock(epoch=lambda: 1000.0), journal=journal)
    for _ in range(3):
        asyncio.run(time.compare(Watch(theirs)))  # type: ignore[arg-type]  # all it is asked for is the time
    journal.flush()
    assert time.epoch() == counts
    assert log.getvalue().count(b"differ") == lines, "told once, not every time"


def test_a_clock_that_was_set_right_counts_again() -> None:
    journal = Journal(io.BytesIO(), clock=lambda: 0.0, verbosity=0)
    time = SharedTime(clocks.Clock(epoch=lambda: 1000.0), journal=journal)
    asyncio.run(time.compare(Watch(5000.0)))  # type: ignore[arg-type]
    asyncio.run(time.compare(Watch(1000.0)))  # type: ignore[arg-type]
    assert time.epoch() == 1000.0
