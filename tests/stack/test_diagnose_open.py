"""`maestro diagnose open` as a process: on loopback only, until Ctrl-C, and nothing is left behind."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from maestropy.cli import main
from tests.unit.diagnose.archives import lines, of_files, row
from tests.waiting import wait_for


@contextmanager
def opened(path: Path, folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run the command with temporary files in a folder of its own; yield its address."""
    folder.mkdir()
    shown = folder.with_suffix(".log")
    command = [sys.executable, "-m", "maestropy.cli.main", "diagnose", "open", str(path), "--port", "0"]
    with shown.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "TMPDIR": str(folder)})
    try:
        wait_for(lambda: "Ctrl-C stops it" in shown.read_text() or process.poll() is not None, what="the console")
        found = re.search(r"http://127\.0\.0\.1:\d+/", shown.read_text())
        assert found is not None, shown.read_text()
        yield found[0], process
    finally:
        process.kill()
        process.wait(30)


@pytest.mark.long
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)], ids=["ctrl-c", "term"])
def test_serves_the_archive_until_a_signal_and_removes_what_it_unpacked(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    path = of_files(tmp_path / "incident.tar.zst", {"database/rows.jsonl": lines(row())})
    with opened(path, tmp_path / "temporary") as (address, process):
        fleet = httpx.get(f"{address}api/fleet", trust_env=False).json()
        assert fleet["totals"]["works"] == 1
        assert fleet["source"]["archive"]["name"] == "incident.tar.zst"
        assert 'id="archive"' in httpx.get(address, trust_env=False).text
        assert list((tmp_path / "temporary").glob("maestro-diagnose-*"))
        process.send_signal(number)
        assert process.wait(30) == code
    assert not list((tmp_path / "temporary").glob("maestro-diagnose-*"))
    assert "Traceback" not in (tmp_path / "temporary.log").read_text()


def test_what_cannot_be_opened_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["diagnose", "open", str(tmp_path / "none.tar.zst")]) == 3
    assert "does not exist; name an archive of `maestro diagnose collect`" in capsys.readouterr().err
    (tmp_path / "text").write_text("no archive")
    assert main.call(["diagnose", "open", str(tmp_path / "text")]) == 3
    assert main.call(["diagnose", "open", str(tmp_path / "text"), "--port", "99999"]) == 2
    capsys.readouterr()
    path = of_files(tmp_path / "a.tar.zst", {"database/rows.jsonl": lines(row())})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main.call(["diagnose", "open", str(path), "--port", port]) == 3
    trouble = capsys.readouterr().err
    assert port in trouble
    assert "Traceback" not in trouble
