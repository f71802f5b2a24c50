"""`maestro trace`: the group of commands that find out what became of a wish. Each is imported when it is called."""

from cyclopts import App

app = App(
    name="trace",
    help="Find out what became of a wish: works, requests, logs.",
    help_epilogue="""\
Examples:

  maestro trace work --work-name NAME
  maestro trace requests ./maestro-logs
  maestro trace explain MT-404""",
    help_format="plaintext",
    version_flags=[],
)
app.command("maestropy.cli.trace_work:app", name="work", help="From any identifier to the whole relation.")
app.command("maestropy.cli.trace_id:app", name="id", help="Compute and explain identities, offline.")
app.command("maestropy.cli.trace_request:request", name="request", help="Follow one request through all stages.")
app.command("maestropy.cli.trace_request:requests", name="requests", help="All requests in the logs at once.")
app.command("maestropy.cli.trace_request:explain", name="explain", help="Explain a finding's code.")
app.command("maestropy.cli.trace_logs:app", name="logs", help="Collect logs, query them, see what they cover.")
app.command("maestropy.cli.trace_hcp:app", name="hcp", help="From an Azure resource ID to the pod that blocks it.")
