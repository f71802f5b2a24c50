"""Logs full of one request, whose statuses come again and again: work in proportion to the lines, answers as ever."""

import sys
from pathlib import Path

import pytest

from maestropy.trace.logs import tracing
from maestropy.trace.logs.match import spec_requests
from maestropy.trace.logs.model import Options, RequestVerdict
from maestropy.trace.logs.read import scan
from tests.trace_request_logs import AGENT, BASE, SERVERS, LoggedRequest, lines_g4

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
    count = 0

    def count_call(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        requests = spec_requests.spec_requests_of(CREATE.resource, records)
    finally:
        sys.setprofile(None)
    assert len(requests) == 1
    return count


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
