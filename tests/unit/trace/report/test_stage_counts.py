# ruff: noqa: E501 - log lines are as long as they are
"""Stage counts per work, latency histograms, and CSV files beside reports."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.trace.report import stage_counts
from tests.trace_request_logs import AGENT, BASE, SERVERS, LoggedRequest, klog, write

CREATE = LoggedRequest(work="nginx")
UPDATE = replace(CREATE, action="update", version=2, at=BASE + 60)
DATA = Path(__file__).parents[3] / "data"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main.call(["trace", "requests", *words])
    out, trouble = capsys.readouterr()
    return code, out, trouble


def cells(out: str, work: str) -> list[str]:
    """Return the counts of a work in a report."""
    rows = [line.split() for line in out.splitlines() if re.match(rf"  {work} +mgmt-1 +\S+… +\d+ ", line)]
    assert len(rows) == 1, out
    return rows[0][3:]


def without(folder: Path, pod: str, words: str) -> None:
    """Lose the first line of a pod that has these words."""
    log = folder / f"{pod}.log"
    lines = log.read_text().splitlines(keepends=True)
    lines.remove(next(line for line in lines if words in line))
    log.write_text("".join(lines))


LOGGED_REQUESTS = [
    pytest.param([CREATE], "1 1 1 1 1 1 3 1 3 1", id="complete"),
    pytest.param([CREATE, UPDATE], "2 2 2 2 2 2 6 2 6 2", id="two-requests-of-one-work"),
    pytest.param([replace(CREATE, until=1)], "1 1 0! 0 0 0 0 0 0 0", id="not-published"),
    pytest.param([replace(CREATE, until=2)], "1 1 1 0! 0 0 0 0 0 0", id="not-received"),
    pytest.param([replace(CREATE, until=4)], "1 1 1 1 1 0! 0 0 0 0", id="not-answered"),
    pytest.param([CREATE, replace(UPDATE, until=2)], "2 2 2 1! 1 1 3 1 3 1", id="only-the-second-is-lost"),
    pytest.param(
        [replace(CREATE, without=frozenset({3}))], "1 1 1 0 1 1 3 1 3 1", id="a-line-is-lost-but-proven-later"
    ),
]


@pytest.mark.parametrize(("logged_requests", "row"), LOGGED_REQUESTS)
def test_each_work_has_its_stage_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], logged_requests: list[LoggedRequest], row: str
) -> None:
    write(tmp_path, [LoggedRequest(work="before", at=BASE - 60), *logged_requests])
    _, out, _ = run(capsys, str(tmp_path), "--matrix")
    assert cells(out, "nginx") == row.split()


def test_instance_without_broadcast_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [LoggedRequest(work="before", at=BASE - 60), CREATE])
    without(tmp_path, SERVERS[0], f'resourceID="{CREATE.resource}" instanceID')
    code, out, _ = run(capsys, str(tmp_path), "--matrix")
    assert (code, cells(out, "nginx")[7:]) == (0, ["1", "2!", "1"])
    assert cells(out, "before")[7:] == ["1", "3", "1"]


def test_our_servers_broadcast_only_for_their_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE])
    for log in tmp_path.glob("*.log"):
        log.write_text(log.read_text().replace(".go:", ".py:"))
    without(tmp_path, SERVERS[0], f'resourceID="{CREATE.resource}" instanceID')
    _, out, _ = run(capsys, str(tmp_path), "--matrix")
    assert cells(out, "nginx")[7:] == ["1", "2", "1"]


def test_client_without_status_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE])
    log = tmp_path / f"{SERVERS[1]}.log"
    clients = [
        klog(BASE - 5, "event.go:1", f'"registered a broadcaster client" id="{name}" source="mw-client-example"')
        for name in ("one", "two")
    ]
    log.write_text("\n".join([*clients, log.read_text()]))
    _, out, _ = run(capsys, str(tmp_path), "--matrix")
    assert cells(out, "nginx")[7:] == ["1", "3", "1!"]


def test_stages_not_observable_are_not_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE])
    (tmp_path / f"{AGENT}.log").unlink()
    (tmp_path / f"{SERVERS[2]}.log").unlink()
    _, out, _ = run(capsys, str(tmp_path), "--matrix")
    assert "!" not in " ".join(cells(out, "nginx"))


def test_rejected_request_of_a_real_go_server_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, str(DATA / "trace_request_go_v4.log"), "--matrix")
    row = next(line.split()[3:] for line in out.splitlines() if re.match(r"  w1 +flow4 +\S+… +4 ", line))
    assert row == "4 4 3! 0 0 0 3 3 3 3".split()


def test_incomplete_works_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE, *(LoggedRequest(work=f"z{number}", at=BASE + number, until=9 - 6 * (number == 3)) for number in range(4))])  # fmt: skip
    _, out, _ = run(capsys, str(tmp_path), "--matrix", "--top", "1")
    assert cells(out, "z3")[4] == "0!"
    assert "… and 4 more works; --top 0 shows all" in out


def test_a_histogram_counts_every_hop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE, replace(UPDATE, until=3)])
    _, out, _ = run(capsys, str(tmp_path), "--histogram")
    assert re.search(r"hop 1-2, 2 times\n +<= 50 ms +2  #{40}\n", out)
    assert re.search(r"hop 3-4, 1 times\n +<= 200 ms +1  #{40}\n", out)


def test_histogram_bars_are_proportional() -> None:
    lines = stage_counts.histogram({"1-2": [-0.1, 0.001, 0.0011, *[0.004] * 4, 1e9]})
    assert [line.split("  ")[-1].count("#") for line in lines[1:4]] == [20, 10, 40]
    assert len(lines) - 1 == len(stage_counts._LIMITS)
    assert lines[-1].split()[-2:] == ["1", "#" * 10]


@pytest.mark.parametrize("command", ["requests", "request"])
def test_csv_file_is_written_beside_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    write(tmp_path / "logs", [CREATE])
    table = tmp_path / "all.csv"
    words = ["nginx"] if command == "request" else []
    code = main.call(["trace", command, *words, str(tmp_path / "logs"), "--csv", str(table)])
    out, told = capsys.readouterr()
    assert (code, told, "COMPLETE in 289 ms" in out) == (0, f"Report written to {table}\n", True)
    (row,) = csv.DictReader(table.read_text().splitlines())
    assert (row["resource"], row["stage9"]) == (CREATE.resource, "ok")


REQUEST_REJECTED = [
    (("--matrix", "-o", "json"), "--matrix and --histogram are text"),
    (("--histogram", "-o", "csv"), "--matrix and --histogram are text"),
    (("--csv", "/nowhere/at/all/x.csv"), "--csv /nowhere/at/all/x.csv cannot be written"),
    (("--follow", "--csv", "x.csv"), "--follow writes text"),
    (("--follow", "--matrix"), "--follow writes text"),
]


@pytest.mark.parametrize(("words", "sentence"), REQUEST_REJECTED)
def test_incompatible_options_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    write(tmp_path, [CREATE])
    code, _, trouble = run(capsys, str(tmp_path), *words)
    assert (code, sentence in trouble) == (2, True), trouble


@pytest.mark.parametrize("option", ["--csv", "--html"])
def test_json_output_stays_valid_with_a_second_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    write(tmp_path / "logs", [CREATE])
    _, out, _ = run(capsys, str(tmp_path / "logs"), "-o", "json", option, str(tmp_path / "besides"))
    assert json.loads(out)["stats"]["hops"]["1-9"]["n"] == 1
    assert (tmp_path / "besides").stat().st_size
