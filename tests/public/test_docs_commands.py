"""Every `maestro …` command in the docs is accepted by the command line."""

import importlib
import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from maestropy.cli.command_tree import app
from maestropy.cli.parsing import settings_commands

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "skills").rglob("*.md"))]
_BLOCK = re.compile(r"^ *```(?:sh|bash|console)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^ *(?:\$ )?(?:\.venv/bin/)?maestro (\S.*)$", re.MULTILINE)
_SHELL = re.compile(r"\||>|<|&|;|2>")
# These parse their flags themselves, as Maestro's own programs do; generated pages document them.
_WITH_OWN_FLAGS = {"server", "agent", "migration"}


def command_lines(page: Path) -> Iterator[list[str]]:
    for block in _BLOCK.findall(page.read_text(encoding="utf-8").replace("\\\n", " ")):
        for line in _COMMAND.findall(block):
            words = [*takewhile(lambda word: not _SHELL.match(word), shlex.split(line, comments=True))]
            # An ellipsis stands for arguments that were shown before.
            if words[0] not in _WITH_OWN_FLAGS and not {"...", "…", "--help"}.intersection(words):
                yield words


COMMANDS = [(page, words) for page in PAGES for words in command_lines(page)]


def test_docs_have_commands() -> None:
    assert len(COMMANDS) > 50
    assert {page.name for page, _ in COMMANDS} >= {"README.md", "quickstart.md", "trace-work.md", "SKILL.md"}


@pytest.mark.parametrize(
    ("page", "words"), COMMANDS, ids=[f"{page.relative_to(ROOT)}: {shlex.join(words)[:60]}" for page, words in COMMANDS]
)
def test_command_in_docs_is_accepted(page: Path, words: list[str]) -> None:
    if words[0] == "check" and len(words) > 1:
        # As the command line does: Go's syntax, in which a switch needs no value.
        command = importlib.import_module(f"maestropy.cli.check.{words[1]}").COMMAND
        # A variable of the page stands for flags; the test that plays the page gives them.
        flags = [word for word in words[2:] if not re.fullmatch(r"\$[A-Z_]+", word)]
        assert not settings_commands.read(flags, command.flags.values()).remaining
    else:
        app.parse_args(words, exit_on_error=False, print_error=False)
