"""Grade answers from anywhere: a file, our own engine, or an assistant that is driven over the incident's archive.

    from maestropy.practice import catalogue, grading

    async def loop(statement, tools, call_tool):
        ...  # ask a model with `statement` and `tools`; for each of its calls: text = await call_tool(name, arguments)
        return {"work": "web", "verdict": "failed", "stage": 4, "code": "MT-404", "hop": "cluster"}

    graded = asyncio.run(grading.by_loop(catalogue.incidents(), loop))

The assistant sees the statement, what an answer has, and the tools of `maestro mcp` over the archive; never the truth.
"""

import asyncio
import importlib
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import yaml

from maestropy.diagnose import archive as archives
from maestropy.diagnose.analysis import analyze
from maestropy.practice import catalogue, engine, scoring
from maestropy.practice.model import Answer, Answers, Incident
from maestropy.trace.errors import InputUnreadable, InvalidArguments
from maestropy.untrusted import files

ENGINE: Final = "maestro diagnose"
_MOST_BYTES: Final = 4 << 20
QUESTION: Final = """
Find out what is wrong, with the tools only. Answer with these fields:
work: the name or the ID of the affected work.
verdict: of its newest request: complete, failed, incomplete, pending, superseded or no-op; `not found` if there is no
trace of it; `held` or `paused` if a hold or a pause keeps it.
stage: the stage (1 to 9) at which that request stopped; null if it did not stop.
code: the code of the finding that explains it, such as MT-404; `none` if nothing is broken.
hop: the first broken hop: source, server, database, broker, agent, cluster, status or subscribers; `none` if nothing
is broken.
why: one or two sentences, which are not graded."""
"""What an assistant is asked after the statement."""

CallTool = Callable[[str, Mapping[str, Any]], Awaitable[str]]
"""Calls a tool by its name with its arguments, and returns its text; what goes wrong is told in the text."""


class Loop(Protocol):
    """The tool-calling loop of any model."""

    def __call__(
        self, statement: str, tools: Sequence[Mapping[str, Any]], call_tool: CallTool
    ) -> Awaitable[Mapping[str, Any] | Answer]:
        """Return the answer to one incident; each tool has `name`, `description` and `input_schema`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long an assistant may work on one incident."""

    calls: int = 60
    seconds: float = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """How an assistant did on one incident."""

    grade: scoring.Grade
    calls: tuple[str, ...] = field(default=())
    """The tools that it called, in order."""


def read(path: Path) -> Answers:
    """Read an answers file, JSON or YAML: `answers`, a list, and optionally `by`."""
    try:
        content = yaml.safe_load(files.read(path, most=_MOST_BYTES))
        found = msgspec.convert({"answers": content} if isinstance(content, list) else content, Answers)
    except (OSError, ValueError, yaml.YAMLError) as error:
        says = " ".join(str(error).split())
        raise InputUnreadable(
            f"{path} is no file of answers: {says}; it holds a list `answers`, each with incident, work, verdict, "
            "stage, code and hop"
        ) from error
    known = {each.id for each in catalogue.incidents()}
    unknown = [answer.incident for answer in found.answers if answer.incident not in known]
    if unknown:
        raise InputUnreadable(f"{path}: there is no incident {unknown[0]}; see `maestro practice list`")
    return found


def by_engine(incidents: Iterable[Incident]) -> Iterator[Answer]:
    """Yield the answers of our own engine, which sees the archive and what the statement names."""
    for incident in incidents:
        with catalogue.archive(incident) as path:
            yield engine.answer(incident.id, analysed(path), asked=incident.asked)


def analysed(path: Path) -> analyze.Analysis:
    """Analyse an archive as `maestro diagnose analyze` does."""
    with _unpacked(path) as opened:
        return analyze.analyze(opened)


@contextmanager
def _unpacked(path: Path) -> Iterator[archives.Opened]:
    with (
        tempfile.TemporaryDirectory(prefix="maestro-practice-") as folder,
        archives.opened(path, folder=Path(folder)) as opened,
    ):
        yield opened


def grades(incidents: Iterable[Incident], answers: Iterable[Answer]) -> list[scoring.Grade]:
    """Grade answers to these incidents."""
    return scoring.grade_all(incidents, answers)


async def by_loop(incidents: Iterable[Incident], loop: Loop, *, limits: Limits = Limits()) -> list[Played]:  # noqa: B008 - frozen
    """Drive an assistant over all incidents, one after the other; what fails on one is its problem, and no error."""
    return [await play(incident, loop, limits=limits) for incident in incidents]


async def play(incident: Incident, loop: Loop, *, limits: Limits) -> Played:
    """Drive an assistant over the archive of one incident."""
    from maestropy.mcp import tools  # noqa: PLC0415 - grading files and the engine needs none of it

    calls: list[str] = []
    with catalogue.archive(incident) as path:
        async with tools.opened(tools.Options(archives=(path,))) as box:

            async def call_tool(name: str, arguments: Mapping[str, Any]) -> str:
                calls.append(name)
                if len(calls) > limits.calls:
                    return f"Error: no more than {limits.calls} calls; answer now."
                return (await box.call(name, arguments)).text

            offered = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in box.listed
            ]
            grade = await _answered(incident, loop(f"{incident.statement}\n{QUESTION}", offered, call_tool), limits)
    return Played(grade=grade, calls=tuple(calls))


async def _answered(
    incident: Incident, answering: Awaitable[Mapping[str, Any] | Answer], limits: Limits
) -> scoring.Grade:
    try:
        async with asyncio.timeout(limits.seconds):
            said = await answering
        given = said if isinstance(said, Answer) else msgspec.convert({**said, "incident": incident.id}, Answer)
    except TimeoutError:
        return scoring.Grade(incident=incident, problem=f"no answer within {limits.seconds:g} s")
    except (msgspec.ValidationError, TypeError) as error:
        return scoring.Grade(incident=incident, problem=f"its answer cannot be read: {error}")
    except Exception as error:  # noqa: BLE001 - the assistant's own failure must not end the grading of the others
        return scoring.Grade(incident=incident, problem=f"the assistant failed: {type(error).__name__}: {error}")
    return scoring.grade(incident, replace_incident(given, incident))


def replace_incident(answer: Answer, incident: Incident) -> Answer:
    """Return the answer as one to this incident; an assistant does not know its id."""
    return msgspec.structs.replace(answer, incident=incident.id)


def loop_of(name: str) -> Loop:
    """Import a loop by MODULE:FUNCTION; raise InvalidArguments if there is none."""
    module, _, function = name.partition(":")
    try:
        found: Loop = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidArguments(f"--loop {name} cannot be imported: {error}; give MODULE:FUNCTION") from error
    if not callable(found):
        raise InvalidArguments(f"--loop {name} is no function")
    return found
