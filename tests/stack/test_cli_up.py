"""`maestro up` as a person runs it: a process of its own, found by the other commands, stopped by Ctrl-C."""

import asyncio
import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import harness
import pytest
import yaml

from maestropy.cli import main
from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.process import Ports, ServerProcess
from maestropy.store.dsn import Dsn

README = Path(__file__).parents[2] / "README.md"
MAESTRO = [sys.executable, "-m", "maestropy.cli.main"]


@pytest.mark.timeout(180)
def test_the_commands_of_the_readme_find_what_is_up(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MAESTRO_", "HYPERFLEET_"))}
    environ |= {"XDG_CONFIG_HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    shown = tmp_path / "shown"
    with shown.open("wb") as out:
        command = [*MAESTRO, "up", "--ephemeral", "--free-ports", "--write-config"]
        up = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environ)
    try:
        wait_for_text(shown, "Ctrl-C stops everything", up)
        config = yaml.safe_load((tmp_path / "maestropy" / "config.yaml").read_text())
        assert config["current"] == "local"
        assert config["environments"]["local"]["rest-url"] in shown.read_text()
        said = [run(line, environ, folder=tmp_path) for line in readme_commands()]
        assert "cluster1" in said[0]
        assert re.search(r" hello +cluster1 +1 .* Applied$", said[-2], re.MULTILINE)
        assert "Status: ✓ All manifests successfully applied to cluster" in said[-1]
        see_the_path_of_what_was_applied(shown, environ, folder=tmp_path)
    finally:
        up.send_signal(signal.SIGINT)
        code = up.wait(30)
    assert code == 130
    assert shown.read_text().endswith("stopping\n")


def test_a_server_that_ends_is_noticed_and_it_ends_with_who_started_it(database: Dsn, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ServerProcess(database, log=tmp_path / "server.log") as server, asyncio.timeout(60):
            assert server._process
            assert server._process.stdin
            # What the kernel does for a parent that was killed.
            server._process.stdin.close()
            with pytest.raises(SandboxError, match="the server has ended with code 0; its log is"):
                await server.watch_over()

    harness.play(scenario())


def test_a_port_that_somebody_has_is_told_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]
        ports = dataclasses.replace(Ports.free(), agents=port)
        server = ServerProcess(Dsn.parse("postgresql://nobody@127.0.0.1:1/none"), log=tmp_path / "log", ports=ports)
        with pytest.raises(SandboxError, match=f"port {port} of this computer is in use; .*--free-ports"):
            asyncio.run(server.start())


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        assert main.call(["up", "--free-ports", "--data-dir", str(folder)]) == 1
        err = capsys.readouterr().err
        assert err.startswith(f"Error: {folder} cannot be used: ")
        assert err.endswith("; choose another folder with --data-dir\n")


def see_the_path_of_what_was_applied(shown: Path, environ: dict[str, str], *, folder: Path) -> None:
    """Draw the request of the past, as `up` proposes, and one that comes while we look."""
    offered = re.search(r"^  (maestro trace request --live hello .+)$", shown.read_text(), re.MULTILINE)
    assert offered
    drawn = run(offered.group(1), environ, folder=folder)
    assert "create v1  hello" in drawn
    assert re.search(r"^Verdict  COMPLETE in .+$", drawn, re.MULTILINE)
    place = offered.group(1).split()[-1]
    command = [*MAESTRO, "trace", "request", "--live", "--next", place, "--timeout", "50s"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as live:
        assert live.stderr
        assert live.stdout
        assert "waiting for a request" in live.stderr.readline()
        told = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "hello", "namespace": "default"},
            "data": {"a": "b"},
        }
        run(
            f"echo '{json.dumps(told)}' | maestro resourcebundle apply --consumer cluster1 --name hello -f -",
            environ,
            folder=folder,
        )
        drawn = live.stdout.read()
        assert live.wait(30) == 0
    assert "update v2  hello" in drawn
    stages = re.findall(r"^\d\d:\d\d:\d\d\.\d{3}  (\d) .*? ok ", drawn, re.MULTILINE)
    # Each line has its time; what server and agent wrote at once may be read in either order.
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
    end = time.monotonic() + 30
    while text not in path.read_text():
        assert process.poll() is None, path.read_text()
        assert time.monotonic() < end, path.read_text()
        time.sleep(0.05)
