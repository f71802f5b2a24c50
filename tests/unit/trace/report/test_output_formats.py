# ruff: noqa: E501 - log lines are as long as they are
"""Output formats: JSON matches the schema, and log text never becomes markup."""

import base64
import csv
import gzip
import io
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from markdown_it import MarkdownIt

from maestropy.cli import main
from maestropy.trace.logs import tracer
from maestropy.trace.logs.judge import judge
from maestropy.trace.logs.judge.request_context import RequestContext
from maestropy.trace.logs.model import Trace
from maestropy.trace.report import documents, json_model, waterfall
from tests.trace_request_logs import AGENT, BASE, LoggedRequest, klog, write

DATA = Path(__file__).parents[3] / "data"
SCHEMA: dict[str, Any] = json.loads((DATA.parents[1] / "docs" / "trace-request.schema.json").read_text())


def strict(schema: Any) -> Any:
    """Return the schema without room for fields that it does not name: ours are all named."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(value) for name, value in schema.items()}
    if "properties" in made and made.get("type") in ("object", ["object", "null"]):
        made.setdefault("additionalProperties", False)
    return made


@cache
def validator(part: str) -> Any:
    schema = strict(SCHEMA)
    if part:
        schema = {"$schema": schema["$schema"], "$defs": schema["$defs"], "$ref": f"#/$defs/{part}"}
    return jsonschema_rs.validator_for(schema)


def check(document: Any, *, part: str = "") -> None:
    validator(part).validate(document)


def logs(folder: Path, kind: str) -> Path:
    """Write one kind of logs."""
    if kind.startswith("go"):
        return DATA / f"trace_request_{kind}.log"
    if kind == "samples":
        return DATA / "trace_request_samples_g4.txt"
    incarnation = [
        LoggedRequest(work="w"),
        LoggedRequest(work="w", action="update", version=2, at=BASE + 5),
        LoggedRequest(work="w", action="update", version=3, at=BASE + 5.01, until=2),
        LoggedRequest(work="w", action="delete", version=3, at=BASE + 60),
        *(LoggedRequest(work=f"stopped-{stage}", at=BASE + 100 + stage, until=stage) for stage in range(1, 9)),
    ]
    if kind == "skewed":
        incarnation = [LoggedRequest(work=f"w{number}", at=BASE + number, agent_clock=0.35) for number in range(8)]
    return write(folder / "logs", incarnation, "G2" if kind == "g2" else "G4")


@pytest.mark.parametrize("kind", ["g4", "g2", "go_v2", "go_v4", "samples", "skewed"])
def test_json_matches_the_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    place = logs(tmp_path, kind)
    code = main.call(["trace", "requests", str(place), "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    check(document)
    assert document["exitCode"] == code
    assert document["requests"]
    for request in document["requests"][:5]:
        main.call(["trace", "request", "--resource-id", request["key"]["resourceId"], str(place), "-o", "json"])
        check(json.loads(capsys.readouterr().out))
        check(request, part="request")
    assert main.call(["trace", "logs", "check", str(place), "-o", "json"]) == 0
    coverage = json.loads(capsys.readouterr().out)
    check(coverage, part="coverage")
    assert coverage["covered"]


def test_schema_rejects_changed_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main.call(["trace", "requests", str(logs(tmp_path, "g4")), "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    document["requests"][0]["stages"][3]["state"] = "perhaps"
    with pytest.raises(jsonschema_rs.ValidationError):
        check(document)


HOSTILE = "| <img src=x onerror=alert(1)> `code` **bold** [a](javascript:b) \u202e ${x} =cmd|' /C calc'!A0"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Write a request of a strange name that fails with a strange error."""
    bad = LoggedRequest(work="=1+1|x", until=3)
    folder = write(tmp_path / "hostile", [bad])
    log = folder / f"{AGENT}.log"
    err = HOSTILE.replace('"', '\\"')
    line = klog(BASE + 0.2, "base_controller.go:159", f'"controller failed to sync" err="{err}" key="{bad.resource}"', "E")  # fmt: skip
    log.write_text(log.read_text().replace("I0115 09:10", f"{line}\nI0115 09:10"), encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", ["request", "requests"])
def test_markdown_escapes_log_text(hostile: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    words = [LoggedRequest(work="=1+1|x").resource] if command == "request" else []
    assert main.call(["trace", command, *words, str(hostile), "-o", "md"]) == 1
    out = capsys.readouterr().out
    assert "=1+1\\|x" in out
    parsed = MarkdownIt("commonmark").enable("table").parse(out)
    tokens = [inner for token in parsed for inner in (token, *(token.children or ()))]
    assert not {"html_block", "html_inline", "link_open", "image"} & {token.type for token in tokens}
    assert any("<img" in token.content for token in tokens) or command == "requests"
    # The two numbers of requests are bold.
    assert not any(token.type == "strong_open" for token in tokens) or command == "requests"
    if command == "request":
        assert "### MT-" in out
        assert "| 4 | agent handles | failed |" in out


SECRETS = (
    "password=hunter2hunter2",
    'data[password]: Invalid value: "hunter2hunter2"',
    "Authorization: Bearer hunter2hunter2",
    "postgres://u:hunter2hunter2@h/db",
    "api_key: hunter2hunter2",
    "client_secret:\n  hunter2hunter2",
    "-----BEGIN PRIVATE KEY-----\nhunter2hunter2\n-----END PRIVATE KEY-----",
)


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "yaml", "md", "csv", "html", "mermaid", "log"])
@pytest.mark.parametrize("command", ["request", "requests"])
def test_no_output_shows_a_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, form: str) -> None:
    works = [LoggedRequest(work=f"w{number}", until=3, at=BASE + number) for number in range(len(SECRETS))]
    folder = write(tmp_path / "logs", works)
    log = folder / f"{AGENT}.log"
    errors = [
        klog(work.at + 0.2, "base_controller.go:159", f'"controller failed to sync" err={json.dumps(f"x is forbidden: {text}")} key="{work.resource}"', "E")
        for work, text in zip(works, SECRETS, strict=True)
    ]  # fmt: skip
    log.write_text(log.read_text().replace("I0115 09:10", "\n".join([*errors, "I0115 09:10"]), 1), encoding="utf-8")
    shown = ""
    for words in [[work.resource] for work in works] if command == "request" else [["--top", "0"]]:
        more = ["--show", "timeline", "--context-lines", "3"] if command == "request" and form == "text" else []
        assert main.call(["trace", command, *words, str(folder), "-o", form, *more]) == 1
        shown += capsys.readouterr().out
    if form == "html":
        data = re.findall(r"[A-Za-z0-9+/=]{200,}", shown)
        shown += "".join(gzip.decompress(base64.b64decode(part)).decode() for part in data)
    assert "hunter2" not in shown
    if command == "request" and form != "csv":
        assert "is forbidden" in shown, "which kind of error it is stays"


def test_csv_has_states_and_times_and_no_formula(hostile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["trace", "requests", str(hostile), "-o", "csv"]) == 1
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["work"] for row in rows] == ["'=1+1|x"]
    assert [rows[0][f"stage{number}"] for number in (1, 2, 3, 4)] == ["ok", "ok", "ok", "failed"]
    assert [rows[0][f"stage{number}_ms"] for number in (1, 2, 9)] == ["0.000", "41.000", ""]


def test_coverage_reports_stages_not_observable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path, [LoggedRequest(work="w")])
    (folder / f"{AGENT}.log").unlink()
    assert main.call(["trace", "logs", "check", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "Covered  by all 3 pods: 2026-01-15T09:00:01 to 2026-01-15T09:10:01" in out
    assert "no agent's log: stages 3 to 5 are not observable" in out


def test_kql_window_accepts_ages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["trace", "logs", "kql", "--since", "30m", "--for", "agent"]) == 0
    assert "let start_time = datetime(20" in capsys.readouterr().out
    assert (
        main.call(["trace", "logs", "kql", "--since", "2026-01-15T09:00:00Z", "--until", "2026-01-15T08:00:00Z"]) == 2
    )
    assert "--until is not after --since" in capsys.readouterr().err


def test_json_lines_have_a_request_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path, [LoggedRequest(work="healthy"), LoggedRequest(work="stopped", until=3)])
    main.call(["trace", "requests", str(folder), "-o", "jsonl"])
    requests = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [request["verdict"] for request in requests] == ["complete", "incomplete"]
    main.call(["trace", "request", "stopped", str(folder), "-o", "jsonl"])
    assert json.loads(capsys.readouterr().out)["failedStage"] == 4


@pytest.mark.parametrize("form", ["json", "jsonl", "yaml"])
def test_of_many_requests_only_the_unhealthy_are_in_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(documents, "MOST_IN_FULL", 1)
    folder = write(tmp_path, [LoggedRequest(work="healthy"), LoggedRequest(work="stopped", until=3)])
    main.call(["trace", "requests", str(folder), "-o", form])
    out = capsys.readouterr().out
    if form == "jsonl":
        requests = [json.loads(line) for line in out.splitlines()]
    else:
        document = json.loads(out) if form == "json" else yaml.safe_load(out)
        check(document)
        requests = document["requests"]
    healthy, stopped = requests
    assert "stages" not in healthy
    assert [stage["state"] for stage in stopped["stages"]][:4] == ["ok", "ok", "ok", "missing"]
    assert stopped["stages"][0]["evidence"][0]["line"]


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "yaml", "md", "csv", "html", "mermaid", "log"])
@pytest.mark.parametrize("command", ["request", "requests"])
def test_half_of_a_surrogate_pair_breaks_no_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, form: str
) -> None:
    work = LoggedRequest(work="w", until=3)
    write(tmp_path, [work])
    error = klog(
        BASE + 1,
        "base_controller.go:159",
        f'"controller failed to sync" err="a \\ud800 b \\x1b c \\ud83d\\ude00" key="{work.resource}"',
        "E",
    )
    with (tmp_path / f"{AGENT}.log").open("a") as log:
        log.write(f"{error}\n")
    words = [*(["w"] if command == "request" else []), str(tmp_path)]
    assert main.call(["trace", command, *words, "-o", form]) == 1
    printed, _ = capsys.readouterr()
    assert printed.encode("utf-8")
    if form in ("json", "yaml", "jsonl"):
        document = json.dumps(json.loads(printed) if form != "yaml" else yaml.safe_load(printed), ensure_ascii=False)
        assert "a \ufffd b" in document
        assert "\U0001f600" in document


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "yaml", "csv", "html", "md"])
def test_each_request_of_many_is_judged_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(documents, "MOST_IN_FULL", 1)
    judged: list[str] = []

    def counted(context: RequestContext) -> Trace:
        judged.append(context.request.resource)
        return judge.judge(context)

    monkeypatch.setattr(tracer, "judge", counted)
    works = [LoggedRequest(work=f"w{number}", at=BASE + number, until=1 + number % 8) for number in range(16)]
    main.call(["trace", "requests", str(write(tmp_path, works)), "-o", form])
    assert sorted(judged) == sorted(work.resource for work in works)
    if form == "jsonl":
        requests = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [request["key"]["resourceId"] for request in requests] == [work.resource for work in works]
        assert [request["failedStage"] for request in requests] == [work.until + 1 for work in works]
        assert all(request["stages"][0]["evidence"] for request in requests)


def lines_of_timeline(folder: Path, form: str, capsys: pytest.CaptureFixture[str]) -> str:
    more = ["--show", "timeline"] if form == "text" else []
    main.call(["trace", "request", "w", str(folder), "-o", form, *more])
    return capsys.readouterr().out


@pytest.mark.parametrize("form", ["text", "md", "json", "jsonl", "yaml"])
def test_a_long_timeline_says_how_many_records_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    folder = write(tmp_path, [LoggedRequest(work="w")])
    whole = json.loads(lines_of_timeline(folder, "jsonl", capsys))
    assert "timelineLeftOut" not in whole
    monkeypatch.setattr(json_model, "MOST_SHOWN", 4)
    monkeypatch.setattr(waterfall, "MOST_SHOWN", 4)
    left_out = len(whole["timeline"]) - 4
    out = lines_of_timeline(folder, form, capsys)
    if form in ("text", "md"):
        assert f"{left_out} records are left out: repetitions, and those between the first and the last 2" in out
        return
    document = yaml.safe_load(out) if form == "yaml" else json.loads(out)
    request = document if form == "jsonl" else document["requests"][0]
    check(request, part="request")
    assert request["timelineLeftOut"] == left_out
    assert request["timeline"] == [*whole["timeline"][:2], *whole["timeline"][-2:]]
