"""`maestro adapter`: write, check and run HyperFleet adapters. Each command is imported when it is called."""

from cyclopts import App

app = App(
    name="adapter",
    help="Write, check and run HyperFleet adapters.",
    help_epilogue="""\
Examples:

  maestro adapter init my-adapter
  maestro adapter lint my-adapter""",
    help_format="plaintext",
    version_flags=[],
)
app.command("maestropy.cli.adapter_init:app", name="init", help="Write a new adapter that runs, and its tests.")
app.command("maestropy.cli.adapter_lint:app", name="lint", help="Check an adapter, or a task written in YAML.")
app.command("maestropy.cli.adapter_run:app", name="run", help="Deal with one event, as a Job does.")
app.command("maestropy.cli.adapter_serve:app", name="serve", help="Deal with every event that comes in over HTTP.")
