"""Summarize the state of a work in one sentence: stored, reported, applied, available. Pure."""

import difflib

from maestropy.sdk.work import Work
from maestropy.wire.works import status


def sentence(work: Work) -> str:
    """Return the state of a work."""
    hold = work.condition(status.DATA_SAFETY_HOLD)
    if hold is not None and hold.status == status.TRUE:
        requested = "its deletion was requested, but " if work.is_deleting else ""
        return f"{requested}its agent keeps it as it is: data-safety hold {hold.reason}: {hold.message}"
    if work.is_deleting:
        blocked = deletion_progress(work)
        return f"its deletion was requested, and the agent has not confirmed it yet{f': {blocked}' if blocked else ''}"
    if not work.is_reported:
        return "it is stored, and the agent has not reported on it yet"
    if work.is_stale:
        return f"version {work.version} is stored, and the agent has reported only on version {work.observed_version}"
    for condition_type in (status.APPLIED, status.AVAILABLE):
        condition = work.condition(condition_type)
        if condition is None or condition.status != status.TRUE:
            return _not_yet(work, condition_type)
    return f"version {work.version} is applied and available{_reservations(work)}"


def _reservations(work: Work) -> str:
    """Return the conditions that a work which is applied and available does not meet, or of which nobody knows."""
    conditions = [("", condition) for condition in work.conditions]
    conditions += [
        (f" of {manifest.kind} {manifest.name}", condition)
        for manifest in work.manifests
        for condition in manifest.conditions
    ]
    unmet = [
        f"{condition.type}{owner} is {condition.status}: {condition.message or condition.reason}"
        for owner, condition in conditions
        if condition.status == status.UNKNOWN
        or (condition.type == status.STATUS_FEEDBACK_SYNCED and condition.status == status.FALSE)
    ]
    more = f"; and {len(unmet) - 3} more" if len(unmet) > 3 else ""
    return f", but {'; '.join(unmet[:3])}{more}" if unmet else ""


def _not_yet(work: Work, condition_type: str) -> str:
    condition = work.condition(condition_type)
    if condition is None:
        return f"the agent has not reported the condition {condition_type} yet"
    problems = [
        f"{manifest.kind} {manifest.name}: {failed.message or failed.reason}"
        for manifest in work.manifests
        if (failed := manifest.condition(condition_type)) is not None and failed.status != status.TRUE
    ]
    reason = "; ".join(problems[:3]) or condition.message or condition.reason or "no reason was reported"
    return f"{condition_type} is {condition.status}: {reason}"


def deletion_progress(work: Work) -> str:
    """Return what the agent says about a deletion under way, such as what it waits for; empty if nothing."""
    condition = work.condition(status.DELETING)
    return condition.message if condition is not None and condition.status == status.TRUE else ""


def reported_conditions(work: Work, condition_type: str) -> str:
    """Return which reported condition a misspelt type may mean, or all of them."""
    types = [condition.type for condition in work.conditions]
    similar = difflib.get_close_matches(condition_type.lower(), [kind.lower() for kind in types], n=1)
    meant = next((kind for kind in types if similar and kind.lower() == similar[0]), "")
    return f"did you mean {meant}?" if meant else f"its conditions are {', '.join(types) or 'none'}"


def missing(work: Work | None, condition_type: str) -> str:
    """Return why a condition of a work is not True."""
    if work is None:
        return "no status event was received"
    if work.is_stale or not work.is_reported:
        return sentence(work)
    if work.condition(condition_type) is not None:
        return _not_yet(work, condition_type)
    is_done = all(map(work.is_true, (status.APPLIED, status.AVAILABLE)))
    # Every agent reports these two, sooner or later: they are not misspelt.
    if condition_type in (status.APPLIED, status.AVAILABLE):
        return _not_yet(work, condition_type) if is_done else sentence(work)
    unknown = f"{_not_yet(work, condition_type)}; {reported_conditions(work, condition_type)}"
    return unknown if is_done else f"{sentence(work)}; {unknown}"
