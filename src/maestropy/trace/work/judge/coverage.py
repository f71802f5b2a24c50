"""Say how much of the database a search has read, and how many works match. Pure."""

from collections.abc import Iterator

from maestropy.trace.output import Evidence, Finding
from maestropy.trace.work.judge.findings import bare_finding
from maestropy.trace.work.model import SearchCoverage


def searched_text(coverage: SearchCoverage) -> str:
    """Return which part was searched, as a sentence."""
    if coverage.searched is None:
        return "all works were searched"
    part = "the newest " if coverage.is_newest_first else ""
    # A table that was never analyzed has no estimate.
    total = f" of about {coverage.total:,}" if coverage.total else ""
    since = f", created after {coverage.since}" if coverage.since else ", in the order of the table"
    return f"only {part}{coverage.searched:,}{total} works were searched{since}"


def partly_searched(coverage: SearchCoverage, *, database: str, title: str) -> Finding:
    """Return the finding that nothing was found, and not everything was searched."""
    return bare_finding("MW-120", title=title, evidence=[Evidence(database, searched_text(coverage))])


def more_works(coverage: SearchCoverage, *, shown: int, database: str, requested: str) -> Iterator[Finding]:
    """Yield the finding that more works match than are shown, or may match."""
    title = ""
    evidence = []
    if not coverage.is_complete:
        title = f"More works may match {requested}"
        evidence.append(Evidence(database, searched_text(coverage)))
    if coverage.matches > shown:
        count = f"{coverage.matches:,}" if coverage.is_counted else f"at least {coverage.matches:,}"
        title = f"{shown:,} of {count} works that match {requested} are shown"
        evidence.append(Evidence(database, f"{count} works match"))
    if title:
        yield bare_finding("MW-121", title=title, evidence=evidence)
