"""The commands made of flags as the library of the other commands knows them: for completion and reference pages."""

import inspect
from typing import Annotated

from cyclopts import App, Parameter

from maestropy.cli import flaghelp
from maestropy.cli.agent import COMMAND as AGENT
from maestropy.cli.commands import Command
from maestropy.cli.migration import COMMAND as MIGRATION
from maestropy.cli.server import COMMAND as SERVER
from maestropy.flags import Flag
from maestropy.flags.explanation import explanations


def build(command: Command) -> App:
    """Return `command` as an App; only `commands` ever runs it."""

    def act(**given: str | None) -> int:
        return command.act({by_parameter[key].name: value for key, value in given.items() if value is not None})

    by_parameter = {f"{flag.group}_{flag.attribute}": flag for flag in command.flags.values()}
    parameters = [
        inspect.Parameter(
            key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, _parameter(flag)]
        )
        for key, flag in by_parameter.items()
    ]
    # cyclopts reads both; a function cannot have seventy parameters written out twice.
    act.__annotations__ = {item.name: item.annotation for item in parameters}
    vars(act)["__signature__"] = inspect.Signature(parameters)
    app = App(
        name=command.name, help=command.text, help_epilogue=command.examples, help_format="plaintext", version_flags=[]
    )
    app.default(act)
    return app


def _parameter(flag: Flag) -> Parameter:
    return Parameter(
        name=(flag.name, "--v") if flag.name == "-v" else flag.name,
        help=flaghelp.meaning(flag, explanations(flag.group_kind).get(flag.attribute, "")),
        show=not flag.hidden,
        show_default=False,
        negative=(),
        allow_leading_hyphen=True,
        metavar=flaghelp.metavar(flag),
    )


server = build(SERVER)
agent = build(AGENT)
migration = build(MIGRATION)
