"""`--help` of every command: its content, its width and its import cost."""

import io
import json
import subprocess
import sys

import pytest

from maestropy.cli import main
from maestropy.cli.parsing import help_panels

_WALK = """
import contextlib, io, json, sys
from maestropy.cli import main

HEAVY = {
    "aiohttp", "asyncio", "asyncpg", "cryptography", "google.protobuf", "grpc", "httpx", "jwt", "msgspec", "orjson",
    "prometheus_client", "rich.table", "starlette", "uvicorn", "uvloop", "yaml",
}

def ask(words):
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        code = main.call([*words, "--help"])
    shown[" ".join(words)] = [code, page.getvalue(), sorted((HEAVY & set(sys.modules)) - seen)]
    seen.update(HEAVY & set(sys.modules))

def walk(app, above):
    for name in [*app]:
        if not name.startswith("-"):
            ask((*above, name))
            walk(app[name], (*above, name))

shown, seen = {}, set()
for words in (["server"], ["agent"], ["migration"], []):
    ask(words)
from maestropy.cli.command_tree import app
walk(app, ())
json.dump(shown, sys.stdout)
"""


@pytest.fixture(scope="module")
def pages() -> dict[str, tuple[int, str, list[str]]]:
    """Exit code and help of every command, and the heavy modules that it imported first."""
    done = subprocess.run([sys.executable, "-c", _WALK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, tuple[int, str, list[str]]] = json.loads(done.stdout)
    return result


def test_every_command_has_help(pages: dict[str, tuple[int, str, list[str]]]) -> None:
    assert len(pages) > 40
    incomplete = [
        words for words, (code, page, _) in pages.items() if code != 0 or f"Usage: maestro {words}".strip() not in page
    ]
    assert incomplete == []


def test_every_command_shows_an_example(pages: dict[str, tuple[int, str, list[str]]]) -> None:
    shown = {words: page.partition("Example")[2] for words, (_, page, _) in pages.items() if words}
    # A subcommand without examples shows an example of its group.
    assert [words for words, examples in shown.items() if f"maestro {words.split()[0]}" not in examples] == []


def test_empty_defaults_are_not_shown(pages: dict[str, tuple[int, str, list[str]]]) -> None:
    assert [words for words, (_, page, _) in pages.items() if 'default: ""' in page or "choices: ," in page] == []


def test_help_imports_no_heavy_module(pages: dict[str, tuple[int, str, list[str]]]) -> None:
    assert {words: heavy for words, (_, _, heavy) in pages.items() if heavy} == {}


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_panel_has_the_width_of_its_style(columns: int) -> None:
    rows = [("--name TEXT", "Some words. " * 20), ("--a-name-that-is-longer-than-its-column-can-be PATH", "short")]
    lines = list(help_panels.panel("Title", rows, style=help_panels.PageStyle(width=columns)))
    assert {len(line) for line in lines} == {columns}
    assert "".join(lines).count("Some") == 20


def test_help_fits_the_terminal_and_examples_are_not_wrapped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for words in (["agent"], ["trace", "work"]):
        assert main.call([*words, "--help"]) == 0
        page, _, examples = capsys.readouterr().out.partition("Examples:\n")
        assert {len(line) for line in page.splitlines() if line.startswith(("│", "╭", "╰"))} == {60}
        assert any(len(line) > 60 for line in examples.splitlines())


def test_colours_only_if_enabled() -> None:
    plain, coloured = help_panels.PageStyle(width=80), help_panels.PageStyle(width=80, has_colours=True)
    for style_, has_colours in ((plain, False), (coloured, True)):
        out = io.StringIO()
        help_panels.HelpPage(style_, out=out).render_usage(None, None, "Usage: maestro")
        lines = [out.getvalue(), *help_panels.panel("Title", [("--flag", "text")], style=style_)]
        assert ("\x1b[" in "".join(lines)) is has_colours
