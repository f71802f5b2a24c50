"""How much a search has read: the sentences, the counts, and the example in the docs."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from maestropy.trace.output import finding_lines
from maestropy.trace.work.judge import coverage
from maestropy.trace.work.model import SearchCoverage

PAGE = Path(__file__).parents[4] / "docs" / "trace-work.md"
SINCE = datetime(2026, 11, 15, 14, 34, 22, tzinfo=UTC)
PARTLY = SearchCoverage(
    matches=0, is_counted=False, searched=88_591, total=1_000_645, is_newest_first=True, since=SINCE
)


def test_example_in_docs() -> None:
    title = "Nothing found for --name-like nobody in the part that was searched"
    finding = coverage.partly_searched(PARTLY, database="database db:5432/maestro", title=title)
    assert "\n".join(finding_lines(finding)) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("search", "shown", "title"),
    [
        pytest.param(SearchCoverage(matches=3), 3, "", id="all-shown"),
        pytest.param(SearchCoverage(matches=1, by_computed_ids=True), 1, "", id="found-by-computed-id"),
        pytest.param(SearchCoverage(matches=2_345), 500, "500 of 2,345 works that match x are shown", id="counted"),
        pytest.param(
            SearchCoverage(matches=10_000, is_counted=False),
            500,
            "500 of at least 10,000 works that match x are shown",
            id="too-many-to-count",
        ),
        pytest.param(
            SearchCoverage(matches=2, is_counted=False, searched=10, total=100),
            2,
            "More works may match x",
            id="partly-searched",
        ),
    ],
)
def test_more_works(search: SearchCoverage, shown: int, title: str) -> None:
    findings = list(coverage.more_works(search, shown=shown, database="database", requested="x"))
    assert [(finding.code, finding.title) for finding in findings] == ([("MW-121", title)] if title else [])
