"""Decide which partitions of the history to create ahead, and which to drop by age or size.

Only whole partitions are dropped, oldest first, and not the one that is written, unless the history takes twice its
limit: then that one is emptied, because a full disk stops everything. Pure: the time is an argument.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from maestropy.store.rows import Period

AHEAD: Final = timedelta(hours=2)
"""How early the partition of the next period is created."""
_LENGTHS: Final = (timedelta(days=1), timedelta(hours=6), timedelta(hours=1))
_SHARE: Final = 8
"""A partition should take an eighth of the limit at most, so that dropping one frees little more than needed."""


class Stored(NamedTuple):
    """A partition; the default one has no period."""

    name: str
    bytes: int
    period: Period | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much history is kept."""

    age: timedelta
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What maintenance does."""

    create: tuple[Period, ...]
    drop: tuple[tuple[str, str], ...]
    """Partitions with the reason: `age` or `size`."""
    empty: str = ""
    """A partition in use that is emptied, because nothing else can be dropped."""


def plan(partitions: Sequence[Stored], *, now: datetime, limits: Limits) -> Plan:
    """Return what to create, drop and empty."""
    dated = sorted(
        ((each, each.period) for each in partitions if each.period is not None), key=lambda pair: pair[1].start
    )
    ended = [(each, period) for each, period in dated if period.end <= now]
    expired = [each for each, period in ended if period.end <= now - limits.age]
    drop = [(each.name, "age") for each in expired]
    total = sum(each.bytes for each in partitions) - sum(each.bytes for each in expired)
    for each, _ in ended[len(expired) :]:
        if total <= limits.bytes:
            break
        drop.append((each.name, "size"))
        total -= each.bytes
    in_use = [each for each in partitions if each.name not in dict(drop)]
    largest = max(in_use, key=lambda each: each.bytes, default=None)
    return Plan(
        create=_missing([period for _, period in dated], now=now, length=_length(dated, now=now, limits=limits)),
        drop=tuple(drop),
        empty=largest.name if largest is not None and total > 2 * limits.bytes else "",
    )


def _missing(periods: Sequence[Period], *, now: datetime, length: timedelta) -> tuple[Period, ...]:
    """Return the periods from now on, until `AHEAD`, that have no partition."""
    missing: list[Period] = []
    moment = _hour(now)
    while moment <= now + AHEAD:
        covering = next((period for period in periods if period.start <= moment < period.end), None)
        if covering is None:
            start = _start(moment, length)
            # Never into a neighbour: partitions of another length may be there.
            start = max([start, *(period.end for period in periods if period.end <= moment)])
            following = [period.start for period in periods if period.start > moment]
            covering = Period(start, min([_start(moment, length) + length, *following]))
            missing.append(covering)
        moment = covering.end
    return tuple(missing)


def _length(dated: Sequence[tuple[Stored, Period]], *, now: datetime, limits: Limits) -> timedelta:
    """Return the length of new partitions, by how fast the latest one that has been written grows."""
    begun = [(each, period) for each, period in dated if period.start < now and each.bytes]
    if not begun:
        return _LENGTHS[0]
    latest, period = begun[-1]
    written = max(min(now, period.end) - period.start, timedelta(minutes=10))
    for length in _LENGTHS:
        if latest.bytes * (length / written) <= limits.bytes / _SHARE:
            return length
    return _LENGTHS[-1]


def _start(moment: datetime, length: timedelta) -> datetime:
    midnight = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + ((moment - midnight) // length) * length


def _hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
