"""Define `maestro practice`. Each command is imported when it is called."""

from cyclopts import App

app = App(
    name="practice",
    help="Practise on packaged incidents of real Maestros, and grade answers of people and assistants. Offline.",
    help_epilogue="""\
Examples:

  maestro practice list
  maestro practice play 04
  maestro practice grade answers.yaml
  maestro practice grade --engine""",
    help_format="plaintext",
    version_flags=[],
)
app.command("maestropy.cli.practice.play:list_", name="list", help="List the incidents.")
app.command("maestropy.cli.practice.play:play", name="play", help="Show an incident, and take an answer.")
app.command("maestropy.cli.practice.grade:app", name="grade", help="Grade a file of answers, or our own engine.")
