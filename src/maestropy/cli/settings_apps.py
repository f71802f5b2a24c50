"""Build cyclopts Apps of `server`, `agent`, `migration` and `check`, for completion and the reference pages."""

import inspect
from typing import Annotated

from cyclopts import App, Parameter

from maestropy.cli.agent import COMMAND as AGENT
from maestropy.cli.check import status
from maestropy.cli.check.agent import COMMAND as CHECK_AGENT
from maestropy.cli.check.broker import COMMAND as CHECK_BROKER
from maestropy.cli.check.database import COMMAND as CHECK_DATABASE
from maestropy.cli.check.server import COMMAND as CHECK_SERVER
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
        name=command.name.split()[-1],
        help=command.text,
        help_epilogue=command.examples,
        help_format="plaintext",
        version_flags=[],
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
server.command(build(status.SERVER), name="status")
agent = build(AGENT)
agent.command(build(status.AGENT), name="status")
check = App(
    name="check",
    help="Check a server, an agent, a broker or a database: before a roll-out, and when something is wrong.",
    help_epilogue="Examples:\n\n  maestro check server\n  maestro check agent --consumer-name=cluster1 "
    "--grpc-url=localhost:8091\n  maestro check broker\n  maestro check database",
    help_format="plaintext",
    version_flags=[],
)
check.command(build(CHECK_SERVER), name="server")
check.command(build(CHECK_AGENT), name="agent")
check.command(build(CHECK_BROKER), name="broker")
check.command(build(CHECK_DATABASE), name="database")
migration = build(MIGRATION)
