"""`maestro config`: what is kept, which of several sources wins, and what a mistake is told as."""

import os
import time
from pathlib import Path

import pytest
import yaml

from maestropy.cli import connection, environments, main
from maestropy.cli.failure import UsageError
from maestropy.sdk.settings import VARIABLES


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [each for each in os.environ if each.startswith(("MAESTRO_", "HYPERFLEET_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "maestropy" / "config.yaml"


def run(line: str, capsys: pytest.CaptureFixture[str], *, expect: int = 0) -> str:
    code = main.call(line.split())
    out, err = capsys.readouterr()
    assert code == expect, err
    return out if expect == 0 else err


def test_an_environment_from_the_cradle_to_the_grave(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "in use is local" in run("config set-env local --rest-url http://127.0.0.1:8000", capsys)
    assert "in use is local" in run("config set-env prod --rest-url https://p --grpc-token-file tok", capsys)
    assert yaml.safe_load(config.read_text()) == {
        "current": "local",
        "environments": {
            "local": {"rest-url": "http://127.0.0.1:8000"},
            "prod": {"rest-url": "https://p", "grpc-token-file": str(Path("tok").absolute())},
        },
    }
    run("config set-env local --grpc-server-address 127.0.0.1:8090", capsys)
    assert run("config list -o name", capsys) == "local\nprod\n"
    assert run("config use prod", capsys).startswith("Environment prod is in use")
    star = [line.split()[1] for line in run("config list", capsys).splitlines() if line.startswith("*")]
    assert star == ["prod"]
    assert yaml.safe_load(run("config show local -o yaml", capsys)) == {
        "rest-url": "http://127.0.0.1:8000",
        "grpc-server-address": "127.0.0.1:8090",
        "grpc-source-id": "maestro-cli",
    }
    assert "none is in use" in run("config delete prod", capsys)
    assert run("config list -o name", capsys) == "local\n"


FLAG, VARIABLE, FILE = {"rest-url": "http://flag"}, {"MAESTRO_REST_URL": "http://variable"}, {"rest-url": "http://file"}


@pytest.mark.parametrize(
    ("flags", "environ", "stored", "value", "origin"),
    [
        pytest.param(FLAG, VARIABLE, FILE, "http://flag", "--rest-url", id="flag-first"),
        pytest.param({}, VARIABLE, FILE, "http://variable", "MAESTRO_REST_URL", id="then-variable"),
        pytest.param({}, {"MAESTRO_REST_URL": ""}, FILE, "http://file", "rest-url in it", id="then-file"),
        pytest.param({}, {}, {}, connection.DEFAULTS["api_url"], "default", id="then-default"),
    ],
)
def test_which_one_counts(
    flags: dict[str, str], environ: dict[str, str], stored: dict[str, str], value: str, origin: str
) -> None:
    held = connection.resolve(flags, environ, stored=stored, stored_origin="it", variables=VARIABLES)
    assert [(each.value, each.origin) for each in held if each.name == "api_url"] == [(value, origin)]


@pytest.mark.parametrize(
    ("wanted", "environ", "chosen"),
    [
        pytest.param("a", {"MAESTRO_ENVIRONMENT": "b"}, "a", id="flag"),
        pytest.param("", {"MAESTRO_ENVIRONMENT": "b"}, "b", id="variable"),
        pytest.param("", {}, "c", id="in-use"),
    ],
)
def test_which_environment_counts(wanted: str, environ: dict[str, str], chosen: str) -> None:
    found = environments.Environments(path=Path("f"), current="c", named={name: {} for name in "abc"})
    assert found.choose(wanted, environ) == chosen


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        pytest.param("config set-env x --rest-url htp:/x", "--rest-url is 'htp:/x', which is no address", id="url"),
        pytest.param("config set-env x --grpc-server-address x", "--grpc-server-address is 'x'", id="grpc"),
        pytest.param("config set-env x --timeout soon", "--timeout is 'soon'", id="timeout"),
        pytest.param("config set-env x --rest-url https://u:hunter2@h", "holds a password", id="password"),
        pytest.param("config set-env a/b --rest-url https://h", "cannot be the name", id="name"),
        pytest.param("config set-env x", "nothing is given to keep", id="nothing"),
        pytest.param("config use x", "it has none; make it with", id="unknown"),
        pytest.param("config delete x", "it has none; make it with", id="delete-unknown"),
        pytest.param("consumer list --env x", "--env says 'x'", id="unknown-by-flag"),
        pytest.param("consumer list --rest-url x", "--rest-url is 'x', which is no address", id="flag-of-a-client"),
        pytest.param("consumer list --timeout x", "--timeout is 'x'; use seconds", id="timeout-of-a-client"),
        pytest.param("completion tcsh", "SHELL", id="unknown-shell"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_flag(
    line: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    err = run(line, capsys, expect=2)
    assert complaint in err
    assert err.count("\n") == 1
    assert "hunter2" not in err


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param("a: [\n", "line 2, column 1: this is no YAML", id="no-yaml"),
        pytest.param("- a\n", "holds no `environments:`", id="a-list"),
        pytest.param("environments: {x: {token: hunter2}}", "environments.x.token is not a setting", id="a-secret"),
        pytest.param("environments: {x: hunter2}", "environments.x holds no settings", id="no-settings"),
        pytest.param("environments: {x: {rest-url: [hunter2]}}", "rest-url must be a text", id="no-text"),
        pytest.param(
            "current: y\nenvironments: {x: {rest-url: 'http://x'}}", "'y', which is no environment", id="gone"
        ),
        pytest.param(
            "current: x\nenvironments: {x: {rest-url: nowhere}}", "rest-url in environment x of", id="bad-value"
        ),
    ],
)
def test_a_mistake_in_the_file_names_the_file(
    content: str, complaint: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.parent.mkdir()
    config.write_text(content)
    err = run("consumer list", capsys, expect=2)
    assert complaint in err
    assert str(config) in err
    assert "hunter2" not in err


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        environments.write(environments.Environments(path=tmp_path / "file" / "config.yaml"))


def test_nobody_answers_is_told_soon(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    err = run("consumer list --rest-url http://127.0.0.1:1", capsys, expect=1)
    assert "check that the server runs" in err
    assert err.count("\n") == 1
    assert time.monotonic() - started < 5


def test_nobody_said_where(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.DEFAULTS, "api_url", "http://127.0.0.1:1")
    err = run("consumer list", capsys, expect=1)
    assert "no answer from http://127.0.0.1:1/" in err
    assert "this is the default: give --rest-url" in err
