"""Logs of pods through an API server: collected into files, and followed while they are written."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import harness
import pytest
from log_api import LogApi, kubeconfig, serving
from trace_request_logs import AGENT, BASE, SERVERS, Story

from maestropy.trace.access import podlogs


@contextlib.asynccontextmanager
async def maestro(*words: str, environ: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "maestropy.cli.main", "trace", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environ},
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.fixture
def api() -> LogApi:
    found = LogApi()
    found.write(Story(work="nginx"))
    return found


def test_both_clusters_are_collected_at_once_with_what_was_before(tmp_path: Path, api: LogApi) -> None:
    async def scenario() -> None:
        api.previous[SERVERS[0]] = b"2026-01-15T08:00:00.000000000Z I0115 08:00:00.000000       1 a.go:1] before\n"
        async with serving(api):
            environ = {"KUBECONFIG": str(kubeconfig(tmp_path / "config", api))}
            words = (
                "logs",
                "collect",
                "--svc-context",
                "svc",
                "--mgmt-context",
                "mgmt",
                "--out",
                str(tmp_path / "out"),
            )
            async with maestro(*words, "--since", "30m", environ=environ) as process:
                out, err = await process.communicate()
            assert process.returncode == 0, err
            assert f"Next: maestro trace requests {tmp_path / 'out'}" in out.decode()
            # One of the pods has restarted, and its former log is gone: told, not written into a file.
            assert f"{SERVERS[1]}.previous.log: previous terminated container" in err.decode()
        server = tmp_path / "out" / "server"
        assert sorted(each.name for each in server.iterdir()) == sorted(
            ["pods.json", f"{SERVERS[0]}.previous.log", *(f"{name}.log" for name in SERVERS)]
        )
        pods = json.loads((server / "pods.json").read_text())
        assert {each["node"] for each in pods} == {"node-1"}
        assert pods[0]["containers"][0]["image"] == "maestro:1"
        assert {each.get("sinceSeconds") for each in api.asked if "previous" not in each} == {"1800"}
        async with maestro("requests", str(tmp_path / "out"), environ={}) as process:
            out, err = await process.communicate()
        assert process.returncode == 0, err
        assert "1 requests (create 1): 1 complete" in out.decode()

    harness.play(scenario())


def test_the_variables_of_the_older_dump_script_mean_one_component(tmp_path: Path, api: LogApi) -> None:
    async def scenario() -> None:
        async with serving(api):
            environ = {
                "KUBECONFIG": str(kubeconfig(tmp_path / "config", api)),
                "namespace": "maestro-agent",
                "label": "app=maestro-agent",
                "container": "service",
                "logs_dir": str(tmp_path / "dumped"),
            }
            async with maestro("logs", "collect", environ=environ) as process:
                _, err = await process.communicate()
            assert process.returncode == 0, err
        found = sorted(each.name for each in (tmp_path / "dumped").rglob("*.log"))
        assert found == [f"{AGENT}.log"]

    harness.play(scenario())


def test_what_is_not_there_is_told_with_the_flags_to_change(tmp_path: Path, api: LogApi) -> None:
    async def scenario() -> None:
        async with serving(api):
            environ = {"KUBECONFIG": str(kubeconfig(tmp_path / "config", api))}
            for words in (
                ("logs", "collect", "--only=server", "--server-namespace=elsewhere", "--out", str(tmp_path / "o")),
                ("requests", "--follow", "--svc-context", "svc", "--server-namespace", "elsewhere", "--for", "5s"),
            ):  # fmt: skip
                async with maestro(*words, environ=environ) as process:
                    _, err = await process.communicate()
                assert process.returncode == 5, err
                assert "set --server-namespace and --server-label" in err.decode()
        assert not (tmp_path / "o").exists()

    harness.play(scenario())


def test_pods_are_followed_over_broken_connections_without_a_line_twice(api: LogApi) -> None:
    async def scenario() -> None:
        got: dict[str, list[bytes]] = {}
        news = asyncio.Event()

        def sink(name: str, data: bytes) -> None:
            got.setdefault(name, []).extend(data.splitlines(keepends=True))
            news.set()

        api.breaks = 3
        async with serving(api), asyncio.timeout(harness.PATIENCE), asyncio.TaskGroup() as group:
            following = [
                group.create_task(podlogs.follow(api.place(name), sink, tell=lambda _: None, since_seconds=300))
                for name in ("server", "agent")
            ]
            while api.breaks or not any("sinceTime" in each for each in api.asked):
                await asyncio.sleep(0.05)
            api.write(Story(work="later", at=BASE + 0.4))
            while {name: len(lines) for name, lines in got.items()} != {
                name: len(lines) for name, lines in api.written.items()
            }:
                news.clear()
                await news.wait()
            for task in following:
                task.cancel()
        assert got == api.written

    harness.play(scenario())


async def read_until(stream: asyncio.StreamReader, word: str) -> str:
    text = ""
    async with asyncio.timeout(harness.PATIENCE):
        while word not in text:
            line = await stream.readline()
            assert line, text
            text += line.decode()
    return text


def test_following_pods_prints_each_request_and_ends_with_ctrl_c(tmp_path: Path, api: LogApi) -> None:
    async def scenario() -> None:
        async with serving(api):
            environ = {"KUBECONFIG": str(kubeconfig(tmp_path / "config", api))}
            words = ("requests", "--follow", "--svc-context", "svc", "--mgmt-context", "mgmt")
            async with maestro(*words, environ=environ) as process:
                assert process.stdout
                assert process.stderr
                told = await read_until(process.stderr, "before: 1 request: 1 complete")
                assert f"following agent {AGENT}" in told
                api.write(Story(work="later", at=BASE + 5))
                shown = await read_until(process.stdout, "later")
                assert "✓ complete    later" in shown
                assert "nginx" not in shown
                process.send_signal(signal.SIGINT)
                out, err = await process.communicate()
            assert process.returncode == 130
            assert "2 requests: 2 complete" in err.decode()
            assert b"Traceback" not in out + err

    harness.play(scenario())


def test_following_files_writes_json_lines(tmp_path: Path, api: LogApi) -> None:
    def write(count: int) -> None:
        for pod, lines in api.written.items():
            (tmp_path / f"{pod}.log").write_bytes(b"".join(lines[:count]))

    async def scenario() -> None:
        write(1)
        async with maestro("requests", "-f", str(tmp_path), "--for", "50s", "-o", "json", environ={}) as process:
            assert process.stderr
            assert process.stdout
            await read_until(process.stderr, "before: ")
            write(1000)
            document: dict[str, Any] = json.loads(await read_until(process.stdout, "nginx"))
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 130
        assert (document["key"]["workName"], document["verdict"]) == ("nginx", "complete")

    harness.play(scenario())
