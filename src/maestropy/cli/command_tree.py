"""Register all commands. Each is imported when it is called, so that `--help` is fast."""

from cyclopts import App

from maestropy import __version__
from maestropy.cli import screen

app = App(
    name="maestro",
    help="Apply Kubernetes manifests on remote clusters through their agents, and report their status.",
    help_epilogue="""\
Start with `maestro demo`, or run the whole system: `maestro up --write-config`.
Every command has help: `maestro help resourcebundle apply`, `maestro rb apply --help`.
`rb` is short for resourcebundle, `ls` for list.""",
    help_format="plaintext",
    version=__version__,
    result_action="return_value",
)
app.command("maestropy.cli.settings_apps:server", name="server", help="Run the server.")
app.command("maestropy.cli.settings_apps:agent", name="agent", help="Run the agent of one cluster.")
app.command("maestropy.cli.settings_apps:migration", name="migration", help="Migrate the database schema.")
app.command("maestropy.cli.settings_apps:check", name="check", help="Check a server, agent, broker or database.")
app.command("maestropy.cli.client.consumer:app", name="consumer", help="Manage consumers, the target clusters.")
app.command("maestropy.cli.client.bundles.group:app", name="resourcebundle", help="Manage resource bundles.")
app.command("maestropy.cli.client.get:app", name="get", help="Show works or consumers.")
app.command("maestropy.cli.client.history:app", name="history", help="Show who changed what, and when.")
app.command("maestropy.cli.console:app", name="console", help="Show the fleet and its works in a browser.")
app.command("maestropy.cli.config:app", name="config", help="Manage named environments.")
app.command("maestropy.cli.dev.up:app", name="up", help="Run server, clusters and agents on this computer.")
app.command("maestropy.cli.dev.demo:app", name="demo", help="Run a demo on this computer.")
app.command("maestropy.cli.trace.group:app", name="trace", help="Trace works, requests and hosted clusters.")
app.command(
    "maestropy.cli.diagnose.group:app",
    name="diagnose",
    help="Collect an archive of everything, and analyse it offline.",
)
app.command("maestropy.cli.assistants.mcp:app", name="mcp", help="Offer tools to an assistant (MCP).")
app.command(
    "maestropy.cli.practice.group:app", name="practice", help="Practise on packaged incidents, and grade answers."
)
app.command("maestropy.cli.adapter.group:app", name="adapter", help="Create, check and run HyperFleet adapters.")
app.command("maestropy.cli.assistants.skills:app", name="skills", help="List and install skills for assistants.")
app.command("maestropy.cli.completion.command:app", name="completion", help="Print a shell completion script.")


@app.command(name="help", help_epilogue="Examples:\n\n  maestro help\n  maestro help resourcebundle apply")
def help_(*command: str) -> int:
    """Show the help of a command."""
    # `maestro help x` is read as `maestro x --help` before commands are parsed.
    app.help_print(list(command))
    return 0


@app.command(name="version", help_epilogue="Example:\n\n  maestro version")
def version() -> int:
    """Print the version."""
    screen.write(f"{__version__}\n")
    return 0
