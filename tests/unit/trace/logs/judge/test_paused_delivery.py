# ruff: noqa: E501 - log lines are as long as they are
"""Requests for a consumer whose delivery an operator paused, in logs alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from maestropy.trace.logs.model import RequestVerdict
from tests.unit.trace.logs.judge.test_situations import CREATE, SERVER, Line, alive, at, concluded, lines_of, traced

WAITS = replace(CREATE, until=1)
PENDING = RequestVerdict.PENDING, 2, "MT-213"
NOT_PUBLISHED = RequestVerdict.INCOMPLETE, 2, "MT-209"


def action(seconds: float, name: str, consumer: str = "mgmt-1") -> Line:
    """Return the line of our server about an operator action."""
    return at(seconds, SERVER, f'"operator action" logger="maestro-server" op-id="o" action="{name}" consumer="{consumer}" count=1 reason="by ada: upgrade"', "W")  # fmt: skip


@pytest.mark.parametrize(
    ("actions", "conclusion"),
    [
        pytest.param([action(-60, "pause")], PENDING, id="paused"),
        pytest.param([action(-60, "pause"), action(-30, "resync")], PENDING, id="paused-and-resynced"),
        pytest.param([action(-60, "pause"), action(-30, "resume")], NOT_PUBLISHED, id="resumed-before"),
        pytest.param([action(-60, "pause"), action(30, "resume")], NOT_PUBLISHED, id="resumed-since"),
        pytest.param([action(60, "pause")], NOT_PUBLISHED, id="paused-later"),
        pytest.param([action(-60, "pause", "mgmt-2")], NOT_PUBLISHED, id="another-consumer"),
        pytest.param([], NOT_PUBLISHED, id="no-record-of-a-pause"),
    ],
)
def test_request_waits_while_delivery_is_paused(
    tmp_path: Path, actions: list[Line], conclusion: tuple[RequestVerdict, int, str]
) -> None:
    trace = traced(tmp_path, [*lines_of(WAITS), *actions, *alive(SERVER)])["nginx", "create"]
    assert concluded(trace) == conclusion
    main = trace.main_finding
    assert main is not None
    if conclusion is PENDING:
        assert "by ada: upgrade" in main.detail
        assert main.evidence
    else:
        assert "pause" in main.entry.cause


def test_request_that_was_published_after_the_resumption_is_complete(tmp_path: Path) -> None:
    lines = [*lines_of(CREATE), action(-60, "pause"), action(0.02, "resume"), *alive(SERVER)]
    assert traced(tmp_path, lines)["nginx", "create"].verdict is RequestVerdict.COMPLETE
