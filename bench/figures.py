"""Figures of several runs: the middle of each, which of two is better and by how much. Knows names, not measures."""

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = ("python", "go")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of both kinds; None where a kind was not measured."""

    measure: str
    name: str
    python: float | None
    go: float | None

    @property
    def larger_is_better(self) -> bool:
        return self.name.endswith("/s")

    @property
    def ratio(self) -> float | None:
        """Ours divided by Go's."""
        return self.python / self.go if self.python is not None and self.go else None

    @property
    def advantage(self) -> float | None:
        """How many times better ours is; below one it is worse."""
        if not self.python or not self.go:
            return None
        return self.python / self.go if self.larger_is_better else self.go / self.python

    @property
    def verdict(self) -> str:
        """The advantage in words."""
        if self.advantage is None:
            return ""
        better, worse = ("less", "more") if _is_consumption(self.name) else ("faster", "slower")
        factor = max(self.advantage, 1 / self.advantage)
        if factor < 1.05:
            return "as Go"
        shown = f"{factor:.1f}" if factor < 100 else f"{factor:,.0f}"
        return f"{shown} x {better if self.advantage > 1 else worse}"


def _is_consumption(name: str) -> bool:
    return any(word in name for word in ("CPU", "memory", " MB", "transactions", "rows read", "calls"))


Runs = Mapping[str, Mapping[str, list[float]]]
"""By the name of a figure and by kind: what each run gave."""


def rows(measure: str, runs: Runs) -> list[Row]:
    """Return the middle of all runs, figure by figure."""
    return [
        Row(measure=measure, name=name, python=_middle(by_kind.get("python")), go=_middle(by_kind.get("go")))
        for name, by_kind in runs.items()
    ]


def _middle(values: list[float] | None) -> float | None:
    return statistics.median(values) if values else None


def all_rows(document: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a whole result."""
    return [row for measure, runs in document["measures"].items() for row in rows(measure, runs)]


def rounds(document: Mapping[str, Any]) -> int:
    """Return how often the figure that was measured most often was measured."""
    return max(
        (len(values) for runs in document["measures"].values() for kinds in runs.values() for values in kinds.values()),
        default=0,
    )


def shown(value: float | None) -> str:
    """Write a figure with as many digits as it deserves."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def read(path: Path) -> dict[str, Any]:
    """Read a result."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Put the measures of `new` in place of those of `old`; what was not measured again stays."""
    return {**new, "measures": {**old["measures"], **new["measures"]}}
