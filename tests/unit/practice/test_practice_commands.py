"""`maestro practice` on the packaged incidents: what it shows, what it takes, and how it ends."""

import json
import tarfile
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.practice import catalogue
from maestropy.trace.logs.read.inputs import archives

FOLDER = Path(catalogue.__file__).parent / "incidents"
RIGHT = "work=billing-keys verdict=failed stage=4 code=MT-403 hop=cluster"


def test_thirty_incidents_cover_what_they_promise() -> None:
    incidents = catalogue.incidents()
    assert [each.id for each in incidents] == [f"{number:02}" for number in range(1, 31)]
    assert {each.runbook for each in incidents} >= set(range(1, 10))
    assert {each.stack for each in incidents} == {"go", "python"}
    assert {each.broker for each in incidents} == {"grpc", "mqtt"}
    assert {each.servers for each in incidents} == {1, 2}
    assert {each.verbosity for each in incidents} >= {2, 4, 10}
    codes = {code for each in incidents for code in each.truth.codes}
    assert codes >= {"MW-122", "MW-123", "MT-101", "MT-204", "MT-301", "MT-417", "MT-707", "MT-901"}
    assert any(each.truth.is_healthy for each in incidents)
    for each in incidents:
        assert each.asked in each.statement
        assert not set(each.truth.codes) & set(each.statement.split())
        assert len(each.hints) == 2


def test_archives_are_small_and_name_no_computer() -> None:
    paths = sorted(FOLDER.glob("*.tar.zst"))
    assert len(paths) == 30
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2_000_000
    for path in paths:
        with archives.zstd().ZstdFile(path) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                content = tar.extractfile(member)
                text = content.read() if content else b""
                assert b"/root" not in text, (path.name, member.name)
                assert b"/tmp/" not in text, (path.name, member.name)
                assert b"BEGIN PRIVATE KEY" not in text


@pytest.mark.long
def test_our_engine_is_right_about_all(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.call(["practice", "grade", "--engine", "-o", "json"])
    report = json.loads(capsys.readouterr().out)
    wrong = [each for each in report["grades"] if not each["right"]]
    assert not wrong
    assert (code, report["right"], report["incidents"]) == (0, 30, 30)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param(["play", "12", "--answer", RIGHT], 0, "12: right", id="right-answer"),
        pytest.param(["play", "1", "--answer", "work=x"], 1, "01: wrong", id="wrong-answer"),
        pytest.param(["play", "12", "--hints", "1"], 0, "Hint 1 of 2", id="hint"),
        pytest.param(["play", "12", "--solution"], 0, "MT-403", id="solution"),
        pytest.param(["list"], 0, "Play one", id="list"),
    ],
)
def test_play(words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["practice", *words]) == code
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param(["play", "99"], 4, "there is no practice incident 99", id="unknown"),
        pytest.param(["play", "12", "--answer", "stage=12"], 2, "give 1 to 9, or none", id="stage"),
        pytest.param(["play", "12", "--answer", "colour=red"], 2, "colour=red is none of work=", id="field"),
        pytest.param(["play", "12", "--out", "."], 2, "exists already", id="out-exists"),
        pytest.param(["grade"], 2, "give one of", id="nothing-to-grade"),
        pytest.param(["grade", "--engine", "--loop", "a:b"], 2, "give one of", id="two-to-grade"),
        pytest.param(["grade", "absent.yaml"], 3, "absent.yaml is no file of answers", id="no-file"),
        pytest.param(["grade", "--loop", "nowhere:loop"], 2, "cannot be imported", id="no-loop"),
    ],
)
def test_bad_input(words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["practice", *words]) == code
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param("answers: 3", "answers", id="no-list"),
        pytest.param("- {incident: '12', stage: four}", "stage", id="stage-is-no-number"),
        pytest.param("- {incident: '77'}", "there is no incident 77", id="unknown-incident"),
        pytest.param("[", "is no file of answers", id="no-yaml"),
    ],
)
def test_bad_file(content: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text(content)
    assert main.call(["practice", "grade", str(path)]) == 3
    assert says in capsys.readouterr().err


def test_list_does_not_give_away(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["practice", "list", "-o", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == 30
    assert not {"truth", "hints", "title"} & set(listed[0])
