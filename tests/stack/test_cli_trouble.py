"""The commands when something goes wrong: servers that die, certificates that expired, readers that leave, Ctrl-C."""

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

import certificates
import harness
import pytest
from secure_server import running
from test_cli_clients import WORK
from test_sdk_secure import tls_flags

from maestropy.cli import main
from maestropy.store.dsn import Dsn
from maestropy.testing import running_fleet

MAESTRO = [sys.executable, "-m", "maestropy.cli.main"]
HELLO = WORK.replace("namespace: c1", "namespace: cluster1")


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def call(line: str, given: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
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

    def told(self) -> list[tuple[str, str]]:
        return [(each["type"], each["object"]["metadata"]["name"]) for each in self.lines]

    def wait(self, told: tuple[str, str]) -> None:
        asyncio.run(harness.until(lambda: told in self.told(), seconds=30, what=f"{told} among {self.told()}"))

    def end(self) -> str:
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(60) == 130
        self._thread.join(20)
        assert self._process.stderr
        return self._process.stderr.read()


def test_a_server_that_dies_and_comes_back(
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
            # While nobody answers, commands say so in one sentence and within a moment.
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
            assert reader.end() == ""
        told = reader.told()
        assert [told.count(("ADDED", name)) for name in ("hello", "second")] == [1, 1]
        assert told.count(("DELETED", "hello")) == 1

        # A reader who leaves, such as `head`, is no failure of ours, and is noticed before there is more to tell.
        line = f"{sys.executable} -m maestropy.cli.main resourcebundle watch | head -1; echo ${{PIPESTATUS[0]}}"
        with subprocess.Popen(["bash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as piped:
            assert piped.stdout
            assert "cluster1/second" in piped.stdout.readline()
            out, err = piped.communicate(timeout=60)
            assert (out, err) == ("141\n", "")

        # Ctrl-C while waiting for what never comes.
        never = second.replace("v1, kind: ConfigMap", "example.com/v1, kind: Teapot").replace("second", "never")
        waiting = subprocess.Popen(
            [*MAESTRO, "resourcebundle", "apply", "-f", "-", "--wait", "--timeout", "60s"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with waiting:
            assert waiting.stdin
            assert waiting.stdout
            waiting.stdin.write(never)
            waiting.stdin.close()
            assert "applied successfully" in waiting.stdout.readline()
            waiting.send_signal(signal.SIGINT)
            assert waiting.wait(60) == 130
            assert waiting.stderr
            assert waiting.stderr.read() == ""


@pytest.mark.parametrize("expired", [True, False], ids=["expired", "stranger"])
def test_a_certificate_that_cannot_be_trusted_is_one_sentence(
    expired: bool, database: Dsn, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ca = certificates.make_ca(tmp_path)
    flags = tls_flags(ca.issue(cn="localhost", san=["localhost"], expired=expired))
    trusted = ca if expired else certificates.make_ca(tmp_path)
    monkeypatch.setenv("MAESTRO_GRPC_CA_FILE", str(trusted.cert))
    monkeypatch.setenv("MAESTRO_GRPC_TOKEN_FILE", str(tmp_path / "token"))
    (tmp_path / "token").write_text("hunter2")

    async def scenario() -> None:
        async with running(database, flags) as server:
            monkeypatch.setenv("MAESTRO_REST_URL", f"https://localhost:{server.port('rest')}")
            code = await asyncio.to_thread(main.call, ["resourcebundle", "list"])
            assert code == 1

    harness.play(scenario())
    out, err = capsys.readouterr()
    told = err.splitlines()[-1]
    assert out == ""
    assert told.startswith("Error: cannot list")
    assert ("certificate has expired" if expired else "unable to get local issuer") in told
    assert "check the CA file, the certificate's names and its dates" in told
    assert "hunter2" not in err
    assert "Traceback" not in err
