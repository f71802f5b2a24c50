# ruff: noqa: E501 - log lines are as long as they are
"""The commands over logs: their output, exit codes and errors."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import jsonschema_rs
import pytest

from maestropy.cli import errors, main
from maestropy.trace.findings.apply_errors import code_of_apply_error
from maestropy.trace.findings.codes import CODES
from maestropy.trace.logs import tracer
from maestropy.trace.logs.kql import KqlWindow, query
from maestropy.trace.logs.model import Options
from maestropy.trace.logs.read import scan
from maestropy.trace.logs.selection import under_way
from maestropy.trace.stages import STAGES
from tests.trace_request_logs import AGENT, BASE, SERVERS, LoggedRequest, write

CREATE = LoggedRequest(work="nginx")
DATA = Path(__file__).parents[3] / "data"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main.call(["trace", *words])
    out, trouble = capsys.readouterr()
    return code, out, trouble


@pytest.mark.parametrize("word", [CREATE.resource, CREATE.operation, "nginx", CREATE.event("ce"), CREATE.event("db")],
                         ids=["resource", "operation", "work", "cloudevent", "database-event"])  # fmt: skip
def test_request_is_found_by_any_identifier(tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str) -> None:
    write(tmp_path, [CREATE, LoggedRequest(work="other", at=BASE + 5)])
    code, out, _ = run(capsys, "request", word, str(tmp_path))
    assert code == 0
    assert "COMPLETE in 289 ms" in out
    assert "other" not in out


def test_evidence_quotes_the_log_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE, replace(CREATE, work="bad", until=3)])
    log = tmp_path / f"{AGENT}.log"
    bad = LoggedRequest(work="bad")
    line = f'E0115 09:00:01.300000       1 base_controller.go:159] "controller failed to sync" err="configmaps \\"cm\\" is forbidden" key="{bad.resource}"\n'
    log.write_text(log.read_text().replace("I0115 09:10", line + "I0115 09:10"))
    code, out, _ = run(capsys, "request", "bad", str(tmp_path))
    number = log.read_text().splitlines().index(line.rstrip()) + 1
    assert code == 1
    assert "FAILED at stage 4 (agent handles)  MT-403" in out
    assert f"{AGENT}.log:{number}  E0115 09:00:01.300000" in out
    assert "ERROR: Maestro agent does not handle the spec request" in out


@pytest.mark.parametrize("form", ["json", "yaml", "md", "csv", "mermaid"])
def test_every_output_format_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    write(tmp_path, [CREATE])
    report = tmp_path.parent / f"{tmp_path.name}.report"
    code, out, _ = run(capsys, "requests", str(tmp_path), "-o", form, "--out", str(report))
    assert (code, str(report) in out) == (0, True)
    assert CREATE.resource in report.read_text() or form == "mermaid"


def test_json_model_has_published_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE, LoggedRequest(work="stopped", at=BASE + 1, until=3)])
    code, out, _ = run(capsys, "requests", str(tmp_path), "-o", "json")
    model = json.loads(out)
    assert (model["schemaVersion"], model["exitCode"], code) == ("1", 1, 1)
    stopped = next(request for request in model["requests"] if request["key"]["workName"] == "stopped")
    assert (stopped["verdict"], stopped["failedStage"], stopped["findings"][0]["code"]) == ("incomplete", 4, "MT-412")
    assert [stage["n"] for stage in stopped["stages"]] == list(range(1, 10))
    assert model["stats"]["byVerdict"] == {"complete": 1, "incomplete": 1}
    assert model["stats"]["hops"]["1-2"]["n"] == 2
    assert model["inputs"]["environment"]["instances"] == 3
    schema = json.loads((DATA.parents[1] / "docs" / "trace-request.schema.json").read_text())
    jsonschema_rs.validator_for(schema).validate(model)
    evidence = stopped["stages"][0]["evidence"][0]
    assert evidence["line"] > 0
    assert evidence["file"].startswith("maestro-")


def test_requests_are_filtered_and_grouped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE, *(LoggedRequest(work=f"bad{number}", at=BASE + number, until=4) for number in range(3))])
    code, out, _ = run(capsys, "requests", str(tmp_path), "--status", "incomplete", "--group-by", "code")
    assert code == 1
    assert out.startswith("3 requests")
    assert "MT-503" in out.splitlines()[-1]
    assert run(capsys, "requests", str(tmp_path), "--status", "complete")[0] == 0
    assert run(capsys, "requests", str(tmp_path), "--exit-zero")[0] == 0


def test_variables_of_older_scripts_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [CREATE, LoggedRequest(work="nginx", action="update", version=2, at=BASE + 9)])
    given = {"logs_dir": str(tmp_path), "resource_id": CREATE.resource, "resource_request": "update_request"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    code, out, _ = run(capsys, "request")
    assert code == 0
    assert "update v2" in out
    assert "create v1" not in out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("request", "x"), 2, "no logs are given"),
        (("request", "{logs}"), 2, "no identifier is given"),
        (("request", "x", "/nowhere/at/all"), 3, "does not exist"),
        (("request", "nobody", "{logs}"), 4, "nobody is not in these logs"),
        (("request", ".*", "{logs}"), 4, ".* is not in these logs"),
        (("request", "[0-9a-f]+", "{logs}"), 4, "is not in these logs"),
        (("request", "nginx", "{logs}", "--resource-request", "delete"), 4, "no request of it matches"),
        (("request", "nginx", "{logs}", "--resource-request", "remove"), 2, "--resource-request 'remove' is none"),
        (("request", "--live", "{logs}", "--timeout", "soon"), 2, "--timeout 'soon' is not a duration"),
        (("requests", "--follow"), 2, "nothing to follow is given"),
        (("requests", "--follow", "{logs}", "-o", "csv"), 2, "--follow writes text or"),
        (("requests", "--follow", "/nowhere/at/all", "--for", "1s"), 3, "does not exist"),
        (
            ("requests", "{logs}", "--html", "/nowhere/at/all/x.html"),
            2,
            "--html /nowhere/at/all/x.html cannot be written",
        ),
        (("requests", "{empty}"), 3, "holds no files"),
        (("requests", "{rubbish}"), 3, "not text"),
        (("requests", "{stranger}"), 3, "no line of Maestro was recognised"),
        (("requests", "{torn}"), 3, "torn.tar.gz"),
        (("requests", "{logs}", "--nope"), 2, "nope"),
        (("requests", "{logs}", "--since", "yesterday"), 2, "--since 'yesterday' is not a time"),
        (("requests", "{logs}", "--code", "MT-999"), 2, "there is no code"),
        (("explain", "MT-999"), 2, "there is no code"),
    ],
)
def test_invalid_input_has_message_and_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, message: str
) -> None:
    places = {name: tmp_path / name for name in ("logs", "empty", "rubbish", "stranger")}
    write(places["logs"], [CREATE])
    places["empty"].mkdir()
    places["rubbish"].write_bytes(bytes(range(256)) * 40 + b"\0" * 4000)
    places["stranger"].write_text("hello\nworld\n")
    places["torn"] = tmp_path / "torn.tar.gz"
    places["torn"].write_bytes(b"\x1f\x8b\x08\x00 not really")
    found, out, trouble = run(capsys, *(word.format(**places) for word in words))
    assert (found, message in trouble) == (code, True), trouble
    assert "Traceback" not in trouble + out


NO_NUMBERS = ("nan", "1e308", "-1", "9" * 400)
ALL = ("requests", "{logs}", "--index", "off")
ONE = ("request", "nginx", "{logs}")
HCP = ("hcp", "2ppsfca8u7368uin9koq9aq1b183mqke", "--offline", str(DATA / "trace_hcp"))


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: value[:8])
@pytest.mark.parametrize(
    ("command", "option"),
    [
        *(
            (ONE, option)
            for option in ("--stage-timeout", "--expect-instances", "--version", "--at", "--context-lines")
        ),
        *(
            (ALL, option)
            for option in ("--stage-timeout", "--expect-instances", "--top", "--jobs", "--slow", "--since")
        ),
        (ALL, "--until"),
        ((*ALL, "--follow"), "--for"),
        (("request", "--live", "{logs}"), "--timeout"),
        (("logs", "kql", "nginx"), "--since"),
        (("logs", "kql", "nginx"), "--until"),
        (("logs", "collect", "--svc-context", "none"), "--since"),
        (HCP, "--at"),
    ],
    ids=lambda part: part if isinstance(part, str) else part[0],
)
def test_number_or_time_that_is_none_is_rejected_by_its_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], option: str, value: str
) -> None:
    logs = write(tmp_path, [CREATE])
    found, out, trouble = run(capsys, *(word.format(logs=logs) for word in command), option, value)
    assert (found, option in trouble, out) == (2, True, ""), trouble
    assert "Traceback" not in trouble


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e308", "-1e300", "9" * 400, "x", ""])
def test_skew_that_is_none_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str) -> None:
    write(tmp_path, [CREATE])
    found, _, trouble = run(capsys, "requests", str(tmp_path), "--skew", f"{AGENT}={value}")
    assert found == 2
    assert "--skew" in trouble
    assert "such as maestro-agent-" in trouble


def test_window_that_ends_before_it_starts_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE])
    found, _, trouble = run(capsys, "requests", str(tmp_path), "--since", "1m", "--until", "1h")
    assert (found, trouble) == (
        2, "Error: --until 1h is before --since 1m, so no request can match; exchange them\n",
    )  # fmt: skip


def test_damaged_lines_do_not_change_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE])
    log = tmp_path / f"{AGENT}.log"
    noise = (
        b"\xff\xfe\x00rubbish\nI0115 09:00:01.1" + b"x" * 300_000 + b'\nI0115 99:99:99.000000 1 a] "Received event"\n'
    )
    log.write_bytes(noise + log.read_bytes() + b'I0115 09:20:01.123456       1 baseclient.go:303] "Received ev')
    code, out, _ = run(capsys, "request", "nginx", str(tmp_path))
    assert (code, "COMPLETE" in out) == (0, True)


def test_windows_line_ends_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in write(tmp_path, [CREATE]).iterdir():
        file.write_bytes(file.read_text().replace("\n", "\r\n").encode("utf-16"))
    code, out, _ = run(capsys, "request", "nginx", str(tmp_path))
    assert (code, "COMPLETE" in out) == (0, True)


def test_work_name_of_two_resources_is_ambiguous(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE])
    for file in tmp_path.iterdir():
        text = file.read_text()
        file.write_text(text + text.replace(CREATE.resource, "11111111-2222-3333-4444-555555555555"))
    code, _, trouble = run(capsys, "request", "nginx", str(tmp_path))
    assert code == 7
    assert CREATE.resource in trouble
    assert "11111111-2222-3333-4444-555555555555" in trouble


# At -v=2 a server does not log what a status says, so its log alone does not show whether a change was applied.
@pytest.mark.parametrize(
    ("name", "verdict"), [("trace_request_go_v2.log", "unknown"), ("trace_request_go_v4.log", "complete")]
)
def test_real_go_server_logs_have_no_false_failure(capsys: pytest.CaptureFixture[str], name: str, verdict: str) -> None:
    _, out, _ = run(capsys, "requests", str(DATA / name), "-o", "json")
    model = json.loads(out)
    verdicts = [(request["key"]["action"], request["verdict"]) for request in model["requests"]]
    assert verdicts == [("create", verdict), ("update", verdict), ("update", "failed"), ("delete", "complete")]
    refused = model["requests"][2]
    assert [(finding["code"], finding["confidence"]) for finding in refused["findings"]] == [("MT-201", "certain")]
    assert model["stats"]["byVerdict"]["complete"] == [each for _, each in verdicts].count("complete")


def test_logs_check_describes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE], "G2")
    code, out, _ = run(capsys, "logs", "check", str(tmp_path))
    assert code == 0
    assert "3 server pods, 1 agent; G2; broker mqtt; broadcast" in out
    _, out, _ = run(capsys, "logs", "check", str(DATA / "trace_request_go_v2.log"))
    assert "no line shows stage 2, 3, 4, 5, 6" in out


def failing(folder: Path) -> LoggedRequest:
    """Write a request that the agent cannot carry out, and says so."""
    bad = LoggedRequest(work="bad")
    write(folder, [bad])
    log = folder / f"{AGENT}.log"
    line = f'E0115 09:00:01.300000       1 base_controller.go:159] "controller failed to sync" err="configmaps \\"cm\\" is forbidden" key="{bad.resource}"\n'
    text = re.sub(r".*Server side applied.*\n", line, log.read_text())
    log.write_text(text)
    return bad


@pytest.mark.long
def test_live_prints_stages_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "good", [CREATE, LoggedRequest(work="other", at=BASE + 60)])
    code, out, _ = run(capsys, "request", "--live", "nginx", str(tmp_path / "good"))
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()[1:10]] == list("123456789")
    assert "Verdict  COMPLETE in 289 ms" in out
    code, out, _ = run(capsys, "request", "--live", str(tmp_path / "good"))
    assert (code, "create v1  other" in out) == (0, True)
    failing(tmp_path / "bad")
    code, out, _ = run(capsys, "request", "--live", "bad", str(tmp_path / "bad"))
    assert code == 1
    assert "Verdict  FAILED at stage 4 (agent handles)  MT-403" in out
    assert "\nERROR: Maestro agent does not handle the spec request\n" in out
    code, _, trouble = run(capsys, "request", "--live", "nobody", str(tmp_path / "good"), "--timeout", "900ms")
    assert (code, "no record of nobody within 0.9 s" in trouble) == (4, True)


def test_closed_pipe_is_no_unexpected_error(tmp_path: Path) -> None:
    write(tmp_path, [LoggedRequest(work=f"w{number}", at=BASE + number) for number in range(30)])
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "maestropy.cli.main", "trace", "requests", str(tmp_path), "-o", "json"]
    with os.fdopen(writer, "wb") as closed:
        ended = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (errors.OUTPUT_CLOSED, b"")


def test_trace_log_is_written_beside_the_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = failing(tmp_path)
    given = {"logs_dir": str(tmp_path), "work_name": "bad", "resource_id": bad.resource,
             "resource_request": "create_request"}  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    for count in (1, 2):
        code, out, _ = run(capsys, "request")
        assert code == 1
        assert "\nERROR: Maestro agent does not handle the spec request\n" in out
        written = sorted(tmp_path.glob("trace_request.*.log"))
        # What was written before is neither overwritten nor read again.
        assert len(written) == count
        assert f"Trace log: {tmp_path}/trace_request." in out
    assert re.fullmatch(r"trace_request\.\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(-2)?\.log", written[0].name)
    assert run(capsys, "request", "--output-dir", str(tmp_path / "traces"))[0] == 1
    assert len(list((tmp_path / "traces").iterdir())) == 1
    text = written[0].read_text()
    assert re.search(rf'^In maestro server instance {SERVERS[0][:8]}.*\nI0115 .*"receive the event from client"', text, re.MULTILINE)  # fmt: skip
    assert f"In maestro agent {AGENT}\n" in text
    assert "\nERROR: Maestro agent does not handle the spec request\n" in text


def test_default_logs_directory_is_that_of_the_runbooks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(capsys, "request", "nginx")[0] == 2
    write(tmp_path / "maestro-logs", [CREATE])
    code, out, trouble = run(capsys, "request", "nginx")
    assert (code, "COMPLETE" in out) == (0, True)
    assert f"Reading {tmp_path}/maestro-logs" in trouble


@pytest.mark.parametrize("stage", STAGES)
def test_every_missing_stage_prints_the_runbook_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stage: int
) -> None:
    # Another request shows that the logs would tell.
    logged = (
        LoggedRequest(work="lost", until=stage - 1) if stage > 1 else LoggedRequest(work="lost", without=frozenset({1}))
    )
    write(tmp_path, [LoggedRequest(work="fine", at=BASE - 5), logged])
    sentence = STAGES[stage][2]
    code, out, _ = run(capsys, "request", "lost", str(tmp_path), "-o", "log")
    if stage > 1:
        assert code == 1
        assert f"\nERROR: {sentence}\n" in out
    else:
        # Later stages prove that it was received: the line is missing, the request is not.
        assert "ERROR" not in out
    code, out, _ = run(capsys, "explain", f"ERROR: {sentence}")
    assert code == 0
    assert out.startswith(f"Stage {stage}, ")
    assert f"MT-{stage}0" in out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ('the server doesn\'t have a resource type "Gadget"', "MT-405"),
        ('no matches for kind "Gadget" in version "example.com/v1"', "MT-405"),
        ('configmaps "cm" is forbidden', "MT-403"),
        ('namespaces "x" not found', "MT-406"),
        ("something else", "MT-499"),
    ],
)
def test_api_server_errors_have_their_code(words: str, code: str) -> None:
    assert code_of_apply_error(words) == code


def test_every_code_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    _, listed, _ = run(capsys, "explain", "--list")
    assert [code for code in CODES if code not in listed] == []
    _, out, _ = run(capsys, "explain", "mt-404")
    assert CODES["MT-404"].cause in out


# The phrases that the older runbook searches in raw logs, and the code under which each is explained.
RUNBOOK = {
    "PublishError": "MT-101", "Failed to publish resource": "MT-204", "recreate the listener": "MT-203",
    "stopping channel": "MT-203", "failed to receive cloudevents": "MT-301", "Server Side Applied": "MT-412",
    "is removed Successfully": "MT-411", "ResourceDeleted": "MT-411",
    "failed to handle resource status update": "MT-603", "skipping resource status update": "MT-708",
    "unmatched consumer name": "MT-702", "failed to convert resource": "MT-707", "failed to decode cloudevent": "MT-707",
    "failed to create status event": "MT-707", "failed to get status event": "MT-802", "failed to get resource": "MT-802",
    "no clients registered on this instance": "MT-901", "failed to handle resource": "MT-905",
    "failed to send heartbeat": "MT-903", "failed to send event, unregister subscriber": "MT-903",
    "jsonb_pretty(payload)": "MT-209",
}  # fmt: skip


@pytest.mark.parametrize("phrase", RUNBOOK)
def test_explanations_have_the_phrases_of_the_runbook(capsys: pytest.CaptureFixture[str], phrase: str) -> None:
    _, out, _ = run(capsys, "explain", RUNBOOK[phrase])
    assert phrase in out


@pytest.mark.parametrize("code", ["MT-404", "MW-005", "HCP-404"])
def test_codes_of_all_tracers_are_explained(capsys: pytest.CaptureFixture[str], code: str) -> None:
    exit_code, out, _ = run(capsys, "explain", code)
    assert (exit_code, out.startswith(code)) == (0, True)
    _, listed, _ = run(capsys, "explain", "--list")
    assert f"\n{code} " in listed


@pytest.mark.parametrize(("table", "word"), [("containerLogs", "tostring(log)"), ("kubesystem", "TIMESTAMP")])
def test_queries_name_tables_and_quote_identifiers(table: str, word: str) -> None:
    text = query(
        table, "server", KqlWindow(start="2026-01-15T09:00:00Z", end="2026-01-15T09:10:00Z", identifiers=['a"b'])
    )
    assert word in text
    assert '"a\\"b"' in text
    assert '"maestro-server"' in text


@pytest.mark.parametrize(
    ("option", "value"), [("--stage-timeout", "0"), ("--stage-timeout", "nan"), ("--expect-instances", "-1")]
)
def test_invalid_numbers_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    code, _, error = run(capsys, "request", "w", str(write(tmp_path, [LoggedRequest(work="w")])), option, value)
    assert (code, option in error) == (2, True)


def test_user_input_is_printed_without_control_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = run(capsys, "request", "\x1b[2J" + "a" * 5000, str(write(tmp_path, [LoggedRequest(work="w")])))
    assert (code, "\x1b" in error, len(error) < 500) == (4, False, True)


def test_logs_are_read_from_pipes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = b"".join(path.read_bytes() for path in sorted(write(tmp_path, [LoggedRequest(work="w")]).iterdir()))
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "wb") as stream:
        stream.write(logs)
        stream.close()
        code, out, _ = run(capsys, "request", "w", f"/dev/fd/{reader}")
    assert (code, "COMPLETE" in out) == (0, True)


def test_device_file_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = run(capsys, "request", "w", "/dev/zero")
    assert (code, "/dev/zero is a device" in error) == (3, True)


@pytest.mark.parametrize(("since", "count"), [("1h", 0), (f"{BASE - 1:.0f}", None), ("2026-01-15T09:00:00Z", 1)])
def test_times_accept_ages(tmp_path: Path, capsys: pytest.CaptureFixture[str], since: str, count: int | None) -> None:
    code, out, _ = run(
        capsys, "requests", str(write(tmp_path, [LoggedRequest(work="w")])), "--since", since, "-o", "json"
    )
    assert code == (2 if count is None else 0)
    assert count is None or len(json.loads(out)["requests"]) == count


def _time(after: float) -> str:
    return datetime.fromtimestamp(BASE + after, UTC).isoformat()


UPDATE = replace(CREATE, action="update", version=2, at=BASE + 60)
LAST = replace(CREATE, action="update", version=3, at=BASE + 120)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--at", _time(60.1)], ["update v2"]),
        (["--at", _time(100)], ["update v2"]),
        (["--at", _time(0)], ["create v1"]),
        (["--at", "1m"], ["update v3"]),
        (["--at", _time(60.1), "--resource-request", "create_request"], ["create v1"]),
        (["--at", _time(60.1), "--version", "3"], []),
        (["--at", _time(60.1), "--nth", "0"], ["update v2"]),
        (["--at", _time(60.1), "--nth", "1"], []),
        (["--at", _time(-1)], []),
    ],
    ids=" ".join,
)
def test_at_selects_the_request_in_progress(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], found: list[str]
) -> None:
    write(tmp_path, [CREATE, UPDATE, LAST, LoggedRequest(work="other", at=BASE + 60)])
    code, out, trouble = run(capsys, "request", "nginx", str(tmp_path), *words)
    assert re.findall(r"^Request  (\w+ v\d)", out, re.MULTILINE) == found
    assert (code, "no request of it matches" in trouble) == ((0, False) if found else (4, True))


def test_at_prefers_the_long_request_in_progress(tmp_path: Path) -> None:
    write(tmp_path, [CREATE, UPDATE])
    read = scan.scan_all([str(tmp_path)], now=BASE + 86400)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    create, update = sorted(tracer.traces(read.records, environment, options=Options()), key=lambda each: each.start)
    long = replace(create, end=BASE + 600)
    assert under_way([long, update], BASE + 300) == [long]
    assert under_way([long, update], BASE + 60.1) == [update]
    assert under_way([long, update], BASE + 900) == [update]


@pytest.mark.parametrize("words", [["--at", "soon"], ["--at", "1h", "--live"]], ids=" ".join)
def test_invalid_times_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    code, _, trouble = run(capsys, "request", "nginx", str(write(tmp_path, [CREATE])), *words)
    assert (code, "--at" in trouble) == (2, True)


def skewed(folder: Path) -> Path:
    """Write logs of an agent whose clock is 350 ms ahead."""
    return write(folder, [LoggedRequest(work=f"w{number}", at=BASE + number, agent_clock=0.35) for number in range(8)])


@pytest.mark.parametrize(
    ("skew", "found", "hop"),
    [
        ([], {AGENT: pytest.approx(350, abs=5)}, pytest.approx(36, abs=5)),
        (["auto"], {AGENT: pytest.approx(350, abs=5)}, pytest.approx(36, abs=5)),
        (["off"], {}, pytest.approx(387, abs=1)),
        ([f"{AGENT}=300"], {AGENT: 300}, pytest.approx(87, abs=1)),
        (["off", f"{AGENT}=-12.5"], {AGENT: -12.5}, pytest.approx(399.5, abs=1)),
        (["off", f"{SERVERS[0]}=5", f"{AGENT}=350"], {SERVERS[0]: 5, AGENT: 350}, None),
        (
            [f"{pod}=1000" for pod in SERVERS],
            {**dict.fromkeys(SERVERS, 1000), AGENT: pytest.approx(1350, abs=5)},
            pytest.approx(36, abs=5),
        ),
    ],
    ids=lambda value: " ".join(value) or "none" if isinstance(value, list) else None,
)
@pytest.mark.parametrize("command", ["request", "requests"])
def test_skew_option_corrects_clocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, skew: list[str], found: object, hop: object
) -> None:
    words = [word for each in skew for word in ("--skew", each)]
    named = ["w3"] if command == "request" else []
    _, out, _ = run(capsys, command, *named, str(skewed(tmp_path)), *words, "-o", "json")
    model = json.loads(out)
    assert model["inputs"]["environment"]["skewMs"] == found
    traced = next(request for request in model["requests"] if request["key"]["workName"] == "w3")
    assert hop is None or traced["stages"][2]["hopMs"] == hop


def test_skew_option_bypasses_the_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("requests", str(skewed(tmp_path / "logs")), "--index", str(tmp_path / "index"), "-v", "-o", "json")
    first, again = run(capsys, *words), run(capsys, *words)
    _, out, trouble = run(capsys, *words, "--skew", "off")
    assert ("written" in first[2], "not read again" in again[2], trouble) == (True, True, "")
    assert json.loads(out)["inputs"]["environment"]["skewMs"] == {}
    assert AGENT in json.loads(run(capsys, *words)[1])["inputs"]["environment"]["skewMs"]


@pytest.mark.parametrize("command", ["request", "requests"])
@pytest.mark.parametrize(
    "skew", [["much"], ["=5"], [f"{AGENT}="], [f"{AGENT}=nan"], [f"{AGENT}=inf"], ["nobody=5"], ["auto", "off"],
             [f"{AGENT}=1", f"{AGENT}=2"]], ids=" ".join,
)  # fmt: skip
def test_invalid_skew_options_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, skew: list[str]
) -> None:
    words = [word for each in skew for word in ("--skew", each)]
    named = ["nginx"] if command == "request" else []
    code, _, trouble = run(capsys, command, *named, str(write(tmp_path, [CREATE])), *words)
    assert (code, "--skew" in trouble) == (2, True)
