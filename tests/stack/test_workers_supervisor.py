"""The supervisor of worker processes, with real child processes: restart, shutdown, exit codes."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from maestropy.server.runtime import workers
from tests import waiting

# Writes its pid to a file named after its index and the number of its start; exits cleanly on SIGTERM.
CHILD = """
import os, signal, sys, time
index, folder, code = sys.argv[1], sys.argv[2], int(sys.argv[3])
start = 1
while os.path.exists(f"{folder}/{index}-{start}"):
    start += 1
signal.signal(signal.SIGTERM, lambda *_: sys.exit(code))
with open(f"{folder}/.{index}-{start}", "w") as file:
    file.write(str(os.getpid()))
os.rename(f"{folder}/.{index}-{start}", f"{folder}/{index}-{start}")
while True:
    time.sleep(60)
"""


def child(index: int, folder: Path, *, code: int = 0, script: str = CHILD) -> workers.Worker:
    command = (sys.executable, "-c", script, str(index), str(folder), str(code))
    return workers.Worker(index=index, command=command, environ=dict(os.environ))


@contextlib.asynccontextmanager
async def supervised(
    group: list[workers.Worker], reports: list[str]
) -> AsyncIterator[tuple[asyncio.Event, asyncio.Task[int]]]:
    stop = asyncio.Event()

    async def wait() -> None:
        await stop.wait()

    task = asyncio.create_task(workers.supervise(group, until=wait(), report=reports.append, jitter=lambda: 0.0))
    try:
        yield stop, task
    finally:
        stop.set()
        await task


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_workers_run_and_stop_cleanly(tmp_path: Path) -> None:
    reports: list[str] = []
    async with supervised([child(0, tmp_path), child(1, tmp_path)], reports) as (stop, task):
        await waiting.until(lambda: (tmp_path / "0-1").exists() and (tmp_path / "1-1").exists())
        pids = [int((tmp_path / name).read_text()) for name in ("0-1", "1-1")]
        stop.set()
        assert await task == 0
    assert all(has_ended(pid) for pid in pids)
    assert reports == []


async def test_killed_worker_is_restarted_and_others_keep_running(tmp_path: Path) -> None:
    reports: list[str] = []
    async with supervised([child(0, tmp_path), child(1, tmp_path)], reports) as (stop, task):
        await waiting.until(lambda: (tmp_path / "0-1").exists() and (tmp_path / "1-1").exists())
        os.kill(int((tmp_path / "1-1").read_text()), signal.SIGKILL)
        await waiting.until(lambda: (tmp_path / "1-2").exists())
        assert not has_ended(int((tmp_path / "0-1").read_text()))
        assert not (tmp_path / "0-2").exists()
        stop.set()
        assert await task == 0
    assert reports == ["worker 1 ended with exit code -9; starting it again in 0.5 s"]


async def test_worst_exit_code_is_returned(tmp_path: Path) -> None:
    async with supervised([child(0, tmp_path, code=3), child(1, tmp_path)], []) as (stop, task):
        await waiting.until(lambda: (tmp_path / "0-1").exists() and (tmp_path / "1-1").exists())
        stop.set()
        assert await task == 3


async def test_worker_that_is_still_starting_is_stopped_gracefully(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_handler, may_return = asyncio.Event(), asyncio.Event()
    start = asyncio.create_subprocess_exec

    async def start_slowly(*command: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*command, **options)
        await waiting.until(lambda: (tmp_path / "0-1").exists())
        has_handler.set()
        await may_return.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_slowly)
    async with supervised([child(0, tmp_path, code=3)], []) as (stop, task):
        await has_handler.wait()
        stop.set()
        await asyncio.sleep(0)
        may_return.set()
        assert await task == 3


async def test_usage_error_of_one_worker_stops_all(tmp_path: Path) -> None:
    reports: list[str] = []
    group = [child(0, tmp_path), child(1, tmp_path, script="import sys; sys.exit(2)")]
    async with supervised(group, reports) as (_, task):
        async with asyncio.timeout(60):
            assert await task == 2
    assert reports == ["worker 1 cannot run; ending all"]


async def test_worker_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "GRACE_SECONDS", 0.2)
    unresponsive = CHILD.replace("lambda *_: sys.exit(code)", "signal.SIG_IGN")

    async with supervised([child(0, tmp_path, script=unresponsive)], []) as (stop, task):
        await waiting.until(lambda: (tmp_path / "0-1").exists())
        stop.set()
        assert await task == 128 + signal.SIGKILL


@pytest.mark.parametrize(
    ("exit_code", "quick_exits", "hopeless"),
    [
        pytest.param(1, 1, False, id="first-crash"),
        pytest.param(-9, 4, False, id="killed-sometimes"),
        pytest.param(1, 5, True, id="crashes-repeatedly"),
        pytest.param(2, 1, True, id="usage-error"),
    ],
)
def test_when_restarts_are_given_up(exit_code: int, quick_exits: int, hopeless: bool) -> None:
    assert workers.is_permanent_failure(exit_code, quick_exits=quick_exits) is hopeless


# `maestro server` with a stub in place of the server.

STUB = """
import asyncio, os, sys, types

async def run(settings, *, dsn, mount):
    print("up", settings.instance.instance_id, dsn, flush=True)
    try:
        await asyncio.sleep(300)
    finally:
        print("cleaned up", flush=True)

module = types.ModuleType("maestropy.server.main")
module.run = run
sys.modules["maestropy.server.main"] = module
from maestropy.cli.main import call
sys.exit(call(sys.argv[1:]))
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", STUB, "server", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAESTRO_")},
    )


@pytest.mark.parametrize(
    ("signal_number", "exit_code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["sigterm", "ctrl-c"]
)
def test_server_cleans_up_on_signal(signal_number: int, exit_code: int) -> None:
    with start("--db-dsn=postgresql://u:hunter2@db/d", "--client-id=me") as process:
        assert process.stdout
        assert process.stdout.readline() == "up me postgresql://u@db:5432/d?sslmode=prefer\n"
        process.send_signal(signal_number)
        out, err = process.communicate(timeout=60)
        assert (out, err, process.returncode) == ("cleaned up\n", "", exit_code)


def test_worker_stops_when_its_parent_ends() -> None:
    with start("--db-dsn=postgresql://u@db/d", "--workers=2", "--worker-index=1") as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline().startswith("up maestro-w1 ")
        process.stdin.close()
        assert process.stdout.read() == "cleaned up\n"
        assert process.wait(timeout=60) == 0


def test_embedded_postgres_runs_as_long_as_the_server(tmp_path: Path) -> None:
    with start(f"--data-dir={tmp_path}") as process:
        assert process.stdout
        assert process.stdout.readline().startswith("up maestro postgresql://maestro@/postgres?")
        assert (tmp_path / "postgres" / "postmaster.pid").exists()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert (out, err, process.returncode) == ("cleaned up\n", "", 0)
    assert not (tmp_path / "postgres" / "postmaster.pid").exists()
