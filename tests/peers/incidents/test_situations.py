"""The incident lab itself: what it declares, how it compares, and what it writes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.peers.incidents import collecting, scenes, score_page, situations, truth, verdicts
from tests.peers.incidents.truth import FAILED, Situation, Truth


def test_declarations() -> None:
    names = [each.name for each in situations.SITUATIONS]
    assert len(names) == len(set(names)) >= 40
    assert {each.scene for each in situations.SITUATIONS} == set(situations.SCENES) == set(scenes.PLAYS)
    made = " ".join(each.made for each in situations.SITUATIONS)
    assert [section for section in range(1, 10) if f"runbook's error {section}" not in made] == []


def request(**changes: Any) -> dict[str, Any]:
    finding = {"code": "MT-404", "stage": 4, "detail": "spec.selector: Required value"}
    return {"verdict": "failed", "failedStage": 4, "findings": [finding]} | changes


TRUTH = Truth(work="w", verdicts=FAILED, stage=4, codes=("MT-404",), says=("selector",), never=("MT-403",))


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (request(), []),
        (request(verdict="complete"), ["is failed"]),
        (request(failedStage=5), ["stopped at stage 4"]),
        (request(findings=[]), ["the cause is MT-404", "must say 'selector'"]),
        (
            request(findings=[*request()["findings"], {"code": "MT-403", "stage": 4}]),
            ["must not say MT-403"],
        ),
    ],
)
def test_comparison(said: dict[str, Any], wrong: list[str]) -> None:
    assert truth.differences(TRUTH, said) == wrong


def test_the_main_finding_is_that_of_the_stage_where_it_stopped() -> None:
    findings = [{"code": "MT-004", "stage": None}, {"code": "MT-501", "stage": 5}]
    assert truth.main_code(request(failedStage=5, findings=findings)) == "MT-501"
    assert truth.main_code(request(failedStage=None, findings=findings)) == "MT-004"


def test_page_names_the_wrong_ones() -> None:
    situation = Situation(name="lost", made="somehow", scene="grpc4", moment="calm", truths=(TRUTH,))
    wrong = verdicts.Judgement(situation=situation, wrong=("w create: is failed; said complete",))
    scores = {"go": [verdicts.Judgement(situation=situation)], "python": [wrong]}
    once = score_page.page(f"before\n{score_page.BEGIN}\nold\n{score_page.END}\nafter\n", scores)
    assert "| all | 1 of 1 | 0 of 1 | |" in once
    assert "- this project: *lost* (somehow). w create: is failed; said complete" in once
    assert once.startswith("before\n")
    assert once.endswith(f"{score_page.END}\nafter\n")
    assert score_page.page(once, scores) == once


def test_page_has_its_markers() -> None:
    text = score_page.PAGE.read_text()
    assert [text.count(marker) for marker in (score_page.BEGIN, score_page.END)] == [1, 1]


LINES = [
    'I0115 09:00:01.123456       1 a.go:1] "receive the event from client"',
    "I0115 09:00:02.000000 1 b.go:2] noise",
]


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    folder = tmp_path / "whole"
    folder.mkdir()
    for name in ("maestro-0.log", "maestro-agent-0.log"):
        (folder / name).write_text("\n".join(LINES) + "\n")
    return folder


def test_collecting(whole: Path) -> None:
    ways = {
        "less": collecting.without("maestro-0.log"),
        "kusto": collecting.kusto,
        "prefixed": collecting.prefixed,
        "docker": collecting.docker,
        "utf16": collecting.utf16,
    }
    made = {name: collecting.variant(whole, name, change) for name, change in ways.items()}
    assert [path.name for path in made["less"].iterdir()] == ["maestro-agent-0.log"]
    assert (made["kusto"] / "servers.csv").read_text().count("\n") == 2
    assert (made["prefixed"] / "all.log").read_text().startswith(f"[pod/maestro-0/service] {LINES[0]}\n")
    docker = (made["docker"] / "maestro-0-json.log").read_text().splitlines()
    assert [json.loads(line)["log"] for line in docker] == [f"{line}\n" for line in LINES]
    assert (made["utf16"] / "maestro-0.log").read_bytes().decode("utf-16-le").splitlines() == LINES
    collecting.cut_off(whole)
    assert (whole / "maestro-0.log").read_text() == LINES[0] + "\n" + LINES[1][: len(LINES[1]) // 2]
