"""Write texts of logs and clusters into Markdown, so that a renderer shows them as they are, without secrets. Pure.

All tracers use this module: a text that is not escaped could be active HTML, or a link, where the report is pasted.
Secrets are removed before: escapes would hide them from the patterns.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from maestropy.journal import redact
from maestropy.untrusted.printable import escape, escape_lines

_SPECIAL: Final = re.compile(r"([\\`*_<>\[\]|#~&!])")
_MARKER: Final = re.compile(r"^(\d{1,9})?([-+=.)])")
_BACKTICKS: Final = re.compile(r"`+")


def escaped(text: str) -> str:
    """Return text on one line that Markdown shows as it is, within a sentence, a heading or a table."""
    plain = _SPECIAL.sub(r"\\\1", escape(redact.text(text.strip(" "))))
    # At the start of a line these make a list or a heading.
    return _MARKER.sub(r"\1\\\2", plain)


def code(text: str) -> str:
    """Return text as a code span, outside of tables."""
    plain = escape(redact.text(text))
    fence = "`" * (_longest_run(plain) + 1)
    return f"{fence} {plain} {fence}" if plain[:1] == "`" or plain[-1:] == "`" else f"{fence}{plain}{fence}"


def code_block(lines: Iterable[str], *, language: str = "text") -> list[str]:
    """Return lines as a fenced block, which none of them can close; it needs no empty line before it."""
    plain = escape_lines(redact.text("\n".join(lines))).split("\n")
    fence = "`" * max(3, max(map(_longest_run, plain), default=0) + 1)
    return [f"{fence}{language}", *plain, fence]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table of texts."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(map(escaped, row)) + " |" for row in rows)]


def _longest_run(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)
