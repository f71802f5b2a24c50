"""Render help pages: framed panels with names on the left and their help on the right.

cyclopts can render them too, but its rendering makes `--help` slow.
"""

import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from maestropy.cli import screen

_NARROWEST = 40
_USUAL = 80
_HIDDEN_DEFAULTS = {None, "()", "False", '""', "''", ""}
"""Defaults that are not shown: no value, a switch that is off."""
_BOLD, _CYAN, _PLAIN = "\x1b[1m", "\x1b[36m", "\x1b[0m"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageStyle:
    """Width and colours of a help page."""

    width: int
    has_colours: bool = False

    def bold(self, text: str) -> str:
        """Return `text` in bold."""
        return f"{_BOLD}{text}{_PLAIN}" if self.has_colours else text

    def named(self, text: str) -> str:
        """Return `text` in the colour of names."""
        return f"{_CYAN}{text}{_PLAIN}" if self.has_colours else text


def terminal_style() -> PageStyle:
    """Return the style of this process's terminal, or the usual width without a terminal."""
    return PageStyle(
        width=max(_NARROWEST, _columns()), has_colours=screen.can_draw(sys.stdout) and "NO_COLOR" not in os.environ
    )


def _columns() -> int:
    # As in shutil, whose import takes as long as rendering a page.
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size().columns or _USUAL
    except OSError:
        return _USUAL


def panel(title: str, rows: Sequence[tuple[str, str]], *, style: PageStyle) -> Iterator[str]:
    """Yield the lines of one panel."""
    inner = style.width - 4
    left = min(max(len(name) for name, _ in rows), inner * 2 // 5)
    right = inner - left - 2
    yield f"╭─ {title} ".ljust(style.width - 1, "─") + "╮"
    for name, text in rows:
        names = textwrap.wrap(name, left, subsequent_indent="  ", break_on_hyphens=False)
        lines = textwrap.wrap(text, right, break_on_hyphens=False)
        for number in range(max(len(names), len(lines))):
            label = (names[number] if number < len(names) else "").ljust(left)
            line = (lines[number] if number < len(lines) else "").ljust(right)
            yield f"│ {style.named(label)}  {line} │"
    yield "╰".ljust(style.width - 1, "─") + "╯"


def paragraphs(text: str, *, style: PageStyle) -> Iterator[str]:
    """Yield `text` wrapped to the width; every line of `text` is a paragraph."""
    for line in text.splitlines():
        yield from textwrap.wrap(line, style.width) or [""]


class HelpPage:
    """The `Console` and the `HelpFormatter` of cyclopts for one help page.

    cyclopts calls only the methods of this class; `tests/unit/cli/parsing/test_help_panels.py` checks that.
    """

    def __init__(self, style: PageStyle, *, out: TextIO) -> None:
        self._style = style
        self._out = out
        self.options = None

    def print(self, text: Any = "") -> None:
        """Write text with its line breaks, so that examples can be copied."""
        self._out.write(f"{_plain(text)}\n")

    def render_usage(self, _console: object, _options: object, usage: Any) -> None:
        """Write the usage line."""
        usage_text = _plain(usage).strip()
        self.print(self._style.bold(usage_text if usage_text.startswith("Usage:") else f"Usage: {usage_text}") + "\n")

    def render_description(self, _console: object, _options: object, description: Any) -> None:
        """Write the description of the command."""
        self.print("\n".join([*paragraphs(_plain(description).strip(), style=self._style), ""]))

    def __call__(self, _console: object, _options: object, help_panel: Any) -> None:
        """Write one panel."""
        rows = [_row(entry, is_command=help_panel.format == "command") for entry in help_panel.entries]
        if rows:
            self.print("\n".join(panel(_plain(help_panel.title), rows, style=self._style)))


def _row(entry: Any, *, is_command: bool) -> tuple[str, str]:
    names = entry.all_options if is_command else entry.display_labels_with_metavar
    texts = [_plain(entry.description).strip()]
    texts += [f"[choices: {', '.join(filter(None, entry.choices))}]"] if entry.choices else []
    texts += [f"[env var: {', '.join(entry.env_var)}]"] if entry.env_var else []
    texts += [f"[default: {entry.default}]"] if entry.default not in _HIDDEN_DEFAULTS else []
    texts += ["[required]"] if entry.required else []
    return " ".join(names), " ".join(text for text in texts if text)


def _plain(text: Any) -> str:
    """Return the plain string of a cyclopts text."""
    text = getattr(text, "primary_renderable", text)
    return str(getattr(text, "plain", "" if text is None else text))
