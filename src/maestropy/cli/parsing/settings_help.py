"""Render the help page of a settings command, in the form of the other commands.

Examples are never wrapped, so that they can be copied.
"""

from collections.abc import Sequence
from typing import Any

from maestropy.cli.parsing import help_panels
from maestropy.flags import Flag
from maestropy.flags.help_text import help_texts

_METAVARS = {"int": "N", "float": "N", "timedelta": "DURATION", "Path": "PATH", "str": "TEXT", "Dsn": "URL"}


def page(command: str, *, text: str, flags: Sequence[Flag], examples: str) -> str:
    """Return the page in the width of this process's terminal."""
    style = help_panels.terminal_style()
    head = [style.bold(f"Usage: maestro {command} [OPTIONS]"), "", *help_panels.paragraphs(text, style=style), ""]
    shown = [flag for flag in flags if not flag.hidden]
    groups = dict.fromkeys(flag.group_kind for flag in shown)
    body: list[str] = []
    for group in groups:
        texts = help_texts(group)
        rows = [
            (flag_with_metavar(flag), flag_help(flag, texts.get(flag.attribute, "")))
            for flag in shown
            if flag.group_kind is group
        ]
        body += help_panels.panel(str(group.__doc__), rows, style=style)
    return "\n".join([*head, *body, "", examples, ""])


def flag_with_metavar(flag: Flag) -> str:
    """Return a flag with the metavar of its value."""
    name = "--v -v" if flag.name == "-v" else flag.name
    return f"{name} {metavar(flag)}".rstrip()


def flag_help(flag: Flag, explanation: str) -> str:
    """Return the help of a flag in one line."""
    default = "" if "Default" in explanation else flag.shown_default()
    choices = f" One of {', '.join(flag.choices)}." if flag.choices else ""
    return f"{explanation}{choices}" + (f" [{default}]" if default else "")


def metavar(flag: Flag) -> str:
    """Return the metavar of a flag's value; empty for a switch."""
    if flag.is_switch:
        return ""
    kinds: list[Any] = [flag.kind, *getattr(flag.kind, "__args__", ())]
    return next((_METAVARS[kind.__name__] for kind in kinds if getattr(kind, "__name__", "") in _METAVARS), "TEXT")
