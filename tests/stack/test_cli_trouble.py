"""Commands in trouble: a killed server, expired certificates, a closed output pipe, Ctrl-C."""

import asyncio
import io
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maestropy.cli import main
from maestropy.store.dsn import Dsn
from maestropy.testing import running_fleet
from tests import certificates, waiting
from tests.stack.secure_server import running
from tests.stack.test_cli_clients import WORK
from tests.stack.test_sdk_secure import tls_flags

MAESTRO = [sys.executable, "-m", "maestropy.cli.main"]
HELLO = WORK.replace("namespace: c1", "namespace: cluster1")


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def call(line: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = main.call(line.split())
        return code, *capsys.readouterr()

    return call


class Reader:
    """Collects the lines of a process while it runs."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.lines: list[dict[str, Any]] = []
        self._process = process
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.lines.append(json.loads(line))

    def events(self) -> list[tuple[str, str]]:
        return [(event["type"], event["object"]["metadata"]["name"]) for event in self.lines]

    def wait(self, expected: tuple[str, str]) -> None:
        waiting.wait_for(lambda: expected in self.events(), seconds=30, what=f"{expected} among {self.events()}")

    def end(self) -> str:
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(60) == 130
        self._thread.join(20)
        assert self._process.stderr
        return self._process.stderr.read()


@pytest.mark.long
def test_commands_survive_a_server_restart(
    run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_fleet() as fleet:
        monkeypatch.setenv("MAESTRO_REST_URL", fleet.api_url)
        monkeypatch.setenv("MAESTRO_GRPC_SERVER_ADDRESS", fleet.grpc_url)
        assert run("resourcebundle apply -f - --wait", HELLO)[0] == 0
        watch = [*MAESTRO, "resourcebundle", "watch", "-o", "json"]
        with subprocess.Popen(watch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            reader = Reader(process)
            reader.wait(("ADDED", "hello"))
            fleet.kill_server()
            # While the server is down, commands fail quickly with one sentence.
            code, out, err = run("resourcebundle list")
            assert (code, out, err.count("\n")) == (1, "", 1)
            assert "check that the server runs" in err
            code, out, err = run("resourcebundle diff -f -", HELLO)
            assert (code, out, err.count("\n")) == (3, "", 1)
            fleet.start_server()
            second = HELLO.replace("name: hello", "name: second").replace("name: cm", "name: other")
            assert run("resourcebundle apply -f - --wait", second)[0] == 0
            reader.wait(("ADDED", "second"))
            assert run("resourcebundle delete hello --yes --wait")[0] == 0
            reader.wait(("DELETED", "hello"))
            gone, back = reader.end().splitlines()
            assert gone.startswith("The server is gone: ")
            assert back.startswith("The server is back")
        events = reader.events()
        assert [events.count(("ADDED", name)) for name in ("hello", "second")] == [1, 1]
        assert events.count(("DELETED", "hello")) == 1

        # A closed output pipe, such as that of `head`, ends the command at once, before its next output.
        line = f"{sys.executable} -m maestropy.cli.main resourcebundle watch | head -1; echo ${{PIPESTATUS[0]}}"
        piped = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
        first, status = piped.stdout.splitlines()
        assert "cluster1/second" in first
        assert (status, piped.stderr) == ("141", "")

        # Ctrl-C while waiting for a condition that never becomes true.
        never = second.replace("v1, kind: ConfigMap", "example.com/v1, kind: Teapot").replace("second", "never")
        waiter = subprocess.Popen(
            [*MAESTRO, "resourcebundle", "apply", "-f", "-", "--wait", "--timeout", "60s"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with waiter:
            assert waiter.stdin
            assert waiter.stdout
            waiter.stdin.write(never)
            waiter.stdin.close()
            assert "applied successfully" in waiter.stdout.readline()
            waiter.send_signal(signal.SIGINT)
            assert waiter.wait(60) == 130
            assert waiter.stderr
            assert waiter.stderr.read() == ""


@pytest.mark.parametrize("expired", [True, False], ids=["expired", "unknown-ca"])
async def test_untrusted_certificate_gives_one_line_error(
    expired: bool, database: Dsn, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ca = certificates.make_ca(tmp_path)
    flags = tls_flags(ca.issue(cn="localhost", san=["localhost"], expired=expired))
    trusted = ca if expired else certificates.make_ca(tmp_path)
    monkeypatch.setenv("MAESTRO_GRPC_CA_FILE", str(trusted.cert))
    monkeypatch.setenv("MAESTRO_GRPC_TOKEN_FILE", str(tmp_path / "token"))
    (tmp_path / "token").write_text("hunter2")

    async with running(database, flags) as server:
        monkeypatch.setenv("MAESTRO_REST_URL", f"https://localhost:{server.port('rest')}")
        code = await asyncio.to_thread(main.call, ["resourcebundle", "list"])
        assert code == 1
    out, err = capsys.readouterr()
    message = err.splitlines()[-1]
    assert out == ""
    assert message.startswith("Error: cannot list")
    assert ("certificate has expired" if expired else "unable to get local issuer") in message
    assert "check the CA file, the certificate's names and its dates" in message
    assert "hunter2" not in err
    assert "Traceback" not in err
