"""Answers are compared field by field; alternatives that say the same are right."""

from typing import Any

import msgspec
import pytest

from maestropy.practice import report, scoring
from tests.unit.practice.samples import RIGHT, incident


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        pytest.param({}, [], id="right"),
        pytest.param({"work": "ID-1", "code": "mw-005", "verdict": "Incomplete"}, [], id="accepted-alternatives"),
        pytest.param({"work": "other"}, ["work"], id="other-work"),
        pytest.param({"stage": None}, ["stage"], id="no-stage"),
        pytest.param({"verdict": "complete", "code": "none", "hop": ""}, ["verdict", "code", "hop"], id="not-blamed"),
    ],
)
def test_grade(said: dict[str, Any], wrong: list[str]) -> None:
    grade = scoring.grade(incident(), msgspec.structs.replace(RIGHT, **said))
    assert [mark.name for mark in grade.marks if not mark.is_right] == wrong
    assert grade.is_right == (not wrong)
    assert grade.right == 5 - len(wrong)


@pytest.mark.parametrize(("said", "is_right"), [({}, True), ({"code": "MT-404"}, False), ({"stage": 4}, False)])
def test_a_healthy_incident_blames_nothing(said: dict[str, Any], is_right: bool) -> None:
    healthy = incident(verdicts=("complete",), stage=None, codes=(), hops=())
    answer = msgspec.structs.replace(RIGHT, **{"verdict": "complete", "stage": None, "code": "", "hop": ""} | said)
    assert scoring.grade(healthy, answer).is_right is is_right


def test_a_stage_that_cannot_be_seen_is_not_graded() -> None:
    grade = scoring.grade(incident(stage=None), msgspec.structs.replace(RIGHT, stage=7))
    assert grade.is_right
    assert "stage" not in {mark.name for mark in grade.marks}


def test_no_answer_is_wrong_and_said() -> None:
    grades = scoring.grade_all([incident()], [])
    assert not grades[0].is_right
    assert scoring.model(grades, by="me")["right"] == 0
    assert "there is no answer to it" in report.graded(grades, by="me")
    assert report.graded(grades, by="me").endswith("me: 0 of 1 incidents right\n")
