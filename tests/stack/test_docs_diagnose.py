"""The runs on the page about archives print what the page shows."""

import re
from itertools import groupby
from pathlib import Path

import pytest

from scripts import record_runs
from tests.stack.test_docs_trace_work import eventually, plain

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "diagnose.md"


def steady(text: str) -> str:
    """Return a text without sizes, counts and lines of logs; the agent tries again and again, and logs each failure."""
    text = re.sub(r"\d+ KiB", "SIZE", re.sub(r"\d+ values were redacted", "N values were redacted", text))
    text = re.sub(r"\.(log|jsonl):\d+", r".\1:LINE", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", "TIME", text)
    return "\n".join(line for line, _ in groupby(plain(text).splitlines()))


def test_every_run_prints_what_the_page_shows(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    runs = list(record_runs.shown(page))
    assert [command.split()[2] for command, _ in runs if " diagnose " in command] == [
        "collect",
        "analyze",
        "collect",
        "diff",
    ]
    with record_runs.up(tmp_path):
        record_runs.write_files(page)
        for command, expected in runs:
            # Only traces wait for the agent; the archives then hold what these have seen.
            printed = eventually(command, plain(expected)) if " trace " in command else record_runs.printed(command)
            assert steady(printed) == steady(expected), f"{command}: run scripts/record_runs.py docs/diagnose.md"
