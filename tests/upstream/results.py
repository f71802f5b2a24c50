"""What runs of upstream's suites found: a section of docs/compatibility.md, which is also where it is kept."""

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
    "integration": ("go-suite-grpc", "python-suite-grpc"),
    "ocm": ("suite-go-mqtt", "suite-python-mqtt", "suite-go-grpc", "suite-python-grpc"),
}
TITLES = {
    "e2e": "End to end (`test/e2e/pkg`)",
    "upgrade": "Upgrades (`test/upgrade`): to the other kind, server first, then agent, and back; three cases a time",
    "integration": "Over the wire (`test/integration`): the cases that reach a server by REST and gRPC",
    "ocm": "The work agent of OCM (`test/integration/work` of its module)",
}
INTENDED = {
    "should return statuses by JSONPaths": "the suite leaves structures out of feedback (its default for "
    "`RawFeedbackJsonString`); Maestro's agent has that switch on, and ours reports them always",
    "should remove old appliemanifestwork if applied again on new hub": "the suite gives OCM's agent an ID of its own, "
    "which stays with another server; Maestro's agent has no flag for it: its ID is the hash of the server's address",
}
"""End of a case → why our agent does otherwise on purpose."""
RACES = {
    "should remove applied resource immediately when work is updated": "a race of the suite: its clean-up writes an "
    "object that it read before, without a second attempt, while the agent deletes it (409 Conflict)",
    "[AfterSuite]": "the agent of a case whose clean-up failed is still connected to the API server",
}
"""End of a case that can fail with any agent → why."""
ROW = re.compile(
    r"^\| (?P<server>\S+) \| (?P<agent>\S+) \| (?P<broker>\S+) \| (?P<passed>\d+) of \d+(?: \((?P<note>.+)\))? "
    r"\| (?P<skipped>\d+) \| (?P<date>\S+) \| (?P<upstream>[^|]+) \| (?P<maestropy>[^|]+) \|$",
    re.MULTILINE,
)
FAILURE = re.compile(r"^- (\S+): \*(.+?)\*: (.+)$", re.MULTILINE)
INTRODUCTION = """Maestro's own test programs, built from its source, run as they are against its charts. These are
installed with the values of its test set-up: TLS everywhere, flags unchanged. The cluster is a real control plane whose
pods run as processes of the machine, so deployments are really scaled, rolled out and given rotated certificates.
`make test-upstream` runs the columns that `COLUMNS` names and writes this section; results of earlier runs are kept. Go
on both sides is the baseline.

The end-to-end suite skips the rotation of certificates over Pub/Sub, where there are none. OCM's suite runs its agent
in its own process; for ours one file of that agent is replaced by one that starts our program with the same flags, and
with `--orphan-limit-percent=100`: our agent deletes no orphan while half of its works are orphans
([data-safety.md](data-safety.md)), and the cases have one or two works.

Maestro's `test/integration` starts Go's server inside its own process, and most of its cases call parts of that server
directly: controllers, services, database listeners. Another server has no such parts, so these cases are skipped. Those
that use REST and gRPC run on a server in a process of its own: Go's `-overlay` leaves out the lines of the suite that
start the server, and the checkout stays as it is."""


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
    note: str = ""
    """Why the suite did not run to its end."""

    @property
    def total(self) -> int:
        # What stands before or after all cases, as [AfterSuite], is listed where it failed, but is none.
        return self.passed + sum(not case.startswith("[") for case in self.failed)


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


def with_result(page: str, result: Result) -> str:
    """Return a page with what a run found, in the place of what an earlier run of its suite and column found."""
    others = [kept for kept in read_page(page) if (kept.suite, kept.column) != (result.suite, result.column)]
    return put_section(page, section([*others, result]))


def read_page(page: str) -> list[Result]:
    """Return what all runs so far found."""
    found: list[Result] = []
    text = section_of(page)
    for suite, title in TITLES.items():
        _, _, part = text.partition(f"### {title}\n")
        part = part.partition("\n### ")[0]
        failed: dict[str, dict[str, str]] = {}
        for column, case, reason in FAILURE.findall(part):
            failed.setdefault(column, {})[case] = reason
        for row in ROW.finditer(part):
            column = f"{row['server']}-{row['agent']}-{row['broker']}"
            found.append(
                Result(
                    suite=suite,
                    column=column,
                    date=row["date"],
                    upstream=row["upstream"],
                    maestropy=row["maestropy"],
                    passed=int(row["passed"]),
                    failed=failed.get(column, {}),
                    skipped=int(row["skipped"]),
                    note=row["note"] or "",
                )
            )
    return found


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
    known = {end: f"on purpose: {why}" for end, why in INTENDED.items()} | RACES
    return next((why for end, why in known.items() if case.endswith(end)), result.failed[case])


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
