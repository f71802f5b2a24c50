"""The steps of a deletion: how far it has come, and whose turn it is."""

from dataclasses import replace

import pytest

from maestropy.trace.work.judge import deletion, verdicts
from maestropy.trace.work.judge.facts import Expectations, compute
from maestropy.trace.work.model import AccessStatus, SpecEvent, Tombstone, WorkData
from maestropy.trace.work.report import render, work_report
from tests.unit.trace.work.traced_works import ABSENT, APPLIED, HEALTHY, LIVE, NOW, WORK_ID, ago, data, row

DELETED = row(deleted=ago(minutes=3))
UNPUBLISHED = replace(DELETED, events=(SpecEvent(id="e", type="Delete", created=ago(minutes=3), reconciled=None),))
PUBLISHED = replace(
    DELETED, events=(SpecEvent(id="e", type="Delete", created=ago(minutes=3), reconciled=ago(minutes=2)),)
)
LEAVING = replace(APPLIED, deleting=ago(minutes=2))
HELD = replace(LIVE, deleting=ago(minutes=2), finalizers=("example.com/keep",))
DARK = AccessStatus(description="cluster mgmt", is_readable=False, problem="forbidden", consumer="mgmt-1")
TOMBSTONE = Tombstone(resource_id=WORK_ID, source="client", work_name="nginx-work", consumer="mgmt-1", created=NOW)


@pytest.mark.parametrize(
    ("work", "states"),
    [
        pytest.param(HEALTHY, [], id="active"),
        pytest.param(
            data(row=UNPUBLISHED), ["done", "waiting", "waiting", "not yet", "not yet"], id="server-has-not-published"
        ),
        pytest.param(
            data(row=PUBLISHED), ["done", "done", "waiting", "not yet", "not yet"], id="agent-has-not-received"
        ),
        pytest.param(
            data(row=PUBLISHED, applied=(LEAVING,), live_objects=(HELD,)),
            ["done", "done", "done", "waiting", "not yet"],
            id="finalizer",
        ),
        pytest.param(
            data(row=DELETED, applied=(LEAVING,), live_objects=(ABSENT,)),
            ["done", "done", "done", "done", "not yet"],
            id="applied-work-remains",
        ),
        pytest.param(
            data(row=PUBLISHED, applied=(), live_objects=(ABSENT,)),
            ["done", "done", "done", "done", "not yet"],
            id="confirmation-missing",
        ),
        pytest.param(
            data(row=DELETED, applied=(), live_objects=(), clusters=(DARK,)),
            ["done", "unknown", "unknown", "unknown", "not yet"],
            id="cluster-unreadable",
        ),
        pytest.param(
            data(row=None, applied=(), live_objects=(), tombstones=(TOMBSTONE,)), ["done"] * 5, id="confirmed"
        ),
    ],
)
def test_steps_of_a_deletion(work: WorkData, states: list[str]) -> None:
    assert [step.state for step in deletion.steps(compute(work, now=NOW))] == states


def test_report_explains_the_step_that_waits() -> None:
    work = data(row=PUBLISHED, applied=(LEAVING,), live_objects=(HELD,))
    facts = compute(work, now=NOW, expectations=Expectations())
    traced = work_report.Traced(facts=facts, verdict=verdicts.judge(facts))
    shown = "\n".join(render.work_lines(traced))
    assert "✓ published     the Delete event was published" in shown
    assert "> objects gone  Deployment/default/nginx waits for example.com/keep" in shown
    assert deletion.STEPS["objects gone"] in shown
    assert work_report.work_model(traced)["deletion"][3]["state"] == "waiting"
