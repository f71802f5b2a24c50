"""What does the status of a work become, after applying and after looking?

Old and new entries of a manifest are matched by the object they speak of, so that a manifest that only moved in the
list keeps its history. Nothing is published here: the caller compares hashes and decides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from maestropy.agent.decide import conditions, feedback, matching, rules
from maestropy.wire import instant, jsontypes, status
from maestropy.wire.jsontypes import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How applying one manifest went."""

    meta: status.ResourceMeta
    condition: status.Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a look at an object showed: it, nothing, or a problem."""

    live: Object | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When, and for which version of the wish, something is said."""

    generation: int
    now: instant.Timestamp


def after_applying(previous: status.WorkStatus, results: Sequence[Result], *, moment: Moment) -> status.WorkStatus:
    """Return the status with what applying showed; manifests that left the work leave the status."""
    in_order = sorted(results, key=lambda result: result.meta.ordinal)
    entries = [_applied(_entry(previous, result.meta), result, now=moment.now) for result in in_order]
    verdict = conditions.work_applied((result.condition for result in in_order), generation=moment.generation)
    return previous.with_manifests(entries).with_condition(verdict, now=moment.now)


def after_looking(
    previous: status.WorkStatus, entries: Sequence[status.ManifestStatus], *, moment: Moment
) -> status.WorkStatus:
    """Return the status with what `observed` made of each manifest, and what that means for the work."""
    found = previous.with_manifests(entries)
    for condition in conditions.aggregated(entries, generation=moment.generation):
        found = found.with_condition(condition, now=moment.now)
    kept = conditions.without_stale_rules(jsontypes.objects_at(found.body, "conditions"), generation=moment.generation)
    return status.WorkStatus({**found.body, "conditions": kept})


def observed(
    entry: status.ManifestStatus,
    observation: Observation,
    *,
    treatment: matching.Treatment,
    moment: Moment,
    json_raw_max_bytes: int = feedback.DEFAULT_JSON_RAW_MAX_BYTES,
) -> status.ManifestStatus:
    """Return the status of one manifest after a look at its object.

    What cannot be read keeps its old values: they were true once, and `Available` says that they may be no longer.
    """
    found: Sequence[Object] = jsontypes.objects_at(entry.body, "conditions")
    live = observation.live
    if live is None:
        missing = _missing(entry.resource_meta, observation)
        return _with(entry, conditions=status.merge_condition(found, missing, now=moment.now))
    from_rules = rules.evaluate(treatment.condition_rules, live, generation=moment.generation)
    # A rule may speak for Available itself; saying first one thing and then the other would move its time on each look.
    if not any(condition.type == status.AVAILABLE for condition in from_rules):
        found = status.merge_condition(found, conditions.available(), now=moment.now)
    read = feedback.read(treatment.feedback_rules, live, json_raw_max_bytes=json_raw_max_bytes)
    found = conditions.merge_feedback(
        found, read.condition, have_values_changed=read.values != entry.feedback, now=moment.now
    )
    for condition in from_rules:
        found = status.merge_condition(found, condition, now=moment.now)
    kept = conditions.without_stale_rules(found, generation=moment.generation)
    values = {"values": [value.to_json() for value in read.values]} if read.values else {}
    return _with(entry, conditions=kept, statusFeedback=values)


def without_values(found: status.WorkStatus, *, now: instant.Timestamp) -> status.WorkStatus | None:
    """Return a status without its feedback values, which says so; None if there are none to leave out."""
    if not any(entry.feedback for entry in found.manifests):
        return None
    return found.with_manifests(_unsaid(entry, now=now) if entry.feedback else entry for entry in found.manifests)


def _unsaid(entry: status.ManifestStatus, *, now: instant.Timestamp) -> status.ManifestStatus:
    failed = status.Condition(
        type=status.STATUS_FEEDBACK_SYNCED,
        status=status.FALSE,
        reason="StatusFeedbackSyncFailed",
        message="Sync status feedback failed with error the server did not take a status with all these values; "
        "ask for less",
    )
    found = jsontypes.objects_at(entry.body, "conditions")
    return _with(entry, statusFeedback={}, conditions=status.merge_condition(found, failed, now=now))


def _missing(meta: status.ResourceMeta, observation: Observation) -> status.Condition:
    is_complete = meta.resource and meta.version and meta.name
    if observation.problem or not is_complete:
        return conditions.availability_unknown(meta, problem=observation.problem)
    return conditions.not_available()


def _applied(entry: status.ManifestStatus, result: Result, *, now: instant.Timestamp) -> status.ManifestStatus:
    found = jsontypes.objects_at(entry.body, "conditions")
    merged = conditions.merge_applied(found, result.condition, now=now)
    return _with(entry, resourceMeta=result.meta.to_json(), conditions=[*merged])


def _entry(previous: status.WorkStatus, meta: status.ResourceMeta) -> status.ManifestStatus:
    """Return the old status of a manifest: of this very place, else of the one place that spoke of the object."""
    same_object = [entry for entry in previous.manifests if _placeless(entry.resource_meta) == _placeless(meta)]
    for entry in same_object:
        if entry.resource_meta == meta:
            return entry
    return same_object[0] if len(same_object) == 1 else status.manifest_status(meta)


def _placeless(meta: status.ResourceMeta) -> status.ResourceMeta:
    return replace(meta, ordinal=0)


def _with(entry: status.ManifestStatus, **members: object) -> status.ManifestStatus:
    body: Mapping[str, object] = {"statusFeedback": {}, **entry.body, **members}
    return status.ManifestStatus(body)
