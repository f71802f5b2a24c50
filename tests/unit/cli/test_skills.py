"""`maestro skills`: what is installed, that changed files stay, and that nothing is half installed."""

import json
import re
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.cli.assistants import skills

ROOT = Path(__file__).parents[3] / "src" / "maestropy" / "skills"
NAMES = ["analyze-logs", "check-agent-health", "check-mqtt-broker", "check-server-health", "trace-manifestwork",
         "trace-resource-request"]  # fmt: skip


def installed(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_skill_has_front_matter_and_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    assert [skill.name for skill in skills.skills()] == NAMES
    for skill in skills.skills():
        text = skill.files["SKILL.md"].decode()
        assert len(text.splitlines()) < 150, skill.name
        assert skill.description.startswith("This skill should be used when "), skill.name
        for page in re.findall(r"`(references/[^`]+)`", text):
            assert page in skill.files, (skill.name, page)
    assert main.call(["skills", "list", "-o", "json"]) == 0
    assert [item["name"] for item in json.loads(capsys.readouterr().out)] == NAMES
    assert main.call(["skills", "list"]) == 0
    assert capsys.readouterr().out.startswith("analyze-logs\n    This skill should be used when logs ")


def test_installs_all_and_again_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new" / "skills"
    assert main.call(["skills", "install", str(target)]) == 0
    assert installed(target) == installed(ROOT)
    assert capsys.readouterr().out.count("  installed\n") == len(NAMES)
    assert main.call(["skills", "install", str(target), "analyze-logs"]) == 0
    assert capsys.readouterr().out == f"{target / 'analyze-logs'}  unchanged\n"


def test_changed_file_stops_everything_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "trace-manifestwork" / "SKILL.md"
    own.parent.mkdir()
    own.write_text("mine")
    assert main.call(["skills", "install", str(tmp_path)]) == 1
    assert installed(tmp_path) == {"trace-manifestwork/SKILL.md": b"mine"}
    trouble = capsys.readouterr().err
    assert f"{own} differs from the skill of this version" in trouble
    assert "--force" in trouble
    assert main.call(["skills", "install", str(tmp_path), "--force"]) == 0
    assert installed(tmp_path) == installed(ROOT)


def test_links_and_folders_are_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    victim = tmp_path / "victim"
    victim.write_text("keep")
    target = tmp_path / "skills"
    (target / "analyze-logs").mkdir(parents=True)
    (target / "analyze-logs" / "SKILL.md").symlink_to(victim)
    (target / "check-agent-health").write_text("a file")
    assert main.call(["skills", "install", str(target), "--force"]) == 1
    assert victim.read_text() == "keep"
    assert not (target / "trace-manifestwork").exists()
    assert capsys.readouterr().err.count("is a link or a folder, or below a file") == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["FILE"], "is a file; name the folder"),
        (["FOLDER", "sing"], "there is no skill sing; choose from analyze-logs, "),
        ([], "requires"),
    ],
    ids=["file", "unknown-skill", "no-folder"],
)
def test_bad_arguments_are_usage_errors(
    tmp_path: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    words = {"FILE": str(tmp_path / "file"), "FOLDER": str(tmp_path / "folder")}
    assert main.call(["skills", "install", *(words.get(word, word) for word in arguments)]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "folder").exists()
