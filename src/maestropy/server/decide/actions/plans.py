"""The plan of an operator action, and why an action is refused. Pure."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from maestropy.store import rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Exactly what an action does, in sentences for people and in numbers for programs."""

    action: str
    consumer: str = ""
    effects: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    is_change: bool = True
    """False: it is done already, and the action writes nothing."""
    works: Sequence[rows.NamedWork] = ()
    """The first of the works that it is about."""
    work_count: int = 0
    pin: str = ""
    """A digest of what the plan was made of, for actions that are carried out only on what was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An action is not carried out: why, and what to do instead."""

    reason: str


def pin(action: str, parts: Iterable[Sequence[object]]) -> str:
    """Return the digest of what a plan was made of."""
    digest = hashlib.sha256(action.encode())
    for part in parts:
        digest.update(repr(tuple(part)).encode())
    return digest.hexdigest()[:16]


def counted(number: int, noun: str = "work") -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def moment(time: datetime) -> str:
    """Return a time for people, in UTC."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def paused(pause: rows.Pause) -> str:
    """Return who paused the delivery to a consumer, since when and why, and what ends it."""
    why = f": {pause.reason}" if pause.reason else ""
    return (
        f"delivery to consumer {pause.consumer} is paused by {pause.paused_by} since {moment(pause.paused_at)}{why}; "
        f"maestro consumer resume {pause.consumer}"
    )
