"""Define `maestro diagnose`. Each command is imported when it is called."""

from cyclopts import App

app = App(
    name="diagnose",
    help="Collect everything about a Maestro into one file without secrets, and analyse it offline.",
    help_epilogue="""\
Examples:

  maestro diagnose collect -o incident.tar.zst
  maestro diagnose analyze incident.tar.zst
  maestro diagnose open incident.tar.zst
  maestro diagnose diff before.tar.zst after.tar.zst""",
    help_format="plaintext",
    version_flags=[],
)
app.command("maestropy.cli.diagnose.collect:app", name="collect", help="Collect an archive, without secrets.")
app.command("maestropy.cli.diagnose.analyze:analyze", name="analyze", help="Analyse an archive, offline.")
app.command("maestropy.cli.diagnose.open:app", name="open", help="Show an archive in the console, offline.")
app.command("maestropy.cli.diagnose.analyze:diff", name="diff", help="Compare two archives.")
app.command("maestropy.cli.diagnose.analyze:reveal", name="reveal", help="Turn pseudonyms of a report back into names.")
