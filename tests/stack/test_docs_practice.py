"""The runs on the page about practice incidents print what the page shows."""

from pathlib import Path

import pytest

from scripts import record_runs

PAGE = Path(__file__).parents[2] / "docs" / "practice.md"


def test_every_run_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("DATA", str(tmp_path / "data"))
    record_runs.write_files(page)
    runs = list(record_runs.shown(page))
    assert {command.split()[2] for command, _ in runs if " practice " in command} == {"list", "play", "grade"}
    for command, expected in runs:
        assert record_runs.printed(command) == expected
