"""What manifests say together, and how one condition replaces another."""

import pytest

from maestropy.agent.decide import conditions
from maestropy.wire import instant, status

THEN, NOW = instant.Timestamp(1_000_000), instant.Timestamp(2_000_000)


def manifest(*found: tuple[str, str, str] | tuple[str, str, str, str]) -> status.ManifestStatus:
    bodies = [
        {"type": name, "status": value, "reason": reason, "message": rest[0] if rest else ""}
        for name, value, reason, *rest in found
    ]
    return status.manifest_status(status.ResourceMeta(ordinal=0), conditions=bodies)


THERE = ("Available", "True", "ResourceAvailable")
ABSENT = ("Available", "False", "ResourceNotAvailable")
UNSURE = ("Available", "Unknown", "FetchingResourceFailed")


@pytest.mark.parametrize(
    ("manifests", "expected"),
    [
        pytest.param(
            [manifest(THERE), manifest(THERE)],
            ("True", "ResourcesAvailable", "All resources are available"),
            id="all-there",
        ),
        pytest.param(
            [manifest(ABSENT), manifest(THERE), manifest(THERE)],
            ("False", "ResourcesNotAvailable", "1 of 3 resources are not available"),
            id="case-4-one-missing",
        ),
        pytest.param(
            [manifest(UNSURE), manifest(THERE)],
            ("Unknown", "ResourcesStatusUnknown", "1 of 2 resources have unknown status"),
            id="one-unknown",
        ),
        pytest.param(
            [manifest(UNSURE), manifest(ABSENT)],
            ("False", "ResourcesNotAvailable", "1 of 2 resources are not available"),
            id="missing-beats-unknown",
        ),
        pytest.param(
            [], ("Unknown", "ResourcesStatusUnknown", "cannot get any available resource "), id="no-manifests"
        ),
    ],
)
def test_availability_of_a_work(manifests: list[status.ManifestStatus], expected: tuple[str, str, str]) -> None:
    (found,) = conditions.aggregated(manifests, generation=3)
    assert (found.status, found.reason, found.message, found.observed_generation) == (*expected, 3)


EVALUATED = "ConditionRuleEvaluated"


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        pytest.param("Complete", ["True", "True"], "True", id="all-true"),
        pytest.param("Complete", ["True", "False", "Unknown"], "False", id="false-wins"),
        pytest.param("Complete", ["True", "Unknown"], "Unknown", id="unknown-beats-true"),
        pytest.param("Degraded", ["True", "False"], "False", id="degraded-is-like-any-other"),
        pytest.param("Progressing", ["True", "False", "Unknown"], "True", id="progressing-true-wins"),
        pytest.param("Progressing", ["False", "Unknown"], "Unknown", id="progressing-unknown-beats-false"),
        pytest.param("Progressing", ["False", "False"], "False", id="progressing-all-false"),
    ],
)
def test_rule_conditions_of_a_work(name: str, values: list[str], expected: str) -> None:
    manifests = [manifest(THERE, (name, value, EVALUATED, "m")) for value in values]
    found = {condition.type: condition for condition in conditions.aggregated(manifests, generation=3)}[name]
    assert (found.status, found.reason) == (expected, "ConditionRulesAggregated")
    assert found.message == f"Aggregated from {len(values)} manifest conditions"


def test_case_21_only_manifests_with_the_condition_count() -> None:
    manifests = [manifest(THERE, ("Complete", "True", EVALUATED, "done")), manifest(THERE)]
    found = conditions.aggregated(manifests, generation=3)
    assert [(condition.type, condition.message) for condition in found] == [
        ("Available", "All resources are available"),
        ("Complete", "done"),
    ]


def test_types_come_in_alphabetical_order() -> None:
    made = manifest(("Zeta", "True", EVALUATED), ("Alpha", "True", EVALUATED), THERE, ("Applied", "True", "Other"))
    assert [found.type for found in conditions.aggregated([made], generation=1)] == ["Alpha", "Available", "Zeta"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        pytest.param(
            conditions.applied(generation=2),
            ("Applied", "True", "AppliedManifestComplete", "Apply manifest complete", 2),
            id="applied",
        ),
        pytest.param(
            conditions.not_applied("boom", generation=2),
            ("Applied", "False", "AppliedManifestFailed", "Failed to apply manifest: boom", 2),
            id="not-applied",
        ),
        pytest.param(
            conditions.fields_not_ignored("boom", generation=2),
            ("Applied", "False", "AppliedManifestSSAIgnoreFieldError", "Failed to process ignoreFields: boom", 2),
            id="case-40-fields-not-ignored",
        ),
        pytest.param(
            conditions.work_applied([conditions.applied(generation=2)], generation=2),
            ("Applied", "True", "AppliedManifestWorkComplete", "Apply manifest work complete", 2),
            id="work-applied",
        ),
        pytest.param(
            conditions.work_applied(
                [conditions.applied(generation=2), conditions.not_applied("x", generation=2)], generation=2
            ),
            ("Applied", "False", "AppliedManifestWorkFailed", "Failed to apply manifest work", 2),
            id="case-4-work-not-applied",
        ),
        pytest.param(
            conditions.work_refused("boom", generation=2),
            ("Applied", "False", "AppliedManifestWorkFailed", "Failed to apply manifest work: boom", 2),
            id="work-refused",
        ),
        pytest.param(
            conditions.available(),
            ("Available", "True", "ResourceAvailable", "Resource is available", 0),
            id="available",
        ),
        pytest.param(
            conditions.not_available(),
            ("Available", "False", "ResourceNotAvailable", "Resource is not available", 0),
            id="not-available",
        ),
        pytest.param(
            conditions.availability_unknown(status.ResourceMeta(ordinal=0, version="v1", name="x")),
            ("Available", "Unknown", "IncompleteResourceMeta", "Resource meta is incomplete", 0),
            id="incomplete-meta",
        ),
        pytest.param(
            conditions.availability_unknown(
                status.ResourceMeta(ordinal=0, version="v1", name="x", resource="pods"), problem="boom"
            ),
            ("Available", "Unknown", "FetchingResourceFailed", "Failed to fetch resource: boom", 0),
            id="unreadable",
        ),
    ],
)
def test_words(condition: status.Condition, expected: tuple[str, str, str, str, int]) -> None:
    found = (condition.type, condition.status, condition.reason, condition.message, condition.observed_generation)
    assert found == expected


def test_applied_of_another_generation_starts_anew_at_the_end() -> None:
    old = status.merge_condition([], conditions.applied(generation=1), now=THEN)
    old = status.merge_condition(old, conditions.available(), now=THEN)
    same = conditions.merge_applied(old, conditions.applied(generation=1), now=NOW)
    assert [found["type"] for found in same] == ["Applied", "Available"]
    assert same[0]["lastTransitionTime"] == THEN.rfc3339_seconds()
    anew = conditions.merge_applied(old, conditions.applied(generation=2), now=NOW)
    assert [found["type"] for found in anew] == ["Available", "Applied"]
    assert anew[1]["lastTransitionTime"] == NOW.rfc3339_seconds()


def test_case_16_the_time_of_feedback_moves_with_the_values() -> None:
    synced = status.Condition(type=status.STATUS_FEEDBACK_SYNCED, status="True", reason="StatusFeedbackSynced")
    old = status.merge_condition([], synced, now=THEN)
    kept = conditions.merge_feedback(old, synced, have_values_changed=False, now=NOW)
    moved = conditions.merge_feedback(old, synced, have_values_changed=True, now=NOW)
    assert kept[0]["lastTransitionTime"] == THEN.rfc3339_seconds()
    assert moved[0]["lastTransitionTime"] == NOW.rfc3339_seconds()


def test_conditions_of_deleted_rules_go_with_the_generation() -> None:
    found = [
        {"type": "Old", "status": "True", "reason": EVALUATED, "observedGeneration": 1},
        {"type": "New", "status": "True", "reason": EVALUATED, "observedGeneration": 2},
        {"type": "Applied", "status": "True", "reason": "AppliedManifestComplete", "observedGeneration": 1},
    ]
    kept = conditions.without_stale_rules(found, generation=2)
    assert [condition["type"] for condition in kept] == ["New", "Applied"]
