"""Compute the status of a work after its manifests were applied and its objects read.

Old and new entries are matched by the object they name, so that a manifest that only moved in the list keeps its
transition times. Nothing is published here: the reporter compares hashes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from maestropy.agent.decide import manifest_configs, manifest_identity
from maestropy.agent.decide.status import condition_rules, conditions, feedback
from maestropy.agent.expressions.budget import Budget
from maestropy.wire import json_types, timestamps
from maestropy.wire.json_types import Object
from maestropy.wire.works import status


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyResult:
    """The result of applying one manifest."""

    meta: status.ResourceMeta
    condition: status.Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedObject:
    """A live object, or nothing, or the problem of reading it."""

    live: Object | None = None
    problem: str = ""
    denial: str = ""
    """Why nothing of the object may be reported, not even whether it exists."""
    is_available: bool | None = None
    """With a denial: what `Available` says all the same; None is Unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationContext:
    """The generation and time of a status."""

    generation: int
    now: timestamps.Timestamp


def with_apply_results(
    previous: status.WorkStatus, results: Sequence[ApplyResult], *, context: EvaluationContext
) -> status.WorkStatus:
    """Return the status with the apply results; entries of removed manifests are dropped."""
    in_order = sorted(results, key=lambda result: result.meta.ordinal)
    old_entries: dict[status.ResourceMeta, list[status.ManifestStatus]] = {}
    for entry in previous.manifests:
        old_entries.setdefault(_without_ordinal(entry.resource_meta), []).append(entry)
    entries = [_applied(_entry(old_entries, result.meta), result, now=context.now) for result in in_order]
    verdict = conditions.work_applied((result.condition for result in in_order), generation=context.generation)
    return previous.with_manifests(entries).with_condition(verdict, now=context.now)


def with_observations(
    previous: status.WorkStatus, entries: Sequence[status.ManifestStatus], *, context: EvaluationContext
) -> status.WorkStatus:
    """Return the status with the entries from `observe_manifest` and the aggregated work conditions."""
    updated = previous.with_manifests(entries)
    merged = status.merge_conditions(
        json_types.objects_at(updated.body, "conditions"),
        conditions.aggregated(entries, generation=context.generation),
        now=context.now,
    )
    kept = conditions.without_stale_rules(merged, generation=context.generation)
    return status.WorkStatus({**updated.body, "conditions": kept})


def observe_manifest(
    entry: status.ManifestStatus,
    observation: ObservedObject,
    *,
    config: manifest_configs.EffectiveConfig,
    context: EvaluationContext,
    budget: Budget | None,
    json_raw_max_bytes: int = feedback.DEFAULT_JSON_RAW_MAX_BYTES,
) -> status.ManifestStatus:
    """Return the status entry of one manifest after its object was read.

    If the object cannot be read, the old values stay, and `Available` says that they may be outdated. Without a budget
    no expression is evaluated: the conditions of rules and the feedback values stay as they are.
    """
    current: Sequence[Object] = json_types.objects_at(entry.body, "conditions")
    if observation.denial:
        return _denied(entry, observation, config=config, context=context)
    live = observation.live
    if live is None:
        missing = _missing(entry.resource_meta, observation)
        return _with(entry, conditions=status.merge_condition(current, missing, now=context.now))
    if budget is None:
        return _without_evaluation(entry, config=config, context=context)
    with budget.manifest() as own_budget:
        from_rules = condition_rules.evaluate(
            config.condition_rules, live, generation=context.generation, budget=own_budget
        )
        read = feedback.read(config.feedback_rules, live, json_raw_max_bytes=json_raw_max_bytes, budget=own_budget)
    # If a rule sets Available, the default is not set first: that would move its transition time on each reconcile.
    if not any(condition.type == status.AVAILABLE for condition in from_rules):
        current = status.merge_condition(current, conditions.available(), now=context.now)
    current = conditions.merge_feedback(
        current, read.condition, have_values_changed=read.values != entry.feedback, now=context.now
    )
    current = status.merge_conditions(current, from_rules, now=context.now)
    kept = conditions.without_stale_rules(current, generation=context.generation)
    values = {"values": [value.to_json() for value in read.values]} if read.values else {}
    return _with(entry, conditions=kept, statusFeedback=values)


def _denied(
    entry: status.ManifestStatus,
    observation: ObservedObject,
    *,
    config: manifest_configs.EffectiveConfig,
    context: EvaluationContext,
) -> status.ManifestStatus:
    """Return the entry of an object that the executor may not get: without values, and with the reason."""
    meta, problem = entry.resource_meta, observation.denial
    kind = manifest_identity.GroupVersionKind(meta.group, meta.version, meta.kind)
    from_rules = condition_rules.denied(config.condition_rules, kind, problem=problem, generation=context.generation)
    current: Sequence[Object] = json_types.objects_at(entry.body, "conditions")
    if not any(condition.type == status.AVAILABLE for condition in from_rules):
        availability = conditions.availability_of_denied(meta, problem=problem, is_available=observation.is_available)
        current = status.merge_condition(current, availability, now=context.now)
    read = feedback.denied(config.feedback_rules, problem=problem)
    current = conditions.merge_feedback(
        current, read.condition, have_values_changed=read.values != entry.feedback, now=context.now
    )
    current = status.merge_conditions(current, from_rules, now=context.now)
    kept = conditions.without_stale_rules(current, generation=context.generation)
    return _with(entry, conditions=kept, statusFeedback={})


def _without_evaluation(
    entry: status.ManifestStatus, *, config: manifest_configs.EffectiveConfig, context: EvaluationContext
) -> status.ManifestStatus:
    current: Sequence[Object] = json_types.objects_at(entry.body, "conditions")
    if not any(rule.condition == status.AVAILABLE for rule in config.condition_rules):
        current = status.merge_condition(current, conditions.available(), now=context.now)
    return _with(entry, conditions=conditions.without_stale_rules(current, generation=context.generation))


def without_feedback_values(work_status: status.WorkStatus, *, now: timestamps.Timestamp) -> status.WorkStatus | None:
    """Return a status without feedback values and with a condition that says so; None if there are no values."""
    if not any(entry.feedback for entry in work_status.manifests):
        return None
    return work_status.with_manifests(
        _without_feedback(entry, now=now) if entry.feedback else entry for entry in work_status.manifests
    )


def _without_feedback(entry: status.ManifestStatus, *, now: timestamps.Timestamp) -> status.ManifestStatus:
    failed = status.Condition(
        type=status.STATUS_FEEDBACK_SYNCED,
        status=status.FALSE,
        reason="StatusFeedbackSyncFailed",
        message="Sync status feedback failed with error the server rejected a status with all these values; "
        "request fewer values",
    )
    current = json_types.objects_at(entry.body, "conditions")
    return _with(entry, statusFeedback={}, conditions=status.merge_condition(current, failed, now=now))


def _missing(meta: status.ResourceMeta, observation: ObservedObject) -> status.Condition:
    is_complete = meta.resource and meta.version and meta.name
    if observation.problem or not is_complete:
        return conditions.availability_unknown(meta, problem=observation.problem)
    return conditions.not_available()


def _applied(entry: status.ManifestStatus, result: ApplyResult, *, now: timestamps.Timestamp) -> status.ManifestStatus:
    current = json_types.objects_at(entry.body, "conditions")
    merged = conditions.merge_applied(current, result.condition, now=now)
    return _with(entry, resourceMeta=result.meta.to_json(), conditions=[*merged])


def _entry(
    old_entries: Mapping[status.ResourceMeta, Sequence[status.ManifestStatus]], meta: status.ResourceMeta
) -> status.ManifestStatus:
    """Return the old entry of a manifest: with the same ordinal, else the only one of the same object."""
    same_object = old_entries.get(_without_ordinal(meta), ())
    for entry in same_object:
        if entry.resource_meta == meta:
            return entry
    return same_object[0] if len(same_object) == 1 else status.manifest_status(meta)


def _without_ordinal(meta: status.ResourceMeta) -> status.ResourceMeta:
    return replace(meta, ordinal=0)


def _with(entry: status.ManifestStatus, **members: object) -> status.ManifestStatus:
    body: Mapping[str, object] = {"statusFeedback": {}, **entry.body, **members}
    return status.ManifestStatus(body)
