"""The table of connected agents: docs/performance.md shows what bench/storm.json says, and the frames are HTTP/2."""

from pathlib import Path
from typing import Any

import pytest

from bench import light_agents, storm


def document() -> dict[str, Any]:
    measures = {"away p99 s": {"1000": {"python": 1.25, "go": 2.5}, "10000": {"python": 12.0}}}
    shape: dict[str, Any] = {"sizes": [1000, 10_000], "kinds": ["python", "go"], "measures": measures}
    return {"when": "2026-01-02T03:04:05Z", "cores": 2, "load": 0.3} | shape


def test_the_page_shows_the_published_table() -> None:
    assert storm.table(storm.read()) in storm.PAGE.read_text(), "run `make bench-storm BENCH=--publish`"


def test_table_has_a_column_for_each_size_and_kind(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{storm.BEGIN}\nold\n{storm.END}\nafter\n")

    storm.write_page(document(), page)

    text = page.read_text()
    assert "| agents | 1,000, ours | 1,000, Go | 10,000, ours | 10,000, Go |" in text
    assert "| away p99 s | 1.2 | 2.5 | 12.0 | - |" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text


def test_page_without_markers_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no markers")
    with pytest.raises(ValueError, match="put them where the table shall stand"):
        storm.write_page(document(), page)


def test_call_is_a_header_frame_and_a_data_frame() -> None:
    sent = light_agents.call(3, "/S/M", "localhost:1", b"message")
    size = int.from_bytes(sent[:3])
    assert sent[3:9] == bytes((light_agents.HEADERS, light_agents.END_HEADERS, 0, 0, 0, 3))
    data = sent[9 + size :]
    assert data[:9] == bytes((0, 0, 12, light_agents.DATA, light_agents.END_STREAM, 0, 0, 0, 3))
    assert data[9:] == b"\0\0\0\0\x07message"
