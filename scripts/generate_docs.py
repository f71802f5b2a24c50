"""Generate the reference pages from the code: `make docs`.

The `--help` of all commands becomes docs/cli.md; the documented fields of the settings become docs/settings.md; the
docstrings of the attack tests become a part of docs/security.md.
`tests/public/test_docs_fresh.py` fails when a page differs from the output of this script.
"""

import ast
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cyclopts import App

from maestropy.agent.settings import FLAGS as AGENT_FLAGS
from maestropy.cli.client.connection import DEFAULTS, SETTINGS
from maestropy.cli.command_tree import app as maestro
from maestropy.cli.parsing.help_panels import HelpPage, PageStyle
from maestropy.flags import Flag
from maestropy.flags.help_text import help_texts
from maestropy.sdk.settings import VARIABLES
from maestropy.server.settings.load import FLAGS as SERVER_FLAGS

DOCS = Path(__file__).parents[1] / "docs"
SECURITY = DOCS / "security.md"
ATTACKS = DOCS.parent / "tests" / "attacks"
_ATTACKS_BEGIN = "<!-- attacks: begin -->"
_ATTACKS_END = "<!-- attacks: end -->"
_ACRONYMS = {"rest": "REST", "grpc": "gRPC", "http": "HTTP"}
_WIDTH = 100
_DOCUMENTED_IN_SETTINGS = {"server": "#server", "agent": "#agent", "migration": "#server"}

_CLI = """\
# The command line

At the end of this page you know every command and its flags. Generated from the code by `make docs`: the `--help` of
every command.

A flag wins over an environment variable, a variable over an environment of `maestro config`, that over the default.

| exit code | means |
|---|---|
| 0 | done |
| 1 | failed; one sentence on standard error gives the cause and the remedy |
| 2 | a mistake in the command line, in a variable or in a configuration file |
| 130 | interrupted |
| 141 | the reader of the output, such as `head`, closed the pipe |

Ctrl-C prints nothing, except while Python itself starts: until it has read its own modules and the `.pth` files of the
environment, and found this package, it answers Ctrl-C with a traceback of its own. `python scripts/interrupt_starts.py`
measures that, here on two cores with a load of 10. Of 200 commands that got the signal at a random moment of their
first 300 ms, 11 showed one. In the first 60 ms it was 56 of 200: 46 before the first line of the console script, and 10
in the import of the package `maestropy`, which takes 0.2 ms of the 50.

Commands that compare or diagnose list further exit codes in their help. [search.md](search.md) explains `--search`.

## Coming from kubectl

| with kubectl | here |
|---|---|
| `kubectl get pods`, `-l app=web`, `-w`, `--no-headers` | `maestro get works`, same flags, `--consumer`, `--source` |
| `kubectl get pod x -o yaml` | `maestro get works CONSUMER/NAME -o yaml`, or by ID |
| `-o wide`, `json`, `yaml`, `jsonpath=…`, `custom-columns=…` | the same; a JSONPath without braces is a path |
| `-o name` | the same; it prints IDs |
| all objects | one page of 100, and standard error says `Showing 100 of 150`; `--all` shows all |
| `kubectl apply -f x.yaml --dry-run=server` | `maestro rb apply -f x.yaml --dry-run=server` |
| `kubectl diff`, `edit` | `maestro rb diff -f x.yaml`, `maestro rb edit CONSUMER/NAME` |
| `kubectl delete -f x.yaml`, `-l app=web`, `a b c` | `maestro rb delete` with the same; `--yes` without a terminal |
| `kubectl wait --for=condition=Ready`, `=delete` | `maestro rb wait CONSUMER/NAME --for=condition=Applied`, `=delete` |
| `kubectl completion zsh` | `maestro completion zsh`, also for consumers and works |

`rb` is short for `resourcebundle`, `ls` for `list`; `maestro help rb apply` is `maestro rb apply --help`. A dry run on
the server checks a work and compares it with the stored one; nothing is stored. `edit` opens the editor of
`MAESTRO_EDITOR`, `KUBE_EDITOR`, `VISUAL` or `EDITOR`. `list --watch` reads the list of all sources every two seconds;
`maestro rb watch` subscribes to the works of one source. Both say on standard error when the server is gone and when it
is back.

## Commands
"""

_SETTINGS = """\
# Settings

At the end of this page you know every setting of server, agent and clients, with its default. Generated from the code
by `make docs`.

Durations are written as in Go: `500ms`, `10s`, `2m0s`. A switch is `--flag` or `--flag=false`.
"""

_SERVER = """\
## Server

`maestro server`; `maestro migration` takes those of Database and Logging. `MAESTRO_DB_DSN` stands for `--db-dsn`,
`MAESTRO_DB_LISTEN_DSN` for `--db-listen-dsn`, `MAESTRO_DB_READ_DSN` for `--db-read-dsn`, and `MAESTRO_ENV`
(development, testing, production) sets other defaults before the command line is read.
"""

_AGENT = """\
## Agent

`maestro agent`. `POD_NAME` is written into every line of the log.
"""

_CLIENT = """\
## Clients on the command line

`maestro consumer`, `maestro resourcebundle` and other clients. The first variable that is set wins. The keys of an
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


def security_page() -> str:
    """Return docs/security.md with the results of the attack tests between its marks."""
    page = SECURITY.read_text(encoding="utf-8")
    before, _, rest = page.partition(_ATTACKS_BEGIN)
    _, _, after = rest.partition(_ATTACKS_END)
    surfaces = "\n".join(_surface(path) for path in sorted(ATTACKS.glob("test_*.py")))
    return f"{before}{_ATTACKS_BEGIN}\n\n{surfaces}\n{_ATTACKS_END}{after}"


def attacks(path: Path) -> list[tuple[str, str]]:
    """Return the attacks in a test file and what the attacker gets, from docstrings `<attack> -> <result>`."""
    tests = [
        node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    texts = [" ".join((ast.get_docstring(test) or "").split()).rstrip(".") for test in tests]
    rows = [text.partition(" -> ")[::2] for text in texts if " -> " in text]
    return [(attack[0].upper() + attack[1:], result[0].upper() + result[1:]) for attack, result in rows]


def _surface(path: Path) -> str:
    words = path.stem.removeprefix("test_").capitalize().split("_")
    title = " ".join(_ACRONYMS.get(word.lower(), word) for word in words)
    rows = "".join(f"| {_cell(attack)} | {_cell(result)} |\n" for attack, result in attacks(path))
    return f"### {title}\n\n| attack | what the attacker gets |\n|---|---|\n{rows}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


PAGES: Mapping[Path, Callable[[], str]] = {
    DOCS / "cli.md": cli_reference,
    DOCS / "settings.md": settings_reference,
    SECURITY: security_page,
}


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
    if len(words) == 1 and words[0] in _DOCUMENTED_IN_SETTINGS:
        usage, _, rest = shown.partition("╭")
        link = _DOCUMENTED_IN_SETTINGS[words[0]]
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
    page: Any = HelpPage(PageStyle(width=_WIDTH), out=out)
    maestro.help_formatter = page
    maestro.help_print([*words], console=page)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _tables(flags: Mapping[str, Flag]) -> Iterator[str]:
    groups = dict.fromkeys(flag.group_kind for flag in flags.values())
    for group in groups:
        told = help_texts(group)
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
