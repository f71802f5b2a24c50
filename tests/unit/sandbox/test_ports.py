"""Ports for processes that are started later: no two processes are given the same one."""

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
def few_ports_and_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ports, "_FIRST", FIRST)
    monkeypatch.setattr(ports, "_LAST", LAST)
    monkeypatch.setattr(ports, "_given", set())
    monkeypatch.setattr(ports, "_lock", None)
    yield
    assert ports._lock is not None
    os.close(ports._lock)


def test_what_one_process_was_given_no_other_gets_while_it_lives() -> None:
    command = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        theirs = {int(word) for word in holder.stdout.readline().split()}
        with pytest.raises(OSError, match="no 5 free ports between"):
            ports.free(5)
        assert set(ports.free(4)) == ALL - theirs
        holder.communicate("")
    assert set(ports.free(6)) == theirs


def test_a_process_is_given_each_once_and_begins_anew_after_half_of_them() -> None:
    first, second = ports.free(2), ports.free(3)
    assert not {*first} & {*second}
    assert set(ports.free(10)) == ALL
