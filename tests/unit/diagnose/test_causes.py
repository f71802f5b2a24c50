"""Findings with different causes stay apart, those with one cause are one, and commands have real names."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from maestropy.diagnose.analysis.analyze import Analysis
from tests.trace_request_logs import BASE
from tests.unit.diagnose import test_requests
from tests.unit.diagnose.archives import analysed, lines, of_files, row

NO_KIND = 'Failed to apply manifest: the server doesn\'t have a resource type "Teapot"'
DENIED = 'configmaps "cm-{n}" is forbidden: User "agent" cannot create resource "configmaps" in API group ""'
PLACEHOLDER = re.compile(r"\b(?:CONSUMER|NAME|VERB|KIND|SERVICE_ACCOUNT|SUBSCRIPTION)\b")
HOLD = {"trace": "hold", "consumer_name": "mgmt-1", "work_count": 2}
LEFT = {"trace": "history", "kind": "agent.disconnected", "consumer_name": "c 1", "time": "2"}
RIGHT = {"trace": "right", "user": "system:serviceaccount:a:b", "verb": "patch", "resource": "roles", "group": "rbac"}


def rejected(number: int, message: str) -> dict[str, Any]:
    return row(number, applied="False", message=message.replace("{n}", str(number)))


def waiting(number: int, consumer: str) -> dict[str, Any]:
    return {**row(number, consumer=consumer), "status": None}


def subjects(analysis: Analysis, code: str) -> list[tuple[str, ...]]:
    return sorted(tuple(name.split()[1] for name in item.subjects) for item in analysis.findings if item.code == code)


@pytest.mark.parametrize(("code", "works", "groups"), [
    ("MW-005", [rejected(1, NO_KIND), rejected(2, DENIED), rejected(3, DENIED)], [("work-1",), ("work-2", "work-3")]),
    ("MW-003", [waiting(1, "c1"), waiting(2, "c2"), waiting(3, "c1")], [("work-1", "work-3"), ("work-2",)]),
    ("MW-003", [waiting(number, f"c{number}") for number in range(1, 13)],
     [tuple(f"work-{number}" for number in range(1, 13))]),
], ids=["errors", "agents", "all-agents"])  # fmt: skip
def test_only_works_with_the_same_cause_are_one_finding(
    tmp_path: Path, code: str, works: list[dict[str, Any]], groups: list[tuple[str, ...]]
) -> None:
    analysis = analysed(of_files(tmp_path / "a.tar.zst", {"database/rows.jsonl": lines(*works)}))
    assert subjects(analysis, code) == groups


@pytest.mark.parametrize(("files", "code", "command"), [
    ({"database/history.jsonl": lines(LEFT)}, "MD-201", "maestro history 'c 1' --kind agent"),
    ({"database/holds.jsonl": lines(HOLD)}, "MD-501", "maestro consumer adopt mgmt-1 --dry-run"),
    ({"clusters/c1/rights.jsonl": lines({**RIGHT, "allowed": False})}, "MD-203",
     "kubectl auth can-i patch roles.rbac --as system:serviceaccount:a:b"),
    ({"server/broker.jsonl": lines({"name": "subscription s-1", "outcome": "warning"})}, "MD-307",
     "gcloud pubsub subscriptions update s-1 --expiration-period=never"),
    ({**test_requests.logs(), "database/rows.jsonl": lines(test_requests.stored()),
      "database/pauses.jsonl": lines(test_requests.PAUSE)}, "MT-213",
     "maestro consumer resume mgmt-1 --dry-run   # what would be sent; changes nothing"),
], ids=["history", "adopt", "can-i", "subscription", "resume"])  # fmt: skip
def test_commands_have_the_names_that_are_known(
    tmp_path: Path, files: dict[str, bytes | str], code: str, command: str
) -> None:
    analysis = analysed(of_files(tmp_path / "a.tar.zst", files))
    (found,) = (item for item in analysis.findings if item.code == code)
    assert command in found.finding.advice
    assert not [text for text in found.finding.advice if PLACEHOLDER.search(text)]


@pytest.mark.parametrize(
    ("seconds", "version"), [(1, 4), (900, 0)], ids=["stored-just-after", "stored-by-another-request"]
)
def test_version_that_logs_do_not_have_comes_from_the_row(tmp_path: Path, seconds: float, version: int) -> None:
    logs = {
        name: "\n".join(line.replace("create_request", "update_request") for line in text.splitlines())
        for name, text in test_requests.logs().items()
    }
    at = datetime.fromtimestamp(BASE + seconds, tz=UTC).isoformat()
    files = {**logs, "database/rows.jsonl": lines(test_requests.stored(version=4, updated_at=at))}
    analysis = analysed(of_files(tmp_path / "a.tar.zst", files))
    found = {item.resource_id: item for item in analysis.requests}[test_requests.UNPUBLISHED.resource]
    assert (found.action, found.version) == ("update", version)
