"""What an answer showed or what the watch told: which of the two is an object like now?

Answers and watches travel on different connections, so either can be late. Both carry the version of what they show,
and versions of one collection grow; where they are no numbers, nobody can tell, and somebody has to ask.
"""

from enum import Enum, auto
from typing import NamedTuple


class Version(NamedTuple):
    """One life of an object, and one state in it."""

    uid: str
    resource_version: str


class Verdict(Enum):
    """Whom to believe."""

    SHOWN = auto()
    """What was shown is how the object is, as far as anybody knows."""
    GONE = auto()
    """There is no such object."""
    ASK = auto()
    """What it is like now was never shown."""


def judge(shown: Version | None, told: Version | None, *, heard_until: str) -> Verdict:
    """Return what is true of an object of which an answer showed one version and the watch, so far, told another."""
    if shown is None:
        return Verdict.GONE if told is None else Verdict.ASK
    if shown == told:
        return Verdict.SHOWN
    # Before what the watch has told, if it told of the object; else before all that it has told.
    limit = told.resource_version if told is not None else heard_until
    if is_newer(shown.resource_version, limit):
        return Verdict.SHOWN
    if told is None and is_newer(limit, shown.resource_version, or_same=True):
        return Verdict.GONE
    return Verdict.ASK


def is_newer(one: str, other: str, *, or_same: bool = False) -> bool:
    """Whether `one` is certainly a later version than `other`."""
    if not (one.isdecimal() and other.isdecimal()):
        return False
    return int(one) > int(other) or (or_same and int(one) == int(other))
