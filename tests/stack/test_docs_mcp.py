"""The session on the page about tools for assistants is what they answer."""

import re

import pytest

from maestropy.mcp import definitions
from scripts import record_mcp

pytestmark = pytest.mark.long


def steady(text: str) -> str:
    """Return a text without times, durations, ports, random IDs, and numbers of lines."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)", "TIME", text)
    text = re.sub(r"\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+\]", "HEAD", text)
    text = re.sub(r"\.log:\d+", ".log:LINE", text)
    text = re.sub(r"(line|durationMs): [\d.]+", r"\1: N", text)
    # A record may be written twice while the agent tries again.
    text = re.sub(r"(?:  +- \S+\.log:LINE\n)+", "LINES\n", text)
    return re.sub(r"\d{6,}", "N", text)


def test_session_is_what_the_tools_answer() -> None:
    page = record_mcp.PAGE.read_text(encoding="utf-8")
    assert steady(record_mcp.session()).strip() == steady(record_mcp.shown(page)).strip(), "run scripts/record_mcp.py"


def test_page_names_every_tool() -> None:
    page = record_mcp.PAGE.read_text(encoding="utf-8")
    for tool in definitions.listed(allows_actions=True):
        assert f"| `{tool.name}`" in page, tool.name
