"""`--help` of every command: what it shows, and that it costs nothing to ask."""

import io
import json
import subprocess
import sys

import pytest

from maestropy.cli import main, panels

_WALK = """
import contextlib, io, json, sys
from maestropy.cli import main

HEAVY = {
    "aiohttp", "asyncio", "asyncpg", "cryptography", "google.protobuf", "grpc", "httpx", "jwt", "msgspec", "orjson",
    "prometheus_client", "rich.table", "starlette", "uvicorn", "uvloop", "yaml",
}

def ask(words):
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        code = main.call([*words, "--help"])
    shown[" ".join(words)] = [code, told.getvalue(), sorted((HEAVY & set(sys.modules)) - seen)]
    seen.update(HEAVY & set(sys.modules))

def walk(app, above):
    for name in [*app]:
        if not name.startswith("-"):
            ask((*above, name))
            walk(app[name], (*above, name))

shown, seen = {}, set()
for words in (["server"], ["agent"], ["migration"], []):
    ask(words)
from maestropy.cli.root import app
walk(app, ())
json.dump(shown, sys.stdout)
"""


@pytest.fixture(scope="module")
def pages() -> dict[str, tuple[int, str, list[str]]]:
    """The exit code and the help of every command, and the heavy modules that it was the first to import."""
    done = subprocess.run([sys.executable, "-c", _WALK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, tuple[int, str, list[str]]] = json.loads(done.stdout)
    return found


def test_every_command_explains_itself(pages: dict[str, tuple[int, str, list[str]]]) -> None:
    assert len(pages) > 40
    wrong = [
        words for words, (code, told, _) in pages.items() if code != 0 or f"Usage: maestro {words}".strip() not in told
    ]
    assert wrong == []


def test_every_command_shows_an_example(pages: dict[str, tuple[int, str, list[str]]]) -> None:
    shown = {words: told.partition("Example")[2] for words, (_, told, _) in pages.items() if words}
    # What does not show one of its own shows where the others of its group begin.
    assert [words for words, examples in shown.items() if f"maestro {words.split()[0]}" not in examples] == []


def test_no_default_is_an_empty_word(pages: dict[str, tuple[int, str, list[str]]]) -> None:
    assert [words for words, (_, told, _) in pages.items() if 'default: ""' in told or "choices: ," in told] == []


def test_to_explain_a_command_nothing_heavy_is_imported(pages: dict[str, tuple[int, str, list[str]]]) -> None:
    assert {words: heavy for words, (_, _, heavy) in pages.items() if heavy} == {}


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_panel_is_as_wide_as_its_paper(columns: int) -> None:
    rows = [("--name TEXT", "Some words. " * 20), ("--a-name-that-is-longer-than-its-column-can-be PATH", "short")]
    lines = list(panels.panel("Title", rows, on=panels.Paper(width=columns)))
    assert {len(line) for line in lines} == {columns}
    assert "".join(lines).count("Some") == 20


def test_help_keeps_to_the_terminal_and_examples_keep_their_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for words in (["agent"], ["trace", "work"]):
        assert main.call([*words, "--help"]) == 0
        page, _, examples = capsys.readouterr().out.partition("Examples:\n")
        assert {len(line) for line in page.splitlines() if line.startswith(("│", "╭", "╰"))} == {60}
        assert any(len(line) > 60 for line in examples.splitlines())


def test_colours_only_where_they_are_wanted() -> None:
    plain, coloured = panels.Paper(width=80), panels.Paper(width=80, has_colours=True)
    for paper, has_colours in ((plain, False), (coloured, True)):
        out = io.StringIO()
        panels.Page(paper, out=out).render_usage(None, None, "Usage: maestro")
        lines = [out.getvalue(), *panels.panel("Title", [("--flag", "text")], on=paper)]
        assert ("\x1b[" in "".join(lines)) is has_colours
