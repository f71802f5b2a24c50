"""The table of agents with many works: docs/performance.md shows what bench/agent_scale.json says."""

from pathlib import Path
from typing import Any

import pytest

from bench import agent_scale


def document() -> dict[str, Any]:
    measures = {
        "start, agent CPU ms each": {"python": {"100": 2.0, "10000": 2.0}, "go": {"100": 1.0, "10000": 100.0}},
        "idle, API calls a second": {"python": {"100": 0.0}},
    }
    shape: dict[str, Any] = {"sizes": [100, 10_000], "kinds": ["python", "go"], "measures": measures}
    return {"when": "2026-01-02T03:04:05Z", "cores": 2, "load": 0.3, "api_server": "kube-apiserver"} | shape


def test_the_page_shows_the_published_table() -> None:
    shown = agent_scale.table(agent_scale.read())
    assert shown in agent_scale.PAGE.read_text(), "run `make bench-agent BENCH=--publish`"


def test_table_has_a_column_for_each_kind_and_size_and_the_exponents(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{agent_scale.BEGIN}\nold\n{agent_scale.END}\nafter\n")

    agent_scale.write_page(document(), page)

    text = page.read_text()
    assert "Measured 2026-01-02 on 2 cores with kube-apiserver:" in text
    assert "| works | 100, ours | 10,000, ours | 100, Go | 10,000, Go | exponent, ours | exponent, Go |" in text
    assert "| start, agent CPU ms each | 2.0 | 2.0 | 1.0 | 100 | 0.00 | 1.00 |" in text
    assert "| idle, API calls a second | 0.00 | - | - | - | - | - |" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text


def test_page_without_markers_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no markers")
    with pytest.raises(ValueError, match="put them where the table shall stand"):
        agent_scale.write_page(document(), page)
