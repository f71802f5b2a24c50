"""What an answer showed or what the watch told: which of the two is an object like now?

Answers and watches travel on different connections, so either can be late. Both carry the version of what they show,
and versions of one collection grow; where they are no numbers, nobody can tell, and somebody has to ask.
Pure; whoever reads a watch decides by it.
"""

from enum import Enum, auto

from maestropy.kube import objects
from maestropy.kube.objects import Json
from maestropy.kube.roster import Added, Deleted, Modified, Sighting


class Verdict(Enum):
    """Whom to believe."""

    SHOWN = auto()
    """What was shown is how the object is, as far as anybody knows."""
    GONE = auto()
    """There is no such object."""
    ASK = auto()
    """What it is like now was never shown."""


def judge(shown: Sighting | None, told: Sighting | None, *, heard_until: str) -> Verdict:
    """Return what is true of an object of which an answer showed one version and the watch, so far, told another."""
    if shown is None:
        return Verdict.GONE if told is None else Verdict.ASK
    if shown == told:
        return Verdict.SHOWN
    # If the watch did not tell of it, then up to where it has told everything there is no such object.
    limit = told.resource_version if told is not None else heard_until
    if is_newer(shown.resource_version, limit):
        return Verdict.SHOWN
    if told is None and (limit == shown.resource_version or is_newer(limit, shown.resource_version)):
        return Verdict.GONE
    return Verdict.ASK


def is_echo(change: Added | Modified | Deleted, *, shown: Sighting | None) -> bool:
    """Whether a change only repeats what was shown before, by our own writes or reads, or is older than that."""
    if shown is None:
        return False
    found = sighting(change.object)
    is_older = is_newer(shown.resource_version, found.resource_version)
    if isinstance(change, Deleted):
        # The end of the life that was shown is always news.
        return shown.uid != found.uid and is_older
    return shown == found or is_older


def sighting(found: Json) -> Sighting:
    """Return which version of an object this is."""
    return Sighting(objects.uid(found), objects.resource_version(found))


def is_newer(one: str, other: str) -> bool:
    """Whether `one` is certainly a later version than `other`."""
    return one.isdecimal() and other.isdecimal() and int(one) > int(other)
