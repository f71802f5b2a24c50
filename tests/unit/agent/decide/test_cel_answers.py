"""Our CEL answers what cel-go answers.

`cel_answers.json` holds expressions with the type and text of the value, or the error, that cel-go 0.26 with
Kubernetes' libraries gave for them.
"""

import json
import pathlib
from typing import Any

import pytest

from maestropy.agent.decide import gotext
from maestropy.agent.decide.cel import interpreter, values

TABLE: dict[str, Any] = json.loads((pathlib.Path(__file__).parent / "cel_answers.json").read_text())


def answer(expression: str) -> str:
    program = interpreter.compiled(expression, variables=frozenset(["object"]))
    try:
        found = program.evaluate({"object": TABLE["object"]}, budget=interpreter.Budget(1_000_000))
    except values.CelError as error:
        return f"error: {error}"
    kind = "uint64" if isinstance(found, values.Uint) else gotext.type_name(found)
    return f"{kind} {gotext.rendering(found)}"


@pytest.mark.parametrize(("expression", "expected"), TABLE["answers"])
def test_answer(expression: str, expected: str) -> None:
    assert answer(expression) == expected
