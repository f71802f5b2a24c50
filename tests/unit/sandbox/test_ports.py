"""Free ports for processes that start later: no two processes get the same port."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from maestropy.sandbox import ports

FIRST, LAST = 14000, 14009
ALL = set(range(FIRST, LAST + 1))

HOLDER = f"""
from maestropy.sandbox import ports
ports._FIRST, ports._LAST = {FIRST}, {LAST}
print(*ports.free(6), flush=True)
input()
"""


@pytest.fixture(autouse=True)
def ten_ports_for_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ports, "_FIRST", FIRST)
    monkeypatch.setattr(ports, "_LAST", LAST)
    monkeypatch.setattr(ports, "_given", set())
    monkeypatch.setattr(ports, "_lock", None)
    yield
    assert ports._lock is not None
    os.close(ports._lock)


def test_ports_are_reserved_while_their_process_lives() -> None:
    command = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        other_ports = {int(port) for port in holder.stdout.readline().split()}
        with pytest.raises(OSError, match="no 5 free ports between"):
            ports.free(5)
        assert set(ports.free(4)) == ALL - other_ports
        holder.communicate("")
    assert set(ports.free(6)) == other_ports


def test_port_is_reused_after_half_of_the_range() -> None:
    first, second = ports.free(2), ports.free(3)
    assert not {*first} & {*second}
    assert set(ports.free(10)) == ALL
