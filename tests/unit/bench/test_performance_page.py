"""What docs/performance.md shows is what bench/peers.json says."""

from pathlib import Path
from typing import Any

import pytest

from bench import figures, show

ROOT = Path(__file__).resolve().parents[3]


def document(**measures: Any) -> dict[str, Any]:
    conditions = {"when": "2026-01-02T03:04:05Z", "cores": 2, "python": "3.11", "postgres": "18", "go_maestro": "v1"}
    return {**conditions, "scale": 1.0, "load": 0.2, "measures": measures}


def test_the_page_shows_the_published_figures() -> None:
    published = figures.read(ROOT / "bench" / "peers.json")
    assert show.section(published) in show.PAGE.read_text(), "run `python -m bench --show bench/peers.json`"


@pytest.mark.parametrize(
    ("name", "python", "go", "verdict"),
    [
        pytest.param("create, creates/s", 300.0, 100.0, "3.0 x faster", id="a-larger-rate-is-better"),
        pytest.param("create, creates/s", 50.0, 100.0, "2.0 x slower", id="a-smaller-rate-is-worse"),
        pytest.param("list, ms", 10.0, 1000.0, "100 x faster", id="a-shorter-time-is-better"),
        pytest.param("list, server CPU ms", 30.0, 10.0, "3.0 x more", id="cpu-is-used-not-fast"),
        pytest.param("memory idle, MB", 50.0, 100.0, "2.0 x less", id="less-memory-is-better"),
        pytest.param("list, ms", 101.0, 100.0, "as Go", id="too-close-to-tell"),
        pytest.param("list, ms", 101.0, None, "", id="not-measured"),
    ],
)
def test_which_is_better_follows_from_the_unit(name: str, python: float, go: float | None, verdict: str) -> None:
    assert figures.Row(measure="m", name=name, python=python, go=go).verdict == verdict


def test_the_middle_run_counts() -> None:
    (row,) = figures.rows("m", {"list, ms": {"python": [1.0, 100.0, 2.0], "go": [4.0, 3.0, 1000.0]}})
    assert (row.python, row.go) == (2.0, 4.0)


@pytest.mark.parametrize(
    ("load", "values", "said"),
    [
        pytest.param(0.2, [1.0], "one run each.", id="once-on-a-quiet-machine"),
        pytest.param(0.2, [1.0, 2.0, 3.0], "the middle of up to 3 runs, ours and Go's in turn.", id="several-times"),
        pytest.param(17.2, [1.0], "Other work went on meanwhile (load 17).", id="on-a-busy-machine"),
    ],
)
def test_the_page_says_under_which_conditions(load: float, values: list[float], said: str) -> None:
    measured = document(creates={"a, ms": {"python": values, "go": values}}) | {"load": load}
    assert said in show.section(measured)


def test_only_what_was_measured_again_is_replaced() -> None:
    old = document(creates={"a, ms": {"python": [1.0]}}, lists={"b, ms": {"python": [2.0]}})
    new = document(creates={"a, ms": {"python": [3.0]}})
    assert figures.merge(old, new)["measures"] == {**old["measures"], **new["measures"]}


def test_the_rest_of_the_page_is_not_touched(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{show.BEGIN}\nold\n{show.END}\nafter\n")

    show.write_page(document(creates={"a, ms": {"python": [1.0], "go": [2.0]}}), page)

    text = page.read_text()
    assert text.startswith(f"before\n{show.BEGIN}\n")
    assert text.endswith(f"{show.END}\nafter\n")
    assert "| a, ms | 1.0 | 2.0 | 0.50 | 2.0 x faster |" in text
    assert "old" not in text


def test_a_page_without_its_place_is_an_error_that_says_so(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(ValueError, match="put them where the figures shall stand"):
        show.write_page(document(), page)
