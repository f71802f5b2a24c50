"""Summarize the state of a work in one sentence: stored, reported, applied, available. Pure."""

from maestropy.sdk.work import Work
from maestropy.wire.works import status


def sentence(work: Work) -> str:
    """Return the state of a work."""
    hold = work.condition(status.DATA_SAFETY_HOLD)
    if hold is not None and hold.status == status.TRUE:
        requested = "its deletion was requested, but " if work.is_deleting else ""
        return f"{requested}its agent keeps it as it is: data-safety hold {hold.reason}: {hold.message}"
    if work.is_deleting:
        return "its deletion was requested, and the agent has not confirmed it yet"
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


def missing(work: Work | None, condition_type: str) -> str:
    """Return why a condition of a work is not True."""
    if work is None:
        return "no status event was received"
    if work.is_stale or not work.is_reported:
        return sentence(work)
    if work.condition(condition_type) is None and not all(map(work.is_true, (status.APPLIED, status.AVAILABLE))):
        return sentence(work)
    return _not_yet(work, condition_type)
