"""Rows of the works list: the verdict of `trace work`, bounded texts, no secrets."""

from datetime import timedelta
from typing import Any

import pytest

from maestropy.console import redaction, rows
from maestropy.trace.work.model import WorkHold
from tests.console import fake_api
from tests.console.fake_api import NOW, bundle, condition, stamp, status

OLD = stamp(NOW - timedelta(hours=3))
YOUNG = stamp(NOW - timedelta(minutes=1))


@pytest.mark.parametrize(
    ("changes", "code", "severity"),
    [
        pytest.param({}, "MW-001", "info", id="healthy"),
        pytest.param({"status": None, "created_at": YOUNG}, "MW-002", "warn", id="pending"),
        pytest.param({"status": None, "created_at": OLD}, "MW-003", "error", id="undelivered"),
        pytest.param({"version": 2}, "MW-004", "error", id="stale"),
        pytest.param(
            {"status": status(1, [condition("Applied", ok=False, message="denied")])}, "MW-005", "error", id="rejected"
        ),
        pytest.param({"deleted_at": OLD}, "MW-007", "warn", id="deleting"),
        pytest.param(
            {"status": status(1, [condition("Applied"), condition("Available", ok=False)])},
            "MW-111",
            "warn",
            id="unavailable",
        ),
    ],
)
def test_row_has_the_verdict_of_trace_work(changes: dict[str, Any], code: str, severity: str) -> None:
    row = rows.row(bundle(1, **changes), now=NOW)
    assert (row.code, row.severity) == (code, severity)
    assert bool(row.problem) == (code != "MW-001")


def test_held_work_is_an_error() -> None:
    hold = WorkHold(consumer="cluster1", reason="OtherDatabase", work_count=1, works=frozenset({"id-0000001"}))
    assert rows.row(bundle(1), now=NOW, hold=hold).code == "MW-122"
    assert rows.row(bundle(11), now=NOW, hold=hold).code == "MW-001"


def test_time_alone_makes_a_pending_work_due() -> None:
    row = rows.row(bundle(1, status=None, created_at=YOUNG), now=NOW)
    later = NOW + timedelta(minutes=10)
    assert NOW.timestamp() < row.due <= later.timestamp()
    assert rows.row(bundle(1, status=None, created_at=YOUNG), now=later).code == "MW-003"


def test_status_time_is_the_agents() -> None:
    assert rows.row(bundle(1), now=NOW).reported == (NOW - timedelta(hours=1)).timestamp()


def test_texts_of_others_are_short_and_printable() -> None:
    message = "x" * 5000 + "\u202e\x1b[31m"
    labels = {"k": "v\u202e\n"}
    row = rows.row(
        bundle(
            1,
            metadata={"name": "n", "labels": labels},
            status=status(1, [condition("Applied", ok=False, message=message)]),
        ),
        now=NOW,
    )
    assert len(row.problem) <= 300
    assert row.labels == ("k=v\\u202e\\n",)


def test_secret_values_are_in_no_row() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"pw": "aHVudGVyMg=="}}
    meta = {"kind": "Secret", "resource": "secrets", "name": "s"}
    failed = condition("Applied", ok=False, message='Secret "s" is invalid: data[pw]: Invalid value: "hunter2"')
    manifest = {"resourceMeta": meta, "conditions": [failed], "statusFeedback": {"values": [{"name": "pw"}]}}
    dirty = fake_api.bundle(1, manifests=[secret], status=status(1, [failed], [manifest]))
    row = rows.row(redaction.document(dirty), now=NOW)
    assert row.code == "MW-005"
    assert "hunter2" not in repr(row)
    assert "aHVudGVyMg" not in repr(row)
