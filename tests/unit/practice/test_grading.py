"""The harness drives any tool-calling loop over the archive of an incident, and survives what goes wrong in it."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from maestropy.cli import main
from maestropy.practice import catalogue, grading, scoring

CHOSEN = ("03", "12", "20")


async def scripted(
    statement: str, tools: Sequence[Mapping[str, Any]], call_tool: grading.CallTool
) -> Mapping[str, Any]:
    """A model whose turns are written down: it looks for works that the statement names, and quotes what it gets."""
    names = [tool["name"] for tool in tools]
    assert "trace_request" in names
    assert len(names) <= 12
    for word in re.findall(r"[a-z]+-[a-z]+", statement):
        told = json.loads(await call_tool("trace_request", {"identifier": word}))
        text = json.dumps(told)
        if (found := re.search(r"MT-4\d\d", text)) is not None:
            await call_tool("explain", {"code": found[0]})
            return {"work": word, "verdict": "failed", "stage": 4, "code": found[0], "hop": "cluster", "why": text[:80]}
    return {"verdict": "not found"}


async def test_a_scripted_model_is_driven_and_graded() -> None:
    incidents = [catalogue.incident(name) for name in CHOSEN]
    played = await grading.by_loop(incidents, scripted)
    assert [(each.grade.incident.id, each.grade.is_right) for each in played] == [(name, True) for name in CHOSEN]
    assert all(each.calls[0] == "trace_request" and each.calls[-1] == "explain" for each in played)


async def test_the_statement_does_not_give_the_truth_away() -> None:
    seen: list[str] = []

    async def reader(statement: str, tools: Sequence[Mapping[str, Any]], call_tool: grading.CallTool) -> Any:
        seen.append(statement)
        return {}

    incident = catalogue.incident("12")
    await grading.play(incident, reader, limits=grading.Limits())
    assert incident.statement in seen[0]
    assert incident.title not in seen[0]
    assert not any(hint in seen[0] for hint in incident.hints)


async def broken(*_: object) -> Any:
    raise RuntimeError("the model is overloaded")


async def shapeless(*_: object) -> Any:
    return {"stage": "four"}


async def endless(statement: str, tools: object, call_tool: grading.CallTool) -> Any:
    text = ""
    while "answer now" not in text:
        text = await call_tool("explain", {"code": "MT-404"})
    return {"verdict": text}


@pytest.mark.parametrize(
    ("loop", "problem"),
    [
        pytest.param(broken, "the assistant failed: RuntimeError: the model is overloaded", id="raises"),
        pytest.param(shapeless, "its answer cannot be read", id="no-answer"),
    ],
)
async def test_what_goes_wrong_in_a_loop_is_its_problem(loop: grading.Loop, problem: str) -> None:
    played = await grading.play(catalogue.incident("12"), loop, limits=grading.Limits())
    assert problem in played.grade.problem
    assert not played.grade.is_right


async def test_calls_are_limited() -> None:
    played = await grading.play(catalogue.incident("12"), endless, limits=grading.Limits(calls=3))
    assert len(played.calls) == 4
    assert not played.grade.is_right


def test_a_loop_is_named_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["practice", "grade", "--loop", f"{__name__}:scripted", "--incident", "12", "-o", "json"]
    code = main.call(words)
    report = json.loads(capsys.readouterr().out)
    assert (code, report["right"], report["by"]) == (0, 1, f"{__name__}:scripted")


def test_grades_are_of_all_incidents() -> None:
    grades = grading.grades(catalogue.incidents(), [])
    assert len(grades) == 30
    assert scoring.model(grades, by="nobody")["right"] == 0
