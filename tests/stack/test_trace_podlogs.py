# ruff: noqa: E501 - documents of the API server are as long as they are
"""Logs of pods through an API server: collected into files, and followed while they are written."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import harness
import pytest
import yaml
from aiohttp import web
from trace_request_logs import AGENT, BASE, SERVERS, Story, lines_g4

from pymaestro.kube.address import ClusterAddress, Credentials
from pymaestro.trace.access import podlogs
from pymaestro.trace.access.cluster import Choice
from pymaestro.trace.access.podlogs import Place

LABELS = {**dict.fromkeys(SERVERS, "app=maestro"), AGENT: "app=maestro-agent"}


def stamped(line: str, at: float) -> bytes:
    """Return a line as the API server gives it with timestamps."""
    moment = datetime.fromtimestamp(at, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond * 1000:09d}Z {line}\n".encode()


@dataclass
class LogApi:
    """A small API server with pods that write."""

    written: dict[str, list[bytes]] = field(default_factory=dict)
    previous: dict[str, bytes] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    breaks: int = 0
    """How many connections are cut after their first lines."""
    is_closing: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def write(self, story: Story) -> None:
        for pod, at, line in lines_g4(story):
            self.written.setdefault(pod, []).append(stamped(line, at))
        self.changed.set()

    async def list_pods(self, request: web.Request) -> web.Response:
        label, namespace = request.query.get("labelSelector", ""), request.match_info["namespace"]
        home = "maestro" if label == "app=maestro" else "maestro-agent"
        names = [name for name in self.written if LABELS[name] == label] if namespace == home else []
        items = [
            {
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"containers": [{"name": "service"}], "nodeName": "node-1"},
                "status": {
                    "phase": "Running",
                    "containerStatuses": [{"name": "service", "image": "maestro:1", "restartCount": int(name in self.previous or name == SERVERS[1])}],
                },
            }
            for name in names
        ]  # fmt: skip
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})

    async def log(self, request: web.Request) -> web.StreamResponse:
        pod, query = request.match_info["pod"], dict(request.query)
        self.asked.append({"pod": pod, **query})
        if query.get("previous"):
            if pod in self.previous:
                return web.Response(body=self.previous[pod])
            status = {"kind": "Status", "status": "Failure", "message": f"previous terminated container service in {pod} not found", "code": 400}  # fmt: skip
            return web.json_response(status, status=400)
        response = web.StreamResponse()
        await response.prepare(request)
        since = query.get("sinceTime", "").removesuffix("Z").encode()
        place = 0
        while True:
            for line in self.written[pod][place:]:
                # A second is as exact as it can be asked for.
                if line[:19] >= since:
                    await response.write(line)
                place += 1
            if not query.get("follow") or self.is_closing:
                return response
            if self.breaks and place:
                self.breaks -= 1
                return response
            self.changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), 0.2)

    def place(self, name: str) -> Place:
        address = ClusterAddress(server=self.url, credentials=Credentials())
        namespaces = ("maestro",) if name == "server" else ("maestro-agent", "maestro")
        return Place(name=name, choice=Choice(label=name, address=address), namespaces=namespaces,
                     label="app=maestro" if name == "server" else "app=maestro-agent")  # fmt: skip


@contextlib.asynccontextmanager
async def serving(api: LogApi) -> AsyncIterator[None]:
    app = web.Application()
    app.router.add_get("/api/v1/namespaces/{namespace}/pods", api.list_pods)
    app.router.add_get("/api/v1/namespaces/{namespace}/pods/{pod}/log", api.log)
    runner = web.AppRunner(app, shutdown_timeout=5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield
    finally:
        api.is_closing = True
        api.changed.set()
        await runner.cleanup()


def kubeconfig(path: Path, api: LogApi) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "both",
        "clusters": [{"name": "c", "cluster": {"server": api.url}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "me"}} for name in ("svc", "mgmt", "both")],
        "users": [{"name": "me", "user": {}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


@contextlib.asynccontextmanager
async def maestro(*words: str, environ: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "pymaestro.cli.main", "trace", *words),
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
                ("logs", "collect", "--only", "server", "--server-namespace", "elsewhere", "--out", str(tmp_path / "o")),
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


def test_following_files_ends_after_its_time_and_writes_json_lines(tmp_path: Path, api: LogApi) -> None:
    def write(count: int) -> None:
        for pod, lines in api.written.items():
            (tmp_path / f"{pod}.log").write_bytes(b"".join(lines[:count]))

    async def scenario() -> None:
        write(1)
        async with maestro("requests", "-f", str(tmp_path), "--for", "3s", "-o", "json", environ={}) as process:
            assert process.stderr
            assert process.stdout
            await read_until(process.stderr, "before: ")
            write(1000)
            out, err = await process.communicate()
        assert process.returncode == 0, err
        documents: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
        assert [(each["key"]["workName"], each["verdict"]) for each in documents] == [("nginx", "complete")]

    harness.play(scenario())
