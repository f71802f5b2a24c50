"""The status of a work after apply and read."""

from typing import Any

from maestropy.agent.decide import manifest_configs
from maestropy.agent.decide.status import conditions, work_status
from maestropy.agent.expressions.budget import Budget
from maestropy.wire import timestamps
from maestropy.wire.works import options, status
from tests.unit.agent.decide.applied_objects import config_map

THEN = work_status.EvaluationContext(generation=1, now=timestamps.Timestamp(1_000_000))
LATER = work_status.EvaluationContext(generation=1, now=timestamps.Timestamp(2_000_000))
NEXT = work_status.EvaluationContext(generation=2, now=timestamps.Timestamp(3_000_000))


def meta(name: str, ordinal: int = 0, *, resource: str = "configmaps") -> status.ResourceMeta:
    return status.ResourceMeta(
        ordinal=ordinal, version="v1", kind="ConfigMap", resource=resource, name=name, namespace="ns1"
    )


def applied(name: str, ordinal: int = 0, *, generation: int = 1, problem: str = "") -> work_status.ApplyResult:
    good = conditions.applied(generation=generation)
    bad = conditions.not_applied(problem, generation=generation)
    return work_status.ApplyResult(meta=meta(name, ordinal), condition=bad if problem else good)


def observe(
    previous: status.WorkStatus,
    *live_objects: dict[str, Any] | None,
    context: work_status.EvaluationContext,
    **config_options: Any,
) -> status.WorkStatus:
    entries = [
        work_status.observe_manifest(
            entry,
            work_status.ObservedObject(live=live),
            config=manifest_configs.EffectiveConfig(**config_options),
            context=context,
            budget=Budget(),
        )
        for entry, live in zip(previous.manifests, live_objects, strict=True)
    ]
    return work_status.with_observations(previous, entries, context=context)


def summary(reported: status.WorkStatus) -> dict[str, Any]:
    return {
        "work": {condition.type: condition.status for condition in reported.conditions},
        "manifests": [
            {condition.type: condition.status for condition in entry.conditions} for entry in reported.manifests
        ],
    }


EMPTY = status.WorkStatus()
FIRST = work_status.with_apply_results(EMPTY, [applied("cm1", 0), applied("cm2", 1)], context=THEN)


def test_entries_are_in_spec_order() -> None:
    results = [applied("cm2", 1), applied("cm3", 2), applied("cm1", 0, problem='namespaces "x" not found')]
    reported = work_status.with_apply_results(EMPTY, results, context=THEN)
    assert [entry.resource_meta.name for entry in reported.manifests] == ["cm1", "cm2", "cm3"]
    assert summary(reported) == {
        "work": {"Applied": "False"},
        "manifests": [{"Applied": "False"}, {"Applied": "True"}, {"Applied": "True"}],
    }
    assert reported.manifests[0].conditions[0].message == 'Failed to apply manifest: namespaces "x" not found'


def test_every_entry_has_status_feedback() -> None:
    assert [entry.body["statusFeedback"] for entry in FIRST.manifests] == [{}, {}]


def test_moved_manifest_keeps_transition_times() -> None:
    observed = observe(FIRST, config_map("cm1"), config_map("cm2"), context=THEN)
    moved = work_status.with_apply_results(
        observed, [applied("cm2", 0, generation=2), applied("renamed", 1, generation=2)], context=NEXT
    )
    kept, fresh = moved.manifests
    assert [condition.type for condition in kept.conditions] == ["Available", "StatusFeedbackSynced", "Applied"]
    assert kept.conditions[0].last_transition_time == THEN.now.rfc3339_seconds()
    assert fresh.conditions[0].last_transition_time == NEXT.now.rfc3339_seconds()
    assert [condition.type for condition in fresh.conditions] == ["Applied"]


def test_manifests_of_same_object_are_matched_by_ordinal() -> None:
    twice = work_status.with_apply_results(EMPTY, [applied("cm1", 0, problem="x"), applied("cm1", 1)], context=THEN)
    again = work_status.with_apply_results(twice, [applied("cm1", 0, problem="x"), applied("cm1", 1)], context=LATER)
    assert again.body == twice.body


def test_observed_generation_follows_spec() -> None:
    reported = work_status.with_apply_results(FIRST, [applied("cm1", 0, generation=2)], context=NEXT)
    reported = observe(reported, config_map("cm1"), context=NEXT)
    assert {condition.type: condition.observed_generation for condition in reported.conditions} == {
        "Applied": 2,
        "Available": 2,
    }


def test_unchanged_object_keeps_status_hash() -> None:
    observed = observe(FIRST, config_map("cm1"), config_map("cm2"), context=THEN)
    again = work_status.with_apply_results(observed, [applied("cm1", 0), applied("cm2", 1)], context=LATER)
    assert observe(again, config_map("cm1"), config_map("cm2"), context=LATER).hash() == observed.hash()


def test_missing_object_is_not_available() -> None:
    observed = observe(FIRST, None, config_map("cm2"), context=THEN)
    assert summary(observed)["work"] == {"Applied": "True", "Available": "False"}
    assert observed.conditions[1].message == "1 of 2 resources are not available"


def test_unknown_kind_has_incomplete_meta() -> None:
    entry = status.manifest_status(meta("f", resource=""))
    seen = work_status.observe_manifest(
        entry, work_status.ObservedObject(), config=manifest_configs.EffectiveConfig(), context=THEN, budget=Budget()
    )
    assert (seen.conditions[0].status, seen.conditions[0].reason) == ("Unknown", "IncompleteResourceMeta")


PATHS = (options.FeedbackRule(type=options.JSON_PATHS, json_paths=(options.JsonPath(name="test", path=".data.test"),)),)


def test_feedback_values_follow_object() -> None:
    one = work_status.with_apply_results(EMPTY, [applied("cm1")], context=THEN)
    first = observe(one, config_map(data={"test": "testdata"}), context=THEN, feedback_rules=PATHS)
    same = observe(first, config_map(data={"test": "testdata"}), context=LATER, feedback_rules=PATHS)
    assert same.hash() == first.hash()
    second = observe(first, config_map(data={"test": "testdata-updated"}), context=LATER, feedback_rules=PATHS)
    (value,) = second.manifests[0].feedback
    assert (value.name, value.type, value.value) == ("test", "String", "testdata-updated")
    synced = {condition.type: condition for condition in second.manifests[0].conditions}["StatusFeedbackSynced"]
    assert synced.last_transition_time == LATER.now.rfc3339_seconds()


def test_paused_evaluation_keeps_values_and_conditions_of_rules() -> None:
    one = work_status.with_apply_results(EMPTY, [applied("cm1")], context=THEN)
    rules = (options.ConditionRule(condition="Ready", type=options.CEL, cel_expressions=("true",)),)
    config = manifest_configs.EffectiveConfig(feedback_rules=PATHS, condition_rules=rules)
    (entry,) = observe(
        one, config_map(data={"test": "x"}), context=THEN, feedback_rules=PATHS, condition_rules=rules
    ).manifests
    paused = work_status.observe_manifest(
        entry,
        work_status.ObservedObject(live=config_map(data={"test": "changed"})),
        config=config,
        context=LATER,
        budget=None,
    )
    assert paused.body == entry.body


def test_unreadable_object_keeps_feedback_values() -> None:
    one = work_status.with_apply_results(EMPTY, [applied("cm1")], context=THEN)
    observed = observe(one, config_map(data={"test": "x"}), context=THEN, feedback_rules=PATHS)
    (entry,) = observed.manifests
    blind = work_status.observe_manifest(
        entry,
        work_status.ObservedObject(problem="timeout"),
        config=manifest_configs.EffectiveConfig(feedback_rules=PATHS),
        context=LATER,
        budget=Budget(),
    )
    assert blind.feedback == entry.feedback
    by_type = {condition.type: condition for condition in blind.conditions}
    assert by_type["Available"].message == "Failed to fetch resource: timeout"
    assert by_type["StatusFeedbackSynced"].status == "True"


def rule(expression: str, condition: str = "Complete") -> tuple[options.ConditionRule, ...]:
    return (options.ConditionRule(condition=condition, type=options.CEL, cel_expressions=(expression,)),)


def test_condition_rule_completes_work() -> None:
    one = work_status.with_apply_results(EMPTY, [applied("cm1")], context=THEN)
    ready = rule("object.data.done == 'yes'")
    before = observe(one, config_map(data={"done": "no"}), context=THEN, condition_rules=ready)
    assert not before.is_true("Complete")
    after = observe(before, config_map(data={"done": "yes"}), context=LATER, condition_rules=ready)
    assert after.is_true("Complete")
    complete = {condition.type: condition for condition in after.conditions}["Complete"]
    assert (complete.reason, complete.message) == ("ConditionRulesAggregated", "Manifest is Complete")


def test_removed_rule_drops_its_conditions() -> None:
    one = work_status.with_apply_results(EMPTY, [applied("cm1")], context=THEN)
    with_rule = observe(one, config_map(), context=THEN, condition_rules=rule("true"))
    without = work_status.with_apply_results(with_rule, [applied("cm1", generation=2)], context=NEXT)
    without = observe(without, config_map(), context=NEXT)
    assert "Complete" not in summary(without)["work"]
    assert "Complete" not in summary(without)["manifests"][0]


def test_rule_for_available_keeps_transition_time() -> None:
    one = work_status.with_apply_results(EMPTY, [applied("cm1")], context=THEN)
    never = rule("false", "Available")
    first = observe(one, config_map(), context=THEN, condition_rules=never)
    second = observe(first, config_map(), context=LATER, condition_rules=never)
    assert summary(first)["work"]["Available"] == "False"
    assert second.hash() == first.hash()
