"""Build the conditions of works and manifests.

Dashboards and scripts read types, reasons and messages, so they are byte for byte those of Maestro. This module also
decides how a condition replaces an older one; the transition time is an argument.
"""

from collections.abc import Iterable, Sequence

from maestropy.agent.decide.status import condition_rules
from maestropy.wire import timestamps
from maestropy.wire.json_types import Object
from maestropy.wire.works import status

PROGRESSING = "Progressing"

APPLIED_COMPLETE = "AppliedManifestComplete"
APPLIED_FAILED = "AppliedManifestFailed"
APPLIED_IGNORE_FIELDS_ERROR = "AppliedManifestSSAIgnoreFieldError"
WORK_APPLIED_COMPLETE = "AppliedManifestWorkComplete"
WORK_APPLIED_FAILED = "AppliedManifestWorkFailed"
AGGREGATED = "ConditionRulesAggregated"


def applied(*, generation: int) -> status.Condition:
    """Return `Applied` True for a manifest."""
    return status.Condition(
        type=status.APPLIED,
        status=status.TRUE,
        reason=APPLIED_COMPLETE,
        message="Apply manifest complete",
        observed_generation=generation,
    )


def not_applied(problem: str, *, generation: int) -> status.Condition:
    """Return `Applied` False for a manifest, with the problem."""
    return status.Condition(
        type=status.APPLIED,
        status=status.FALSE,
        reason=APPLIED_FAILED,
        message=f"Failed to apply manifest: {problem}",
        observed_generation=generation,
    )


def ignore_fields_failed(problem: str, *, generation: int) -> status.Condition:
    """Return `Applied` False for a manifest whose ignoreFields cannot be evaluated."""
    return status.Condition(
        type=status.APPLIED,
        status=status.FALSE,
        reason=APPLIED_IGNORE_FIELDS_ERROR,
        message=f"Failed to process ignoreFields: {problem}",
        observed_generation=generation,
    )


def work_applied(manifests: Iterable[status.Condition], *, generation: int) -> status.Condition:
    """Return `Applied` of a work: True if all manifests are applied."""
    are_all_applied = all(condition.status == status.TRUE for condition in manifests)
    return status.Condition(
        type=status.APPLIED,
        status=status.TRUE if are_all_applied else status.FALSE,
        reason=WORK_APPLIED_COMPLETE if are_all_applied else WORK_APPLIED_FAILED,
        message="Apply manifest work complete" if are_all_applied else "Failed to apply manifest work",
        observed_generation=generation,
    )


def work_rejected(problem: str, *, generation: int) -> status.Condition:
    """Return `Applied` False for a work that is not applied at all: it is not decodable or not valid."""
    return status.Condition(
        type=status.APPLIED,
        status=status.FALSE,
        reason=WORK_APPLIED_FAILED,
        message=f"Failed to apply manifest work: {problem}",
        observed_generation=generation,
    )


def available() -> status.Condition:
    """Return `Available` True: the object exists."""
    return status.Condition(
        type=status.AVAILABLE, status=status.TRUE, reason="ResourceAvailable", message="Resource is available"
    )


def not_available() -> status.Condition:
    """Return `Available` False: the object does not exist."""
    return status.Condition(
        type=status.AVAILABLE, status=status.FALSE, reason="ResourceNotAvailable", message="Resource is not available"
    )


def availability_of_denied(meta: status.ResourceMeta, *, problem: str, is_available: bool | None) -> status.Condition:
    """Return `Available` of an object that the executor may not get, with the reason where it is not True."""
    if is_available is None:
        return availability_unknown(meta, problem=problem)
    if is_available:
        return available()
    return status.Condition(
        type=status.AVAILABLE, status=status.FALSE, reason="ResourceNotAvailable", message=f"Not applied: {problem}"
    )


def availability_unknown(meta: status.ResourceMeta, *, problem: str = "") -> status.Condition:
    """Return `Available` Unknown, with the reason."""
    if not (meta.resource and meta.version and meta.name):
        reason, message = "IncompleteResourceMeta", "Resource meta is incomplete"
    else:
        reason, message = "FetchingResourceFailed", f"Failed to fetch resource: {problem}"
    return status.Condition(type=status.AVAILABLE, status=status.UNKNOWN, reason=reason, message=message)


def aggregated(manifests: Sequence[status.ManifestStatus], *, generation: int) -> tuple[status.Condition, ...]:
    """Aggregate the manifest conditions to work conditions, in the order of their types."""
    by_type: dict[str, list[status.Condition]] = {status.AVAILABLE: []}
    for manifest in manifests:
        for condition in manifest.conditions:
            if condition.type == status.AVAILABLE or condition_rules.is_reason_of_rule(condition.reason):
                by_type.setdefault(condition.type, []).append(condition)
    return tuple(
        _work_available(contributing, total=len(manifests), generation=generation)
        if name == status.AVAILABLE
        else _aggregate(name, contributing, generation=generation)
        for name, contributing in sorted(by_type.items())
    )


def _work_available(
    manifest_conditions: Sequence[status.Condition], *, total: int, generation: int
) -> status.Condition:
    missing = sum(condition.status == status.FALSE for condition in manifest_conditions)
    unknown = sum(condition.status == status.UNKNOWN for condition in manifest_conditions)
    if missing:
        verdict = (status.FALSE, "ResourcesNotAvailable", f"{missing} of {total} resources are not available")
    elif unknown:
        verdict = (status.UNKNOWN, "ResourcesStatusUnknown", f"{unknown} of {total} resources have unknown status")
    elif not manifest_conditions:
        verdict = (status.UNKNOWN, "ResourcesStatusUnknown", "cannot get any available resource ")
    else:
        verdict = (status.TRUE, "ResourcesAvailable", "All resources are available")
    value, reason, message = verdict
    return status.Condition(
        type=status.AVAILABLE, status=value, reason=reason, message=message, observed_generation=generation
    )


def _aggregate(name: str, manifest_conditions: Sequence[status.Condition], *, generation: int) -> status.Condition:
    statuses = {condition.status for condition in manifest_conditions}
    # One progressing manifest makes the work progressing; every other condition must be true for all manifests.
    order = (status.TRUE, status.UNKNOWN) if name == PROGRESSING else (status.FALSE, status.UNKNOWN)
    otherwise = status.FALSE if name == PROGRESSING else status.TRUE
    message = manifest_conditions[0].message if len(manifest_conditions) == 1 else ""
    return status.Condition(
        type=name,
        status=next((value for value in order if value in statuses), otherwise),
        reason=AGGREGATED,
        message=message or f"Aggregated from {len(manifest_conditions)} manifest conditions",
        observed_generation=generation,
    )


def merge_applied(
    previous: Sequence[Object], condition: status.Condition, *, now: timestamps.Timestamp
) -> Sequence[Object]:
    """Merge a manifest's `Applied`; for a new generation it is appended with a new transition time."""
    kept = [
        old
        for old in previous
        if old.get("type") != condition.type or old.get("observedGeneration", 0) == condition.observed_generation
    ]
    return status.merge_condition(kept, condition, now=now)


def merge_feedback(
    previous: Sequence[Object], condition: status.Condition, *, have_values_changed: bool, now: timestamps.Timestamp
) -> Sequence[Object]:
    """Merge `StatusFeedbackSynced`; its transition time moves whenever a feedback value changes."""
    kept = [old for old in previous if not (have_values_changed and old.get("type") == condition.type)]
    return status.merge_condition(kept, condition, now=now)


def without_stale_rules(conditions: Sequence[Object], *, generation: int) -> list[Object]:
    """Drop conditions of condition rules from an older generation."""
    return [
        body
        for body in conditions
        if body.get("observedGeneration", 0) == generation or not condition_rules.is_reason_of_rule(body.get("reason"))
    ]
