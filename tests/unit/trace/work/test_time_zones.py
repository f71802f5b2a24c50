"""Times are shown in the reader's time zone."""

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from maestropy.trace.errors import InvalidArguments
from maestropy.trace.work.report import render, time_zones

NOON = datetime(2026, 1, 15, 12, 0, 0, 5000, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Inner:
    at: datetime | None
    name: str = "x"


@dataclass(frozen=True, kw_only=True)
class Outer:
    inner: tuple[Inner, ...]
    content: dict[str, object]


def test_every_time_is_converted_and_nothing_else() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    found = time_zones.shown_in(Outer(inner=(Inner(at=NOON), Inner(at=None)), content={"n": 1}), berlin)
    assert found == Outer(inner=(Inner(at=NOON), Inner(at=None)), content={"n": 1})
    assert str(found.inner[0].at) == "2026-01-15 13:00:00.005000+01:00"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("UTC", "2026-01-15 12:00:00.005Z"),
        ("utc", "2026-01-15 12:00:00.005Z"),
        ("Europe/Berlin", "2026-01-15 13:00:00.005+01:00"),
        ("Asia/Kolkata", "2026-01-15 17:30:00.005+05:30"),
        ("America/New_York", "2026-01-15 07:00:00.005-05:00"),
    ],
)
def test_moment_is_formatted(name: str, shown: str) -> None:
    assert render.moment(NOON, time_zones.named(name)) == shown


def test_local_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert render.moment(NOON, time_zones.named("local")) == "2026-01-15 21:00:00.005+09:00"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("name", ["Nowhere/Land", "", "../etc/passwd", "\0"])
def test_unknown_zone_is_rejected(name: str) -> None:
    with pytest.raises(InvalidArguments, match="is not a known time zone; write a name such as Europe/Berlin"):
        time_zones.named(name)
