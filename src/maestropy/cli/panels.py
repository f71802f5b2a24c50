"""Panels of help: a frame, names on the left, what they mean on the right. Text only; nobody else's library.

The library of our commands can draw them too, but takes longer for a page than a person wants to wait for help.
"""

import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

_NARROWEST = 40
_USUAL = 80
_SILENT = {None, "()", "False", '""', "''", ""}
"""Defaults that tell nobody anything: nothing given, a switch not set."""
_BOLD, _CYAN, _PLAIN = "\x1b[1m", "\x1b[36m", "\x1b[0m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """What a page is written on."""

    width: int
    has_colours: bool = False

    def bold(self, text: str) -> str:
        """Return `text` so that it stands out."""
        return f"{_BOLD}{text}{_PLAIN}" if self.has_colours else text

    def named(self, text: str) -> str:
        """Return `text` as names look."""
        return f"{_CYAN}{text}{_PLAIN}" if self.has_colours else text


def terminal() -> Paper:
    """Return this process's terminal, or a page as wide as one."""
    return Paper(width=max(_NARROWEST, _columns()), has_colours=sys.stdout.isatty() and "NO_COLOR" not in os.environ)


def _columns() -> int:
    # As shutil does it, whose import alone takes as long as a page of help.
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given):
        return int(given)
    try:
        return os.get_terminal_size().columns or _USUAL
    except OSError:
        return _USUAL


def panel(title: str, rows: Sequence[tuple[str, str]], *, on: Paper) -> Iterator[str]:
    """Yield the lines of one panel."""
    inner = on.width - 4
    left = min(max(len(name) for name, _ in rows), inner * 2 // 5)
    right = inner - left - 2
    yield f"╭─ {title} ".ljust(on.width - 1, "─") + "╮"
    for name, text in rows:
        names = textwrap.wrap(name, left, subsequent_indent="  ", break_on_hyphens=False)
        lines = textwrap.wrap(text, right, break_on_hyphens=False)
        for number in range(max(len(names), len(lines))):
            label = (names[number] if number < len(names) else "").ljust(left)
            told = (lines[number] if number < len(lines) else "").ljust(right)
            yield f"│ {on.named(label)}  {told} │"
    yield "╰".ljust(on.width - 1, "─") + "╯"


def paragraphs(text: str, *, on: Paper) -> Iterator[str]:
    """Yield `text` in lines that fit, each of its own lines a paragraph."""
    for line in text.splitlines():
        yield from textwrap.wrap(line, on.width) or [""]


class Page:
    """Where the library of our commands writes a page of help: its `Console` and its `HelpFormatter` in one.

    It calls what is here and nothing else of a console; `tests/unit/cli/test_cli_help.py` would notice.
    """

    def __init__(self, paper: Paper, *, out: TextIO) -> None:
        self._paper = paper
        self._out = out
        self.options = None

    def print(self, text: Any = "") -> None:
        """Write a line, or lines that keep their breaks so that examples can be copied."""
        self._out.write(f"{_plain(text)}\n")

    def render_usage(self, _console: object, _options: object, usage: Any) -> None:
        """Write how the command is called."""
        said = _plain(usage).strip()
        self.print(self._paper.bold(said if said.startswith("Usage:") else f"Usage: {said}") + "\n")

    def render_description(self, _console: object, _options: object, description: Any) -> None:
        """Write what the command does."""
        self.print("\n".join([*paragraphs(_plain(description).strip(), on=self._paper), ""]))

    def __call__(self, _console: object, _options: object, found: Any) -> None:
        """Write one panel."""
        rows = [_row(entry, is_command=found.format == "command") for entry in found.entries]
        if rows:
            self.print("\n".join(panel(_plain(found.title), rows, on=self._paper)))


def _row(entry: Any, *, is_command: bool) -> tuple[str, str]:
    names = entry.all_options if is_command else entry.display_labels_with_metavar
    told = [_plain(entry.description).strip()]
    told += [f"[choices: {', '.join(filter(None, entry.choices))}]"] if entry.choices else []
    told += [f"[env var: {', '.join(entry.env_var)}]"] if entry.env_var else []
    told += [f"[default: {entry.default}]"] if entry.default not in _SILENT else []
    told += ["[required]"] if entry.required else []
    return " ".join(names), " ".join(each for each in told if each)


def _plain(text: Any) -> str:
    """Return the words of a text of the library."""
    text = getattr(text, "primary_renderable", text)
    return str(getattr(text, "plain", "" if text is None else text))
