"""The recorded runs on the pages about tracing works and about operator actions print what the pages show."""

import re
import time
from pathlib import Path

import pytest

from scripts import record_runs

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]

_CHANGING = (
    # What is another one each time: moments, ports and the hash of an address with one, operation ids.
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "TIME"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"[0-9a-f]{64}"), "HASH"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), "RANDOM-ID"),
    # Who runs the command.
    (re.compile(r"[\w.-]+@[\w.-]+"), "OPERATOR"),
    (re.compile(r" +"), " "),
)


@pytest.mark.parametrize("name", ["trace-work.md", "actions.md"])
def test_every_run_prints_what_the_page_shows(name: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    found = list(record_runs.shown(page))
    assert len(found) > 10
    with record_runs.up(tmp_path):
        record_runs.write_files(page)
        for command, expected in found:
            if "--timeout" in command:
                # How far a thing gets in a second or two is a matter of the machine.
                record_runs.printed(command)
                continue
            assert eventually(command, plain(expected)) == plain(expected), f"{command}: run scripts/record_runs.py"


def eventually(command: str, expected: str) -> str:
    """Return what a command prints; a trace, which only reads, is given time to find what is expected."""
    end = time.monotonic() + (20 if " trace " in command else 0)
    while True:
        told = plain(record_runs.printed(command))
        if told == expected or time.monotonic() > end:
            return told


def plain(text: str) -> str:
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    # Sorted: conditions stand in the order in which they came true.
    lines = "\n".join(" ".join(sorted(line.split())) for line in text.strip().splitlines())
    # A server removes a published event soon; the tracer then tells by the agent that it was published.
    return lines.replace("agent begun delete has published the to ✓", "Delete TIME event published published the was ✓")
