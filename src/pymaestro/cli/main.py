"""The command `maestro`: which subcommands exist, and how every one of them ends.

A mistake in the command line ends with 2, a failure with 1, Ctrl-C with 130; each with at most one sentence on
standard error. Subcommands are imported when they are called, so that `--help` answers at once.
"""

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from pymaestro import __version__
from pymaestro.cli import failure, goflags

app = App(
    name="maestro",
    help="Carry Kubernetes manifests to clusters nobody has a kubeconfig for, and bring their status back.",
    help_epilogue="""\
Start with `maestro demo`, or run everything: `maestro up --write-config`.
Each command explains itself: `maestro resourcebundle --help`.""",
    help_format="plaintext",
    version=__version__,
    result_action="return_value",
)
app.command("pymaestro.cli.server:app", name="server", help="Run the server.")
app.command("pymaestro.cli.agent:app", name="agent", help="Run the agent of one cluster.")
app.command("pymaestro.cli.migration:app", name="migration", help="Bring the database's schema up to date.")
app.command("pymaestro.cli.consumer:app", name="consumer", help="The clusters that works can be sent to.")
app.command("pymaestro.cli.resourcebundle:app", name="resourcebundle", help="What is wanted on the clusters.")
app.command("pymaestro.cli.config:app", name="config", help="Named environments: where Maestro is.")
app.command("pymaestro.cli.up:app", name="up", help="Run the whole system on this computer.")
app.command("pymaestro.cli.demo:app", name="demo", help="Show the main job from end to end, on this computer.")
app.command("pymaestro.cli.trace:app", name="trace", help="Find out what became of a wish.")
app.command("pymaestro.cli.adapter:app", name="adapter", help="Write, check and run HyperFleet adapters.")
app.command("pymaestro.cli.completion:app", name="completion", help="Complete commands and flags in your shell.")


@app.command(name="version")
def version() -> int:
    """Print the version."""
    sys.stdout.write(f"{__version__}\n")
    return 0


def call(arguments: Sequence[str]) -> int:
    """Run the command line `arguments` and return the exit code."""
    try:
        result = app(_for_parser(arguments), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        command = next((f" {word}" for word in arguments[:1] if word in {*app} and not word.startswith("-")), "")
        sys.stderr.write(f"Error: {_plain(error)}; see `maestro{command} --help`\n")
        return failure.USAGE
    except KeyboardInterrupt:
        return failure.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last border: whatever went wrong, the user gets a sentence
        if failure.was_interrupted(error):
            return failure.INTERRUPTED
        sys.stderr.write(failure.report(error, verbosity=goflags.verbosity(arguments)))
        return failure.exit_code(failure.innermost(error))
    return result if isinstance(result, int) else 0


def _for_parser(arguments: Sequence[str]) -> list[str]:
    match arguments:
        case ["server" | "migration" as command, *rest]:
            from pymaestro.cli import commands
            from pymaestro.server.settings.load import FLAGS

            return [command, *commands.normalised(rest, FLAGS.values())]
        case ["agent" as command, *rest]:
            from pymaestro.agent.settings import FLAGS as AGENT_FLAGS
            from pymaestro.cli import commands

            return [command, *commands.normalised(rest, AGENT_FLAGS.values())]
        case _:
            return list(arguments)


def _plain(error: CycloptsError) -> str:
    return " ".join(str(error).split()).rstrip(".")


def main() -> None:
    """Run the command line of this process."""
    sys.exit(call(sys.argv[1:]))


if __name__ == "__main__":
    main()
