"""Every `maestro …` line that a page shows is one the command line takes."""

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from maestropy.cli.root import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "skills").rglob("*.md"))]
_BLOCK = re.compile(r"^ *```(?:sh|bash|console)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^ *(?:\$ )?(?:\.venv/bin/)?maestro (\S.*)$", re.MULTILINE)
_SHELL = re.compile(r"\||>|<|&|;|2>")
# Those read their flags themselves, as Maestro's own programs do, and are shown by pages made from the code.
_WITH_OWN_FLAGS = {"server", "agent", "migration"}


def command_lines(page: Path) -> Iterator[list[str]]:
    for block in _BLOCK.findall(page.read_text(encoding="utf-8").replace("\\\n", " ")):
        for line in _COMMAND.findall(block):
            words = [*takewhile(lambda word: not _SHELL.match(word), shlex.split(line, comments=True))]
            # An ellipsis stands for words that were shown before.
            if words[0] not in _WITH_OWN_FLAGS and not {"...", "…", "--help"}.intersection(words):
                yield words


SHOWN = [(page, words) for page in PAGES for words in command_lines(page)]


def test_there_are_commands_to_look_at() -> None:
    assert len(SHOWN) > 50
    assert {page.name for page, _ in SHOWN} >= {"README.md", "quickstart.md", "trace-work.md", "SKILL.md"}


@pytest.mark.parametrize(
    ("page", "words"), SHOWN, ids=[f"{page.relative_to(ROOT)}: {shlex.join(words)[:60]}" for page, words in SHOWN]
)
def test_a_command_that_is_shown_is_taken(page: Path, words: list[str]) -> None:
    app.parse_args(words, exit_on_error=False, print_error=False)
