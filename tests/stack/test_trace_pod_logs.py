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

import pytest

from maestropy.trace.access import collect, pod_logs
from tests import waiting
from tests.stack.log_api import LogApi, kubeconfig, serving
from tests.trace_request_logs import AGENT, BASE, SERVERS, LoggedRequest


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
    found.write(LoggedRequest(work="nginx"))
    return found


async def test_current_and_previous_logs_of_both_clusters_are_collected(tmp_path: Path, api: LogApi) -> None:
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
    assert sorted(path.name for path in server.iterdir()) == sorted(
        ["pods.json", f"{SERVERS[0]}.previous.log", *(f"{name}.log" for name in SERVERS)]
    )
    pods = json.loads((server / "pods.json").read_text())
    assert {pod["node"] for pod in pods} == {"node-1"}
    assert pods[0]["containers"][0]["image"] == "maestro:1"
    assert {each.get("sinceSeconds") for each in api.requested if "previous" not in each} == {"1800"}
    async with maestro("requests", str(tmp_path / "out"), environ={}) as process:
        out, err = await process.communicate()
    assert process.returncode == 0, err
    assert "1 requests (create 1): 1 complete" in out.decode()


async def test_variables_of_the_older_dump_script_select_one_component(tmp_path: Path, api: LogApi) -> None:
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
    found = sorted(path.name for path in (tmp_path / "dumped").rglob("*.log"))
    assert found == [f"{AGENT}.log"]


async def test_log_that_may_not_be_read_fails_the_command(tmp_path: Path, api: LogApi) -> None:
    api.denied = SERVERS[1]
    async with serving(api):
        environ = {"KUBECONFIG": str(kubeconfig(tmp_path / "config", api))}
        words = ("logs", "collect", "--only=server", "--svc-context", "svc", "--out", str(tmp_path / "out"))
        async with maestro(*words, environ=environ) as process:
            out, err = await process.communicate()
        assert process.returncode == 5, "the logs of one server are missing"
        assert f"pods {SERVERS[1]} is forbidden" in err.decode()
        # What could be read is kept, and can be traced.
        assert (tmp_path / "out" / "server" / f"{SERVERS[0]}.log").exists()
        assert "Next: maestro trace requests" in out.decode()


async def test_hostile_names_write_nothing_outside_the_directory(tmp_path: Path, api: LogApi) -> None:
    def pod(name: object, *containers: object) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "maestro"}
        return {"metadata": metadata, "spec": {"containers": [{"name": each} for each in containers]}}

    api.strange = [
        pod("../../outside", "c"),
        pod(str(tmp_path / "absolute"), "c"),
        pod("ok", "../../../inside", "c"),
        pod("n" * 5000, "c"),
        pod(None, "c"),
        pod("x\x1b[2J", "c"),
        {"metadata": None},
        {**pod("number", "c"), "status": {"containerStatuses": [{"name": "c", "restartCount": "9" * 5000}]}},
    ]
    api.written["number"] = []
    out = tmp_path / "deep" / "out"
    async with serving(api):
        (result,) = await collect.collect([api.component("server")], out, since_seconds=0)
    assert not result.is_complete
    assert any("7 of 11 pods have names that Kubernetes does not allow" in problem for problem in result.problems)
    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} == {out / "server"}
    assert {path.name for path in result.files} == {"number.log", *(f"{name}.log" for name in SERVERS)}


async def test_endless_and_broken_logs_are_problems(
    tmp_path: Path, api: LogApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "_MOST_BYTES", 1 << 20)
    api.endless, api.broken = SERVERS[0], SERVERS[1]
    home = tmp_path / "server"
    home.mkdir()
    (home / f"{SERVERS[0]}.log").write_bytes(b"before")
    async with serving(api):
        (result,) = await collect.collect([api.component("server")], tmp_path, since_seconds=0)
    assert not result.is_complete
    assert sum(SERVERS[0] in problem and "--since" in problem for problem in result.problems) == 1
    assert any(SERVERS[1] in problem for problem in result.problems)
    assert (home / f"{SERVERS[0]}.log").read_bytes() == b"before"
    assert not list(home.glob("*.part"))


@pytest.mark.long
async def test_missing_pods_are_reported_with_the_flags_to_change(tmp_path: Path, api: LogApi) -> None:
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


async def test_pods_are_followed_over_broken_connections(api: LogApi) -> None:
    got: dict[str, list[bytes]] = {}
    news = asyncio.Event()

    def sink(name: str, data: bytes) -> None:
        got.setdefault(name, []).extend(data.splitlines(keepends=True))
        news.set()

    api.breaks = 3
    async with serving(api), asyncio.timeout(waiting.TIMEOUT), asyncio.TaskGroup() as group:
        following = [
            group.create_task(pod_logs.follow(api.component(name), sink, notify=lambda _: None, since_seconds=300))
            for name in ("server", "agent")
        ]
        while api.breaks or not any("sinceTime" in each for each in api.requested):
            await asyncio.sleep(0.05)
        api.write(LoggedRequest(work="later", at=BASE + 0.4))
        while {name: len(lines) for name, lines in got.items()} != {
            name: len(lines) for name, lines in api.written.items()
        }:
            news.clear()
            await news.wait()
        for task in following:
            task.cancel()
    assert got == api.written


async def read_until(stream: asyncio.StreamReader, word: str) -> str:
    text = ""
    async with asyncio.timeout(waiting.TIMEOUT):
        while word not in text:
            line = await stream.readline()
            assert line, text
            text += line.decode()
    return text


@pytest.mark.long
async def test_following_pods_prints_each_request_and_ends_with_ctrl_c(tmp_path: Path, api: LogApi) -> None:
    async with serving(api):
        environ = {"KUBECONFIG": str(kubeconfig(tmp_path / "config", api))}
        words = ("requests", "--follow", "--svc-context", "svc", "--mgmt-context", "mgmt")
        async with maestro(*words, environ=environ) as process:
            assert process.stdout
            assert process.stderr
            told = await read_until(process.stderr, "before: 1 request: 1 complete")
            assert f"following agent {AGENT}" in told
            api.write(LoggedRequest(work="later", at=BASE + 5))
            shown = await read_until(process.stdout, "later")
            assert "✓ complete    later" in shown
            assert "nginx" not in shown
            process.send_signal(signal.SIGINT)
            out, err = await process.communicate()
        assert process.returncode == 130
        assert "2 requests: 2 complete" in err.decode()
        assert b"Traceback" not in out + err


@pytest.mark.long
async def test_following_files_writes_json_lines(tmp_path: Path, api: LogApi) -> None:
    def write(count: int) -> None:
        for pod, lines in api.written.items():
            (tmp_path / f"{pod}.log").write_bytes(b"".join(lines[:count]))

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
