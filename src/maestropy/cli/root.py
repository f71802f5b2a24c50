"""The tree of all commands. Each is imported when it is called, so that `--help` answers at once."""

import sys

from cyclopts import App

from maestropy import __version__

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
app.command("maestropy.cli.flagapps:server", name="server", help="Run the server.")
app.command("maestropy.cli.flagapps:agent", name="agent", help="Run the agent of one cluster.")
app.command("maestropy.cli.flagapps:migration", name="migration", help="Bring the database's schema up to date.")
app.command("maestropy.cli.consumer:app", name="consumer", help="The clusters that works can be sent to.")
app.command("maestropy.cli.resourcebundle:app", name="resourcebundle", help="What is wanted on the clusters.")
app.command("maestropy.cli.config:app", name="config", help="Named environments: where Maestro is.")
app.command("maestropy.cli.up:app", name="up", help="Run the whole system on this computer.")
app.command("maestropy.cli.demo:app", name="demo", help="Show the main job from end to end, on this computer.")
app.command("maestropy.cli.trace:app", name="trace", help="Find out what became of a wish.")
app.command("maestropy.cli.adapter:app", name="adapter", help="Write, check and run HyperFleet adapters.")
app.command("maestropy.cli.completion:app", name="completion", help="Complete commands and flags in your shell.")


@app.command(name="version", help_epilogue="Example:\n\n  maestro version")
def version() -> int:
    """Print the version."""
    sys.stdout.write(f"{__version__}\n")
    return 0
