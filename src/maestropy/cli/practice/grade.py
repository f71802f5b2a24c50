"""`maestro practice grade`: grade a file of answers, our own engine, or an assistant's loop."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from maestropy.cli.trace import endings
from maestropy.trace.errors import InvalidArguments, TraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maestropy.practice.model import Incident
    from maestropy.practice.scoring import Grade

app = App(
    name="grade",
    usage="maestro practice grade [ANSWERS] [OPTIONS]",
    help="Grade answers to the practice incidents: of a file, of our own engine, or of an assistant.",
    help_epilogue="""\
Examples:

  maestro practice grade answers.yaml
      a list `answers`, each with incident, work, verdict, stage, code and hop

  maestro practice grade --engine
      what `maestro diagnose analyze` alone answers

  maestro practice grade --loop my_assistant:answer -o json
      drive an assistant over the tools of `maestro mcp`

Exit codes: 0 all right, 1 some are wrong or missing, 2 usage, 3 the file cannot be read, 4 no such incident.""",
    help_format="plaintext",
    version_flags=[],
)


@app.default
def grade(
    answers: Path | None = None,
    *,
    engine: Annotated[bool, Parameter(negative=())] = False,
    loop: str = "",
    incident: Annotated[list[str] | None, Parameter(negative=())] = None,
    output: Annotated[Literal["text", "json"], Parameter(name=("-o", "--output"))] = "text",
    out: Path | None = None,
) -> int:
    """Grade answers.

    Parameters
    ----------
    answers
        A file of answers, JSON or YAML.
    engine
        Grade our own engine.
    loop
        Grade an assistant: MODULE:FUNCTION of a tool-calling loop, see docs/practice.md.
    incident
        Only this incident; may be repeated.
    output
        Its form.
    out
        Write it to a file.
    """
    from maestropy.practice import catalogue, report, scoring
    from maestropy.trace.output import json_text

    try:
        if sum((answers is not None, engine, bool(loop))) != 1:
            raise InvalidArguments("give one of: a file of answers, --engine, or --loop MODULE:FUNCTION")
        chosen = [catalogue.incident(name) for name in incident] if incident else list(catalogue.incidents())
        by, grades = _grades(chosen, answers=answers, loop=loop)
        text = json_text(scoring.model(grades, by=by)) if output == "json" else report.graded(grades, by=by)
        endings.write_report(text, out)
    except TraceError as error:
        return endings.failed(error)
    return 0 if all(each.is_right for each in grades) else 1


def _grades(incidents: "Sequence[Incident]", *, answers: Path | None, loop: str) -> "tuple[str, list[Grade]]":
    from maestropy.practice import grading

    if answers is not None:
        given = grading.read(answers)
        return given.by or answers.name, grading.grades(incidents, given.answers)
    if loop:
        return loop, [played.grade for played in asyncio.run(grading.by_loop(incidents, grading.loop_of(loop)))]
    return grading.ENGINE, grading.grades(incidents, grading.by_engine(incidents))
