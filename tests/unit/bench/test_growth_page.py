"""The growth table: exponents, and docs/performance.md shows what bench/growth.json says."""

import math
from pathlib import Path
from typing import Any

import pytest

from bench import growth


def document(**times: list[float]) -> dict[str, Any]:
    sizes = [10_000, 100_000, 1_000_000]
    operations = {
        name: {str(size): {"ms": ms, "cpu_ms": 1.0} for size, ms in zip(sizes, row, strict=True)}
        for name, row in times.items()
    }
    return {"when": "2026-01-02T03:04:05Z", "cores": 2, "load": 0.3, "sizes": sizes, "operations": operations}


def test_the_page_shows_the_published_table() -> None:
    assert growth.table(growth.read()) in growth.PAGE.read_text(), "run `make bench-growth BENCH=--publish`"


@pytest.mark.parametrize(
    ("times", "exponent"),
    [
        pytest.param([5.0, 5.0, 5.0], 0.0, id="flat"),
        pytest.param([1.0, 10.0, 100.0], 1.0, id="linear"),
        pytest.param([1.0, 100.0, 10_000.0], 2.0, id="quadratic"),
    ],
)
def test_exponent_is_the_slope_of_the_logarithms(times: list[float], exponent: float) -> None:
    assert growth.exponent(document(list=times)["operations"]["list"]) == pytest.approx(exponent)


def test_one_size_has_no_exponent() -> None:
    assert math.isnan(growth.exponent({"10000": {"ms": 3.0, "cpu_ms": 1.0}}))


def test_table_has_a_row_for_each_operation(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{growth.BEGIN}\nold\n{growth.END}\nafter\n")

    growth.write_page(document(search=[1.0, 2.0, 1234.0]), page)

    text = page.read_text()
    assert "| search | 1.0 | 2.0 | 1,234 | 1.55 | 1.0 | 1.0 | 1.0 |" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "other work" not in text
