"""Decide whether a response or a watch has the newer version of an object.

Responses and watch events use different connections, so either can be late. Both have a resource version, and the
versions of one collection grow. Versions that are not numbers cannot be compared; then the object must be read again.
Pure.
"""

from enum import Enum, auto

from maestropy.kube import objects
from maestropy.kube.objects import Json
from maestropy.kube.watch_changes import Added, Deleted, Modified, ObjectVersion


class Freshness(Enum):
    """Whether the object of a response is current."""

    CURRENT = auto()
    """The response has the newest known version."""
    DELETED = auto()
    """The object does not exist any more."""
    UNKNOWN = auto()
    """Neither has the newest version: read the object again."""


def compare(response: ObjectVersion | None, watched: ObjectVersion | None, *, watched_until: str) -> Freshness:
    """Compare the version in a response with the version that the watch has reported so far."""
    if response is None:
        return Freshness.DELETED if watched is None else Freshness.UNKNOWN
    if response == watched:
        return Freshness.CURRENT
    # If the watch did not report the object, it does not exist up to the version that the watch has reached.
    limit = watched.resource_version if watched is not None else watched_until
    if is_newer(response.resource_version, limit):
        return Freshness.CURRENT
    if watched is None and (limit == response.resource_version or is_newer(limit, response.resource_version)):
        return Freshness.DELETED
    return Freshness.UNKNOWN


def is_known_change(change: Added | Modified | Deleted, *, response: ObjectVersion | None) -> bool:
    """Return whether a change is the version of the last response, or an older one."""
    if response is None:
        return False
    changed = version_of(change.object)
    is_older = is_newer(response.resource_version, changed.resource_version)
    if isinstance(change, Deleted):
        # The deletion of the incarnation in the response is always new.
        return response.uid != changed.uid and is_older
    return response == changed or is_older


def version_of(obj: Json) -> ObjectVersion:
    """Return the UID and resource version of an object."""
    return ObjectVersion(objects.uid(obj), objects.resource_version(obj))


def is_newer(left: str, right: str) -> bool:
    """Return whether `left` is certainly a later version than `right`."""
    return left.isdecimal() and right.isdecimal() and int(left) > int(right)
