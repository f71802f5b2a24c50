"""Real child processes: kept running, restarted, ended in good order."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from maestropy.server import workers

# Leaves a file with its pid named after its index and the number of its life; ends in good order on SIGTERM.
CHILD = """
import os, signal, sys, time
index, place, code = sys.argv[1], sys.argv[2], int(sys.argv[3])
life = 1
while os.path.exists(f"{place}/{index}-{life}"):
    life += 1
signal.signal(signal.SIGTERM, lambda *_: sys.exit(code))
with open(f"{place}/.{index}-{life}", "w") as file:
    file.write(str(os.getpid()))
os.rename(f"{place}/.{index}-{life}", f"{place}/{index}-{life}")
while True:
    time.sleep(60)
"""


def child(index: int, place: Path, *, code: int = 0, script: str = CHILD) -> workers.Worker:
    command = (sys.executable, "-c", script, str(index), str(place), str(code))
    return workers.Worker(index=index, command=command, environ=dict(os.environ))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def supervised(crew: list[workers.Worker], said: list[str]) -> AsyncIterator[tuple[asyncio.Event, asyncio.Task]]:
    stop = asyncio.Event()

    async def wait() -> None:
        await stop.wait()

    task = asyncio.create_task(workers.supervise(crew, until=wait(), report=said.append, jitter=lambda: 0.0))
    try:
        yield stop, task
    finally:
        stop.set()
        await task


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_all_run_and_end_in_good_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        said: list[str] = []
        async with supervised([child(0, tmp_path), child(1, tmp_path)], said) as (stop, task):
            await until(lambda: (tmp_path / "0-1").exists() and (tmp_path / "1-1").exists())
            pids = [int((tmp_path / name).read_text()) for name in ("0-1", "1-1")]
            stop.set()
            assert await task == 0
        assert all(is_gone(pid) for pid in pids)
        assert said == []

    asyncio.run(scenario())


def test_a_killed_worker_comes_back_and_the_others_stay(tmp_path: Path) -> None:
    async def scenario() -> None:
        said: list[str] = []
        async with supervised([child(0, tmp_path), child(1, tmp_path)], said) as (stop, task):
            await until(lambda: (tmp_path / "0-1").exists() and (tmp_path / "1-1").exists())
            os.kill(int((tmp_path / "1-1").read_text()), signal.SIGKILL)
            await until(lambda: (tmp_path / "1-2").exists())
            assert not is_gone(int((tmp_path / "0-1").read_text()))
            assert not (tmp_path / "0-2").exists()
            stop.set()
            assert await task == 0
        assert said == ["worker 1 ended with exit code -9; starting it again in 0.5 s"]

    asyncio.run(scenario())


def test_the_worst_exit_code_counts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with supervised([child(0, tmp_path, code=3), child(1, tmp_path)], []) as (stop, task):
            await until(lambda: (tmp_path / "0-1").exists() and (tmp_path / "1-1").exists())
            stop.set()
            assert await task == 3

    asyncio.run(scenario())


def test_a_mistake_in_the_command_line_ends_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        said: list[str] = []
        crew = [child(0, tmp_path), child(1, tmp_path, script="import sys; sys.exit(2)")]
        async with supervised(crew, said) as (_, task):
            async with asyncio.timeout(60):
                assert await task == 2
        assert said == ["worker 1 cannot run; ending all"]

    asyncio.run(scenario())


def test_a_worker_that_ignores_the_request_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "GRACE_SECONDS", 0.2)
    deaf = CHILD.replace("lambda *_: sys.exit(code)", "signal.SIG_IGN")

    async def scenario() -> None:
        async with supervised([child(0, tmp_path, script=deaf)], []) as (stop, task):
            await until(lambda: (tmp_path / "0-1").exists())
            stop.set()
            assert await task == 128 + signal.SIGKILL

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("exit_code", "quick_deaths", "hopeless"),
    [
        pytest.param(1, 1, False, id="first-crash"),
        pytest.param(-9, 4, False, id="killed-now-and-then"),
        pytest.param(1, 5, True, id="crashes-again-and-again"),
        pytest.param(2, 1, True, id="mistake-in-the-command-line"),
    ],
)
def test_when_to_give_up(exit_code: int, quick_deaths: int, hopeless: bool) -> None:
    assert workers.is_hopeless(exit_code, quick_deaths=quick_deaths) is hopeless


# The command around it, with a server that only says that it is there.

STUB = """
import asyncio, os, sys, types

async def run(settings, *, dsn):
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
    ("request_to_end", "exit_code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["sigterm", "ctrl-c"]
)
def test_the_server_ends_quietly_and_cleans_up(request_to_end: int, exit_code: int) -> None:
    with start("--db-dsn=postgresql://u:hunter2@db/d", "--client-id=me") as process:
        assert process.stdout
        assert process.stdout.readline() == "up me postgresql://u@db:5432/d?sslmode=prefer\n"
        process.send_signal(request_to_end)
        out, err = process.communicate(timeout=60)
        assert (out, err, process.returncode) == ("cleaned up\n", "", exit_code)


def test_a_worker_ends_when_its_parent_is_gone() -> None:
    with start("--db-dsn=postgresql://u@db/d", "--workers=2", "--worker-index=1") as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline().startswith("up maestro-w1 ")
        process.stdin.close()
        assert process.stdout.read() == "cleaned up\n"
        assert process.wait(timeout=60) == 0


def test_without_a_database_the_embedded_one_runs_as_long_as_the_server(tmp_path: Path) -> None:
    with start(f"--data-dir={tmp_path}") as process:
        assert process.stdout
        assert process.stdout.readline().startswith("up maestro postgresql://maestro@/postgres?")
        assert (tmp_path / "postgres" / "postmaster.pid").exists()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert (out, err, process.returncode) == ("cleaned up\n", "", 0)
    assert not (tmp_path / "postgres" / "postmaster.pid").exists()
