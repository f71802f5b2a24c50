"""What an author's functions raise and return ends as a status that names the mistake, never as an ended process."""

import asyncio
import sys
from typing import Any

import pytest

from tests.unit.adapter.decide.test_pipeline import MINE, Script, desiring, ran, shown
from tests.unit.adapter.samples import reported, work


class _Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def _exits(*_: object) -> Any:
    sys.exit(0)


def _closes(*_: object) -> Any:
    raise GeneratorExit


def _cancels(*_: object) -> Any:
    raise asyncio.CancelledError


def _is_unreadable(*_: object) -> Any:
    raise _Unreadable


RAISING = pytest.mark.parametrize(
    ("function", "message"),
    [
        pytest.param(_exits, "SystemExit: 0; a function of an adapter returns a value", id="exit"),
        pytest.param(_closes, "GeneratorExit: ", id="generator-exit"),
        pytest.param(_cancels, "CancelledError: ", id="cancelled"),
        pytest.param(_is_unreadable, "_Unreadable: its message cannot be read: __str__ raises", id="no-text"),
    ],
)


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
