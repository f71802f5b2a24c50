"""Which of several verdicts is the answer about one work."""

import pytest

from maestropy.diagnose.analysis.analyze import Analysis
from maestropy.practice import engine
from maestropy.trace.exit_codes import Exit
from tests.unit.practice.samples import analysis, request, system, work

DONE = {"verdict": "complete", "failed_stage": None, "code": ""}
LOST = {"verdict": "incomplete", "failed_stage": 2, "code": "MT-209"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(analysis(request()), ("failed", 4, "MT-404", "cluster"), id="request"),
        pytest.param(
            analysis(request(), works=(work("MW-005", "APPLY FAILED"),)),
            ("failed", 4, "MT-404", "cluster"),
            id="request-says-more-than-work",
        ),
        pytest.param(
            analysis(request(**LOST), works=(work("MW-123", "PAUSED"),)),
            ("PAUSED", None, "MW-123", "broker"),
            id="a-pause-explains-the-request",
        ),
        pytest.param(
            analysis(request(), request(**DONE, version=2)), ("complete", None, "none", "none"), id="newest-request"
        ),
        pytest.param(
            analysis(request(**DONE), works=(work("MW-104", "OBJECT MISSING"),)),
            ("OBJECT MISSING", None, "MW-104", "cluster"),
            id="work-after-a-complete-request",
        ),
        pytest.param(
            analysis(request(**DONE), works=(work("MW-001", "OK", ending=Exit.HEALTHY),)),
            ("complete", None, "none", "none"),
            id="healthy",
        ),
        pytest.param(analysis(request(**LOST)), ("incomplete", 2, "MT-209", "server"), id="unexplained"),
        pytest.param(
            analysis(request(**LOST), findings=(system("MD-301", "broker"),)),
            ("incomplete", 2, "MT-209", "broker"),
            id="explained-by-a-system-that-is-down",
        ),
        pytest.param(
            analysis(request(work_name="other", resource_id="id-2")),
            ("not found", 1, "MT-101", "source"),
            id="nothing-about-it",
        ),
    ],
)
def test_answer(given: Analysis, expected: tuple[str, int | None, str, str]) -> None:
    said = engine.answer("01", given, asked="web")
    assert (said.verdict, said.stage, said.code, said.hop) == expected
    assert said.work == "web"


def test_without_a_name_the_unsettled_request_is_meant() -> None:
    healthy = request(**DONE, work_name="other", resource_id="id-2")
    assert engine.answer("01", analysis(request(), healthy), asked="").work == "web"
