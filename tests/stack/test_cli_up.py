"""`maestro up` as a process: other commands find it through its environment, Ctrl-C stops it."""

import asyncio
import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from maestropy.cli import main
from maestropy.sandbox.directory_lock import DirectoryLock
from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.server_process import Ports, ServerProcess
from maestropy.store.dsn import Dsn
from tests import waiting

README = Path(__file__).parents[2] / "README.md"
MAESTRO = [sys.executable, "-m", "maestropy.cli.main"]


@pytest.mark.long
@pytest.mark.timeout(180)
def test_commands_of_the_readme_work_with_maestro_up(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MAESTRO_", "HYPERFLEET_"))}
    environ |= {"XDG_CONFIG_HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    output = tmp_path / "shown"
    with output.open("wb") as out:
        command = [*MAESTRO, "up", "--ephemeral", "--free-ports", "--write-config"]
        up = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environ)
    try:
        wait_for_text(output, "Ctrl-C stops everything", up)
        config = yaml.safe_load((tmp_path / "maestropy" / "config.yaml").read_text())
        assert config["current"] == "local"
        assert config["environments"]["local"]["rest-url"] in output.read_text()
        outputs = [run(line, environ, folder=tmp_path) for line in readme_commands()]
        assert "cluster1" in outputs[0]
        assert re.search(r" hello +cluster1 +1 .* Applied$", outputs[-2], re.MULTILINE)
        assert "Status: ✓ All manifests successfully applied to cluster" in outputs[-1]
        check_live_trace(output, environ, folder=tmp_path)
    finally:
        up.send_signal(signal.SIGINT)
        code = up.wait(30)
    assert code == 130
    assert output.read_text().endswith("stopping\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize(
    "begun", ["postgres/postgres.unfinished/PG_VERSION", "server.log"], ids=["during-initdb", "while-the-server-starts"]
)
def test_start_is_stopped_before_it_is_complete(begun: str, number: signal.Signals, code: int, tmp_path: Path) -> None:
    output, data = tmp_path / "shown", tmp_path / "data"
    with output.open("wb") as out:
        command = [*MAESTRO, "up", "--free-ports", "--data-dir", str(data)]
        up = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        waiting.wait_for((data / begun).exists, what=begun)
        up.send_signal(number)
        assert up.wait(60) == code, output.read_text()
    finally:
        up.kill()
        up.wait()
    assert output.read_text() == "stopping\n"
    # Neither the server nor PostgreSQL is left behind.
    with pytest.raises(ProcessLookupError):
        os.killpg(up.pid, 0)
    assert not (data / "postgres" / "postgres" / "postmaster.pid").exists()
    DirectoryLock.take(data / "postgres").release()


@pytest.mark.long
@pytest.mark.timeout(180)
def test_up_with_traces_shows_the_trace_of_a_request(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MAESTRO_", "OTEL_"))}
    # Of a shell that is set up for another program: the SDK would not start, sample nothing, or send spans elsewhere.
    environ |= {
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "many",
        "OTEL_TRACES_SAMPLER": "always_off",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1",
        "OTEL_SERVICE_NAME": "another",
    }
    output = tmp_path / "shown"
    with output.open("wb") as out:
        command = [*MAESTRO, "up", "--ephemeral", "--free-ports", "--with-traces"]
        up = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environ)
    try:
        # The last span of the trace is printed last.
        wait_for_text(output, "receive status  maestro-client", up)
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(30)
    tree = output.read_text().partition("of one request")[2]
    steps = re.findall(r"^ +[└─ ]*(\w+(?: \w+)+) {2,}(maestro\S*) ", tree, re.MULTILINE)
    client, server, agent = "maestro-client", "maestro", "maestro-agent"
    assert steps == [
        ("publish spec request", client),
        ("accept spec request", server),
        ("commit spec", server),
        ("dispatch spec", server),
        ("receive spec", agent),
        ("apply work", agent),
        ("send status", agent),
        ("receive status", server),
        ("commit status", server),
        ("dispatch status", server),
        ("receive status", client),
    ]


def test_up_with_traces_needs_variables_that_it_may_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    assert main.call(["up", "--with-traces"]) == 2
    assert "unset OTEL_TRACES_EXPORTER, or leave the flag out" in capsys.readouterr().err


async def test_server_process_ends_with_its_parent_and_its_exit_is_reported(database: Dsn, tmp_path: Path) -> None:
    async with ServerProcess(database, log=tmp_path / "server.log") as server, asyncio.timeout(60):
        assert server._process
        assert server._process.stdin
        # What the kernel does for a parent that was killed.
        server._process.stdin.close()
        with pytest.raises(SandboxError, match="the server has ended with code 0; its log is"):
            await server.wait_for_exit()


async def test_port_in_use_is_reported_before_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        ports = dataclasses.replace(Ports.free(), agents=port)
        server = ServerProcess(Dsn.parse("postgresql://nobody@127.0.0.1:1/none"), log=tmp_path / "log", ports=ports)
        with pytest.raises(SandboxError, match=f"port {port} of this computer is in use; .*--free-ports"):
            await server.start()


def test_unusable_folder_is_named_in_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        assert main.call(["up", "--free-ports", "--data-dir", str(folder)]) == 1
        err = capsys.readouterr().err
        assert err.startswith(f"Error: {folder} cannot be used: ")
        assert err.endswith("; choose another folder with --data-dir\n")


def check_live_trace(output: Path, environ: dict[str, str], *, folder: Path) -> None:
    """Trace a past request with the command that `up` proposes, and one that arrives during the trace."""
    proposed = re.search(r"^  (maestro trace request --live hello .+)$", output.read_text(), re.MULTILINE)
    assert proposed
    diagram = run(proposed.group(1), environ, folder=folder)
    assert "create v1  hello" in diagram
    assert re.search(r"^Verdict  COMPLETE in .+$", diagram, re.MULTILINE)
    assert not re.search(r"MT-\d+ (warn|error)", diagram), diagram
    folder_argument = proposed.group(1).split()[-1]
    command = [*MAESTRO, "trace", "request", "--live", "--next", folder_argument, "--timeout", "50s"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as live:
        assert live.stderr
        assert live.stdout
        assert "waiting for a request" in live.stderr.readline()
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "hello", "namespace": "default"},
            "data": {"a": "b"},
        }
        run(
            f"echo '{json.dumps(manifest)}' | maestro resourcebundle apply --consumer cluster1 --name hello -f -",
            environ,
            folder=folder,
        )
        diagram = live.stdout.read()
        assert live.wait(30) == 0
    assert "update v2  hello" in diagram
    stages = re.findall(r"^\d\d:\d\d:\d\d\.\d{3}  (\d) .*? ok ", diagram, re.MULTILINE)
    # Log lines that server and agent wrote at the same time may be read in either order.
    assert {*"1234567"} <= {*stages}


def readme_commands() -> list[str]:
    """Return the commands for a second terminal."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = next(block for block in blocks if "maestro consumer list" in block).splitlines()
    return [line for line in lines if not line.startswith("source ")]


def run(line: str, environ: dict[str, str], *, folder: Path) -> str:
    done = subprocess.run(["bash", "-c", line], env=environ, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for_text(path: Path, text: str, process: "subprocess.Popen[bytes]") -> None:
    def is_there() -> bool:
        assert process.poll() is None, path.read_text()
        return text in path.read_text()

    waiting.wait_for(is_there, what=repr(text))


def test_second_up_says_that_it_already_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "postgres"
    folder.mkdir()
    lock = DirectoryLock.take(folder)
    try:
        assert main.call(["up", "--free-ports", "--data-dir", str(tmp_path)]) == 1
    finally:
        lock.release()
    assert capsys.readouterr().err.startswith(
        f"Error: it already runs: process {os.getpid()}, with its logs and data in {tmp_path}; use that one"
    )
