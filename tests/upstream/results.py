"""What a run of an upstream suite found, kept in the cache, and all of it as a section of docs/compatibility.md."""

import dataclasses
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BEGIN = "<!-- upstream suites: written by `make test-upstream` -->"
END = "<!-- upstream suites: end -->"
KINDS, BROKERS = ("go", "python"), ("grpc", "mqtt", "pubsub")
COLUMNS = tuple(f"{server}-{agent}-{broker}" for broker in BROKERS for server in KINDS for agent in KINDS)


SUITES = {
    "e2e": COLUMNS,
    "upgrade": ("go-go-grpc", "python-python-grpc", "go-go-mqtt", "python-python-mqtt"),
    "ocm": ("suite-go-mqtt", "suite-python-mqtt", "suite-go-grpc", "suite-python-grpc"),
}
TITLES = {
    "e2e": "End to end (`test/e2e/pkg`)",
    "upgrade": "Upgrades (`test/upgrade`): to the other kind, server first, then agent, and back; three cases a time",
    "ocm": "The work agent of OCM (`test/integration/work` of its module)",
}
NOT_READ = (
    "nothing is reported of objects that the executor may not get ([differences.md](differences.md)); the suite wants "
    "`False` where we report `Unknown`"
)
INTENDED = {
    "should return statuses by JSONPaths": "the suite leaves structures out of feedback (its default for "
    "`RawFeedbackJsonString`); Maestro's agent has that switch on, and ours reports them always",
    "Executor does not have permission": NOT_READ,
    "Executor does not have permission to partial resources": NOT_READ,
    "escalation validating no permission": NOT_READ,
}
"""End of a case → why our agent does otherwise on purpose."""
INTRODUCTION = """Maestro's own test programs, built from its source, run as they are against its charts. These are
installed with the values of its test set-up: TLS everywhere, flags unchanged. The cluster is a real control plane whose
pods run as processes of the machine, so deployments are really scaled, rolled out and given rotated certificates.
`make test-upstream` runs the columns that `COLUMNS` names and writes this section; results of earlier runs are kept. Go
on both sides is the baseline.

The end-to-end suite skips the rotation of certificates over Pub/Sub, where there are none. OCM's suite runs its agent
in its own process; for ours one file of that agent is replaced by one that starts our program with the same flags.
Maestro's `test/integration` is not run: it tests the parts of Go's server inside its own process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run of one suite."""

    suite: str
    column: str
    date: str
    upstream: str
    maestropy: str
    passed: int
    failed: Mapping[str, str]
    """Case → reason, in one line."""
    skipped: int
    seconds: int
    note: str = ""
    """Why the suite did not run to its end."""

    @property
    def total(self) -> int:
        return self.passed + len(self.failed)


def read_reports(folder: Path) -> tuple[int, dict[str, str], int]:
    """Return how many cases passed, which failed and why, and how many were skipped, in all reports of a run."""
    failed: dict[str, str] = {}
    passed = skipped = 0
    reports = sorted(folder.glob("report*.xml"))
    for number, report in enumerate(reports, 1):
        more_passed, more_failed, more_skipped = read_junit(report)
        prefix = f"run {number}: " if len(reports) > 1 else ""
        failed |= {f"{prefix}{case}": reason for case, reason in more_failed.items()}
        passed, skipped = passed + more_passed, skipped + more_skipped
    return passed, failed, skipped


def read_junit(report: Path) -> tuple[int, dict[str, str], int]:
    """The same for one report."""
    passed, failed, skipped = 0, {}, 0
    for case in ET.parse(report).iter("testcase"):
        name = re.sub(r"\s*\[(?!AfterSuite|BeforeSuite)[^\]]*\]\s*", " ", case.get("name", "")).strip()
        is_case = case.get("name", "").startswith("[It]")
        problem = next((child for child in case if child.tag in ("failure", "error")), None)
        if problem is not None:
            failed[name] = in_one_line(problem.get("message") or problem.text or "")
        elif case.find("skipped") is not None:
            skipped += is_case
        else:
            passed += is_case
    return passed, failed, skipped


def in_one_line(text: str) -> str:
    """Return the beginning of a message, fit for a list in Markdown."""
    words = " ".join(text.split()).replace("|", "\\|").replace("<", "‹").replace(">", "›")
    return words[:300] + ("…" if len(words) > 300 else "")


def keep(result: Result, folder: Path) -> None:
    """Replace what an earlier run of the same suite and column found."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.suite}-{result.column}.json"
    path.write_text(json.dumps(dataclasses.asdict(result), indent=1) + "\n")


def kept(folder: Path) -> list[Result]:
    """Return what all runs so far found."""
    return [Result(**json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]


def section(results: Sequence[Result], *, suites: Mapping[str, Sequence[str]] = SUITES) -> str:
    """Return the section: one table a suite, the versions, and every failed case with its reason."""
    lines = [BEGIN, "## Upstream's own suites", "", INTRODUCTION]
    for suite, columns in suites.items():
        found = {result.column: result for result in results if result.suite == suite}
        heads = "| server | agent | broker | passed | skipped | date | upstream | maestropy |"
        lines += ["", f"### {TITLES[suite]}", "", heads, "|---" * 8 + "|"]
        lines += [_row(column, found.get(column)) for column in columns]
        lines += _failures([found[column] for column in columns if column in found])
    return "\n".join([*lines, "", END])


def _row(column: str, result: Result | None) -> str:
    cells = " | ".join(column.split("-"))
    if result is None:
        return f"| {cells} | not run | | | | |"
    passed = f"{result.passed} of {result.total}" + (f" ({result.note})" if result.note else "")
    return f"| {cells} | {passed} | {result.skipped} | {result.date} | {result.upstream} | {result.maestropy} |"


def _failures(results: Sequence[Result]) -> list[str]:
    of_go = {
        (result.column.rpartition("-")[2], case) for result in results if is_baseline(result) for case in result.failed
    }
    lines = [
        f"- {result.column}: *{case}*: {_reason(result, case, of_go)}" for result in results for case in result.failed
    ]
    return ["", "Failed:", "", *lines] if lines else []


def is_baseline(result: Result) -> bool:
    """Whether only Go programs took part."""
    return "python" not in result.column


def _reason(result: Result, case: str, of_go: Container[tuple[str, str]]) -> str:
    if not is_baseline(result) and (result.column.rpartition("-")[2], case) in of_go:
        return "for Go too"
    return next((f"on purpose: {why}" for end, why in INTENDED.items() if case.endswith(end)), result.failed[case])


def put_section(page: str, text: str) -> str:
    """Return a page with the section replaced, or added at its end."""
    before, begin, rest = page.partition(BEGIN)
    if not begin:
        return f"{page.rstrip()}\n\n{text}\n"
    _, end, after = rest.partition(END)
    assert end, f"{BEGIN} without {END}"
    return before + text + after


def section_of(page: str) -> str:
    """Return the section of a page; empty where it has none."""
    _, begin, rest = page.partition(BEGIN)
    return begin + rest.partition(END)[0] + END if begin else ""
