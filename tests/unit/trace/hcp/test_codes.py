"""Every HCP code is documented; that each is used and explained is tested for all codes together."""

from pathlib import Path

from maestropy.trace.findings.hcp_codes import HCP_CODES

ROOT = Path(__file__).parents[4]


def test_codes_are_documented() -> None:
    page = (ROOT / "docs" / "trace-hcp.md").read_text()
    rows = [f"| {entry.code} | {entry.title} |" for entry in HCP_CODES]
    assert [row for row in rows if row not in page] == []
