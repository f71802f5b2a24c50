"""The engine as a whole: every stage of every generation, parts of files, logs among other files, bad input."""

import csv
import gzip
import io
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trace_request_generations as generations
from trace_request_logs import AGENT, BASE, SERVERS, Story, klog, records, write

from maestropy.cli import main
from maestropy.trace.request import scan, survey
from maestropy.trace.request.inputs import Environment
from maestropy.trace.request.model import Options, State, Trace, Verdict

NOW = BASE + 86400
CREATE = Story(work="nginx")
UPDATE = Story(work="nginx", action="update", version=2, at=BASE + 300)
DELETE = Story(work="nginx", action="delete", version=2, at=BASE + 600, op="op-nginx-update-2")
HEALTHY = Story(work="healthy", at=BASE - 100)
CODES = {2: "MT-209", 3: "MT-306", 4: "MT-412", 5: "MT-503", 6: "MT-603", 7: "MT-708", 8: "MT-803", 9: "MT-905"}
SILENT_ABOUT_DELETIONS = ("G0", "G1")


def judged(read: scan.Scan, options: Options = Options()) -> tuple[list[Trace], Environment]:  # noqa: B008 - a frozen value
    known = survey.surroundings(read.hits, read.writers, options=options)
    return sorted(survey.traces(read.hits, known, options=options), key=lambda each: each.start), known


def traced(folder: Path, options: Options = Options()) -> tuple[list[Trace], Environment]:  # noqa: B008 - a frozen value
    return judged(scan.everything([str(folder)], now=NOW), options)


@pytest.mark.parametrize("generation", generations.GENERATIONS)
def test_a_whole_life_is_complete_in_every_generation(tmp_path: Path, generation: str) -> None:
    traces, _ = traced(write(tmp_path, [CREATE, UPDATE, DELETE], generation))
    assert [(each.key.action, each.verdict) for each in traces] == [
        ("create", Verdict.COMPLETE), ("update", Verdict.COMPLETE), ("delete", Verdict.COMPLETE),
    ]  # fmt: skip


@pytest.mark.parametrize("generation", generations.GENERATIONS)
@pytest.mark.parametrize("last", range(1, 9))
@pytest.mark.parametrize("story", [CREATE, UPDATE, DELETE], ids=lambda each: each.action)
def test_each_stage_that_does_not_come_has_its_code(tmp_path: Path, story: Story, last: int, generation: str) -> None:
    before = {"create": [], "update": [CREATE], "delete": [CREATE, UPDATE]}[story.action]
    traces, _ = traced(write(tmp_path, [*before, replace(story, until=last), HEALTHY], generation))
    found = next(each for each in reversed(traces) if each.key.action == story.action and each.key.work_name == "nginx")
    expected = last + 1
    if story is DELETE and expected == 7 and generation in SILENT_ABOUT_DELETIONS:
        # They write nothing about a deletion's status before they broadcast it.
        assert found.stages[6].state is State.NOT_OBSERVABLE
        expected = 8
    assert (found.verdict, found.failed_stage) == (Verdict.INCOMPLETE, expected)
    assert CODES[expected] in {each.code for each in found.findings}
    assert {each.verdict for each in traces if each is not found} == {Verdict.COMPLETE}


@pytest.mark.parametrize("generation", generations.GENERATIONS)
@pytest.mark.parametrize("lost", range(1, 9))
def test_lost_lines_are_no_failure_in_any_generation(tmp_path: Path, lost: int, generation: str) -> None:
    traces, _ = traced(write(tmp_path, [replace(CREATE, without=frozenset({lost})), HEALTHY], generation))
    assert {each.verdict for each in traces} == {Verdict.COMPLETE}


def test_a_create_that_nobody_heard_of_is_not_superseded_by_what_came_after_its_status(tmp_path: Path) -> None:
    folder = write(tmp_path, [replace(CREATE, until=7), replace(UPDATE, until=7)])
    for pod in SERVERS:
        log = folder / f"{pod}.log"
        start = klog(BASE - 50, "grpc_server.go:154", '"Starting gRPC server" logger="maestro-server"')
        log.write_text(f"{start}\n{log.read_text()}")
    traces, _ = traced(folder)
    assert [each.verdict for each in traces] == [Verdict.COMPLETE, Verdict.COMPLETE]
    assert {each.code for trace in traces for each in trace.findings} == {"MT-901"}


def test_a_server_without_logs_is_not_overlooked(tmp_path: Path) -> None:
    folder = write(tmp_path, [replace(CREATE, until=8), HEALTHY])
    traces, _ = traced(folder)
    assert (traces[1].verdict, traces[1].failed_stage) == (Verdict.INCOMPLETE, 9)
    traces, known = traced(folder, Options(expected_instances=4))
    assert known.instances == 4
    assert traces[1].stages[8].state is State.NOT_OBSERVABLE
    assert traces[1].verdict is not Verdict.INCOMPLETE
    assert "MT-004" in {each.code for each in survey.notes(known)}


def test_expected_instances_can_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE])
    assert main.call(["trace", "requests", str(tmp_path), "--expect-instances", "5"]) == 0
    assert "logs of 3 of 5 server instances" in capsys.readouterr().out


_PARTS = """
import sys
from maestropy.trace.request import scan, workers
scan._WORTH_A_PROCESS = 0
assert workers.can_fork() or sys.platform != "linux"
def told(read):
    return sorted(read.hits, key=lambda hit: (hit.file, hit.line)), [
        (each.path, each.role, each.lines, each.bytes, each.hits, each.first, each.last, each.stages, each.consumers,
         each.instances) for each in read.writers]
whole = told(scan.everything(sys.argv[1:], now=1768554001.0))
for jobs in (2, 3, 7, 11):
    assert len(scan._shares(scan.sources.plain_files(sys.argv[1:]), jobs)) == jobs
    assert told(scan.everything(sys.argv[1:], now=1768554001.0, jobs=jobs)) == whole
print(len(whole[0]))
"""


@pytest.mark.parametrize("generation", ["G2", "G4"])
def test_parts_of_files_are_the_files(tmp_path: Path, generation: str) -> None:
    folder = write(tmp_path, [Story(work=f"w{number}", at=BASE + number) for number in range(40)], generation)
    done = subprocess.run(
        [sys.executable, "-c", _PARTS, str(folder)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, int(done.stdout or 0) > 500) == (0, True), done.stderr


def test_files_beside_the_logs_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE])
    data = tmp_path / "data" / "base"
    data.mkdir(parents=True)
    chance = random.Random(1)
    for number in range(30):
        (data / str(number)).write_bytes(b"\0" * 600 + chance.randbytes(2000))
    for number in range(5):
        (data / f"{number}.conf").write_text("listen_addresses = ''\n" * 9)
    (data / "nothing").touch()
    (data / "torn.gz").write_bytes(b"\x1f\x8b\x08\x00 not really")
    assert main.call(["trace", "requests", str(tmp_path)]) == 0
    out, trouble = capsys.readouterr()
    assert "3 server pods, 1 agent" in out
    warnings = trouble.splitlines()
    assert len(warnings) == 4
    assert any("30 files: not text" in each for each in warnings)
    assert any("5 files: no log" in each for each in warnings)
    assert any("torn.gz" in each for each in warnings)


def test_a_log_that_breaks_off_has_still_told_something(tmp_path: Path) -> None:
    for file in write(
        tmp_path, [CREATE, *(Story(work=f"w{number}", at=BASE + 20 + number) for number in range(50))]
    ).iterdir():
        packed = gzip.compress(file.read_bytes())
        file.with_suffix(".log.gz").write_bytes(packed[: len(packed) * 3 // 4] if AGENT in file.name else packed)
        file.unlink()
    read = scan.everything([str(tmp_path)], now=NOW)
    traces, known = judged(read)
    assert [each.path for each in known.agent_logs] == [f"{AGENT}.log.gz"]
    assert known.agent_logs[0].hits > 10
    assert len(read.unreadable) == 1
    assert traces[0].verdict is Verdict.COMPLETE


def _export(folder: Path, stories: list[Story], *, is_reversed: bool) -> Path:
    rows = [(at, pod, line) for pod, told in records(stories, "G4").items() for at, line in told]
    rows.sort(key=lambda row: -row[0] if is_reversed else row[0])
    texts = [(datetime.fromtimestamp(at, tz=UTC).isoformat(), pod, line) for at, pod, line in rows]
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([("TIMESTAMP", "pod_name", "log"), *texts, ("short",)])
    path = folder / "export.csv"
    path.write_text(out.getvalue())
    return path


@pytest.mark.parametrize("is_reversed", [False, True], ids=["in-order", "latest-first"])
def test_an_export_is_read_in_whatever_order(tmp_path: Path, is_reversed: bool) -> None:
    stories = [Story(work=f"w{number}", at=BASE + number) for number in range(60)]
    traces, known = traced(_export(tmp_path, stories, is_reversed=is_reversed))
    assert (len(traces), {each.verdict for each in traces}) == (60, {Verdict.COMPLETE})
    assert {each.pod for each in known.servers} == set(SERVERS)


def test_a_line_of_absurd_length_and_digits_beyond_reason(tmp_path: Path) -> None:
    folder = write(tmp_path, [CREATE])
    log = folder / f"{SERVERS[0]}.log"
    text = log.read_text()
    absurd = text.replace('"resourceversion":1', f'"resourceversion":{"9" * 30}').replace(
        CREATE.resource, "other-resource"
    )
    log.write_text("x" * 300_000 + "\n" + text + absurd + f'I0115 09:00:09.000000       1 a.go:1] "{"y" * 300_000}"\n')
    traces, _ = traced(folder)
    assert next(each for each in traces if each.key.resource == CREATE.resource).verdict is Verdict.COMPLETE


def test_a_search_finds_what_reading_everything_does(tmp_path: Path) -> None:
    stories = [Story(work=f"w{number}", at=BASE + number) for number in range(300)]
    folder = write(tmp_path, stories)
    wanted = stories[150].resource
    found = scan.about([str(folder)], [wanted], now=NOW)
    scan.count_lines(found)
    everything = scan.everything([str(folder)], now=NOW)
    of_one = [{hit for hit in read.hits if hit.resource == wanted} for read in (found, everything)]
    assert of_one[0] == of_one[1]
    assert len(found.hits) < len(everything.hits)
