import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

import maestropy
from maestropy.agent.settings import FLAGS as AGENT_FLAGS
from maestropy.cli import command_tree, errors, lifecycle, main
from maestropy.cli.parsing import help_panels
from maestropy.flags import Flag
from maestropy.server.settings.load import FLAGS


@pytest.fixture
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAESTRO_ENV", "MAESTRO_DB_DSN"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("command", "flags"), [("server", FLAGS), ("agent", AGENT_FLAGS)])
def test_help_shows_every_public_flag_and_examples(
    command: str, flags: Mapping[str, Flag], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main.call([command, "--help"]) == 0
    page = capsys.readouterr().out
    missing = [flag.name for flag in flags.values() if not flag.hidden and f"{flag.name} " not in page]
    assert missing == []
    assert "--worker-index" not in page
    assert "Examples:" in page


@pytest.mark.parametrize("group", ["consumer", "resourcebundle", "config"])
def test_help_of_each_client_command_shows_its_own_examples(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [name for name in command_tree.app[group] if not name.startswith("-")]
    assert len(commands) >= 5
    for command in commands:
        assert main.call([group, command, "--help"]) == 0
        page = capsys.readouterr().out
        assert ("Global flags, as in Go Maestro: -v LEVEL" in page) is (group != "config")
        examples = [line for line in page.partition("\nExample")[2].splitlines() if "maestro " in line]
        assert examples, command
        assert all(f"maestro {group} {command}" in example for example in examples)


@pytest.mark.usefixtures("_bare_environment")
@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        pytest.param("serv", 'Did you mean "server"', id="unknown-command"),
        pytest.param(
            "frob", "demo, trace, diagnose, mcp, practice, adapter, ", id="unknown-command-without-suggestion"
        ),
        pytest.param("apply -f x", 'Did you mean "maestro resourcebundle apply"?; see', id="command-of-a-group"),
        pytest.param(
            "delete x", '"maestro resourcebundle delete" or "maestro consumer delete"?', id="command-of-two-groups"
        ),
        pytest.param("aply -f x", 'Did you mean "maestro resourcebundle apply"?; see', id="typing-error-in-a-group"),
        pytest.param(
            "wait --help", 'Did you mean "maestro resourcebundle wait"?; see', id="help-of-a-command-of-a-group"
        ),
        pytest.param("rb lst", 'Did you mean "list"?; see `maestro resourcebundle --help`', id="typing-error"),
        pytest.param("get wroks", 'Did you mean "works"?; see `maestro get --help`', id="kind"),
        pytest.param("help frob", 'Unknown command "frob". Available commands: server', id="help-command"),
        pytest.param("consumer delete", "name consumers by ID or name, or give -l LABELS", id="nothing-to-delete"),
        pytest.param("get works a -l app=x", "names cannot be combined with", id="name-and-labels"),
        pytest.param("rb list -o jsonpath", "-o jsonpath needs a template", id="output-without-template"),
        pytest.param("rb apply -f x --dry-run=maybe", "--dry-run", id="dry-run"),
        pytest.param(
            "resourcebundle list --outptu x", "see `maestro resourcebundle list --help`", id="help-of-the-command"
        ),
        pytest.param("frob --help", 'Unknown command "frob". Available', id="help-of-an-unknown-command"),
        pytest.param("consumer frob -h", 'Unknown command "frob". Available commands: list', id="help-in-a-group"),
        pytest.param("consumer list --size -1", "for --size. Must be >= 1", id="size"),
        pytest.param("resourcebundle list --page 0", "for --page. Must be >= 1", id="page"),
        pytest.param("consumer create c1 --label x", "--label x: write it as key=value", id="label-without-value"),
        pytest.param("up --agents 0", "--agents is 0; use 1 to 100", id="no-agent"),
        pytest.param("up --agents 101", "--agents is 101; use 1 to 100", id="many-agents"),
        pytest.param(
            "adapter serve x.py --port 65536", "--port is 65536; give a port from 1 to 65535", id="large-port"
        ),
        pytest.param("adapter serve x.py --metrics-port=-1", "--metrics-port is -1; give a port", id="negative-port"),
        pytest.param(
            "adapter consume x.py --health-port 65536", "--health-port is 65536; give a port", id="probe-port"
        ),
        pytest.param("trace hcp x --cs-url https://u:p@h", "an address contains a user or password", id="login"),
        pytest.param("adapter serve x.py --workers 0", "--workers is 0; give 1 or more", id="no-worker"),
        pytest.param("up --data-dir=", "--data-dir is empty; name a directory", id="empty-data-dir"),
        pytest.param("up --ephemeral --data-dir /x", "--ephemeral and --data-dir exclude each other", id="no-data"),
        pytest.param("up --kubeconfig /none", "--kubeconfig=/none does not exist", id="no-kubeconfig"),
        pytest.param("server --enable-htps", "Did you mean --enable-https", id="unknown-flag"),
        pytest.param(
            "server --server-hostname=no.such.invalid --data-dir=/x --enable-https=false",
            "--server-hostname=no.such.invalid cannot be resolved; give an address of this host, or leave it empty",
            id="unknown-host",
        ),
        pytest.param(
            "server --grpc-tls-cert-file=/none.pem --grpc-tls-key-file=/none.key",
            "--grpc-tls-cert-file",
            id="no-certificate-file",
        ),
        pytest.param("server extra", "extra", id="unexpected-argument"),
        pytest.param(
            "server --enable-jwt=false",
            "--enable-jwt is a flag of older Go Maestro without effect; leave it out (authentication of REST clients: "
            "--rest-authn-type); see",
            id="flag-of-older-go",
        ),
        pytest.param(
            "server --acl_file /acl.yaml", "older Go Maestro without effect", id="flag-of-older-go-in-agent-style"
        ),
        pytest.param(
            "server --ocm-client-secret-file=/x --enable-htps",
            "--ocm-client-secret-file is a flag of older Go Maestro without effect; leave it out; see",
            id="flag-of-older-go-without-successor",
        ),
        pytest.param(
            "server --enable-jwt=false --enable-authz=false --enable-sentry=false --jwk-cert-file x",
            "--enable-jwt, --enable-authz, --enable-sentry, --jwk-cert-file are flags of older Go Maestro without "
            "effect; leave them out (authentication of REST clients: --rest-authn-type; roles "
            "of REST clients: --jwt-role-claim); see",
            id="flags-of-older-go",
        ),
        pytest.param("migration --enable-jwt", "Unknown option: --enable-jwt", id="flag-of-the-older-go-server"),
        pytest.param("server --client-id", "--client-id requires an argument", id="value-missing"),
        pytest.param("server --http-server-bindport=99999", "--http-server-bindport=99999: use a port", id="bad-port"),
        pytest.param(
            "agent --consumer-name c --workload-source-driver kube", "is not in this version yet", id="not-yet"
        ),
        pytest.param("agent --consumer-name", "--consumer-name requires an argument", id="agent-value-missing"),
        pytest.param("agent", "cluster name is required; give --consumer-name", id="agent-without-consumer-name"),
        pytest.param("agent --consumer-name=c", "give --workload-source-config or", id="agent-without-server"),
        pytest.param("agent --consumr-name=c", "Did you mean --consumer-name", id="agent-unknown-flag"),
        pytest.param(
            "agent --consumer_name=c --workload-source-driver kube", "not in this version", id="agent-not-yet"
        ),
        pytest.param(
            "agent --consumer-name=c --grpc-url=localhost:1 --listen=8443",
            "--listen is not an address",
            id="agent-listen",
        ),
        pytest.param("migration --client-id=x", "Unknown option: --client-id", id="flag-of-another-command"),
        pytest.param("server --db-dsn=mysql://u:hunter2@h/d", "--db-dsn does not begin", id="secret-is-not-printed"),
    ],
)
def test_usage_error_is_one_sentence_and_exit_code_2(
    line: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.call(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert complaint in err
    assert "hunter2" not in err


@pytest.mark.usefixtures("_bare_environment")
def test_server_rejects_the_file_of_a_broker_without_its_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "run", lambda _: 0)
    path = tmp_path / "mqtt.yaml"
    path.write_text("brokerHost: localhost:1883\n")
    line = ["server", "--db-dsn=postgresql://u@h/d", f"--message-broker-config-file={path}"]
    assert main.call([*line, "--message-broker-type=mqtt"]) == 0
    assert main.call(line) == 2
    assert "; add --message-broker-type=mqtt, or" in capsys.readouterr().err


def test_error_in_workload_source_config_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("url: localhost:8091\ntoken: hunter2\n")
    assert main.call(["agent", "--consumer-name=c", "--workload-source-config", str(path)]) == 2
    expected = f"Error: --workload-source-config={path}: setting token requires authority certificates; add caFile"
    err = capsys.readouterr().err
    assert err.startswith(expected)
    assert "hunter2" not in err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["version"]) == 0
    assert capsys.readouterr().out == f"{maestropy.__version__}\n"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(errors.CommandError("no; do this"), "Error: no; do this\n", id="command-error"),
        pytest.param(OSError(98, "Address already in use"), "Error: Address already in use\n", id="system-error"),
        pytest.param(OSError(2, "No such file", "ca.pem"), "Error: No such file (ca.pem)\n", id="file-error"),
        pytest.param(
            ExceptionGroup("many", [ExceptionGroup("more", [errors.CommandError("inner")])]),
            "Error: inner\n",
            id="exception-group",
        ),
        pytest.param(
            ModuleNotFoundError("No module named 'aiohttp'", name="aiohttp"),
            "Error: aiohttp is not installed, and this command needs it; "
            "run pip install '.[all]' in a clone of maestropy\n",
            id="missing-library",
        ),
        pytest.param(
            KeyError("x"),
            "Error: unexpected error (KeyError: 'x'); run again with -v=4 to see the traceback\n",
            id="unexpected",
        ),
    ],
)
def test_error_message(error: BaseException, expected: str) -> None:
    assert errors.report(error, verbosity=3) == expected
    assert errors.report(error, verbosity=4).endswith(expected)


def test_traceback_only_with_verbosity_4() -> None:
    with pytest.raises(KeyError) as caught:
        raise KeyError("x")
    assert "Traceback" in errors.report(caught.value, verbosity=4)
    assert "Traceback" not in errors.report(caught.value, verbosity=3)


@pytest.mark.parametrize(
    ("line", "environ", "code", "text"),
    [
        pytest.param("--help >&-", {}, 1, "the output is lost", id="closed-stdout"),
        pytest.param("server --help >&-", {}, 1, "the output is lost", id="closed-stdout-of-settings-command"),
        pytest.param("frob >&-", {}, 2, "frob", id="closed-stdout-of-a-usage-error"),
        pytest.param("frob 2>&-", {}, 2, "", id="closed-stderr"),
        pytest.param("resourcebundle diff -f - <&-", {}, 2, "the YAML text is empty", id="closed-stdin"),
        pytest.param("--help", {"PYTHONIOENCODING": "ascii"}, 0, "| adapter ", id="ascii-terminal"),
    ],
)
def test_closed_or_limited_streams(line: str, environ: dict[str, str], code: int, text: str) -> None:
    command = ["sh", "-c", f"{sys.executable} -m maestropy.cli.main {line}"]
    done = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert text in done.stdout + done.stderr
    assert "unexpected error" not in done.stderr


@pytest.mark.parametrize(
    ("line", "usage"),
    [
        ("help", "Usage: maestro COMMAND"),
        ("help rb apply", "Usage: maestro resourcebundle apply "),
        ("help server", "Usage: maestro server "),
        ("rb ls -h", "Usage: maestro resourcebundle list "),
        ("consumers ls --help", "Usage: maestro consumer list "),
        ("get rb -h", "Usage: maestro get works "),
        ("get consumer -h", "Usage: maestro get consumers "),
        ("-v 4 rb -v=2 ls --help", "Usage: maestro resourcebundle list "),
    ],
)
def test_help_command_and_short_names(line: str, usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(line.split()) == 0
    assert capsys.readouterr().out.startswith(usage)


INTERRUPTED_IMPORT = """
import os, runpy, signal, sys

entry, wanted = sys.argv[1:3]
del sys.argv[1:3]

class Interrupt:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt)
sys.argv[0] = "maestro"
if entry == "-m":
    runpy.run_module("maestropy", run_name="__main__")
module, _, name = entry.partition(":")
sys.exit(getattr(__import__(module, fromlist=[name]), name)())  # as the console script that pip writes
"""


@pytest.mark.parametrize("start", ["console-script", "-m"])
@pytest.mark.parametrize(
    "module",
    [
        "maestropy.cli",
        "maestropy.cli.main",
        "maestropy.cli.errors",
        "cyclopts",
        "maestropy.cli.client.bundles.group",
        "maestropy.sdk.blocking",
        "httpx",
    ],
)
def test_interrupt_in_the_first_moments_shows_no_traceback(start: str, module: str, tmp_path: Path) -> None:
    """The signal comes while a module is imported, whichever it is after `maestropy` itself."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    entry = start if start == "-m" else project["scripts"]["maestro"]
    line = [sys.executable, "-c", INTERRUPTED_IMPORT, entry, module, "resourcebundle", "list"]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "MAESTRO_REST_URL": "http://127.0.0.1:9"}
    done = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode in (-signal.SIGINT, 130)
    assert (done.stdout, done.stderr) == ("", "")


LOST_INTERRUPT = """
import os, signal, sys, weakref
from maestropy.cli import main

class Thing:
    pass

def loses(_):
    os.kill(os.getpid(), signal.SIGINT)

def run(_):
    # As the import system does: what a callback raises is only printed.
    scope = {"loses": loses, "weakref": weakref, "Thing": Thing}
    exec(compile("t = Thing(); r = weakref.ref(t, loses); del t", "<frozen importlib._bootstrap>", "exec"), scope)
    return 0

main.call = run
signal.signal(signal.SIGINT, signal.SIG_DFL)
main.main()
"""


def test_interrupt_in_a_callback_of_the_import_system_is_not_lost() -> None:
    done = subprocess.run([sys.executable, "-c", LOST_INTERRUPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


BLOCKED_END = """
import threading
from concurrent import futures
from maestropy.cli import lifecycle

futures.ThreadPoolExecutor().submit(threading.Event().wait)  # Python waits for it at its end
lifecycle.exit_after(0.2)
"""


def test_process_with_a_thread_that_does_not_end_is_ended() -> None:
    done = subprocess.run([sys.executable, "-c", BLOCKED_END], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (1, "the process is ended: it did not stop within 0 seconds\n")


def test_dumb_terminal_gets_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert help_panels.terminal_style().has_colours
    monkeypatch.setenv("TERM", "dumb")
    assert not help_panels.terminal_style().has_colours
