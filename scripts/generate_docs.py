"""Write the reference pages that are read from the code: `make docs`.

What a command says with `--help` becomes docs/cli.md; the documented fields of the settings become docs/settings.md.
`tests/public/test_docs_fresh.py` fails when a page differs from what this script would write.
"""

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cyclopts import App

from maestropy.agent.settings import FLAGS as AGENT_FLAGS
from maestropy.cli.connection import DEFAULTS, SETTINGS
from maestropy.cli.panels import Page, Paper
from maestropy.cli.root import app as maestro
from maestropy.flags import Flag
from maestropy.flags.explanation import explanations
from maestropy.sdk.settings import VARIABLES
from maestropy.server.settings.load import FLAGS as SERVER_FLAGS

DOCS = Path(__file__).parents[1] / "docs"
_WIDTH = 100
_WITH_A_TABLE_OF_THEIR_OWN = {"server": "#server", "agent": "#agent", "migration": "#server"}

_CLI = """\
# The command line

Written from the code by `make docs`; what `--help` says.

A flag wins over an environment variable, a variable over an environment of `maestro config`, that over the default.

| exit code | means |
|---|---|
| 0 | done |
| 1 | failed; one sentence on standard error says why and what to do |
| 2 | a mistake in the command line, in a variable or in a configuration file |
| 130 | interrupted |
| 141 | whoever read the output has left, such as `head` |

Commands that compare or diagnose say in their help what else their exit codes mean.
"""

_SETTINGS = """\
# Settings

Written from the code by `make docs`.

Lengths of time are written as Go writes them: `500ms`, `10s`, `2m0s`. A switch is `--flag` or `--flag=false`.
"""

_SERVER = """\
## Server

`maestro server`; `maestro migration` takes those of Database and Logging. `MAESTRO_DB_DSN` stands for `--db-dsn`, and
`MAESTRO_ENV` (development, testing, production) sets other defaults before the command line is read.
"""

_AGENT = """\
## Agent

`maestro agent`. `POD_NAME` is written into every line of the log.
"""

_CLIENT = """\
## Clients on the command line

`maestro consumer`, `maestro resourcebundle` and other clients. The first variable that is set counts. The keys of an
environment of `maestro config` are the flags without their dashes; `--env` or `MAESTRO_ENVIRONMENT` choose one.

| flag | variables | default |
|---|---|---|
"""


def cli_reference() -> str:
    """Return docs/cli.md."""
    found = list(commands())
    contents = [
        f"{'  ' * (len(words) - 1)}- [maestro {' '.join(words)}](#maestro-{'-'.join(words)})" for words in found
    ]
    return "\n".join([_CLI, *contents, "", *map(_command, found)])


def settings_reference() -> str:
    """Return docs/settings.md."""
    rows = [
        f"| `--{key}` | {', '.join(f'`{each}`' for each in VARIABLES[name])} | {_code(DEFAULTS.get(name, ''))} |\n"
        for key, name in SETTINGS.items()
    ]
    tables = [_SERVER, *_tables(SERVER_FLAGS), _AGENT, *_tables(AGENT_FLAGS), _CLIENT + "".join(rows)]
    return "\n".join([_SETTINGS, *tables])


PAGES: Mapping[Path, Callable[[], str]] = {DOCS / "cli.md": cli_reference, DOCS / "settings.md": settings_reference}


def commands(app: App = maestro, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, groups before what is in them."""
    for name in app:
        if name.startswith("-"):
            continue
        words = (*above, name)
        try:
            below = app[name]
        except ImportError as error:
            sys.stderr.write(f"left out: maestro {' '.join(words)} ({error})\n")
            continue
        yield words
        yield from commands(below, words)


def _command(words: tuple[str, ...]) -> str:
    shown = _help(words)
    if len(words) > 1 and _app(words).help_epilogue is None:
        # The examples of a group are shown with each of its commands; here once is enough.
        shown = shown.partition("\nExamples:")[0]
    if words[0] in _WITH_A_TABLE_OF_THEIR_OWN:
        usage, _, rest = shown.partition("╭")
        link = _WITH_A_TABLE_OF_THEIR_OWN[words[0]]
        examples = rest[rest.index("Examples:") :]
        shown = f"{usage}{examples}"
        return (
            f"## maestro {' '.join(words)}\n\n```\n{shown.strip()}\n```\n\nIts flags: [settings](settings.md{link}).\n"
        )
    return f"{'#' * (len(words) + 1)} maestro {' '.join(words)}\n\n```\n{shown.strip()}\n```\n"


def _app(words: Iterable[str]) -> App:
    found = maestro
    for word in words:
        found = found[word]
    return found


def _help(words: Iterable[str]) -> str:
    out = io.StringIO()
    page: Any = Page(Paper(width=_WIDTH), out=out)
    maestro.help_formatter = page
    maestro.help_print([*words], console=page)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _tables(flags: Mapping[str, Flag]) -> Iterator[str]:
    groups = dict.fromkeys(flag.group_kind for flag in flags.values())
    for group in groups:
        told = explanations(group)
        rows = [
            f"| `{flag.name}` | {_code(flag.shown_default())} | {_told(flag, told)} |\n"
            for flag in flags.values()
            if flag.group_kind is group and not flag.hidden
        ]
        yield f"### {group.__doc__}\n\n| flag | default | |\n|---|---|---|\n{''.join(rows)}"


def _told(flag: Flag, told: Mapping[str, str]) -> str:
    text = " ".join(told.get(flag.attribute, "").split()).replace("|", "\\|")
    return f"{text} One of {', '.join(map(_code, flag.choices))}." if flag.choices else text


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def main() -> None:
    """Write every page."""
    for path, page in PAGES.items():
        path.write_text(page(), encoding="utf-8")
        sys.stdout.write(f"wrote {path.relative_to(DOCS.parent)}\n")


if __name__ == "__main__":
    main()
