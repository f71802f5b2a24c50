"""Reports replace their file completely or not at all, and never a log."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.cli.trace import output_files
from maestropy.trace.errors import InvalidArguments
from tests.trace_request_logs import SERVERS, LoggedRequest, write

OPTIONS = ("--out", "--csv", "--html")


def full_disk() -> Iterator[str]:
    yield "half"
    raise OSError(28, "No space left on device")


def interrupted() -> Iterator[str]:
    yield "half"
    raise KeyboardInterrupt


@pytest.mark.parametrize("is_new", [False, True], ids=["old-file", "new-file"])
@pytest.mark.parametrize(
    ("pieces", "error"), [(full_disk, InvalidArguments), (interrupted, KeyboardInterrupt)], ids=["full-disk", "ctrl-c"]
)
def test_failed_report_leaves_the_old_file(
    tmp_path: Path, pieces: Callable[[], Iterator[str]], error: type[BaseException], is_new: bool
) -> None:
    path = tmp_path / "report.json"
    if not is_new:
        path.write_text("old")
    with pytest.raises(error):
        output_files.write(pieces(), path, option="--out")
    assert [file.read_text() for file in tmp_path.iterdir()] == ([] if is_new else ["old"])


def test_report_keeps_link_and_mode(tmp_path: Path) -> None:
    path, link = tmp_path / "report.txt", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    output_files.write(["new"], link, option="--out")
    assert link.is_symlink()
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write(tmp_path / "logs", [LoggedRequest(work="nginx")], "G4")


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", ["itself", "symlink", "hard-link"])
@pytest.mark.parametrize("command", ["request", "requests"])
def test_log_is_not_overwritten(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, kind: str, command: str
) -> None:
    log = logs / f"{SERVERS[0]}.log"
    text, out = log.read_bytes(), tmp_path / "out"
    if kind == "symlink":
        out.symlink_to(log)
    elif kind == "hard-link":
        os.link(log, out)
    else:
        out = log
    words = ["nginx"] if command == "request" else []
    assert main.call(["trace", command, *words, str(logs), option, str(out)]) == 2
    assert log.read_bytes() == text
    assert f"{option} {out} would overwrite the log" in capsys.readouterr().err


@pytest.mark.parametrize(
    "kind", ["log", "symlink", "hard-link", "foreign", "empty-log", "directory", "device", "unnamed"]
)
def test_index_replaces_nothing_but_an_index(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    log, foreign, empty = logs / f"{SERVERS[0]}.log", tmp_path / "notes", logs / "empty.log"
    foreign.write_text("notes")
    empty.touch()
    (tmp_path / "symlink").symlink_to(log)
    os.link(log, tmp_path / "hard")
    places = {
        "log": log, "symlink": tmp_path / "symlink", "hard-link": tmp_path / "hard", "foreign": foreign,
        "empty-log": empty, "directory": logs, "device": "/dev/full", "unnamed": "",
    }  # fmt: skip
    before = {file: file.read_bytes() for file in (log, foreign, empty)}
    assert main.call(["trace", "requests", str(logs), "--index", str(places[kind])]) == 2
    assert {file: file.read_bytes() for file in before} == before
    assert "--index" in capsys.readouterr().err


def test_index_is_written_to_a_new_an_empty_and_an_index_file(logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    for content in (None, b"", b"maestro trace index of another version"):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        assert main.call(["trace", "requests", str(logs), "--index", str(path)]) == 0
        assert path.stat().st_size > 1000


def test_two_reports_need_two_files(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main.call(["trace", "requests", str(logs), "--csv", str(out), "--html", str(tmp_path / "." / "out")]) == 2
    assert not out.exists()
    assert "--csv and --html name the same file" in capsys.readouterr().err


class FullOutput(io.StringIO):
    def flush(self) -> None:
        raise OSError(28, "No space left on device")

    def fileno(self) -> int:
        return self.descriptor

    descriptor = -1


def test_full_standard_output_is_no_verdict(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "stdout").open("wb") as file:
        output = FullOutput()
        output.descriptor = file.fileno()
        monkeypatch.setattr(sys, "stdout", output)
        assert main.call(["trace", "request", "nginx", str(logs)]) == 3
    assert capsys.readouterr().err == (
        "Error: standard output cannot be written: No space left on device; the output is lost, or incomplete\n"
    )


def test_identifier_that_is_a_file_is_named(
    logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(logs)
    (logs / "nginx").write_bytes((logs / f"{SERVERS[0]}.log").read_bytes())
    assert main.call(["trace", "request", "nginx", "."]) == 2
    error = capsys.readouterr().err
    assert "nginx is a file here, and was taken as logs" in error
    assert "--work-name nginx" in error
    assert main.call(["trace", "request", "--work-name", "nginx", str(logs)]) == 0
