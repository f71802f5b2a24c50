"""`maestro completion`: Tab completes commands, flags, values and files in bash, zsh and fish."""

import os
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.cli.command_tree import app
from maestropy.cli.completion import candidates, scripts
from tests.shell_completion import SHELLS, Completion


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("maestro resourcebundle des", "describe", id="command"),
        pytest.param("maestro rb list --select", "--selector", id="flag-with-short-names"),
        pytest.param("maestro rb apply --dry-run ser", "server", id="choice"),
        pytest.param("maestro rb apply -f wor", "work.yaml", id="file"),
    ],
)
def test_tab_in_the_shell(shell: str, line: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "work.yaml").touch()
    completed = Completion(shell, tmp_path, dict(os.environ)).tab(line)
    assert completed.split()[-1] == expected
    words = line.removeprefix("maestro ").split()[:-1]
    assert shell == "fish" or completed.split()[:-1] == words


def texts(*words: str, **names: list[str]) -> list[str]:
    sources = {
        kind: (lambda prefix, _, known=known: [n for n in known if n.startswith(prefix)])
        for kind, known in names.items()
    }
    return [candidate.text for candidate in candidates.complete(app, words, names=sources)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(("resource",), {"resourcebundle"}, id="command"),
        pytest.param(("rb", "des"), {"describe"}, id="short-name"),
        pytest.param(("help", "rb", "des"), {"describe"}, id="help"),
        pytest.param(("get", ""), {"works", "consumers"}, id="kinds"),
        pytest.param(("nonsense", ""), set(), id="unknown-command"),
        pytest.param(("rb", "wait", "--for", "con"), {"condition=Applied", "condition=Available"}, id="goals"),
        pytest.param(("rb", "list", "-o", "j"), {"json", "jsonpath="}, id="formats"),
        pytest.param(("rb", "list", "--output=y"), {"--output=yaml"}, id="value-behind-equals-sign"),
        pytest.param(("rb", "list", "--size", ""), set(), id="value-without-candidates"),
        pytest.param(("rb", "apply", "--file", ""), {":files"}, id="files"),
        pytest.param(("trace", "requests", ""), {":files"}, id="logs"),
        pytest.param(("completion", "z"), {"zsh"}, id="choices-of-an-argument"),
        pytest.param(("server", "--grpc-broker-bind"), {"--grpc-broker-bindport"}, id="flag-of-the-server"),
        pytest.param(("consumer", "list", "--wat"), {"--watch"}, id="flag"),
        pytest.param(("consumer", "list", "--watch", "--wat"), set(), id="flag-that-is-given"),
        pytest.param(("rb", "apply", "-f", "x", "--file", "y", "--fil"), {"--file", "--filename"}, id="repeatable"),
    ],
)
def test_candidates(words: tuple[str, ...], expected: set[str]) -> None:
    assert set(texts(*words)) == expected


def test_names_of_consumers_works_and_environments() -> None:
    known = {"consumers": ["c1", "c2"], "works": ["c1/a", "c2/a"], "environments": ["prod"]}
    assert texts("rb", "list", "--consumer", "", **known) == ["c1", "c2"]
    assert texts("rb", "list", "--consumer=c2", **known) == ["--consumer=c2"]
    assert texts("rb", "delete", "c1/a", "c2", **known) == ["c2/a"]
    assert texts("get", "works", "c1", **known) == ["c1/a"]
    assert texts("consumer", "delete", "", **known) == ["c1", "c2"]
    assert texts("consumer", "create", "", **known) == []
    assert texts("config", "use", "", **known) == ["prod"]
    assert texts("rb", "list", "--env", "p", **known) == ["prod"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rb", "list", "--consumer", "=", "c"], ["rb", "list", "--consumer=c"]),
        (["rb", "list", "--consumer", "="], ["rb", "list", "--consumer="]),
        (["rb", "list", "-o", "json", ""], ["rb", "list", "-o", "json", ""]),
    ],
)
def test_words_that_bash_broke_are_joined(words: list[str], expected: list[str]) -> None:
    assert candidates.joined(words) == expected


@pytest.mark.parametrize("shell", SHELLS)
def test_script_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["completion", shell]) == 0
    assert capsys.readouterr().out == scripts.SCRIPTS[shell]


def test_tab_without_a_server_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MAESTRO_REST_URL", "http://127.0.0.1:9")
    assert main.call(["__complete", "zsh", "rb", "list", "--consumer", ""]) == 1
    assert capfd.readouterr() == ("", "")
