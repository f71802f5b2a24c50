"""`maestro adapter`: write, check and run HyperFleet adapters. Commands are imported on use."""

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
app.command("maestropy.cli.adapter.init:app", name="init", help="Write a new adapter and its tests.")
app.command("maestropy.cli.adapter.lint:app", name="lint", help="Check an adapter, or a task written in YAML.")
app.command("maestropy.cli.adapter.convert:app", name="convert", help="Write a HyperFleet task as an adapter.")
app.command("maestropy.cli.adapter.run:app", name="run", help="Handle one event, as a Job does.")
app.command("maestropy.cli.adapter.serve:app", name="serve", help="Handle every event that arrives over HTTP.")
app.command("maestropy.cli.adapter.consume:app", name="consume", help="Handle every event of RabbitMQ or Pub/Sub.")
