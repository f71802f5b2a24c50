"""Situations by which a stranger made the tracer state what had not happened, or show what it must not.

Each is an excerpt of the stranger's logs with its truth: lines of a Go server and agent around a few requests.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.trace import request, requests
from maestropy.trace.errors import InvalidArguments
from maestropy.trace.logs.model import RequestVerdict
from tests.trace_request_logs import AGENT, BASE, LoggedRequest
from tests.unit.trace.logs.judge.test_situations import (
    CREATE,
    SERVER,
    Line,
    alive,
    codes,
    concluded,
    lines_of,
    sync_failed,
    traced,
    write,
)

OTHERS_AGENT = "maestro-agent-of-mgmt-2"


@pytest.mark.parametrize("last", [4, 5, 9])
def test_agent_of_another_consumer_is_not_the_agent_of_the_request(tmp_path: Path, last: int) -> None:
    lines = [(pod, moment, line) for pod, moment, line in lines_of(LoggedRequest(work="nginx", until=last))]
    lines = [
        (OTHERS_AGENT if pod == AGENT else pod, moment, line.replace("mgmt-1", "mgmt-2") if pod == AGENT else line)
        for pod, moment, line in lines
    ]
    lines += [*lines_of(LoggedRequest(work="before", at=CREATE.at - 60)), *alive(SERVER), *alive(AGENT)]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert not {record.file for record in trace.timeline if 3 <= record.stage <= 5}
    if last < 9:
        assert concluded(trace) == (RequestVerdict.INCOMPLETE, 3, "MT-306")
    (again,) = request(str(tmp_path), CREATE.resource)
    assert concluded(again) == concluded(trace)


@pytest.mark.parametrize("form", ["text", "json", "yaml", "md", "csv", "html", "mermaid", "log"])
@pytest.mark.parametrize(
    "error",
    [
        'token: "hunter2"',
        "GET https://x/?sig=hunter2%2B&se=1",
        "AccountKey=hunter2==;x",
        "curl -u admin:hunter2 https://x",
    ],
    ids=["token", "signature", "account-key", "curl"],
)
def test_secret_in_an_error_is_in_no_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, error: str
) -> None:
    lines = [*lines_of(CREATE, applied=False), *alive(SERVER), *alive(AGENT, 3.0)]
    write(tmp_path, [*lines, *(sync_failed(CREATE, 0.1 + attempt / 10, error) for attempt in range(6))])
    assert main.call(["trace", "request", "nginx", str(tmp_path), "-o", form, "--show", "timeline"]) == 1
    assert "hunter2" not in capsys.readouterr().out


def test_log_given_twice_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, [*lines_of(CREATE), *alive(SERVER), *alive(AGENT)])
    (once,) = requests(str(tmp_path))
    (tmp_path / "link.log").symlink_to(tmp_path / f"{AGENT}.log")
    (twice,) = requests([str(tmp_path), str(tmp_path / "." / f"{SERVER}.log"), str(tmp_path)])
    assert [len(stage.records) for stage in twice.stages] == [len(stage.records) for stage in once.stages]


def test_copy_of_a_log_is_named_and_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [*lines_of(CREATE), *alive(SERVER), *alive(AGENT)])
    (once,) = requests(str(tmp_path))
    for name, copy in ((f"{AGENT}.log", "agent copy.log"), (f"{SERVER}.log", f"{SERVER} (1).log")):
        (tmp_path / copy).write_bytes((tmp_path / name).read_bytes())
    (twice,) = requests(str(tmp_path))
    assert [len(stage.records) for stage in twice.stages] == [len(stage.records) for stage in once.stages]
    named = f"2 copies left out ({SERVER} (1).log of {SERVER}.log, agent copy.log of {AGENT}.log)"
    for words in (["requests"], ["logs", "check"]):
        assert main.call(["trace", *words, str(tmp_path)]) == 0
        report = capsys.readouterr().out
        assert "1 server pod, 1 agent;" in report
        assert named in report
    assert main.call(["trace", "requests", str(tmp_path), "--out", str(tmp_path / "agent copy.log")]) == 2


@pytest.mark.parametrize("words", [[""], ["--logs-dir", ""], ["--server-csv", ""]])
def test_empty_path_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    write(tmp_path, lines_of(CREATE))
    monkeypatch.chdir(tmp_path)
    for command in (["requests"], ["request", "nginx"], *([["logs", "check"]] if words == [""] else [])):
        assert main.call(["trace", *command, *words]) == 2
        assert "an empty path is given" in capsys.readouterr().err
    for paths in ("", [""], [str(tmp_path), ""]):
        with pytest.raises(InvalidArguments, match="an empty path is given"):
            requests(paths)
        with pytest.raises(InvalidArguments, match="an empty path is given"):
            request(paths, CREATE.resource)


@pytest.mark.parametrize("form", ["text", "json", "csv", "md", "html"])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--consumer", "nobody"], 4),
        (["--source", "nobody", "--status", "failed"], 4),
        # That nothing failed is no error.
        (["--status", "failed"], 0),
        (["--consumer", "mgmt-1", "--status", "failed"], 0),
        (["--code", "MT-404"], 0),
        (["--slow", "1h"], 0),
    ],
)
def test_filter_that_matches_nothing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, form: str
) -> None:
    write(tmp_path, [*lines_of(CREATE), *alive(SERVER), *alive(AGENT)])
    assert main.call(["trace", "requests", str(tmp_path), *words, "-o", form]) == code
    out, errors = capsys.readouterr()
    assert errors == "Warning: no request matches the filters; without them there are 1\n"
    assert "nginx" not in out
    if form == "json":
        assert json.loads(out)["exitCode"] == code


@pytest.mark.parametrize("option", ["--code", "--consumer", "--source", "--slow", "--since", "--until", "--for"])
def test_empty_filter_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    write(tmp_path, lines_of(CREATE))
    assert main.call(["trace", "requests", str(tmp_path), option, ""]) == 2
    assert option in capsys.readouterr().err


def test_duration_without_follow_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, lines_of(CREATE))
    assert main.call(["trace", "requests", str(tmp_path), "--for", "5m"]) == 2
    assert "--for belongs to --follow" in capsys.readouterr().err


def test_note_of_a_diagram_has_no_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [*lines_of(CREATE, applied=False), *alive(SERVER), *alive(AGENT, 3.0)]
    error = "<script>alert(1)</script> & <img src=x onerror=alert(1)>"
    write(tmp_path, [*lines, *(sync_failed(CREATE, 0.1 + attempt / 10, error) for attempt in range(6))])
    assert main.call(["trace", "request", "nginx", str(tmp_path), "-o", "mermaid"]) == 1
    (note,) = [line for line in capsys.readouterr().out.splitlines() if "Note right of" in line]
    assert "#lt;script#gt;alert(1)#lt;/script#gt; #amp; #lt;img" in note
    assert not {"<", ">", "&"} & set(note)


def cri(line: str, *, size: int) -> list[str]:
    """Return a line as a container runtime stores it, in pieces."""
    pieces = [line[at : at + size] for at in range(0, len(line), size)]
    stamp = "2026-01-15T09:00:00.000000001Z stderr"
    return [f"{stamp} {'F' if piece is pieces[-1] else 'P'} {piece}\n" for piece in pieces]


def docker(line: str, *, size: int) -> list[str]:
    """Return a line as Docker stores it, in pieces."""
    pieces = [f"{line}\n"[at : at + size] for at in range(0, len(line) + 1, size)]
    return [
        json.dumps({"log": piece, "stream": "stderr", "time": "2026-01-15T09:00:00.000000001Z"}) + "\n"
        for piece in pieces
    ]


NOISE = {
    cri: "2026-01-15T09:00:00.000000001Z stdout F noise\n",
    docker: json.dumps({"log": "noise\n", "stream": "stdout", "time": "2026-01-15T09:00:00.000000001Z"}) + "\n",
}


@pytest.mark.parametrize("size", [200, 16384])
@pytest.mark.parametrize("stored", [cri, docker])
@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gz"])
def test_lines_that_a_runtime_has_split_are_joined(
    tmp_path: Path, stored: Callable[..., list[str]], size: int, is_packed: bool
) -> None:
    lines = [*lines_of(CREATE), *alive(SERVER), *alive(AGENT)]
    # Large manifests make a line long, and the ID comes after them.
    lines = [
        (pod, at, line.replace("extensions=", f'manifests="{"x" * 40000}" extensions=')) for pod, at, line in lines
    ]
    for pod in (SERVER, AGENT):
        text = ""
        for _, _, line in sorted(line for line in lines if line[0] == pod):
            first, *more = stored(line, size=size)
            text += "".join([first, NOISE[stored], *more])
        if is_packed:
            (tmp_path / f"{pod}.log.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (tmp_path / f"{pod}.log").write_text(text)
    (trace,) = requests(str(tmp_path))
    assert concluded(trace) == (RequestVerdict.COMPLETE, None, "")
    assert all(stage.records for stage in trace.stages)
    (again,) = request(str(tmp_path), CREATE.resource)
    assert concluded(again) == concluded(trace)
    if not is_packed:
        file = (tmp_path / f"{SERVER}.log").read_text().splitlines()
        assert '"receive the event' in "".join(file[: trace.stages[0].records[0].line])
        assert CREATE.resource in "".join(file[trace.stages[0].records[0].line - 2 :][:2])


def stepped(step: float, *, after: tuple[int, int], last: int = 9) -> list[Line]:
    """Return six creates, ten seconds apart; the agent's clock is set in one of them, after a stage of it.

    The one after it ends with stage `last`.
    """
    number, stage = after
    lines: list[Line] = []
    for at in range(6):
        begun = frozenset(range(1, stage + 1 if at == number else 10 if at < number else 1))
        until = last if at == number + 1 else 9
        for clock, without in ((0.0, frozenset(range(1, 10)) - begun), (step, begun)):
            logged = LoggedRequest(
                work=f"w{at}", at=BASE + 10 * at, agent_clock=clock, without=without, until=until, op_id=f"op-{at}"
            )
            # Lines are in the order in which they were written, whatever the clock shows.
            lines += [(pod, moment - clock * (pod == AGENT), line) for pod, moment, line in lines_of(logged)]
    return [*lines, *alive(SERVER), (AGENT, BASE + 600, alive(AGENT, 600 + step)[0][2])]


STEPS = (-7200.0, -3600.0, -300.0, -60.0, -30.0, -20.0, -10.0, -6.0, -3.0, 6.0, 10.0, 30.0, 300.0, 3600.0)


@pytest.mark.parametrize("after", [(0, 4), (1, 9), (2, 2), (2, 3), (2, 4), (3, 4), (4, 4)], ids=str)
@pytest.mark.parametrize("step", STEPS)
def test_clock_of_an_agent_that_is_set_makes_no_healthy_request_incomplete(
    tmp_path: Path, step: float, after: tuple[int, int]
) -> None:
    write(tmp_path, stepped(step, after=after))
    traces = requests(str(tmp_path))
    assert [(trace.key.work_name, trace.verdict) for trace in traces] == [
        (f"w{at}", RequestVerdict.COMPLETE) for at in range(6)
    ]
    assert max(trace.duration for trace in traces) < 2.0


@pytest.mark.parametrize("last", [2, 3, 4, 5])
@pytest.mark.parametrize("after", [(1, 9), (2, 3), (2, 4)], ids=str)
@pytest.mark.parametrize("step", STEPS)
def test_clock_of_an_agent_that_is_set_completes_no_request(
    tmp_path: Path, step: float, after: tuple[int, int], last: int
) -> None:
    write(tmp_path, stepped(step, after=after, last=last))
    verdicts = {trace.key.work_name: trace.verdict for trace in requests(str(tmp_path))}
    stopped = verdicts.pop(f"w{after[0] + 1}")
    assert stopped is RequestVerdict.INCOMPLETE
    assert set(verdicts.values()) == {RequestVerdict.COMPLETE}


def test_single_request_of_an_agent_whose_clock_is_set_back_is_complete(tmp_path: Path) -> None:
    lines = [line for line in stepped(-3600.0, after=(0, 4)) if line[1] < BASE + 5 or line[1] > BASE + 500]
    write(tmp_path, lines)
    (trace,) = requests(str(tmp_path))
    assert trace.verdict is RequestVerdict.COMPLETE
    assert trace.duration < 2.0


def test_clock_of_an_agent_that_is_set_again_and_again_leaves_requests_unknown(tmp_path: Path) -> None:
    lines: list[Line] = []
    for at in range(12):
        clock = -90.0 * (at % 2) - 40.0 * (at % 3)
        logged = LoggedRequest(work=f"w{at}", at=BASE + 10 * at, agent_clock=clock)
        lines += [(pod, moment - clock * (pod == AGENT), line) for pod, moment, line in lines_of(logged)]
    write(tmp_path, [*lines, *alive(SERVER), *alive(AGENT)])
    traces = requests(str(tmp_path))
    assert {trace.verdict for trace in traces} == {RequestVerdict.COMPLETE, RequestVerdict.UNKNOWN}
    assert all("MT-005" in codes(trace) for trace in traces if trace.verdict is RequestVerdict.UNKNOWN)
