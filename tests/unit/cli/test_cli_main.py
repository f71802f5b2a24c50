import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from maestropy.agent.settings import FLAGS as AGENT_FLAGS
from maestropy.cli import failure, main
from maestropy.flags import Flag
from maestropy.server.settings.load import FLAGS


@pytest.fixture
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAESTRO_ENV", "MAESTRO_DB_DSN"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("command", "flags"), [("server", FLAGS), ("agent", AGENT_FLAGS)])
def test_the_help_of_a_command_shows_every_public_flag_and_examples(
    command: str, flags: Mapping[str, Flag], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main.call([command, "--help"]) == 0
    shown = capsys.readouterr().out
    missing = [flag.name for flag in flags.values() if not flag.hidden and f"{flag.name} " not in shown]
    assert missing == []
    assert "--worker-index" not in shown
    assert "Examples:" in shown


@pytest.mark.usefixtures("_bare_environment")
@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        pytest.param("serv", 'Did you mean "server"', id="unknown-command"),
        pytest.param("frob", "demo, ...; see `maestro --help`", id="unheard-of-command"),
        pytest.param("resourcebundle list --outptu x", "see `maestro resourcebundle list --help`", id="where-to-look"),
        pytest.param("consumer create c1 --label x", "--label x: write it as key=value", id="half-a-label"),
        pytest.param("up --agents 0", "--agents must be 1 or more", id="no-agent"),
        pytest.param("up --kubeconfig /none", "--kubeconfig=/none does not exist", id="no-kubeconfig"),
        pytest.param("server --enable-htps", "Did you mean --enable-https", id="unknown-flag"),
        pytest.param("server extra", "extra", id="a-word-too-many"),
        pytest.param("server --client-id", "--client-id requires an argument", id="value-missing"),
        pytest.param("server --http-server-bindport=99999", "--http-server-bindport=99999: use a port", id="bad-port"),
        pytest.param("server --message-broker-type pubsub", "is not in this version yet", id="not-yet"),
        pytest.param("agent --consumer-name", "--consumer-name requires an argument", id="agent-value-missing"),
        pytest.param("agent", "cluster name is required; give --consumer-name", id="agent-of-no-cluster"),
        pytest.param("agent --consumer-name=c", "give --workload-source-config or", id="agent-of-no-server"),
        pytest.param("agent --consumr-name=c", "Did you mean --consumer-name", id="agent-unknown-flag"),
        pytest.param(
            "agent --consumer_name=c --workload-source-driver pubsub", "not in this version", id="agent-not-yet"
        ),
        pytest.param(
            "agent --consumer-name=c --grpc-url=localhost:1 --listen=8443",
            "--listen is not an address",
            id="agent-listen",
        ),
        pytest.param("migration --client-id=x", "Unknown option: --client-id", id="flag-of-another-command"),
        pytest.param("server --db-dsn=mysql://u:hunter2@h/d", "--db-dsn does not begin", id="secret-in-a-mistake"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    line: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.call(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert complaint in err
    assert "hunter2" not in err


def test_a_mistake_in_the_file_with_the_way_to_the_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("url: localhost:8091\ntoken: hunter2\n")
    assert main.call(["agent", "--consumer-name=c", "--workload-source-config", str(path)]) == 2
    expected = f"Error: --workload-source-config={path}: setting token requires authority certificates; add caFile"
    err = capsys.readouterr().err
    assert err.startswith(expected)
    assert "hunter2" not in err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["version"]) == 0
    assert capsys.readouterr().out == "0.1.0\n"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(failure.CommandError("no; do this"), "Error: no; do this\n", id="ours"),
        pytest.param(OSError(98, "Address already in use"), "Error: Address already in use\n", id="of-the-system"),
        pytest.param(OSError(2, "No such file", "ca.pem"), "Error: No such file (ca.pem)\n", id="of-a-file"),
        pytest.param(
            ExceptionGroup("many", [ExceptionGroup("more", [failure.CommandError("inner")])]),
            "Error: inner\n",
            id="inside-groups",
        ),
        pytest.param(
            ModuleNotFoundError("No module named 'aiohttp'", name="aiohttp"),
            "Error: aiohttp is not installed, and this command needs it; pip install 'maestropy[all]'\n",
            id="only-the-client-is-installed",
        ),
        pytest.param(
            KeyError("x"),
            "Error: something unexpected happened (KeyError: 'x'); run again with -v=4 to see where\n",
            id="unexpected",
        ),
    ],
)
def test_an_error_is_a_sentence(error: BaseException, expected: str) -> None:
    assert failure.report(error, verbosity=3) == expected
    assert failure.report(error, verbosity=4).endswith(expected)


def test_the_traceback_is_there_for_those_who_ask() -> None:
    with pytest.raises(KeyError) as caught:
        raise KeyError("x")
    assert "Traceback" in failure.report(caught.value, verbosity=4)
    assert "Traceback" not in failure.report(caught.value, verbosity=3)


@pytest.mark.parametrize(
    ("line", "environ", "code", "told"),
    [
        pytest.param("--help >&-", {}, 0, "", id="nowhere-to-write"),
        pytest.param("server --help >&-", {}, 0, "", id="nowhere-to-write-flags"),
        pytest.param("frob 2>&-", {}, 2, "", id="nowhere-to-complain"),
        pytest.param("resourcebundle diff -f - <&-", {}, 3, "the YAML text is empty", id="nothing-to-read"),
        pytest.param("--help", {"PYTHONIOENCODING": "ascii"}, 0, "? adapter ", id="a-terminal-with-few-letters"),
    ],
)
def test_streams_that_are_not_there(line: str, environ: dict[str, str], code: int, told: str) -> None:
    command = ["sh", "-c", f"{sys.executable} -m maestropy.cli.main {line}"]
    done = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert told in done.stdout + done.stderr
    assert "unexpected" not in done.stderr
