"""Works that were delivered again, in logs that begin after their requests."""

from dataclasses import replace
from pathlib import Path

import pytest

from maestropy.trace.logs.judge import pauses, sent_again
from maestropy.trace.logs.model import RequestVerdict, StageState, Trace
from maestropy.trace.work import parse
from maestropy.trace.work.model import TracedResource
from tests.trace_request_logs import AGENT, BASE, LoggedRequest
from tests.unit.trace.logs.judge.test_situations import (
    SERVER,
    Line,
    alive,
    at,
    concluded,
    lines_of,
    sync_failed,
    traced,
)

WITHOUT = frozenset({1})
AGAIN = LoggedRequest(work="nginx", action="update", version=2, at=BASE + 60, until=3, without=WITHOUT)
BEGIN = [at(-600, SERVER, "still here"), at(-600, AGENT, "still here"), *alive(SERVER), *alive(AGENT)]


def only(folder: Path, lines: list[Line]) -> Trace:
    (trace,) = traced(folder, lines).values()
    return trace


def row(version: int, *, applied: str = "True") -> TracedResource:
    status = {"ObservedVersion": version, "conditions": [{"type": "Applied", "status": applied}]}
    return parse.bundle({"id": AGAIN.resource, "consumer_name": "mgmt-1", "version": 2, "status": status})


@pytest.mark.parametrize("version", [1, 2], ids=["created-before", "updated-before"])
def test_silent_agent_has_perhaps_handled_the_version_before(tmp_path: Path, version: int) -> None:
    trace = only(tmp_path, [*lines_of(replace(AGAIN, version=version)), *BEGIN])
    assert concluded(trace) == (RequestVerdict.UNKNOWN, None, sent_again.CODE)
    assert StageState.MISSING not in {stage.state for stage in trace.stages}


def test_new_row_was_not_delivered_before(tmp_path: Path) -> None:
    first = LoggedRequest(work="nginx", at=BASE + 60, until=3, without=WITHOUT)
    assert concluded(only(tmp_path, [*lines_of(first), *BEGIN])) == (RequestVerdict.INCOMPLETE, 4, "MT-412")


def test_request_in_the_logs_is_incomplete(tmp_path: Path) -> None:
    new = replace(AGAIN, without=frozenset())
    assert concluded(only(tmp_path, [*lines_of(new), *BEGIN])) == (RequestVerdict.INCOMPLETE, 4, "MT-412")


def test_error_of_the_agent_stays(tmp_path: Path) -> None:
    error = 'ConfigMap "cm" is invalid: data: Required value'
    trace = only(tmp_path, [*lines_of(AGAIN), sync_failed(AGAIN, 60.2, error), *BEGIN])
    assert concluded(trace) == (RequestVerdict.FAILED, 4, "MT-404")


@pytest.mark.parametrize(
    ("stored", "verdict"),
    [
        pytest.param(row(2), RequestVerdict.COMPLETE, id="applied"),
        pytest.param(row(1), RequestVerdict.UNKNOWN, id="status-of-an-older-version"),
        pytest.param(row(2, applied="False"), RequestVerdict.UNKNOWN, id="not-applied"),
    ],
)
def test_stored_status_decides(tmp_path: Path, stored: TracedResource, verdict: RequestVerdict) -> None:
    trace = pauses.refined(only(tmp_path, [*lines_of(AGAIN), *BEGIN]), pauses.known((), [stored]))
    assert trace.verdict is verdict
    assert [finding.code for finding in trace.findings] == [sent_again.CODE]


def test_work_that_is_sent_again_as_an_update_is_no_update(tmp_path: Path) -> None:
    create = LoggedRequest(work="nginx")
    again = replace(AGAIN, version=1, op_id=create.operation)
    assert only(tmp_path, [*lines_of(create, again), *BEGIN]).key.action == "create"
