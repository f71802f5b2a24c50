"""Decide whether an agent may be told to delete works that the database does not have.

Our agents keep such works for the eviction grace period, compare the identity of the database and hold too many of them
themselves. Other agents delete at once, so the server holds back for them. Pure: no I/O.
"""

import hashlib

from maestropy.wire import resync

LIMIT_PERCENT = 20
"""The limit of `resync.are_too_many_orphans` for an agent that reports versions only."""

UNKNOWN_CONSUMER = "UnknownConsumer"
TOO_MANY_ORPHANS = "TooManyOrphans"


def hold(
    request: resync.SpecResyncRequest, response: resync.SpecResyncResponse, *, is_consumer_known: bool
) -> resync.ReportedHold | None:
    """Return the works that are kept although the database does not ask for them: the agent's own hold, or ours."""
    if request.hold is not None or not response.orphans:
        return request.hold
    if not is_consumer_known:
        return _hold(
            response,
            UNKNOWN_CONSUMER,
            "the server does not have this consumer; correct its name, or create it if the database is the right one: "
            "the database then decides about these works (docs/data-safety.md)",
        )
    count, works = len(response.orphans), len(request.versions)
    if not request.has_versions_only or not resync.are_too_many_orphans(count, works, limit_percent=LIMIT_PERCENT):
        return None
    text = (
        f"the server does not have {count} of {works} works of this agent; that is more than {LIMIT_PERCENT} percent, "
        f"and more than {resync.ORPHANS_ALWAYS_ALLOWED} or at least half"
    )
    return _hold(response, TOO_MANY_ORPHANS, text)


def may_delete(
    request: resync.SpecResyncRequest, *, hold: resync.ReportedHold | None, is_adopted: bool, is_consumer_known: bool
) -> bool:
    """Return whether the agent is told that the server does not have its orphans."""
    if not is_consumer_known:
        return False
    return not request.has_versions_only or hold is None or is_adopted


def _hold(response: resync.SpecResyncResponse, reason: str, message: str) -> resync.ReportedHold:
    names = sorted(response.orphans)
    # The same works give the same hold, so that an adoption counts for exactly these.
    digest = hashlib.sha256("\n".join(names).encode(errors="surrogatepass")).hexdigest()
    return resync.ReportedHold(
        id=f"server-{digest[:32]}",
        reason=reason,
        message=message,
        database="",
        count=len(names),
        works=tuple(names[: resync.HELD_NAMES]),
    )
