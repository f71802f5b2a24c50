"""Our CEL gives the results of cel-go.

`cel_go_results.json` holds expressions with the type and text of the value, or the error, that cel-go 0.26 with
Kubernetes' libraries gave for them.
"""

import json
import pathlib
from typing import Any

import pytest

from maestropy.agent.expressions import go_values
from maestropy.agent.expressions.budget import Budget
from maestropy.agent.expressions.cel import interpreter, values

TABLE: dict[str, Any] = json.loads((pathlib.Path(__file__).parent / "cel_go_results.json").read_text())


def result(expression: str) -> str:
    try:
        value = interpreter.evaluate(expression, {"object": TABLE["object"]}, budget=Budget())
    except values.CelError as error:
        return f"error: {error}"
    kind = "uint64" if isinstance(value, values.CelUint) else go_values.type_name(value)
    return f"{kind} {go_values.rendering(value)}"


@pytest.mark.parametrize(("expression", "expected"), TABLE["results"])
def test_result_matches_cel_go(expression: str, expected: str) -> None:
    assert result(expression) == expected
