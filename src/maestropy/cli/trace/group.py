"""Define `maestro trace`. Each command is imported when it is called."""

from cyclopts import App

app = App(
    name="trace",
    help="Trace works, requests and hosted clusters.",
    help_epilogue="""\
Examples:

  maestro trace work --work-name NAME
  maestro trace requests ./maestro-logs
  maestro trace explain MT-404""",
    help_format="plaintext",
    version_flags=[],
)
app.command("maestropy.cli.trace.work.command:app", name="work", help="Trace a work from any of its identifiers.")
app.command("maestropy.cli.trace.id:app", name="id", help="Compute and explain identifiers offline.")
app.command("maestropy.cli.trace.logs.request:request", name="request", help="Trace one request through all stages.")
app.command("maestropy.cli.trace.logs.request:requests", name="requests", help="Trace all requests in the logs.")
app.command("maestropy.cli.trace.logs.request:explain", name="explain", help="Explain the code of a finding.")
app.command(
    "maestropy.cli.trace.logs.collect:app", name="logs", help="Collect logs, print log queries, check coverage."
)
app.command(
    "maestropy.cli.trace.hcp.command:app", name="hcp", help="Trace a hosted control plane by its Azure resource ID."
)
