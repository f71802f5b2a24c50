import os
from pathlib import Path

import pytest

from maestropy.sandbox import os_account, postmaster
from maestropy.sandbox.os_account import Account
from maestropy.sandbox.postmaster import Postmaster

READY = "4711\n/data\n1700000000\n5432\n/run/pg\n\n  10249139        14\nready   \n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(READY, Postmaster(pid=4711, socket_dir=Path("/run/pg"), status="ready"), id="ready"),
        pytest.param(
            READY.replace("ready", "starting"),
            Postmaster(pid=4711, socket_dir=Path("/run/pg"), status="starting"),
            id="recovering",
        ),
        pytest.param("4711\n/data\n", Postmaster(pid=4711, socket_dir=None, status=""), id="starting"),
        pytest.param("", None, id="empty"),
        pytest.param("hello\n", None, id="not-a-postmaster-file"),
    ],
)
def test_parse_postmaster_pid(text: str, expected: Postmaster | None) -> None:
    assert postmaster.parse(text) == expected


def test_other_process_with_recorded_pid_is_not_postgresql(tmp_path: Path) -> None:
    own_process = Postmaster(pid=os.getpid(), socket_dir=tmp_path, status="ready")
    assert postmaster.is_alive(own_process.pid)
    assert not postmaster.is_listening(own_process)
    assert not postmaster.may_be_starting(own_process.pid)


def test_socket_directory_is_short_and_accessible(tmp_path: Path) -> None:
    own_account = Account(uid=os.geteuid(), gid=os.getegid(), is_ours=True)
    long = tmp_path / ("x" * 120)
    long.mkdir()
    assert os_account.first_usable([long, Path("/nowhere"), Path("/tmp")], own_account) == Path("/tmp")


def test_account_cannot_enter_private_directory(tmp_path: Path) -> None:
    inner = tmp_path / "closed" / "inner"
    inner.mkdir(parents=True)
    inner.parent.chmod(0o700)
    other_account = Account(uid=12345, gid=12345, is_ours=False)
    assert not other_account.may_enter(inner)
    assert other_account.may_enter(Path("/tmp"))
