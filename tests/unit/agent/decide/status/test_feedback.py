"""Feedback values, their types, and the condition when some fail."""

import pytest

from maestropy.agent.decide.status import feedback
from maestropy.agent.expressions.budget import Budget
from maestropy.wire.works import options, status

LIMIT = feedback.DEFAULT_JSON_RAW_MAX_BYTES
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "deploy1"},
    "status": {
        "readyReplicas": 1,
        "replicas": 2,
        "availableReplicas": 3,
        "conditions": [{"type": "Available", "status": "True", "lastUpdateTime": None, "lastTransitionTime": None}],
    },
}
WELL_KNOWN = options.FeedbackRule(type=options.WELL_KNOWN_STATUS)


def paths(*pairs: tuple[str, str], version: str = "") -> options.FeedbackRule:
    json_paths = tuple(options.JsonPath(name=name, path=path, version=version) for name, path in pairs)
    return options.FeedbackRule(type=options.JSON_PATHS, json_paths=json_paths)


def read(live: object, *rules: options.FeedbackRule, limit: int = LIMIT) -> feedback.StatusFeedback:
    assert isinstance(live, dict)
    return feedback.read(rules, live, json_raw_max_bytes=limit, budget=Budget())


def plain(status_feedback: feedback.StatusFeedback) -> list[tuple[str, str, object]]:
    return [(value.name, value.type, value.value) for value in status_feedback.values]


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param(
            DEPLOYMENT,
            [("ReadyReplicas", "Integer", 1), ("Replicas", "Integer", 2), ("AvailableReplicas", "Integer", 3)],
            id="deployment",
        ),
        pytest.param(
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "status": {"numberReady": 1, "desiredNumberScheduled": 2, "numberAvailable": 3},
            },
            [
                ("NumberReady", "Integer", 1),
                ("DesiredNumberScheduled", "Integer", 2),
                ("NumberAvailable", "Integer", 3),
            ],
            id="daemonset",
        ),
        pytest.param(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "status": {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]},
            },
            [("JobComplete", "String", "True"), ("JobSucceeded", "Integer", 1)],
            id="job",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"}},
            [("PodPhase", "String", "Running")],
            id="pod-without-conditions-yet",
        ),
        pytest.param({"apiVersion": "apps/v1", "kind": "Deployment"}, [], id="no-status-yet"),
    ],
)
def test_well_known_status_values(live: dict[str, object], expected: list[object]) -> None:
    status_feedback = read(live, WELL_KNOWN)
    assert plain(status_feedback) == expected
    assert (status_feedback.condition.status, status_feedback.condition.reason, status_feedback.condition.message) == (
        "True",
        "StatusFeedbackSynced",
        "",
    )


@pytest.mark.parametrize(
    ("live", "kind"),
    [
        pytest.param(
            {"apiVersion": "v1", "kind": "ServiceAccount"},
            "/v1, Kind=ServiceAccount",
            id="core-group",
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "StatefulSet"},
            "apps/v1, Kind=StatefulSet",
            id="statefulset-has-no-well-known-status",
        ),
        pytest.param(
            {"apiVersion": "apps/v1beta1", "kind": "Deployment"},
            "apps/v1beta1, Kind=Deployment",
            id="other-version",
        ),
    ],
)
def test_kind_without_well_known_status_fails_feedback(live: dict[str, object], kind: str) -> None:
    status_feedback = read(live, WELL_KNOWN)
    assert status_feedback.values == ()
    assert status_feedback.condition == status.Condition(
        type="StatusFeedbackSynced",
        status="False",
        reason="StatusFeedbackSyncFailed",
        message="Sync status feedback failed with error "
        f"cannot find the wellknown statuses for resource with gvk {kind}",
    )


@pytest.mark.parametrize(
    ("path", "kind", "value"),
    [
        pytest.param(".status.replicas", "Integer", 2, id="integer"),
        pytest.param(".metadata.name", "String", "deploy1", id="string-outside-status"),
        pytest.param(".spec.paused", "Boolean", True, id="boolean"),
        pytest.param(".spec.ratio", "JsonRaw", "0.5", id="float"),
        pytest.param(".spec.whole", "JsonRaw", "4", id="integral-float"),
        pytest.param(
            ".status.conditions",
            "JsonRaw",
            '[{"lastTransitionTime":null,"lastUpdateTime":null,"status":"True","type":"Available"}]',
            id="list",
        ),
        pytest.param(".data", "JsonRaw", '{"token":"dG9rZW4="}', id="secret-data"),
        pytest.param(".spec.markup", "String", "<a>", id="text-is-not-escaped"),
        pytest.param(".spec.markups", "JsonRaw", r'["\u003ca\u003e"]', id="markup-in-json-is-escaped"),
        pytest.param('.status.conditions[?(@.type=="Available")].status', "String", "True", id="filter"),
        pytest.param('.cond[?(@.s=="True")].t', "JsonRaw", '["Cond1","Cond3"]', id="several-values"),
        pytest.param(" .status.replicas ", "Integer", 2, id="trailing-space"),
        pytest.param(".status.replicas}{.x", "JsonRaw", "[2]", id="only-the-first-action-counts"),
    ],
)
def test_feedback_value_type(path: str, kind: str, value: object) -> None:
    live = DEPLOYMENT | {
        "spec": {"paused": True, "ratio": 0.5, "whole": 4.0, "markup": "<a>", "markups": ["<a>"]},
        "data": {"token": "dG9rZW4="},
        "cond": [{"t": "Cond1", "s": "True"}, {"t": "Cond2", "s": "False"}, {"t": "Cond3", "s": "True"}],
    }
    status_feedback = read(live, paths(("x", path)))
    assert plain(status_feedback) == [("x", kind, value)]
    assert status_feedback.condition.status == "True"


@pytest.mark.parametrize("path", [".missing", ".status.missing.deeper", ".nothing", ".none[0]"])
def test_missing_field_gives_no_value_and_no_error(path: str) -> None:
    status_feedback = read(DEPLOYMENT | {"nothing": None, "none": None}, paths(("x", path)))
    assert status_feedback.values == ()
    assert status_feedback.condition.reason == "StatusFeedbackSynced"


def test_valid_values_are_reported_despite_failing_rules() -> None:
    status_feedback = read(
        DEPLOYMENT,
        paths(("bad", "status.replicas"), ("good", ".status.replicas"), ("worse", ".a[")),
        paths(("versioned", ".status.replicas"), version="v2"),
        paths(("bad", "status.replicas")),
    )
    assert plain(status_feedback) == [("good", "Integer", 2)]
    assert status_feedback.condition.message == (
        "Sync status feedback failed with error ["
        "failed to find value for bad with error: unrecognized identifier status, "
        "failed to parse json path .a[ of worse with error: unterminated array, "
        "version set in the path versioned is not matched for the related resource]"
    )


@pytest.mark.parametrize(
    ("limit", "is_fine"), [pytest.param(8, True, id="fits"), pytest.param(7, False, id="one-over")]
)
def test_json_raw_limit_counts_bytes(limit: int, is_fine: bool) -> None:
    status_feedback = read({"kind": "X", "l": ["é", 1]}, paths(("x", ".l")), limit=limit)
    assert bool(status_feedback.values) is is_fine
    if not is_fine:
        assert status_feedback.condition.message == (
            "Sync status feedback failed with error "
            "the length of returned json raw string for name x is larger than the maximum length 7"
        )


def test_no_feedback_rules_gives_no_values() -> None:
    status_feedback = read(DEPLOYMENT)
    assert (status_feedback.condition.status, status_feedback.condition.reason) == ("True", "NoStatusFeedbackSynced")


def test_unknown_rule_type_gives_no_value_and_no_error() -> None:
    status_feedback = read(DEPLOYMENT, options.FeedbackRule(type="Later"))
    assert (status_feedback.values, status_feedback.condition.reason) == ((), "StatusFeedbackSynced")
