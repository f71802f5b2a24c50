"""What the status of a work becomes."""

from typing import Any

from applied_objects import config_map

from maestropy.agent.decide import conditions, matching, reporting
from maestropy.wire import instant, options, status

THEN = reporting.Moment(generation=1, now=instant.Timestamp(1_000_000))
LATER = reporting.Moment(generation=1, now=instant.Timestamp(2_000_000))
NEXT = reporting.Moment(generation=2, now=instant.Timestamp(3_000_000))


def meta(name: str, ordinal: int = 0, *, resource: str = "configmaps") -> status.ResourceMeta:
    return status.ResourceMeta(
        ordinal=ordinal, version="v1", kind="ConfigMap", resource=resource, name=name, namespace="ns1"
    )


def applied(name: str, ordinal: int = 0, *, generation: int = 1, problem: str = "") -> reporting.Result:
    good = conditions.applied(generation=generation)
    bad = conditions.not_applied(problem, generation=generation)
    return reporting.Result(meta=meta(name, ordinal), condition=bad if problem else good)


def looked(
    found: status.WorkStatus, *lives: dict[str, Any] | None, moment: reporting.Moment, **wishes: Any
) -> status.WorkStatus:
    entries = [
        reporting.observed(
            entry, reporting.Observation(live=live), treatment=matching.Treatment(**wishes), moment=moment
        )
        for entry, live in zip(found.manifests, lives, strict=True)
    ]
    return reporting.after_looking(found, entries, moment=moment)


def summary(found: status.WorkStatus) -> dict[str, Any]:
    return {
        "work": {condition.type: condition.status for condition in found.conditions},
        "manifests": [
            {condition.type: condition.status for condition in entry.conditions} for entry in found.manifests
        ],
    }


EMPTY = status.WorkStatus()
FIRST = reporting.after_applying(EMPTY, [applied("cm1", 0), applied("cm2", 1)], moment=THEN)


def test_case_4_results_come_in_the_order_of_the_spec() -> None:
    results = [applied("cm2", 1), applied("cm3", 2), applied("cm1", 0, problem='namespaces "x" not found')]
    found = reporting.after_applying(EMPTY, results, moment=THEN)
    assert [entry.resource_meta.name for entry in found.manifests] == ["cm1", "cm2", "cm3"]
    assert summary(found) == {
        "work": {"Applied": "False"},
        "manifests": [{"Applied": "False"}, {"Applied": "True"}, {"Applied": "True"}],
    }
    assert found.manifests[0].conditions[0].message == 'Failed to apply manifest: namespaces "x" not found'


def test_every_entry_has_its_feedback_member() -> None:
    assert [entry.body["statusFeedback"] for entry in FIRST.manifests] == [{}, {}]


def test_case_13_a_manifest_that_moved_keeps_its_history() -> None:
    seen = looked(FIRST, config_map("cm1"), config_map("cm2"), moment=THEN)
    moved = reporting.after_applying(
        seen, [applied("cm2", 0, generation=2), applied("renamed", 1, generation=2)], moment=NEXT
    )
    kept, fresh = moved.manifests
    assert [condition.type for condition in kept.conditions] == ["Available", "StatusFeedbackSynced", "Applied"]
    assert kept.conditions[0].last_transition_time == THEN.now.rfc3339_seconds()
    assert fresh.conditions[0].last_transition_time == NEXT.now.rfc3339_seconds()
    assert [condition.type for condition in fresh.conditions] == ["Applied"]


def test_two_manifests_of_one_object_are_told_apart_by_their_place() -> None:
    twice = reporting.after_applying(EMPTY, [applied("cm1", 0, problem="x"), applied("cm1", 1)], moment=THEN)
    again = reporting.after_applying(twice, [applied("cm1", 0, problem="x"), applied("cm1", 1)], moment=LATER)
    assert again.body == twice.body


def test_case_14_generations_follow_the_spec() -> None:
    found = reporting.after_applying(FIRST, [applied("cm1", 0, generation=2)], moment=NEXT)
    found = looked(found, config_map("cm1"), moment=NEXT)
    assert {condition.type: condition.observed_generation for condition in found.conditions} == {
        "Applied": 2,
        "Available": 2,
    }


def test_nothing_new_changes_nothing() -> None:
    seen = looked(FIRST, config_map("cm1"), config_map("cm2"), moment=THEN)
    again = reporting.after_applying(seen, [applied("cm1", 0), applied("cm2", 1)], moment=LATER)
    assert looked(again, config_map("cm1"), config_map("cm2"), moment=LATER).hash() == seen.hash()


def test_case_4_what_is_missing_is_not_available() -> None:
    found = looked(FIRST, None, config_map("cm2"), moment=THEN)
    assert summary(found)["work"] == {"Applied": "True", "Available": "False"}
    assert found.conditions[1].message == "1 of 2 resources are not available"


def test_an_unknown_kind_has_an_incomplete_meta() -> None:
    entry = status.manifest_status(meta("f", resource=""))
    seen = reporting.observed(entry, reporting.Observation(), treatment=matching.Treatment(), moment=THEN)
    assert (seen.conditions[0].status, seen.conditions[0].reason) == ("Unknown", "IncompleteResourceMeta")


PATHS = (options.FeedbackRule(type=options.JSON_PATHS, json_paths=(options.JsonPath(name="test", path=".data.test"),)),)


def test_case_16_and_31_feedback_follows_the_object_and_its_time_moves() -> None:
    one = reporting.after_applying(EMPTY, [applied("cm1")], moment=THEN)
    first = looked(one, config_map(data={"test": "testdata"}), moment=THEN, feedback_rules=PATHS)
    same = looked(first, config_map(data={"test": "testdata"}), moment=LATER, feedback_rules=PATHS)
    assert same.hash() == first.hash()
    second = looked(first, config_map(data={"test": "testdata-updated"}), moment=LATER, feedback_rules=PATHS)
    (value,) = second.manifests[0].feedback
    assert (value.name, value.type, value.value) == ("test", "String", "testdata-updated")
    synced = {condition.type: condition for condition in second.manifests[0].conditions}["StatusFeedbackSynced"]
    assert synced.last_transition_time == LATER.now.rfc3339_seconds()


def test_values_of_what_cannot_be_read_stay() -> None:
    one = reporting.after_applying(EMPTY, [applied("cm1")], moment=THEN)
    seen = looked(one, config_map(data={"test": "x"}), moment=THEN, feedback_rules=PATHS)
    (entry,) = seen.manifests
    blind = reporting.observed(
        entry,
        reporting.Observation(problem="timeout"),
        treatment=matching.Treatment(feedback_rules=PATHS),
        moment=LATER,
    )
    assert blind.feedback == entry.feedback
    found = {condition.type: condition for condition in blind.conditions}
    assert found["Available"].message == "Failed to fetch resource: timeout"
    assert found["StatusFeedbackSynced"].status == "True"


def rule(expression: str, condition: str = "Complete") -> tuple[options.ConditionRule, ...]:
    return (options.ConditionRule(condition=condition, type=options.CEL, cel_expressions=(expression,)),)


def test_case_21_a_rule_completes_the_work() -> None:
    one = reporting.after_applying(EMPTY, [applied("cm1")], moment=THEN)
    ready = rule("object.data.done == 'yes'")
    before = looked(one, config_map(data={"done": "no"}), moment=THEN, condition_rules=ready)
    assert not before.is_true("Complete")
    after = looked(before, config_map(data={"done": "yes"}), moment=LATER, condition_rules=ready)
    assert after.is_true("Complete")
    found = {condition.type: condition for condition in after.conditions}["Complete"]
    assert (found.reason, found.message) == ("ConditionRulesAggregated", "Manifest is Complete")


def test_a_deleted_rule_takes_its_conditions_along() -> None:
    one = reporting.after_applying(EMPTY, [applied("cm1")], moment=THEN)
    with_rule = looked(one, config_map(), moment=THEN, condition_rules=rule("true"))
    without = reporting.after_applying(with_rule, [applied("cm1", generation=2)], moment=NEXT)
    without = looked(without, config_map(), moment=NEXT)
    assert "Complete" not in summary(without)["work"]
    assert "Complete" not in summary(without)["manifests"][0]


def test_a_rule_for_available_does_not_make_it_flicker() -> None:
    one = reporting.after_applying(EMPTY, [applied("cm1")], moment=THEN)
    never = rule("false", "Available")
    first = looked(one, config_map(), moment=THEN, condition_rules=never)
    second = looked(first, config_map(), moment=LATER, condition_rules=never)
    assert summary(first)["work"]["Available"] == "False"
    assert second.hash() == first.hash()
