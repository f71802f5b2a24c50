"""Scanning logs: every stage of every generation, parts of files, foreign files, damaged input."""

import csv
import gzip
import io
import json
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from maestropy.cli import main
from maestropy.trace.logs import tracer
from maestropy.trace.logs.model import Options, RequestVerdict, StageState, Trace
from maestropy.trace.logs.read import record_reader, scan
from maestropy.trace.logs.read.log_writers import Environment
from tests import trace_request_generations as generations
from tests.trace_request_logs import AGENT, BASE, SERVERS, LoggedRequest, klog, records, write

NOW = BASE + 86400
CREATE = LoggedRequest(work="nginx")
UPDATE = LoggedRequest(work="nginx", action="update", version=2, at=BASE + 300)
DELETE = LoggedRequest(work="nginx", action="delete", version=2, at=BASE + 600, op_id="op-nginx-update-2")
HEALTHY = LoggedRequest(work="healthy", at=BASE - 100)
CODES = {2: "MT-209", 3: "MT-306", 4: "MT-412", 5: "MT-503", 6: "MT-603", 7: "MT-708", 8: "MT-803", 9: "MT-905"}
SILENT_ABOUT_DELETIONS = ("G0", "G1")


def judged(read: scan.Scan, options: Options = Options()) -> tuple[list[Trace], Environment]:  # noqa: B008 - a frozen value
    environment = tracer.read_environment(read.records, read.writers, options=options)
    return sorted(tracer.traces(read.records, environment, options=options), key=lambda each: each.start), environment


def traced(folder: Path, options: Options = Options()) -> tuple[list[Trace], Environment]:  # noqa: B008 - a frozen value
    return judged(scan.scan_all([str(folder)], now=NOW), options)


@pytest.mark.parametrize("generation", generations.GENERATIONS)
def test_create_update_delete_are_complete_in_every_generation(tmp_path: Path, generation: str) -> None:
    traces, _ = traced(write(tmp_path, [CREATE, UPDATE, DELETE], generation))
    assert [(trace.key.action, trace.verdict) for trace in traces] == [
        ("create", RequestVerdict.COMPLETE), ("update", RequestVerdict.COMPLETE), ("delete", RequestVerdict.COMPLETE),
    ]  # fmt: skip


@pytest.mark.parametrize("generation", generations.GENERATIONS)
@pytest.mark.parametrize("last", range(1, 9))
@pytest.mark.parametrize("logged", [CREATE, UPDATE, DELETE], ids=lambda each: each.action)
def test_each_missing_stage_has_its_code(tmp_path: Path, logged: LoggedRequest, last: int, generation: str) -> None:
    before = {"create": [], "update": [CREATE], "delete": [CREATE, UPDATE]}[logged.action]
    traces, _ = traced(write(tmp_path, [*before, replace(logged, until=last), HEALTHY], generation))
    found = next(
        trace for trace in reversed(traces) if trace.key.action == logged.action and trace.key.work_name == "nginx"
    )
    expected = last + 1
    if logged is DELETE and expected == 7 and generation in SILENT_ABOUT_DELETIONS:
        # They write nothing about a deletion's status before they broadcast it.
        assert found.stages[6].state is StageState.NOT_OBSERVABLE
        expected = 8
    assert (found.verdict, found.failed_stage) == (RequestVerdict.INCOMPLETE, expected)
    assert CODES[expected] in {finding.code for finding in found.findings}
    assert {trace.verdict for trace in traces if trace is not found} == {RequestVerdict.COMPLETE}


@pytest.mark.parametrize("generation", generations.GENERATIONS)
@pytest.mark.parametrize("lost", range(1, 9))
def test_lost_lines_are_not_a_failure_in_any_generation(tmp_path: Path, lost: int, generation: str) -> None:
    traces, _ = traced(write(tmp_path, [replace(CREATE, without=frozenset({lost})), HEALTHY], generation))
    assert {trace.verdict for trace in traces} == {RequestVerdict.COMPLETE}


def test_create_without_subscribed_client_is_not_superseded_after_its_status(tmp_path: Path) -> None:
    folder = write(tmp_path, [replace(CREATE, until=7), replace(UPDATE, until=7)])
    for pod in SERVERS:
        log = folder / f"{pod}.log"
        start = klog(BASE - 50, "grpc_server.go:154", '"Starting gRPC server" logger="maestro-server"')
        log.write_text(f"{start}\n{log.read_text()}")
    traces, _ = traced(folder)
    assert [each.verdict for each in traces] == [RequestVerdict.COMPLETE, RequestVerdict.COMPLETE]
    assert {finding.code for trace in traces for finding in trace.findings} == {"MT-901"}


def test_server_instance_without_logs_is_reported(tmp_path: Path) -> None:
    folder = write(tmp_path, [replace(CREATE, until=8), HEALTHY])
    traces, _ = traced(folder)
    assert (traces[1].verdict, traces[1].failed_stage) == (RequestVerdict.INCOMPLETE, 9)
    traces, environment = traced(folder, Options(expected_instances=4))
    assert environment.instances == 4
    assert traces[1].stages[8].state is StageState.NOT_OBSERVABLE
    assert traces[1].verdict is not RequestVerdict.INCOMPLETE
    assert "MT-004" in {log_finding.code for log_finding in tracer.log_findings(environment)}


def test_expected_instances_option_marks_stages_not_observable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, [CREATE])
    assert main.call(["trace", "requests", str(tmp_path), "--expect-instances", "5"]) == 0
    assert "logs of 3 of 5 server instances" in capsys.readouterr().out


_PARTS = """
import sys
from maestropy.trace.logs.read import scan, workers
scan._WORTH_A_PROCESS = 0
assert workers.can_fork() or sys.platform != "linux"
def told(read):
    return sorted(read.records, key=lambda record: (record.file, record.line)), [
        (each.path, each.role, each.lines, each.bytes, each.record_count, each.first, each.last, each.stages,
         each.consumers, each.instances) for each in read.writers]
whole = told(scan.scan_all(sys.argv[1:], now=1768554001.0))
for jobs in (2, 3, 7, 11):
    assert len(scan._shares(scan.log_inputs.plain_files(sys.argv[1:]), jobs)) == jobs
    assert told(scan.scan_all(sys.argv[1:], now=1768554001.0, jobs=jobs)) == whole
print(len(whole[0]))
"""


@pytest.mark.parametrize("generation", ["G2", "G4"])
def test_scan_in_parts_equals_scan_of_whole_files(tmp_path: Path, generation: str) -> None:
    folder = write(tmp_path, [LoggedRequest(work=f"w{number}", at=BASE + number) for number in range(40)], generation)
    done = subprocess.run(
        [sys.executable, "-c", _PARTS, str(folder)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, int(done.stdout or 0) > 500) == (0, True), done.stderr


def test_foreign_files_are_reported_in_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE])
    data = tmp_path / "data" / "base"
    data.mkdir(parents=True)
    chance = random.Random(1)
    for number in range(30):
        (data / str(number)).write_bytes(b"\0" * 600 + chance.randbytes(2000))
    for number in range(5):
        (data / f"{number}.conf").write_text("listen_addresses = ''\n" * 9)
    (data / "nothing").touch()
    assert main.call(["trace", "requests", str(tmp_path)]) == 0
    capsys.readouterr()
    # What is damaged may be a log, so not all requests may be known.
    (data / "torn.gz").write_bytes(b"\x1f\x8b\x08\x00 not really")
    assert main.call(["trace", "requests", str(tmp_path), "--exit-zero"]) == 0
    capsys.readouterr()
    assert main.call(["trace", "requests", str(tmp_path)]) == 6
    out, trouble = capsys.readouterr()
    assert "3 server pods, 1 agent" in out
    warnings = trouble.splitlines()
    assert len(warnings) == 4
    assert any("30 files: not text" in warning for warning in warnings)
    assert any("5 files: no log" in warning for warning in warnings)
    assert any("torn.gz" in warning for warning in warnings)


def test_truncated_archive_keeps_the_records_before_the_damage(tmp_path: Path) -> None:
    for file in write(
        tmp_path, [CREATE, *(LoggedRequest(work=f"w{number}", at=BASE + 20 + number) for number in range(50))]
    ).iterdir():
        packed = gzip.compress(file.read_bytes())
        file.with_suffix(".log.gz").write_bytes(packed[: len(packed) * 3 // 4] if AGENT in file.name else packed)
        file.unlink()
    read = scan.scan_all([str(tmp_path)], now=NOW)
    traces, environment = judged(read)
    assert [agent_log.path for agent_log in environment.agent_logs] == [f"{AGENT}.log.gz"]
    assert environment.agent_logs[0].record_count > 10
    assert len(read.unreadable) == 1
    assert traces[0].verdict is RequestVerdict.COMPLETE


def _export(folder: Path, logged_requests: list[LoggedRequest], *, is_reversed: bool) -> Path:
    rows = [(at, pod, line) for pod, told in records(logged_requests, "G4").items() for at, line in told]
    rows.sort(key=lambda row: -row[0] if is_reversed else row[0])
    texts = [(datetime.fromtimestamp(at, tz=UTC).isoformat(), pod, line) for at, pod, line in rows]
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([("TIMESTAMP", "pod_name", "log"), *texts, ("short",)])
    path = folder / "export.csv"
    path.write_text(out.getvalue())
    return path


@pytest.mark.parametrize("is_reversed", [False, True], ids=["in-order", "latest-first"])
def test_csv_export_is_read_in_any_row_order(tmp_path: Path, is_reversed: bool) -> None:
    logged_requests = [LoggedRequest(work=f"w{number}", at=BASE + number) for number in range(60)]
    traces, environment = traced(_export(tmp_path, logged_requests, is_reversed=is_reversed))
    assert (len(traces), {trace.verdict for trace in traces}) == (60, {RequestVerdict.COMPLETE})
    assert {server.pod for server in environment.servers} == set(SERVERS)


def test_very_long_lines_and_numbers_are_tolerated(tmp_path: Path) -> None:
    folder = write(tmp_path, [CREATE])
    log = folder / f"{SERVERS[0]}.log"
    text = log.read_text()
    absurd = text.replace('"resourceversion":1', f'"resourceversion":{"9" * 30}').replace(
        CREATE.resource, "other-resource"
    )
    log.write_text("x" * 300_000 + "\n" + text + absurd + f'I0115 09:00:09.000000       1 a.go:1] "{"y" * 300_000}"\n')
    traces, _ = traced(folder)
    assert next(trace for trace in traces if trace.key.resource == CREATE.resource).verdict is RequestVerdict.COMPLETE


def test_search_finds_the_same_records_as_a_full_scan(tmp_path: Path) -> None:
    logged_requests = [LoggedRequest(work=f"w{number}", at=BASE + number) for number in range(300)]
    folder = write(tmp_path, logged_requests)
    wanted = logged_requests[150].resource
    found = scan.scan_around([str(folder)], [wanted], now=NOW)
    scan.count_lines(found, set(zip(found.records.files, found.records.offsets, strict=True)))
    scan_all = scan.scan_all([str(folder)], now=NOW)
    of_one = [{record for record in read.records if record.resource == wanted} for read in (found, scan_all)]
    assert of_one[0] == of_one[1]
    assert len(found.records) < len(scan_all.records)


def test_input_that_is_left_out_is_inconclusive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code of the report is that of the command."""
    folder = write(tmp_path, [CREATE])
    (folder / "more.log.gz").write_bytes(gzip.compress(b"I0115 09:00:01.000000       1 a.go:1] more\n" * 99)[:-20])
    for command in (["requests"], ["request", "nginx"]):
        assert main.call(["trace", *command, str(folder), "-o", "json"]) == 6
        document = json.loads(capsys.readouterr().out)
        assert document["exitCode"] == 6
        assert [request["verdict"] for request in document["requests"]] == ["complete"]


def test_equal_damaged_lines_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small archive of one line, repeated millions of times, is read as fast as other logs."""
    line = b'I0115 09:00:01.123456       1 x.go:1] "receive the event from client" a\n'
    file = tmp_path / "damaged.log"
    file.write_bytes(line * 5000 + line.replace(b" a", b' op-id="x"'))
    count = 0
    read = record_reader.read

    def counted(*arguments: Any, **options: Any) -> record_reader.ParsedRecord | None:
        nonlocal count
        count += 1
        return read(*arguments, **options)

    monkeypatch.setattr(record_reader, "read", counted)
    found = scan.scan_all([str(file)], now=BASE)
    assert count < 10
    assert len(found.records) == 5001
    assert found.writers[0].record_count == 5001
    assert sorted(found.records.lines) == list(range(1, 5002))
