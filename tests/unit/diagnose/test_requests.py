"""Requests in an archive: a pause explains those that were not published, and the scope limits which are judged."""

from pathlib import Path
from typing import Any

import pytest

from maestropy.diagnose import manifest
from maestropy.diagnose.analysis.analyze import Analysis
from tests.trace_request_logs import AGENT, BASE, LoggedRequest, klog, lines_g4
from tests.unit.diagnose.archives import NOW, analysed, lines, of_files, row

UNPUBLISHED = LoggedRequest(work="nginx", until=1)
FINE = LoggedRequest(work="other", at=BASE + 0.05)
PAUSE = {"trace": "pause", "consumer_name": "mgmt-1", "paused_by": "me", "paused_at": NOW, "reason": "upgrade"}


def logs() -> dict[str, str]:
    written: dict[str, list[str]] = {"maestro-0": [], AGENT: []}
    for logged in (UNPUBLISHED, FINE):
        for pod, _, line in lines_g4(logged):
            written[AGENT if pod == AGENT else "maestro-0"].append(
                line.replace(pod, AGENT if pod == AGENT else "maestro-0")
            )
    for pod in written:
        written[pod] += [klog(BASE + seconds, "file.go:1", '"goes on"') for seconds in range(2, 90, 2)]
    return {f"logs/files/{pod}.log": "\n".join(dict.fromkeys(found)) + "\n" for pod, found in written.items()}


def stored(**changes: Any) -> dict[str, Any]:
    found = {**row(consumer="mgmt-1"), "id": UNPUBLISHED.resource, "status": None, **changes}
    found["payload"]["metadata"]["name"] = "nginx"
    return found


def of_requests(analysis: Analysis) -> dict[str, str]:
    return {request.resource_id: request.code for request in analysis.requests if request.code}


def test_pause_is_the_only_finding_about_a_work_that_it_keeps(tmp_path: Path) -> None:
    event = {"trace": "event", "resource_id": UNPUBLISHED.resource, "consumer_name": "mgmt-1", "age_seconds": 5000}
    files = {**logs(), "database/rows.jsonl": lines(stored()), "database/pending_events.jsonl": lines(event)}
    without = analysed(of_files(tmp_path / "a.tar.zst", files))
    assert of_requests(without) == {UNPUBLISHED.resource: "MT-209"}
    assert {"MD-401", "MW-003"} <= {item.code for item in without.findings}
    paused = analysed(of_files(tmp_path / "b.tar.zst", {**files, "database/pauses.jsonl": lines(PAUSE)}))
    assert of_requests(paused) == {UNPUBLISHED.resource: "MT-213"}
    about = [item.code for item in paused.findings if item.code != "MW-100"]
    assert about == ["MW-123", "MT-213"]
    assert all(item.finding.evidence for item in paused.findings)


@pytest.mark.parametrize("version", [1, 3])
def test_update_that_waits_for_a_resumption_is_not_a_stale_status(tmp_path: Path, version: int) -> None:
    waiting = row(consumer="mgmt-1") | {"version": 4}
    waiting["status"]["resourceversion"] = version
    files = {"database/rows.jsonl": lines(waiting), "database/pauses.jsonl": lines(PAUSE)}
    codes = [item.code for item in analysed(of_files(tmp_path / "a.tar.zst", files)).findings]
    assert "MW-123" in codes
    assert "MW-004" not in codes


@pytest.mark.parametrize(
    ("scope", "count"),
    [
        (manifest.Scope(), 1),
        (manifest.Scope(consumer="mgmt-1"), 1),
        (manifest.Scope(consumer="mgmt-2"), 0),
        (manifest.Scope(work="nginx"), 1),
        (manifest.Scope(work="work-1"), 0),
    ],
    ids=["all", "consumer", "other-consumer", "work", "other-work"],
)
def test_requests_out_of_the_scope_of_a_collection_are_not_judged(
    tmp_path: Path, scope: manifest.Scope, count: int
) -> None:
    own = stored() if scope.work == "nginx" else row(consumer="mgmt-2")
    about = manifest.Manifest(collected_at=NOW, scope=scope)
    analysis = analysed(of_files(tmp_path / "a.tar.zst", {**logs(), "database/rows.jsonl": lines(own)}, about=about))
    assert len(of_requests(analysis)) == count
    assert all(item.finding.evidence for item in analysis.findings)
