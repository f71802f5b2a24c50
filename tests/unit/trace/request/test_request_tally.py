# ruff: noqa: E501 - log lines are as long as they are
"""How often each stage was done, per work; how long hops take; tables beside reports."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from trace_request_logs import AGENT, BASE, SERVERS, Story, klog, write

from maestropy.cli import main
from maestropy.trace.request import tally

CREATE = Story(work="nginx")
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


STORIES = [
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


@pytest.mark.parametrize(("stories", "row"), STORIES)
def test_each_work_has_its_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stories: list[Story], row: str
) -> None:
    write(tmp_path, [Story(work="before", at=BASE - 60), *stories])
    _, out, _ = run(capsys, str(tmp_path), "--matrix")
    assert cells(out, "nginx") == row.split()


def test_an_instance_that_does_not_tell_of_a_status_is_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, [Story(work="before", at=BASE - 60), CREATE])
    without(tmp_path, SERVERS[0], f'resourceID="{CREATE.resource}" instanceID')
    code, out, _ = run(capsys, str(tmp_path), "--matrix")
    assert (code, cells(out, "nginx")[7:]) == (0, ["1", "2!", "1"])
    assert cells(out, "before")[7:] == ["1", "3", "1"]


def test_our_servers_tell_of_a_status_only_where_clients_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, [CREATE])
    for log in tmp_path.glob("*.log"):
        log.write_text(log.read_text().replace(".go:", ".py:"))
    without(tmp_path, SERVERS[0], f'resourceID="{CREATE.resource}" instanceID')
    _, out, _ = run(capsys, str(tmp_path), "--matrix")
    assert cells(out, "nginx")[7:] == ["1", "2", "1"]


def test_a_client_that_is_not_sent_a_status_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE])
    log = tmp_path / f"{SERVERS[1]}.log"
    clients = [
        klog(BASE - 5, "event.go:1", f'"registered a broadcaster client" id="{name}" source="mw-client-example"')
        for name in ("one", "two")
    ]
    log.write_text("\n".join([*clients, log.read_text()]))
    _, out, _ = run(capsys, str(tmp_path), "--matrix")
    assert cells(out, "nginx")[7:] == ["1", "3", "1!"]


def test_what_logs_cannot_show_is_not_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE])
    (tmp_path / f"{AGENT}.log").unlink()
    (tmp_path / f"{SERVERS[2]}.log").unlink()
    _, out, _ = run(capsys, str(tmp_path), "--matrix")
    assert "!" not in " ".join(cells(out, "nginx"))


def test_a_refused_request_of_a_real_go_server_is_marked_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, str(DATA / "trace_request_go_v4.log"), "--matrix")
    row = next(line.split()[3:] for line in out.splitlines() if re.match(r"  w1 +flow4 +\S+… +4 ", line))
    assert row == "4 4 3! 0 0 0 3 3 3 3".split()


def test_works_that_lack_something_come_first_and_the_rest_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, [CREATE, *(Story(work=f"z{number}", at=BASE + number, until=9 - 6 * (number == 3)) for number in range(4))])  # fmt: skip
    _, out, _ = run(capsys, str(tmp_path), "--matrix", "--top", "1")
    assert cells(out, "z3")[4] == "0!"
    assert "… and 4 more works; --top 0 shows all" in out


def test_a_histogram_counts_every_hop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [CREATE, replace(UPDATE, until=3)])
    _, out, _ = run(capsys, str(tmp_path), "--histogram")
    assert re.search(r"hop 1-2, 2 times\n +<= 50 ms +2  #{40}\n", out)
    assert re.search(r"hop 3-4, 1 times\n +<= 200 ms +1  #{40}\n", out)


def test_bars_are_as_long_as_their_share() -> None:
    lines = tally.histogram({"1-2": [-0.1, 0.001, 0.0011, *[0.004] * 4, 1e9]})
    assert [line.split("  ")[-1].count("#") for line in lines[1:4]] == [20, 10, 40]
    assert len(lines) - 1 == len(tally._LIMITS)
    assert lines[-1].split()[-2:] == ["1", "#" * 10]


@pytest.mark.parametrize("command", ["requests", "request"])
def test_a_table_is_written_beside_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    write(tmp_path / "logs", [CREATE])
    table = tmp_path / "all.csv"
    words = ["nginx"] if command == "request" else []
    code = main.call(["trace", command, *words, str(tmp_path / "logs"), "--csv", str(table)])
    out, told = capsys.readouterr()
    assert (code, told, "COMPLETE in 289 ms" in out) == (0, f"Report written to {table}\n", True)
    (row,) = csv.DictReader(table.read_text().splitlines())
    assert (row["resource"], row["stage9"]) == (CREATE.resource, "ok")


REFUSED = [
    (("--matrix", "-o", "json"), "--matrix and --histogram are text"),
    (("--histogram", "-o", "csv"), "--matrix and --histogram are text"),
    (("--csv", "/nowhere/at/all/x.csv"), "--csv /nowhere/at/all/x.csv cannot be written"),
    (("--follow", "--csv", "x.csv"), "--follow writes text"),
    (("--follow", "--matrix"), "--follow writes text"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSED)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    write(tmp_path, [CREATE])
    code, _, trouble = run(capsys, str(tmp_path), *words)
    assert (code, sentence in trouble) == (2, True), trouble


@pytest.mark.parametrize("option", ["--csv", "--html"])
def test_a_document_stays_one_while_another_file_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    write(tmp_path / "logs", [CREATE])
    _, out, _ = run(capsys, str(tmp_path / "logs"), "-o", "json", option, str(tmp_path / "besides"))
    assert json.loads(out)["stats"]["hops"]["1-9"]["n"] == 1
    assert (tmp_path / "besides").stat().st_size
