"""The commands over saved documents on the page about HCPs print what the page shows."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from maestropy.cli.main import call
from tests.unit.trace.hcp.hcp_documents import DATA

PAGE = Path(__file__).parents[4] / "docs" / "trace-hcp.md"
_RUN = re.compile(r"^\$ maestro ([^\n]*--offline \./documents[^\n]*)\n(.*?)(?=^\$ |^```$)", re.MULTILINE | re.DOTALL)
_CONTRADICTING = ("03-", "09-", "13-", "14-", "15-", "3")
"""Documents of other situations, which the page does not read."""


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "documents").mkdir()
    for path in DATA.iterdir():
        if not path.name.startswith(_CONTRADICTING):
            shutil.copy(path, tmp_path / "documents")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("documents")
def test_runs_print_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    runs = _RUN.findall(PAGE.read_text(encoding="utf-8"))
    assert len(runs) >= 3
    for command, shown in runs:
        call(shlex.split(command))
        assert capsys.readouterr().out == shown, command
