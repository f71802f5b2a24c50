"""The clock of the server when host and database differ."""

import io
import re
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.server.database_clock import DatabaseClock
from maestropy.server.telemetry.metrics import Metrics


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
    ("database_seconds", "expected", "lines"),
    [
        pytest.param(1000.0, 1000.0, 0, id="equal"),
        pytest.param(1000.9, 1000.0, 0, id="within-tolerance"),
        pytest.param(4600.0, 4600.0, 1, id="an-hour-behind"),
        pytest.param(-2600.0, -2600.0, 1, id="an-hour-ahead"),
    ],
)
async def test_database_clock_is_used(database_seconds: float, expected: float, lines: int) -> None:
    log, metrics = io.BytesIO(), Metrics(CollectorRegistry())
    journal = Journal(log, clock=lambda: 0.0, verbosity=0)
    time = DatabaseClock(clocks.Clock(epoch=lambda: 1000.0), journal=journal, metrics=metrics)
    for _ in range(3):
        await time.compare(Watch(database_seconds))  # type: ignore[arg-type]  # all it is asked for is the time
    journal.flush()
    assert time.epoch() == expected
    assert log.getvalue().count(b"differ") == lines, "told once, not every time"
    (skew,) = re.findall(r'maestropy_clock_skew_seconds{reference="database"} (\S+)', metrics.render()[0].decode())
    assert float(skew) == pytest.approx(1000 - database_seconds)


async def test_corrected_host_clock_is_used_again() -> None:
    journal = Journal(io.BytesIO(), clock=lambda: 0.0, verbosity=0)
    time = DatabaseClock(clocks.Clock(epoch=lambda: 1000.0), journal=journal, metrics=Metrics(CollectorRegistry()))
    await time.compare(Watch(5000.0))  # type: ignore[arg-type]
    await time.compare(Watch(1000.0))  # type: ignore[arg-type]
    assert time.epoch() == 1000.0
