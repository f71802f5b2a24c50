"""`maestro config`: stored environments, precedence of settings, and error messages."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

from maestropy.cli import environments, main
from maestropy.cli.client import connection
from maestropy.cli.errors import UsageError
from maestropy.sdk.settings import VARIABLES


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [item for item in os.environ if item.startswith(("MAESTRO_", "HYPERFLEET_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "maestropy" / "config.yaml"


def run(line: str, capsys: pytest.CaptureFixture[str], *, expect: int = 0) -> str:
    code = main.call(line.split())
    out, err = capsys.readouterr()
    assert code == expect, err
    return out if expect == 0 else err


def test_create_use_show_and_delete_environment(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "the current environment is local" in run("config set-env local --rest-url http://127.0.0.1:8000", capsys)
    assert "the current environment is local" in run(
        "config set-env prod --rest-url https://p --grpc-token-file tok", capsys
    )
    assert yaml.safe_load(config.read_text()) == {
        "current": "local",
        "environments": {
            "local": {"rest-url": "http://127.0.0.1:8000"},
            "prod": {"rest-url": "https://p", "grpc-token-file": str(Path("tok").absolute())},
        },
    }
    run("config set-env local --grpc-server-address 127.0.0.1:8090", capsys)
    assert run("config list -o name", capsys) == "local\nprod\n"
    assert run("config use prod", capsys).startswith("Environment prod is selected")
    star = [line.split()[1] for line in run("config list", capsys).splitlines() if line.startswith("*")]
    assert star == ["prod"]
    assert yaml.safe_load(run("config show local -o yaml", capsys)) == {
        "rest-url": "http://127.0.0.1:8000",
        "grpc-server-address": "127.0.0.1:8090",
        "grpc-source-id": "maestro-cli",
    }
    assert "there is no current environment" in run("config delete prod", capsys)
    assert run("config list -o name", capsys) == "local\n"


FLAG, VARIABLE, FILE = {"rest-url": "http://flag"}, {"MAESTRO_REST_URL": "http://variable"}, {"rest-url": "http://file"}


@pytest.mark.parametrize(
    ("flags", "environ", "stored", "value", "origin"),
    [
        pytest.param(FLAG, VARIABLE, FILE, "http://flag", "--rest-url", id="flag-first"),
        pytest.param({}, VARIABLE, FILE, "http://variable", "MAESTRO_REST_URL", id="variable-second"),
        pytest.param({}, {"MAESTRO_REST_URL": ""}, FILE, "http://file", "rest-url in it", id="file-third"),
        pytest.param({}, {}, {}, connection.DEFAULTS["api_url"], "default", id="default-last"),
    ],
)
def test_setting_precedence(
    flags: dict[str, str], environ: dict[str, str], stored: dict[str, str], value: str, origin: str
) -> None:
    settings_ = connection.resolve(flags, environ, stored=stored, stored_origin="it", variables=VARIABLES)
    assert [(item.value, item.origin) for item in settings_ if item.name == "api_url"] == [(value, origin)]


@pytest.mark.parametrize(
    ("flag", "environ", "chosen"),
    [
        pytest.param("a", {"MAESTRO_ENVIRONMENT": "b"}, "a", id="flag"),
        pytest.param("", {"MAESTRO_ENVIRONMENT": "b"}, "b", id="variable"),
        pytest.param("", {}, "c", id="current"),
    ],
)
def test_environment_precedence(flag: str, environ: dict[str, str], chosen: str) -> None:
    config_ = environments.Environments(path=Path("f"), current="c", named={name: {} for name in "abc"})
    assert config_.choose(flag, environ) == chosen


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        pytest.param("config set-env x --rest-url htp:/x", "--rest-url is 'htp:/x', which is not an address", id="url"),
        pytest.param("config set-env x --grpc-server-address x", "--grpc-server-address is 'x'", id="grpc"),
        pytest.param("config set-env x --timeout soon", "--timeout is 'soon'", id="timeout"),
        pytest.param(
            "config set-env x --rest-url https://u:hunter2@h", "--rest-url contains a user or password", id="password"
        ),
        pytest.param(
            "consumer list --rest-url https://u:hunter2@h",
            "--rest-url contains a user or password",
            id="client-password",
        ),
        pytest.param(
            "config set-env x --cs-url https://u:hunter2@h", "--cs-url contains a user or password", id="cs-url"
        ),
        pytest.param("config set-env a/b --rest-url https://h", "cannot be the name", id="name"),
        pytest.param("config set-env x", "there are no settings to store", id="no-settings"),
        pytest.param("config use x", "it has none; create it with", id="unknown"),
        pytest.param("config delete x", "it has none; create it with", id="delete-unknown"),
        pytest.param("consumer list --env x", "--env: environment 'x' is not in", id="unknown-by-flag"),
        pytest.param("consumer list --rest-url x", "--rest-url is 'x', which is not an address", id="flag-of-a-client"),
        pytest.param("consumer list --timeout x", "--timeout is 'x'; use seconds", id="timeout-of-a-client"),
        pytest.param("completion tcsh", "SHELL", id="unknown-shell"),
    ],
)
def test_usage_error_names_the_flag(line: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    err = run(line, capsys, expect=2)
    assert complaint in err
    assert err.count("\n") == 1
    assert "hunter2" not in err


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param("a: [\n", "line 2, column 1: this is not YAML", id="not-yaml"),
        pytest.param("- a\n", "has no `environments:`", id="list"),
        pytest.param(
            "environments:\n  x: {rest-url: 'http://hunter2'}\n  x: {rest-url: 'http://y'}\n",
            "line 3: the key environments.x is there twice, first in line 2; keep one of the two",
            id="key-twice",
        ),
        pytest.param("environments: {x: {token: hunter2}}", "environments.x.token is not a setting", id="secret"),
        pytest.param(
            "environments: {x: {rest-url: 'http://u:hunter2@h'}}", "x.rest-url contains a user or password", id="login"
        ),
        pytest.param("environments: {x: hunter2}", "environments.x has no settings", id="no-settings"),
        pytest.param("environments: {x: {rest-url: [hunter2]}}", "rest-url must be a string", id="not-a-string"),
        pytest.param(
            "current: y\nenvironments: {x: {rest-url: 'http://x'}}", "environment 'y' is not in", id="unknown-current"
        ),
        pytest.param(
            "current: x\nenvironments: {x: {rest-url: nowhere}}", "rest-url in environment x of", id="bad-value"
        ),
    ],
)
def test_error_in_config_file_names_the_file(
    content: str, complaint: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.parent.mkdir()
    config.write_text(content)
    err = run("consumer list", capsys, expect=2)
    assert complaint in err
    assert str(config) in err
    assert "hunter2" not in err


def test_unwritable_config_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        environments.write(environments.Environments(path=tmp_path / "file" / "config.yaml"))


@pytest.mark.long
def test_environments_that_are_stored_at_once_are_all_kept(config: Path, tmp_path: Path) -> None:
    names = [f"e{number}" for number in range(8)]
    script = "import sys; from maestropy.cli import main; sys.exit(main.call(sys.argv[1:]))"
    environ = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, "config", "set-env", name, "--rest-url", f"http://{name}"],
            env=environ,
            stdout=subprocess.DEVNULL,
        )
        for name in names
    ]
    assert [process.wait(timeout=60) for process in started] == [0] * len(names)
    assert sorted(yaml.safe_load(config.read_text())["environments"]) == names
    assert [path.name for path in config.parent.iterdir()] == ["config.yaml"]


def test_a_change_waits_for_the_change_of_another_command(config: Path) -> None:
    """What the second command reads, the first one has written completely."""
    begun, may_end = threading.Event(), threading.Event()

    def slow(current: environments.Environments) -> environments.Environments:
        begun.set()
        assert may_end.wait(30)
        return current.put("slow", {"rest-url": "http://slow"})

    first = threading.Thread(target=environments.change, args=(config, slow))
    first.start()
    assert begun.wait(30)
    second = threading.Thread(
        target=environments.change, args=(config, lambda current: current.put("b", {"rest-url": "http://b"}))
    )
    second.start()
    may_end.set()
    first.join()
    second.join()
    assert list(environments.read(config).named) == ["slow", "b"]


def test_unreachable_server_is_reported_quickly(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    err = run("consumer list --rest-url http://127.0.0.1:1", capsys, expect=1)
    assert "check that the server runs" in err
    assert err.count("\n") == 1
    assert time.monotonic() - started < 5


@pytest.mark.long
def test_variable_that_overrides_the_named_environment_is_warned_about(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("config set-env prod --rest-url http://127.0.0.1:2 --timeout 5s", capsys)
    monkeypatch.setenv("MAESTRO_REST_URL", "http://127.0.0.1:1")
    warning = "Warning: MAESTRO_REST_URL overrides rest-url of --env prod; unset the variable to use that environment\n"
    assert run("consumer list --env prod", capsys, expect=1).startswith(warning)
    for silent in ("consumer list --env prod --rest-url http://127.0.0.1:1", "consumer list"):
        assert "Warning" not in run(silent, capsys, expect=1)
    monkeypatch.setenv("MAESTRO_REST_URL", "http://127.0.0.1:2")
    assert "Warning" not in run("consumer list --env prod", capsys, expect=1)


def test_default_address_is_explained(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.DEFAULTS, "api_url", "http://127.0.0.1:1")
    err = run("consumer list", capsys, expect=1)
    assert "no response from http://127.0.0.1:1/" in err
    assert "this is the default address: give --rest-url" in err
