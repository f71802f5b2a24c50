"""Logs full of one request, whose statuses come again and again: work in proportion to the lines, answers as ever."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.trace import requests as trace_requests
from maestropy.trace.logs import tracing
from maestropy.trace.logs.log_records import LogRecord, RecordKind, count_of
from maestropy.trace.logs.match import spec_requests
from maestropy.trace.logs.model import Options, RequestVerdict
from maestropy.trace.logs.read import scan
from tests.trace_request_logs import AGENT, BASE, SERVERS, LoggedRequest, klog, lines_g4

CREATE = LoggedRequest(work="nginx")


def storm(folder: Path, repeats: int) -> Path:
    """Write a request whose stages 5 to 9 happen `repeats` times more, with the same status."""
    lines = {(pod, line) for pod, _, line in lines_g4(CREATE)}
    for number in range(repeats):
        later = LoggedRequest(work="nginx", at=BASE + 1 + number, op_id=CREATE.operation)
        for pod, at, line in lines_g4(later):
            if at > later.at + 0.2:
                lines.add((pod, line.replace(str(later.sequence), str(CREATE.sequence))))
    folder.mkdir()
    for pod in (*SERVERS, AGENT):
        (folder / f"{pod}.log").write_text("".join(sorted(f"{line}\n" for one, line in lines if one == pod)))
    return folder


def calls_for(folder: Path) -> int:
    """Count the function calls that matching the records of the request takes."""
    read = scan.scan_all([str(folder)], now=BASE + 86400)
    records = sorted((record for record in read.records if record.resource), key=lambda record: record.at)
    return calls_for_records(records, requests=1)


def calls_for_records(records: Sequence[LogRecord], *, requests: int) -> int:
    count = 0

    def count_call(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        found = spec_requests.spec_requests_of(CREATE.resource, records)
    finally:
        sys.setprofile(None)
    assert len(found) == requests
    return count


def published(count: int) -> list[LogRecord]:
    """Return records of one event that is published again and again."""
    return [
        LogRecord(RecordKind.PUBLISHING, BASE + at, 0, at, at, resource=CREATE.resource, event="e", action="create")
        for at in range(count)
    ]


def updates(count: int) -> list[LogRecord]:
    """Return the arrivals of updates, each followed by what its agent does."""
    kinds = (RecordKind.REQUEST_RECEIVED, RecordKind.SENDING_SPEC, RecordKind.RECEIVED_SPEC, RecordKind.APPLIED)
    return [
        LogRecord(
            kind, BASE + at + stage / 10, stage > 1, at, at, resource=CREATE.resource, op_id=f"op-{at}",
            version=at + (stage > 0) if stage < 3 else -1, consumer="c", action="update",
        )
        for at in range(1, count + 1)
        for stage, kind in enumerate(kinds)
    ]  # fmt: skip


def test_twice_the_repetitions_and_requests_take_twice_the_work() -> None:
    single, double = (calls_for_records(published(count), requests=1) for count in (500, 1000))
    assert double < 2.4 * single
    single, double = (calls_for_records(updates(count), requests=count) for count in (250, 500))
    assert double < 2.4 * single


@pytest.mark.long
def test_repetitions_are_counted_and_not_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = 12_000
    stopped = LoggedRequest(work="nginx", until=3)
    lines: dict[str, list[str]] = {pod: [] for pod in (*SERVERS, AGENT)}
    for pod, _, line in lines_g4(stopped):
        lines[pod].append(line)
    for number in range(count):
        error = f'"controller failed to sync" err="conflict with version {number}" key="{CREATE.resource}"'
        lines[AGENT].append(klog(BASE + 1 + number / 10, "base_controller.go:159", error, "E"))
    for pod, own in lines.items():
        (tmp_path / f"{pod}.log").write_text("".join(f"{line}\n" for line in own))
    (trace,) = trace_requests(str(tmp_path))
    handled = trace.stages[3]
    assert (trace.verdict, trace.failed_stage) == (RequestVerdict.FAILED, 4)
    assert handled.note == f"{count} times"
    assert handled.first == pytest.approx(BASE + 1)
    assert handled.last == pytest.approx(BASE + 1 + (count - 1) / 10)
    assert count_of(handled.records) == count
    assert len(handled.records) < 1000
    assert main.call(["trace", "request", "nginx", str(tmp_path), "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)["requests"][0]
    assert report["stages"][3]["count"] == count
    assert len(report["timeline"]) + report["timelineLeftOut"] == count_of(trace.timeline)


def test_twice_the_lines_take_twice_the_work(tmp_path: Path) -> None:
    single, double = calls_for(storm(tmp_path / "one", 150)), calls_for(storm(tmp_path / "two", 300))
    assert double < 2.4 * single


def test_logs_full_of_one_request_are_read_from_start_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = storm(tmp_path / "logs", 50)

    def searched() -> tracing.TracedLogs:
        tracer = tracing.RequestTracer([str(folder)], options=Options(), now=BASE + 86400, whole=0)
        return tracer.judge(tracer.find(["nginx"]), frozenset({CREATE.resource}), ["nginx"])

    around = searched()
    monkeypatch.setattr(scan, "_MOST_AROUND", 0)
    whole = searched()
    assert (around.scan.records.is_partial, whole.scan.records.is_partial) == (True, False)
    assert [trace.verdict for trace in whole.traces] == [RequestVerdict.COMPLETE]
    assert len(whole.traces[0].timeline) == len(around.traces[0].timeline)
