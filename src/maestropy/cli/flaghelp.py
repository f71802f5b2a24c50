"""The help of a command made of flags, as a page of text. Looks like the help of the other commands.

Examples keep their lines, however narrow the terminal, so that they can be copied.
"""

from collections.abc import Sequence
from typing import Any

from maestropy.cli import panels
from maestropy.flags import Flag
from maestropy.flags.explanation import explanations

_METAVARS = {"int": "N", "float": "N", "timedelta": "DURATION", "Path": "PATH", "str": "TEXT", "Dsn": "URL"}


def page(command: str, *, text: str, flags: Sequence[Flag], examples: str) -> str:
    """Return the page, as wide as this process's terminal."""
    paper = panels.terminal()
    head = [paper.bold(f"Usage: maestro {command} [OPTIONS]"), "", *panels.paragraphs(text, on=paper), ""]
    shown = [flag for flag in flags if not flag.hidden]
    groups = dict.fromkeys(flag.group_kind for flag in shown)
    body: list[str] = []
    for group in groups:
        told = explanations(group)
        rows = [
            (named(flag), meaning(flag, told.get(flag.attribute, ""))) for flag in shown if flag.group_kind is group
        ]
        body += panels.panel(str(group.__doc__), rows, on=paper)
    return "\n".join([*head, *body, "", examples, ""])


def named(flag: Flag) -> str:
    """Return a flag with the kind of its value."""
    name = "--v -v" if flag.name == "-v" else flag.name
    return f"{name} {metavar(flag)}".rstrip()


def meaning(flag: Flag, explanation: str) -> str:
    """Return all that is said about a flag, in one line."""
    default = "" if "Default" in explanation else flag.shown_default()
    choices = f" One of {', '.join(flag.choices)}." if flag.choices else ""
    return f"{explanation}{choices}" + (f" [{default}]" if default else "")


def metavar(flag: Flag) -> str:
    """Return the word that stands for a flag's value; none for a switch."""
    if flag.is_switch:
        return ""
    kinds: list[Any] = [flag.kind, *getattr(flag.kind, "__args__", ())]
    return next((_METAVARS[kind.__name__] for kind in kinds if getattr(kind, "__name__", "") in _METAVARS), "TEXT")
