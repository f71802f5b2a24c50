"""Every code is explained, used, and in the documentation."""

import re
from pathlib import Path

from maestropy.trace import hcp
from maestropy.trace.hcp.codes import CODES

ROOT = Path(__file__).parents[4]


def used() -> set[str]:
    folder = Path(hcp.__path__[0])
    sources = [each.read_text() for each in folder.rglob("*.py") if each.name != "codes.py"]
    return {code for source in sources for code in re.findall(r"HCP-\d{3}", source)}


def test_codes_are_those_in_use() -> None:
    assert used() == set(CODES)


def test_codes_are_documented() -> None:
    page = (ROOT / "docs" / "trace-hcp.md").read_text()
    assert [f"| {code} | {means} |" for code, means in CODES.items() if f"| {code} | {means} |" not in page] == []
