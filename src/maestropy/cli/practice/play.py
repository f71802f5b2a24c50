"""`maestro practice list` and `play`: show incidents, give hints, and take an answer."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from maestropy.cli import screen
from maestropy.cli.trace import endings
from maestropy.trace.errors import InvalidArguments, TraceError

if TYPE_CHECKING:
    from maestropy.practice.model import Answer, Incident

_FIELDS = ("work", "verdict", "stage", "code", "hop")
_QUESTIONS = {
    "work": "Which work is affected (name or ID)?",
    "verdict": "Its verdict (complete, failed, incomplete, pending, held, paused, not found ...)?",
    "stage": "At which stage did its request stop (1 to 9, or none)?",
    "code": "Which code says why (such as MT-404; see `maestro trace explain`; or none)?",
    "hop": "The first broken hop (source, server, database, broker, agent, cluster, status, subscribers, none)?",
}
list_ = App(
    name="list",
    usage="maestro practice list [OPTIONS]",
    help="List the practice incidents. Their titles and causes are not shown.",
    help_epilogue="""\
Examples:

  maestro practice list
  maestro practice list -o json

Exit codes: 0 done, 2 usage, 3 the incidents are missing in this installation.""",
    help_format="plaintext",
    version_flags=[],
)
play = App(
    name="play",
    usage="maestro practice play ID [OPTIONS]",
    help="Show the statement of an incident and where its archive is; take an answer and grade it. Hints on demand.",
    help_epilogue="""\
Examples:

  maestro practice play 04
      the statement; on a terminal you are asked for the answer, and `?` gives a hint

  maestro practice play 04 --out incident.tar.zst
      and copy the archive

  maestro practice play 04 --hints 1
  maestro practice play 04 --answer 'work=web verdict=failed stage=4 code=MT-404 hop=cluster'
  maestro practice play 04 --solution

Exit codes: 0 shown, or the answer is right, 1 the answer is wrong, 2 usage, 3 an archive is missing, 4 no such
incident.""",
    help_format="plaintext",
    version_flags=[],
)


@list_.default
def list_incidents(*, output: Annotated[Literal["text", "json"], Parameter(name=("-o", "--output"))] = "text") -> int:
    """List the incidents.

    Parameters
    ----------
    output
        Its form.
    """
    from maestropy.practice import catalogue, report
    from maestropy.trace.output import json_text

    try:
        incidents = catalogue.incidents()
    except TraceError as error:
        return endings.failed(error)
    screen.write(
        json_text([report.public(each) for each in incidents]) if output == "json" else report.listed(incidents)
    )
    return 0


@play.default
def play_incident(
    incident: str,
    *,
    out: Path | None = None,
    hints: int = 0,
    answer: str = "",
    solution: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Play an incident.

    Parameters
    ----------
    incident
        Its number in `maestro practice list`.
    out
        Copy the archive to this file, which must not exist.
    hints
        Show so many hints.
    answer
        Grade this answer: FIELD=VALUE of work, verdict, stage, code and hop, separated by spaces or commas.
    solution
        Show what is true, and why.
    """
    from maestropy.practice import catalogue, report

    try:
        chosen = catalogue.incident(incident)
        if answer:
            return _graded(chosen, _parsed(chosen, answer))
        screen.write(report.stated(chosen, archive=str(_copied(chosen, out))))
        for number in range(1, min(hints, len(chosen.hints)) + 1):
            screen.write(report.hint(chosen, number) + "\n")
        if solution:
            screen.write(report.solution(chosen))
            return 0
        if sys.stdin.isatty() and sys.stdout.isatty() and not hints:
            return _graded(chosen, _asked(chosen))
    except TraceError as error:
        return endings.failed(error)
    return 0


def _copied(chosen: "Incident", out: Path | None) -> Path:
    """Return where the archive is: in the installation, or where it was copied to."""
    from maestropy.practice import catalogue

    if out is None:
        with catalogue.archive(chosen) as path:
            return path
    if out.exists():
        raise InvalidArguments(f"--out {out} exists already; name another file, or delete it")
    try:
        catalogue.copy(chosen, out)
    except OSError as error:
        raise InvalidArguments(f"--out {out} cannot be written: {error.strerror}") from error
    return out


def _parsed(chosen: "Incident", text: str) -> "Answer":
    fields: dict[str, str] = {}
    name = ""
    for word in text.replace(",", " ").split():
        key, equals, value = word.partition("=")
        if equals and key in _FIELDS:
            name = key
            fields[name] = value
        elif name and not equals:
            # A verdict such as `not found` has two words.
            fields[name] = f"{fields[name]} {word}"
        else:
            raise InvalidArguments(f"--answer: {word} is none of {', '.join(f'{field}=…' for field in _FIELDS)}")
    return _answer(chosen, fields)


def _answer(chosen: "Incident", fields: dict[str, str]) -> "Answer":
    from maestropy.practice.model import Answer

    stage = fields.get("stage", "").strip()
    if stage and stage != "none" and not (stage.isascii() and stage.isdigit() and 1 <= int(stage) <= 9):
        raise InvalidArguments(f"stage {stage} is no stage: give 1 to 9, or none")
    return Answer(
        incident=chosen.id,
        work=fields.get("work", ""),
        verdict=fields.get("verdict", ""),
        stage=int(stage) if stage.isdigit() else None,
        code=fields.get("code", ""),
        hop=fields.get("hop", ""),
    )


def _asked(chosen: "Incident") -> "Answer":
    """Ask on the terminal; `?` shows the next hint, and an empty line leaves a field out."""
    from maestropy.practice import report

    screen.write("\nYour answer; `?` shows a hint, Ctrl-C ends.\n")
    fields: dict[str, str] = {}
    shown = 0
    for name, question in _QUESTIONS.items():
        while (said := _line(question)) == "?":
            shown += 1
            screen.write(report.hint(chosen, shown) + "\n")
        fields[name] = said
    return _answer(chosen, fields)


def _line(question: str) -> str:
    screen.write(f"{question} ")
    sys.stdout.flush()
    return sys.stdin.readline().strip()


def _graded(chosen: "Incident", given: "Answer") -> int:
    from maestropy.practice import report, scoring

    grade = scoring.grade(chosen, given)
    screen.write(report.marks(grade) + "\n" + report.solution(chosen))
    return 0 if grade.is_right else 1
