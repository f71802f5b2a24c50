"""What an author's functions raise and return ends as a status that names the mistake, never as an ended process."""

import asyncio
import json
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from maestropy.adapter.desired_state import DesiredState, StatusReport
from maestropy.adapter.results import Results
from tests.unit.adapter.decide.test_pipeline import MINE, Script, desiring, ran, shown
from tests.unit.adapter.samples import MAP, reported, work


class _Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def _exits(*_: object) -> Any:
    sys.exit(0)


def _closes(*_: object) -> Any:
    raise GeneratorExit


def _cancels(*_: object) -> Any:
    raise asyncio.CancelledError


def _stops(*_: object) -> Any:
    raise StopIteration("no more")


def _is_unreadable(*_: object) -> Any:
    raise _Unreadable


RAISING = pytest.mark.parametrize(
    ("function", "message"),
    [
        pytest.param(_exits, "SystemExit: 0; a function of an adapter returns a value", id="exit"),
        pytest.param(_closes, "GeneratorExit: ", id="generator-exit"),
        pytest.param(_cancels, "CancelledError: ", id="cancelled"),
        pytest.param(_stops, "StopIteration: no more (", id="stop-iteration"),
        pytest.param(_is_unreadable, "_Unreadable: its message cannot be read: __str__ raises", id="no-text"),
    ],
)


def _is_long(*_: object) -> Any:
    raise ValueError("x" * 1_000_000)


def test_the_text_of_an_exception_is_bounded_and_says_how_much_was_cut() -> None:
    script = Script()
    outcome = ran(script, _is_long)
    assert outcome.failure
    assert outcome.failure.message.startswith(f"ValueError: {'x' * 700}… (999300 more characters) ({__file__}, line ")
    assert script.status
    # What the API gets still says so, with the place.
    assert f"(999300 more characters) ({__file__}, line " in script.status.health.message


@RAISING
def test_handler_that_would_end_the_process_is_reported(function: Any, message: str) -> None:
    script = Script()
    outcome = ran(script, function)
    assert shown(script.status)["Health"] == "False ExecutionFailed"
    assert outcome.failure
    assert outcome.failure.message.startswith(message)
    assert f"({__file__}, line " in outcome.failure.message
    assert f", in {function.__name__})" in outcome.failure.message


@RAISING
@pytest.mark.parametrize("wait_seconds", [0, 60], ids=["at-once", "waiting"])
def test_read_that_would_end_the_process_is_reported(function: Any, message: str, wait_seconds: float) -> None:
    script = Script(query=[[reported(MINE, Applied="True")]])
    outcome = ran(script, desiring(work(), read=function), wait_seconds=wait_seconds)
    assert shown(script.status)["Applied"] == "True AppliedReason"
    assert outcome.failure
    assert outcome.failure.message.startswith(message)
    assert f", in {function.__name__})" in outcome.failure.message


def test_two_works_of_one_name_are_refused_before_any_is_applied() -> None:
    script = Script(query=[[]])
    other: dict[str, Any] = {**MAP, "metadata": {"name": "other", "namespace": "default"}}
    outcome = ran(script, desiring(work(), work().add(other)))
    assert script.names == ["Fetch", "PutStatus"]
    assert outcome.failure
    assert "returned several works with one name: w-abc; give each its own name" in outcome.failure.message


def _circular() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["again"] = value
    return value


@pytest.mark.parametrize(
    ("result", "message"),
    [
        pytest.param(None, "returned None; return a DesiredState, a Work, a list of Works", id="none"),
        pytest.param([None], "returned a list with None; return a DesiredState", id="list-of-none"),
        pytest.param("text", "returned a value of type str; return a DesiredState", id="text"),
        pytest.param(DesiredState(None), "returned None; return a DesiredState", id="state-of-none"),  # type: ignore[arg-type]  # the mistake under test
        pytest.param(StatusReport(available="yes"), "available of the StatusReport of ", id="available"),  # type: ignore[arg-type]  # the mistake under test
        pytest.param(StatusReport(data={"o": object()}), "data.o of the StatusReport of ", id="object"),
        pytest.param(StatusReport(data={"a": [{"b": b"x"}]}), "data.a.0.b of the StatusReport of ", id="bytes"),
        pytest.param(StatusReport(data={5: "x"}), "has the key 5, which is not a text", id="key"),  # type: ignore[dict-item]  # the mistake under test
        pytest.param(StatusReport(data={"x": float("nan")}), "is nan, which JSON does not have", id="nan"),
        pytest.param(StatusReport(data={"x": 2**64}), "is a number of more than 64 bits", id="large"),
        pytest.param(StatusReport(data={"x": "\ud800"}), "data.x of the StatusReport of ", id="surrogate"),
        pytest.param(StatusReport(data=_circular()), "or contains itself", id="circular"),
    ],
)
def test_wrong_result_names_the_function_and_the_field(result: Any, message: str, tmp_path: Path) -> None:
    def wrong(*_: object) -> Any:
        return result

    script = Script(query=[[]])
    outcome = ran(script, wrong)
    assert outcome.failure
    assert message in outcome.failure.message
    assert f"wrong ({__file__}, line " in outcome.failure.message
    assert script.status.health.status == "False"
    Results(tmp_path).write(script.status)
    assert json.loads((tmp_path / "adapter-result.json").read_text())["status"] == "failure"


def test_data_of_a_report_is_plain_json() -> None:
    data = {"nested": MappingProxyType({"list": ("a", 1, 1.5, None, True)})}
    script = Script()
    ran(script, lambda *_: StatusReport(available=True, data=data))
    assert script.status.data == {"nested": {"list": ["a", 1, 1.5, None, True]}}
