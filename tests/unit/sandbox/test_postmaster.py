import os
from pathlib import Path

import pytest

from maestropy.sandbox import account, postmaster
from maestropy.sandbox.account import Account
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
        pytest.param("4711\n/data\n", Postmaster(pid=4711, socket_dir=None, status=""), id="just-begun"),
        pytest.param("", None, id="empty"),
        pytest.param("hello\n", None, id="not-of-postgresql"),
    ],
)
def test_reads_the_file(text: str, expected: Postmaster | None) -> None:
    assert postmaster.parse(text) == expected


def test_a_foreign_process_with_the_recorded_pid_is_not_taken_for_a_server(tmp_path: Path) -> None:
    mine = Postmaster(pid=os.getpid(), socket_dir=tmp_path, status="ready")
    assert postmaster.is_alive(mine.pid)
    assert not postmaster.answers(mine)
    assert not postmaster.may_be_starting(mine.pid)


def test_a_socket_directory_is_short_and_open_to_the_account(tmp_path: Path) -> None:
    ours = Account(uid=os.geteuid(), gid=os.getegid(), is_ours=True)
    long = tmp_path / ("x" * 120)
    long.mkdir()
    assert account.first_usable([long, Path("/nowhere"), Path("/tmp")], ours) == Path("/tmp")


def test_an_account_cannot_pass_a_closed_directory(tmp_path: Path) -> None:
    inner = tmp_path / "closed" / "inner"
    inner.mkdir(parents=True)
    inner.parent.chmod(0o700)
    stranger = Account(uid=12345, gid=12345, is_ours=False)
    assert not stranger.may_enter(inner)
    assert stranger.may_enter(Path("/tmp"))
