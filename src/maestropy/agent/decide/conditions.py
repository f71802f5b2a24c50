"""What does the agent say about a work and its manifests?

The words that apply, availability and deletion put into a status: types, reasons and messages are read by dashboards
and scripts, so they are those of Maestro to the letter. How one condition replaces another is told here too; the time
of a transition is an argument.
"""

from collections.abc import Iterable, Sequence

from maestropy.agent.decide import rules
from maestropy.wire import instant, status
from maestropy.wire.jsontypes import Object

PROGRESSING = "Progressing"

APPLIED_COMPLETE = "AppliedManifestComplete"
APPLIED_FAILED = "AppliedManifestFailed"
APPLIED_IGNORE_FIELDS_ERROR = "AppliedManifestSSAIgnoreFieldError"
WORK_APPLIED_COMPLETE = "AppliedManifestWorkComplete"
WORK_APPLIED_FAILED = "AppliedManifestWorkFailed"
AGGREGATED = "ConditionRulesAggregated"


def applied(*, generation: int) -> status.Condition:
    """Say that a manifest is applied."""
    return status.Condition(
        type=status.APPLIED,
        status=status.TRUE,
        reason=APPLIED_COMPLETE,
        message="Apply manifest complete",
        observed_generation=generation,
    )


def not_applied(problem: str, *, generation: int) -> status.Condition:
    """Say why a manifest is not applied."""
    return status.Condition(
        type=status.APPLIED,
        status=status.FALSE,
        reason=APPLIED_FAILED,
        message=f"Failed to apply manifest: {problem}",
        observed_generation=generation,
    )


def fields_not_ignored(problem: str, *, generation: int) -> status.Condition:
    """Say that a manifest is not applied because the fields to ignore could not be found."""
    return status.Condition(
        type=status.APPLIED,
        status=status.FALSE,
        reason=APPLIED_IGNORE_FIELDS_ERROR,
        message=f"Failed to process ignoreFields: {problem}",
        observed_generation=generation,
    )


def work_applied(manifests: Iterable[status.Condition], *, generation: int) -> status.Condition:
    """Say whether all manifests of a work are applied."""
    are_all_applied = all(condition.status == status.TRUE for condition in manifests)
    return status.Condition(
        type=status.APPLIED,
        status=status.TRUE if are_all_applied else status.FALSE,
        reason=WORK_APPLIED_COMPLETE if are_all_applied else WORK_APPLIED_FAILED,
        message="Apply manifest work complete" if are_all_applied else "Failed to apply manifest work",
        observed_generation=generation,
    )


def work_refused(problem: str, *, generation: int) -> status.Condition:
    """Say why a work is not even tried: it cannot be read, or it breaks a rule."""
    return status.Condition(
        type=status.APPLIED,
        status=status.FALSE,
        reason=WORK_APPLIED_FAILED,
        message=f"Failed to apply manifest work: {problem}",
        observed_generation=generation,
    )


def available() -> status.Condition:
    """Say that an object exists."""
    return status.Condition(
        type=status.AVAILABLE, status=status.TRUE, reason="ResourceAvailable", message="Resource is available"
    )


def not_available() -> status.Condition:
    """Say that an object does not exist."""
    return status.Condition(
        type=status.AVAILABLE, status=status.FALSE, reason="ResourceNotAvailable", message="Resource is not available"
    )


def availability_unknown(meta: status.ResourceMeta, *, problem: str = "") -> status.Condition:
    """Say why nobody knows whether an object exists."""
    if not (meta.resource and meta.version and meta.name):
        reason, message = "IncompleteResourceMeta", "Resource meta is incomplete"
    else:
        reason, message = "FetchingResourceFailed", f"Failed to fetch resource: {problem}"
    return status.Condition(type=status.AVAILABLE, status=status.UNKNOWN, reason=reason, message=message)


def aggregated(manifests: Sequence[status.ManifestStatus], *, generation: int) -> tuple[status.Condition, ...]:
    """Return what the conditions of the manifests mean for the work, in the order of their types."""
    by_type: dict[str, list[status.Condition]] = {status.AVAILABLE: []}
    for manifest in manifests:
        for condition in manifest.conditions:
            if condition.type == status.AVAILABLE or rules.is_reason_of_rule(condition.reason):
                by_type.setdefault(condition.type, []).append(condition)
    return tuple(
        _work_available(found, total=len(manifests), generation=generation)
        if name == status.AVAILABLE
        else _aggregate(name, found, generation=generation)
        for name, found in sorted(by_type.items())
    )


def _work_available(found: Sequence[status.Condition], *, total: int, generation: int) -> status.Condition:
    missing = sum(condition.status == status.FALSE for condition in found)
    unknown = sum(condition.status == status.UNKNOWN for condition in found)
    if missing:
        verdict = (status.FALSE, "ResourcesNotAvailable", f"{missing} of {total} resources are not available")
    elif unknown:
        verdict = (status.UNKNOWN, "ResourcesStatusUnknown", f"{unknown} of {total} resources have unknown status")
    elif not found:
        verdict = (status.UNKNOWN, "ResourcesStatusUnknown", "cannot get any available resource ")
    else:
        verdict = (status.TRUE, "ResourcesAvailable", "All resources are available")
    value, reason, message = verdict
    return status.Condition(
        type=status.AVAILABLE, status=value, reason=reason, message=message, observed_generation=generation
    )


def _aggregate(name: str, found: Sequence[status.Condition], *, generation: int) -> status.Condition:
    seen = {condition.status for condition in found}
    # One manifest in progress keeps the work in progress; everything else holds only if it holds for all.
    order = (status.TRUE, status.UNKNOWN) if name == PROGRESSING else (status.FALSE, status.UNKNOWN)
    otherwise = status.FALSE if name == PROGRESSING else status.TRUE
    message = found[0].message if len(found) == 1 else ""
    return status.Condition(
        type=name,
        status=next((value for value in order if value in seen), otherwise),
        reason=AGGREGATED,
        message=message or f"Aggregated from {len(found)} manifest conditions",
        observed_generation=generation,
    )


def merge_applied(found: Sequence[Object], condition: status.Condition, *, now: instant.Timestamp) -> Sequence[Object]:
    """Set a manifest's `Applied`: for another generation of the work it starts anew, at the end of the list."""
    kept = [
        old
        for old in found
        if old.get("type") != condition.type or old.get("observedGeneration", 0) == condition.observed_generation
    ]
    return status.merge_condition(kept, condition, now=now)


def merge_feedback(
    found: Sequence[Object], condition: status.Condition, *, have_values_changed: bool, now: instant.Timestamp
) -> Sequence[Object]:
    """Set `StatusFeedbackSynced`: its time moves with the values, so that a reader sees that they moved."""
    kept = [old for old in found if not (have_values_changed and old.get("type") == condition.type)]
    return status.merge_condition(kept, condition, now=now)


def without_stale_rules(found: Sequence[Object], *, generation: int) -> list[Object]:
    """Drop conditions of rules that an older generation of the work had."""
    return [
        body
        for body in found
        if body.get("observedGeneration", 0) == generation or not rules.is_reason_of_rule(body.get("reason"))
    ]
