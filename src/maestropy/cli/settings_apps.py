"""Build cyclopts Apps of `server`, `agent` and `migration`, for completion and the reference pages."""

import inspect
from typing import Annotated

from cyclopts import App, Parameter

from maestropy.cli.agent import COMMAND as AGENT
from maestropy.cli.parsing import settings_help
from maestropy.cli.parsing.settings_commands import SettingsCommand
from maestropy.cli.server.command import COMMAND as SERVER
from maestropy.cli.server.migration import COMMAND as MIGRATION
from maestropy.flags import Flag
from maestropy.flags.help_text import help_texts


def build(command: SettingsCommand) -> App:
    """Return `command` as an App. `maestro` itself runs the command without it."""

    def execute(**values: str | None) -> int:
        return command.execute({by_parameter[key].name: value for key, value in values.items() if value is not None})

    by_parameter = {f"{flag.group}_{flag.attribute}": flag for flag in command.flags.values()}
    parameters = [
        inspect.Parameter(
            key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, _parameter(flag)]
        )
        for key, flag in by_parameter.items()
    ]
    # cyclopts reads both the annotations and the signature.
    execute.__annotations__ = {item.name: item.annotation for item in parameters}
    vars(execute)["__signature__"] = inspect.Signature(parameters)
    app = App(
        name=command.name, help=command.text, help_epilogue=command.examples, help_format="plaintext", version_flags=[]
    )
    app.default(execute)
    return app


def _parameter(flag: Flag) -> Parameter:
    return Parameter(
        name=(flag.name, "--v") if flag.name == "-v" else flag.name,
        help=settings_help.flag_help(flag, help_texts(flag.group_kind).get(flag.attribute, "")),
        show=not flag.hidden,
        show_default=False,
        negative=(),
        allow_leading_hyphen=True,
        metavar=settings_help.metavar(flag),
    )


server = build(SERVER)
agent = build(AGENT)
migration = build(MIGRATION)
