"""The player of pages sees every difference but the volatile ones, and runs commands as one shell does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import play_page


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[play_page.Reader]:
    shell = play_page.Reader(tmp_path / "home", ports={"8000": "18000"})
    try:
        yield shell
    finally:
        shell.close()


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("ID: 6de22f64-2ff7-40d0-b1ca-5b13f71e129b", "ID: aa825b33-3253-4a33-bb57-82b5be288b80"),
        ("until 2026-11-17T17:14:18Z", "until 2027-01-01T00:00:00Z"),
        ("COMPLETE in 7.1 s", "COMPLETE in 95 ms"),
        ("REST  http://127.0.0.1:8000", "REST  http://127.0.0.1:21544"),
        ("a\nb", "b\na\na"),
    ],
    ids=["random-id", "moment", "duration", "port", "order"],
)
def test_volatile_parts_do_not_count(shown: str, printed: str) -> None:
    assert play_page.plain(shown) == play_page.plain(printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("FAILED at stage 4", "FAILED at stage 5"),
        ("TooManyOrphans (3 works)", "TooManyOrphans (2 works)"),
        ("ID: 5062a30d-4915-5591-82e2-c7aa7a9de678", "ID: c246251e-affe-5c21-aaeb-28327657aed1"),
        ("exit 1", "exit 2"),
        ("ready = 2", "ready = 3"),
        ("a", "a\nb"),
    ],
    ids=["stage", "count", "computed-id", "exit-code", "value", "line"],
)
def test_facts_count(shown: str, printed: str) -> None:
    assert play_page.plain(shown) != play_page.plain(printed)


def test_commands_run_in_one_shell_without_inherited_variables(
    reader: play_page.Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reader.run("mkdir work && cd work && export COLOUR=green") == ""
    assert reader.run("echo $COLOUR $PWD") == "green ~/work\n"
    assert reader.run("env | grep -c MAESTRO") == "0\nexit 1\n"
    assert reader.run("cat") == ""
    assert reader.run("echo out; echo err >&2; false") == "out\nerr\nexit 1\n"


def test_ports_of_a_page_are_others_when_it_is_played(reader: play_page.Reader) -> None:
    reader.write("url.txt", "http://localhost:8000 180001\n")
    assert reader.run("grep -c 18000 url.txt; cat url.txt") == "1\nhttp://localhost:8000 180001\n"


def test_background_command_shows_its_first_line_and_ends_with_the_shell(tmp_path: Path) -> None:
    shell = play_page.Reader(tmp_path / "home")
    shell.write("job.sh", "trap 'echo ended > ended; exit' TERM; echo ready; while true; do sleep 0.1; done\n")
    shown = shell.run("sh job.sh &")
    shell.close()
    assert shown == "ready\n"
    assert (tmp_path / "home" / "ended").read_text() == "ended\n"


def test_late_output_of_a_background_command_is_seen_with_the_next_one(reader: play_page.Reader) -> None:
    reader.write("late.sh", "until test -e go; do sleep 0.05; done; echo late\n")
    assert reader.run("sh late.sh 2>&1 &") == ""
    assert reader.run("touch go; wait; echo next") == "late\nnext\n"


def test_page_is_played_with_its_files_and_recorded(reader: play_page.Reader) -> None:
    page = "```yaml a.yaml\nkey: 1\n```\ntext\n```console\n$ cat a.yaml\nold\n$ cat missing 2> /dev/null\n```\n"
    expected = (
        "```yaml a.yaml\nkey: 1\n```\ntext\n```console\n$ cat a.yaml\nkey: 1\n$ cat missing 2> /dev/null\nexit 1\n```\n"
    )
    assert play_page.recorded(page, reader) == expected
