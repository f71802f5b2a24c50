"""One plain sentence on where a work stands: delivered, applied, waiting for what. Pure."""

from maestropy.sdk.work import Work
from maestropy.wire import status


def sentence(found: Work) -> str:
    """Return where the work stands."""
    if found.is_deleting:
        return "its deletion was asked for, and the agent has not confirmed it yet"
    if not found.is_reported:
        return "it is stored, and the agent has not reported on it yet"
    if found.is_stale:
        return f"version {found.version} is stored, and the agent has reported only on version {found.observed_version}"
    for condition_type in (status.APPLIED, status.AVAILABLE):
        told = found.condition(condition_type)
        if told is None or told.status != status.TRUE:
            return _not_yet(found, condition_type)
    return f"version {found.version} is applied and available"


def _not_yet(found: Work, condition_type: str) -> str:
    told = found.condition(condition_type)
    if told is None:
        return f"the agent has not said yet whether it is {condition_type}"
    troubled = [
        f"{each.kind} {each.name}: {why.message or why.reason}"
        for each in found.manifests
        if (why := each.condition(condition_type)) is not None and why.status != status.TRUE
    ]
    reason = "; ".join(troubled[:3]) or told.message or told.reason or "no reason is given"
    return f"{condition_type} is {told.status}: {reason}"


def missing(found: Work | None, wanted: str) -> str:
    """Return why a work does not have the condition `wanted`."""
    if found is None:
        return "nothing was heard of it"
    if found.is_stale or not found.is_reported:
        return sentence(found)
    if found.condition(wanted) is None and not all(map(found.is_true, (status.APPLIED, status.AVAILABLE))):
        return sentence(found)
    return _not_yet(found, wanted)
