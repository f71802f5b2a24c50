# ruff: noqa: E501 - log lines are as long as they are
"""Situations that a person on call wrote down with their truth: which status tells that a request was applied, and when.

Each is an excerpt in the form of their logs: lines of a Go server and agent around one request.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from maestropy.trace.logs.judge import database_checks
from maestropy.trace.logs.model import RequestVerdict, StageState, Trace
from tests.trace_request_logs import AGENT, BASE, TYPE, LoggedRequest
from tests.unit.trace.logs.judge.test_situations import (
    CREATE,
    OTHER,
    SERVER,
    Line,
    alive,
    at,
    codes,
    concluded,
    lines_of,
    status,
    sync_failed,
    traced,
)

UPDATE = LoggedRequest(work="nginx", action="update", version=2, at=BASE + 60)
DENIED = 'admission webhook "v.example.com" denied the request: not allowed'
MODIFIED = 'Operation cannot be fulfilled on configmaps "cm": the object has been modified; please apply your changes to the latest version and try again'
ALIVE = [*alive(SERVER), *alive(AGENT)]


def recorded(seconds: float, name: str = "cm", verb: str = "Created") -> Line:
    """Return the line of an agent that wrote an object with a typed client; it names no work."""
    because = "because it was missing" if verb == "Created" else ":\\ncause by changes in data.a"
    text = f"INFO: {verb} ConfigMap/{name} -n default{'' if verb == 'Updated' else ' '}{because}"
    return at(seconds, AGENT, f'"{text}" component="manifestwork-controller" reason="ConfigMap{verb}"')


def rejected(seconds: float, error: str, name: str = "cm", logged: LoggedRequest = CREATE) -> list[Line]:
    warning = json.dumps(f"WARNING: Failed to create ConfigMap/{name} -n default: {error}")
    return [at(seconds, AGENT, f'{warning} component="c" reason="r"'), sync_failed(logged, seconds + 0.003, error)]


def another_status(logged: LoggedRequest, seconds: float, *, until: int = 9) -> list[Line]:
    """Return the lines of one more status of a request, from the agent to the client."""
    sent = replace(logged, at=logged.at + seconds, until=until, without=frozenset({1, 2, 3, 4}), op_id=logged.operation)
    return lines_of(sent)


def finding(trace: Trace, code: str) -> str:
    return next(one.detail for one in trace.findings if one.code == code)


def early(*, until: int = 9, generation: int = 0) -> list[Line]:
    """Return an update whose only status was sent before anything was applied; with its conditions if it has any."""
    lines = lines_of(replace(UPDATE, without=frozenset({4}), until=until))
    return [*lines, status(UPDATE, 60.281, applied="True", generation=generation, sequence=0)] if generation else lines


def test_update_whose_only_status_has_the_conditions_of_the_version_before_is_not_applied(tmp_path: Path) -> None:
    lines = [*lines_of(CREATE), *early(generation=1), *ALIVE]
    trace = traced(tmp_path, lines)["nginx", "update"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 4, "MT-412")
    assert [stage.state for stage in trace.stages[4:]] == [StageState.PENDING] * 5


def test_agent_that_ends_after_such_a_status_is_named(tmp_path: Path) -> None:
    lines = [*lines_of(CREATE), *early(generation=1), *alive(SERVER)]
    assert concluded(traced(tmp_path, lines)["nginx", "update"]) == (RequestVerdict.INCOMPLETE, 4, "MT-417")


def test_logs_that_end_with_such_a_status_leave_the_update_pending(tmp_path: Path) -> None:
    lines = [*lines_of(CREATE), *early(generation=1)]
    assert traced(tmp_path, lines)["nginx", "update"].verdict is RequestVerdict.PENDING


def test_later_status_of_the_version_settles_an_update_that_changed_nothing(tmp_path: Path) -> None:
    later = another_status(UPDATE, 0.1)
    said = status(replace(UPDATE, at=UPDATE.at + 0.1), 60.381, applied="True", sequence=0)
    trace = traced(tmp_path, [*lines_of(CREATE), *early(generation=1), *later, said, *ALIVE])["nginx", "update"]
    assert (trace.verdict, round(trace.duration, 2)) == (RequestVerdict.COMPLETE, 0.39)


def test_without_conditions_a_status_before_any_apply_is_no_proof(tmp_path: Path) -> None:
    trace = traced(tmp_path, [*lines_of(CREATE), *early(), *ALIVE])["nginx", "update"]
    assert (concluded(trace)[0], concluded(trace)[2]) == (RequestVerdict.UNKNOWN, "MT-416")
    assert "before it has applied it" in finding(trace, "MT-416")


def test_without_conditions_both_reporters_show_that_an_update_was_handled(tmp_path: Path) -> None:
    lines = [*lines_of(CREATE), *early(), *another_status(UPDATE, 0.05), *ALIVE]
    assert traced(tmp_path, lines)["nginx", "update"].verdict is RequestVerdict.COMPLETE


def test_stored_condition_of_the_version_before_settles_nothing(tmp_path: Path) -> None:
    trace = traced(tmp_path, [*lines_of(CREATE), *early(), *ALIVE])["nginx", "update"]
    stored = {"type": "Applied", "status": "True", "observed_generation": "1"}
    results: database_checks.CheckResults = {
        "resource": [{"version": 2, "status_version": "2"}],
        "conditions": [stored],
    }
    assert database_checks.refined(trace, results).verdict is RequestVerdict.UNKNOWN
    results["conditions"] = [{**stored, "observed_generation": "2"}]
    assert database_checks.refined(trace, results).verdict is RequestVerdict.COMPLETE


def test_status_between_two_applied_objects_is_no_proof(tmp_path: Path) -> None:
    applied = [line for line in lines_of(replace(UPDATE, at=UPDATE.at + 0.2)) if '"Server side applied"' in line[2]]
    lines = [*lines_of(CREATE), *lines_of(UPDATE), *applied, *ALIVE]
    assert concluded(traced(tmp_path, lines)["nginx", "update"])[:2] == (RequestVerdict.INCOMPLETE, 5)


def test_apply_after_such_a_status_and_no_status_since_stops_at_the_status(tmp_path: Path) -> None:
    applied = [line for line in lines_of(replace(UPDATE, at=UPDATE.at + 1)) if '"Server side applied"' in line[2]]
    trace = traced(tmp_path, [*lines_of(CREATE), *early(generation=1), *applied, *ALIVE])["nginx", "update"]
    assert concluded(trace)[:2] == (RequestVerdict.INCOMPLETE, 5)


@pytest.mark.parametrize(("until", "stage"), [(5, 6), (6, 7), (8, 9)])
def test_success_that_never_reached_the_client_after_a_failure_that_did(tmp_path: Path, until: int, stage: int) -> None:
    client = at(-1, SERVER, '"registered a broadcaster client" id="i" source="mw-client-example"')
    lines = [client, *lines_of(replace(CREATE, without=frozenset({4}))), *rejected(0.2, DENIED), recorded(42.0), *ALIVE]
    trace = traced(tmp_path, [*lines, *another_status(CREATE, 42.0, until=until)])["nginx", "create"]
    assert concluded(trace)[:2] == (RequestVerdict.INCOMPLETE, stage)
    assert "MT-415" in codes(trace)


def test_time_of_a_request_that_failed_first_is_that_of_its_success(tmp_path: Path) -> None:
    lines = [*lines_of(replace(CREATE, without=frozenset({4}))), *rejected(0.2, DENIED), recorded(42.0), *ALIVE]
    trace = traced(tmp_path, [*lines, *another_status(CREATE, 42.0)])["nginx", "create"]
    assert (trace.verdict, round(trace.duration, 3)) == (RequestVerdict.COMPLETE, 42.289)
    firsts = [stage.first for stage in trace.stages]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize("conditions", [False, True])
def test_success_at_the_end_of_the_agents_log_stops_at_its_status(tmp_path: Path, conditions: bool) -> None:
    lines = [*lines_of(replace(CREATE, without=frozenset({4}))), *rejected(0.2, DENIED), recorded(42.0), *alive(SERVER)]
    if conditions:
        lines.append(status(CREATE, 0.281, applied="False", message=DENIED, sequence=0))
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 5, "MT-417")


def test_apply_at_the_end_of_the_log_leaves_the_failure_possible(tmp_path: Path) -> None:
    applied = [line for line in lines_of(replace(CREATE, at=BASE + 42)) if '"Server side applied"' in line[2]]
    lines = [*lines_of(replace(CREATE, without=frozenset({4}))), sync_failed(CREATE, 0.2, DENIED), *applied]
    trace = traced(tmp_path, [*lines, *alive(SERVER)])["nginx", "create"]
    assert (concluded(trace), trace.confidence) == ((RequestVerdict.FAILED, 4, "MT-407"), "possible")
    assert "recorded an applied object at 09:00:43" in finding(trace, "MT-407")
    assert round(trace.stages[3].first - BASE, 1) == 0.2


@pytest.mark.parametrize(
    ("error", "lasts", "ends", "confidence"),
    [
        pytest.param(MODIFIED, 0.2, 3.0, "possible", id="conflict"),
        pytest.param("etcdserver: request timed out", 0.2, 3.0, "possible", id="time-out"),
        pytest.param(DENIED, 10.0, 12.0, "possible", id="webhook"),
        pytest.param(DENIED, 90.0, 92.0, "certain", id="for-long"),
        pytest.param('ConfigMap "cm" is invalid: data: Required value', 0.2, 3.0, "certain", id="invalid"),
    ],
)
def test_error_at_the_end_of_the_logs_is_only_possible(
    tmp_path: Path, error: str, lasts: float, ends: float, confidence: str
) -> None:
    lines = [*lines_of(replace(CREATE, until=3)), *rejected(0.2, error), sync_failed(CREATE, lasts, error)]
    trace = traced(tmp_path, [*lines, *alive(SERVER, ends), *alive(AGENT, ends)])["nginx", "create"]
    assert (trace.verdict, trace.failed_stage, trace.confidence) == (RequestVerdict.FAILED, 4, confidence)


@pytest.mark.parametrize("seconds", [1.5, 3.0, 20.0, 300.0])
@pytest.mark.parametrize("applied", [True, False])
def test_error_a_while_after_the_status_does_not_undo_it(tmp_path: Path, seconds: float, applied: bool) -> None:
    lines = [*lines_of(CREATE, applied=applied), sync_failed(CREATE, seconds, DENIED), *ALIVE]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, {"MT-414"})


def test_object_that_exists_already_is_no_field_conflict(tmp_path: Path) -> None:
    lines = lines_of(replace(CREATE, without=frozenset({4})))
    for attempt in range(8):
        lines += rejected(0.2 * 2**attempt, 'configmaps "cm" already exists')
    assert concluded(traced(tmp_path, [*lines, *alive(SERVER, 60), *alive(AGENT, 60)])["nginx", "create"]) == (
        RequestVerdict.FAILED, 4, "MT-422",
    )  # fmt: skip


def test_applied_objects_that_nothing_ties_to_a_work_are_named(tmp_path: Path) -> None:
    lines = [*lines_of(CREATE, OTHER, applied=False), recorded(0.15, "a"), recorded(0.16, "b"), *ALIVE]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert trace.verdict is RequestVerdict.COMPLETE
    assert "ConfigMap/a -n default" in trace.stages[3].note


def test_create_without_a_status_beside_applied_objects_of_no_work_lacks_its_status(tmp_path: Path) -> None:
    lines = [*lines_of(replace(CREATE, until=3)), *lines_of(OTHER, applied=False), recorded(0.15, "a"), *ALIVE]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (concluded(trace), trace.confidence) == ((RequestVerdict.INCOMPLETE, 5, "MT-503"), "possible")


def test_updated_object_is_tied_by_the_manifests_of_its_request(tmp_path: Path) -> None:
    lines = [line for line in lines_of(CREATE, OTHER, applied=False) if '"receive the event' not in line[2]]
    for logged, name in ((CREATE, "a"), (OTHER, "b")):
        event = {"id": "x", "source": "s", "type": f"{TYPE}.spec.create_request", "clustername": "mgmt-1",
                 "data": {"manifests": [{"kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}]},
                 "resourceid": logged.resource, "metadata": json.dumps({"name": logged.work, "uid": logged.resource})}  # fmt: skip
        text = json.dumps(json.dumps(event, separators=(",", ":")))
        lines.append(at(logged.at - BASE, SERVER, f'"receive the event from client" event={text}'))
    lines += [recorded(0.15, "a", "Updated"), recorded(0.16, "b", "Updated"), *ALIVE]
    traces = traced(tmp_path, lines)
    for work, name in (("nginx", "a"), ("other", "b")):
        (record,) = traces[work, "create"].stages[3].records
        assert f"ConfigMap/{name} " in record.detail


def test_error_without_a_work_while_two_are_handled_makes_neither_certain(tmp_path: Path) -> None:
    error = at(0.2, AGENT, '"controller failed to sync" err="Internal error occurred: boom" logger="x"', "E")
    traces = traced(tmp_path, [*lines_of(CREATE, OTHER), error, *ALIVE])
    for trace in traces.values():
        assert (trace.verdict, trace.confidence, codes(trace)) == (RequestVerdict.COMPLETE, "likely", {"MT-010"})


def controller_failed(logged: LoggedRequest, seconds: float, named: str) -> Line:
    """Return an error of one of the agent's controllers about a work, half a second after its status."""
    error = 'Deployment.apps \\"nginx\\" is invalid: spec.template: Required value'
    return at(seconds, AGENT, f'"controller failed to sync" err="{error}" {named} key="{logged.resource}"', "E")


@pytest.mark.parametrize(
    ("named", "verdict"),
    [
        ("", RequestVerdict.FAILED),
        ('logger="UnhandledError"', RequestVerdict.FAILED),
        ('logger="ManifestWorkController.UnhandledError"', RequestVerdict.FAILED),
        ('logger="ManifestWorkController"', RequestVerdict.FAILED),
        ('controller="ManifestWorkController"', RequestVerdict.FAILED),
        ('logger="AvailableStatusController.UnhandledError"', RequestVerdict.COMPLETE),
        ('logger="maestro-agent.AvailableStatusController"', RequestVerdict.COMPLETE),
        ('controller="AppliedManifestWorkController"', RequestVerdict.COMPLETE),
        ('controllerName="UnManagedAppliedWorkController"', RequestVerdict.COMPLETE),
        ('logger="AppliedManifestWorkFinalizer.UnhandledError"', RequestVerdict.COMPLETE),
        ('logger="AppliedManifestWorkFinalizeController"', RequestVerdict.COMPLETE),
    ],
)
def test_an_error_of_a_controller_that_applies_nothing_is_no_failed_apply(
    tmp_path: Path, named: str, verdict: RequestVerdict
) -> None:
    lines = [*lines_of(CREATE), controller_failed(CREATE, 0.25, named), *ALIVE]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert trace.verdict is verdict
    assert (trace.failed_stage == 4) is (verdict is RequestVerdict.FAILED)
    # It stays in the timeline: whoever reads it sees which controller has a problem.
    assert any("spec.template" in record.detail for record in trace.timeline)


def test_an_error_of_a_finalizer_is_a_failed_deletion(tmp_path: Path) -> None:
    delete = LoggedRequest(work="nginx", action="delete", version=1, at=BASE + 60, until=3)
    error = controller_failed(CREATE, 60.5, 'logger="AppliedManifestWorkFinalizer.UnhandledError"')
    traces = traced(tmp_path, [*lines_of(CREATE), *lines_of(delete), error, *ALIVE])
    deletion = traces["nginx", "delete"]
    assert traces["nginx", "create"].verdict is RequestVerdict.COMPLETE
    assert (deletion.verdict, deletion.failed_stage) == (RequestVerdict.FAILED, 4)


def test_an_error_of_publishing_counts_whichever_controller_reports_it(tmp_path: Path) -> None:
    stopped = replace(CREATE, until=4)
    text = f'"controller failed to sync" err="Failed to publish resource {CREATE.resource}: EOF" '
    error = at(0.3, AGENT, f'{text}logger="AvailableStatusController.UnhandledError" key="{CREATE.resource}"', "E")
    trace = traced(tmp_path, [*lines_of(stopped), error, *ALIVE])["nginx", "create"]
    assert (trace.failed_stage, codes(trace)) == (5, {"MT-501"})
