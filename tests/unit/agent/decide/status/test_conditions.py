"""Aggregation and merging of conditions, and their texts."""

import pytest

from maestropy.agent.decide.status import conditions
from maestropy.wire import timestamps
from maestropy.wire.works import status

THEN, NOW = timestamps.Timestamp(1_000_000), timestamps.Timestamp(2_000_000)


def manifest(*entries: tuple[str, str, str] | tuple[str, str, str, str]) -> status.ManifestStatus:
    bodies = [
        {"type": name, "status": value, "reason": reason, "message": rest[0] if rest else ""}
        for name, value, reason, *rest in entries
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
            id="all-available",
        ),
        pytest.param(
            [manifest(ABSENT), manifest(THERE), manifest(THERE)],
            ("False", "ResourcesNotAvailable", "1 of 3 resources are not available"),
            id="one-not-available",
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
def test_available_is_aggregated(manifests: list[status.ManifestStatus], expected: tuple[str, str, str]) -> None:
    (condition,) = conditions.aggregated(manifests, generation=3)
    assert (condition.status, condition.reason, condition.message, condition.observed_generation) == (*expected, 3)


EVALUATED = "ConditionRuleEvaluated"


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        pytest.param("Complete", ["True", "True"], "True", id="all-true"),
        pytest.param("Complete", ["True", "False", "Unknown"], "False", id="false-wins"),
        pytest.param("Complete", ["True", "Unknown"], "Unknown", id="unknown-beats-true"),
        pytest.param("Degraded", ["True", "False"], "False", id="degraded-is-not-special"),
        pytest.param("Progressing", ["True", "False", "Unknown"], "True", id="progressing-true-wins"),
        pytest.param("Progressing", ["False", "Unknown"], "Unknown", id="progressing-unknown-beats-false"),
        pytest.param("Progressing", ["False", "False"], "False", id="progressing-all-false"),
    ],
)
def test_rule_conditions_are_aggregated(name: str, values: list[str], expected: str) -> None:
    manifests = [manifest(THERE, (name, value, EVALUATED, "m")) for value in values]
    aggregate = {condition.type: condition for condition in conditions.aggregated(manifests, generation=3)}[name]
    assert (aggregate.status, aggregate.reason) == (expected, "ConditionRulesAggregated")
    assert aggregate.message == f"Aggregated from {len(values)} manifest conditions"


def test_only_manifests_with_condition_are_aggregated() -> None:
    manifests = [manifest(THERE, ("Complete", "True", EVALUATED, "done")), manifest(THERE)]
    aggregates = conditions.aggregated(manifests, generation=3)
    assert [(condition.type, condition.message) for condition in aggregates] == [
        ("Available", "All resources are available"),
        ("Complete", "done"),
    ]


def test_aggregated_types_are_sorted() -> None:
    entry = manifest(("Zeta", "True", EVALUATED), ("Alpha", "True", EVALUATED), THERE, ("Applied", "True", "Other"))
    assert [condition.type for condition in conditions.aggregated([entry], generation=1)] == [
        "Alpha",
        "Available",
        "Zeta",
    ]


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
            conditions.ignore_fields_failed("boom", generation=2),
            ("Applied", "False", "AppliedManifestSSAIgnoreFieldError", "Failed to process ignoreFields: boom", 2),
            id="ignore-fields-failed",
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
            id="work-not-applied",
        ),
        pytest.param(
            conditions.work_rejected("boom", generation=2),
            ("Applied", "False", "AppliedManifestWorkFailed", "Failed to apply manifest work: boom", 2),
            id="work-rejected",
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
            id="invalid",
        ),
        pytest.param(
            conditions.availability_of_denied(
                status.ResourceMeta(ordinal=0, version="v1", name="x", resource="pods"),
                problem="may not get",
                is_available=False,
            ),
            ("Available", "False", "ResourceNotAvailable", "Not applied: may not get", 0),
            id="denied",
        ),
    ],
)
def test_condition_texts_match_maestro(condition: status.Condition, expected: tuple[str, str, str, str, int]) -> None:
    texts = (condition.type, condition.status, condition.reason, condition.message, condition.observed_generation)
    assert texts == expected


def test_applied_of_new_generation_is_appended() -> None:
    old = status.merge_condition([], conditions.applied(generation=1), now=THEN)
    old = status.merge_condition(old, conditions.available(), now=THEN)
    same = conditions.merge_applied(old, conditions.applied(generation=1), now=NOW)
    assert [condition["type"] for condition in same] == ["Applied", "Available"]
    assert same[0]["lastTransitionTime"] == THEN.rfc3339_seconds()
    merged = conditions.merge_applied(old, conditions.applied(generation=2), now=NOW)
    assert [condition["type"] for condition in merged] == ["Available", "Applied"]
    assert merged[1]["lastTransitionTime"] == NOW.rfc3339_seconds()


def test_feedback_transition_time_moves_with_values() -> None:
    synced = status.Condition(type=status.STATUS_FEEDBACK_SYNCED, status="True", reason="StatusFeedbackSynced")
    old = status.merge_condition([], synced, now=THEN)
    kept = conditions.merge_feedback(old, synced, have_values_changed=False, now=NOW)
    moved = conditions.merge_feedback(old, synced, have_values_changed=True, now=NOW)
    assert kept[0]["lastTransitionTime"] == THEN.rfc3339_seconds()
    assert moved[0]["lastTransitionTime"] == NOW.rfc3339_seconds()


def test_rule_conditions_of_old_generation_are_dropped() -> None:
    previous = [
        {"type": "Old", "status": "True", "reason": EVALUATED, "observedGeneration": 1},
        {"type": "New", "status": "True", "reason": EVALUATED, "observedGeneration": 2},
        {"type": "Applied", "status": "True", "reason": "AppliedManifestComplete", "observedGeneration": 1},
    ]
    kept = conditions.without_stale_rules(previous, generation=2)
    assert [condition["type"] for condition in kept] == ["New", "Applied"]
