"""Which statuses the history records, and what of them."""

import json
from typing import Any

import pytest

from maestropy.server.decide.history import kinds, status_changes


def status(
    applied: str = "True", *, reason: str = "Done", feedback: Any = None, kind: str = "Deployment", **more: Any
) -> bytes:
    condition = {"type": "Applied", "status": applied, "reason": reason, "message": more.get("message", "")}
    condition["lastTransitionTime"] = more.get("time", "2026-01-01T00:00:00Z")
    manifest = {
        "resourceMeta": {"kind": kind, "namespace": "default", "name": "web", "ordinal": 0},
        "conditions": [{"type": "Available", "status": "True"}],
        "statusFeedback": {"values": feedback or []},
    }
    return json.dumps({"conditions": [condition], "resourceStatus": [manifest]}).encode()


def value(name: str, integer: int) -> Any:
    return {"name": name, "fieldValue": {"type": "Integer", "integer": integer}}


def found(before: bytes, after: bytes, *, versions: tuple[int, int] = (1, 1)) -> Any:
    old, new = (
        status_changes.outline(data, version=version) for data, version in zip((before, after), versions, strict=True)
    )
    transition = status_changes.transition(old, new)
    return None if transition is None else json.loads(transition.detail)


def test_first_status_records_all_conditions() -> None:
    after = status_changes.outline(status(), version=1)
    transition = status_changes.transition(status_changes.EMPTY, after)
    assert transition is not None
    assert json.loads(transition.detail) == {
        "observed_version": 1,
        "conditions": [
            {"type": "Applied", "from": "", "to": "True", "reason": "Done"},
            {"object": "Deployment default/web", "type": "Available", "from": "", "to": "True", "reason": ""},
        ],
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(status(), status(), id="same"),
        pytest.param(status(), status(message="other"), id="message"),
        pytest.param(status(), status(time="2026-02-02T00:00:00Z"), id="time"),
        pytest.param(status(feedback=[value("n", 1)]), status(feedback=[value("n", 1)]), id="same-feedback"),
        pytest.param(b"", b"{}", id="empty"),
    ],
)
def test_repeats_are_no_transition(before: bytes, after: bytes) -> None:
    assert found(before, after) is None


def test_changes_are_recorded_with_what_was_before() -> None:
    assert found(status(), status("False", reason="Failed")) == {
        "conditions": [{"type": "Applied", "from": "True", "to": "False", "reason": "Failed"}]
    }
    assert found(status(), status(reason="Other"))["conditions"][0]["reason"] == "Other"
    assert found(status(), status(), versions=(1, 2)) == {"observed_version": 2}
    gone = json.dumps({"conditions": []}).encode()
    assert [change["to"] for change in found(status(), gone)["conditions"]] == ["", ""]


def test_feedback_is_recorded_by_name_and_digest() -> None:
    changed = found(status(feedback=[value("ready", 1)]), status(feedback=[value("ready", 2)]))
    (change,) = changed["feedback"]
    assert (change["object"], change["name"], len(change["digest"])) == ("Deployment default/web", "ready", 12)
    back = found(status(feedback=[value("ready", 1)]), status(feedback=[value("ready", 2)]))
    assert back == changed
    removed = found(status(feedback=[value("ready", 1)]), status())
    assert removed["feedback"] == [{"object": "Deployment default/web", "name": "ready", "removed": "true"}]


def test_feedback_of_a_secret_has_no_digest() -> None:
    secret = {"name": "password", "fieldValue": {"type": "String", "string": "hunter2"}}
    detail = found(status(kind="Secret"), status(kind="Secret", feedback=[secret]))
    assert detail == {"feedback": [{"object": "Secret default/web", "name": "password"}]}
    other = {"name": "password", "fieldValue": {"type": "String", "string": "hunter3"}}
    assert found(status(kind="Secret", feedback=[secret]), status(kind="Secret", feedback=[other])) is None


@pytest.mark.parametrize(
    ("before", "after", "seconds_ago", "is_due"),
    [
        pytest.param(
            status(feedback=[value("n", 1)]), status(feedback=[value("n", 2)]), 1.0, False, id="feedback-soon"
        ),
        pytest.param(
            status(feedback=[value("n", 1)]), status(feedback=[value("n", 2)]), 60.0, True, id="feedback-later"
        ),
        pytest.param(
            status(feedback=[value("n", 1)]), status(feedback=[value("n", 2)]), None, True, id="feedback-first"
        ),
        pytest.param(status(), status("False"), 1.0, True, id="condition-soon"),
    ],
)
def test_counters_in_feedback_are_recorded_once_a_minute(
    before: bytes, after: bytes, seconds_ago: float | None, is_due: bool
) -> None:
    old, new = status_changes.outline(before, version=1), status_changes.outline(after, version=1)
    transition = status_changes.transition(old, new)
    assert transition is not None
    assert status_changes.is_due(transition, recorded_seconds_ago=seconds_ago) is is_due


@pytest.mark.parametrize("data", [b"[]", b'{"conditions":3}', b'{"resourceStatus":{}}', b"\xff", b"[" * 5000])
def test_unreadable_status_is_said(data: bytes) -> None:
    assert found(b"", data) == {"unreadable": True}


def test_null_counts_as_absent() -> None:
    data = json.dumps(
        {
            "conditions": [{"type": "Applied", "status": None}],
            "resourceStatus": [{"resourceMeta": None, "conditions": None}],
        }
    ).encode()
    assert status_changes.outline(data, version=1).conditions == {("", "Applied"): ("", "")}


def test_huge_status_is_bounded() -> None:
    conditions = [{"type": f"{'ü' * 3000}{number}", "status": "True", "reason": "r" * 9000} for number in range(400)]
    detail = found(b"", json.dumps({"conditions": conditions}).encode())
    assert detail["truncated"] is True
    assert len(json.dumps(detail, ensure_ascii=False).encode()) <= kinds.MAX_DETAIL_BYTES + 1000
