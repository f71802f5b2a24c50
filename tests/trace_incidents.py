"""Score the request tracer on recorded incidents.

    python -m tests.trace_incidents FOLDER...

A folder holds `truth.json`, a list of [work, action, expected, note], and one folder of logs per moment (`snap-NAME`).
An expectation names a verdict (`COMPLETE`, `FAILED`, `STOPPED`), a stage and codes; "(snap-NAME)" limits it to that
moment. Otherwise COMPLETE must hold in every later moment, and anything else in the first one that has the request.
"""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from maestropy.trace.logs import tracer
from maestropy.trace.logs.model import Options, RequestVerdict, Trace
from maestropy.trace.logs.read import scan

NOW = 4e9
_STOPPED = {RequestVerdict.FAILED, RequestVerdict.INCOMPLETE, RequestVerdict.PENDING}


@dataclass(frozen=True)
class Expectation:
    """What is true of one request."""

    work: str
    action: str
    text: str
    moment: str

    @classmethod
    def of(cls, row: list[str]) -> "Expectation":
        """Read a row of truth.json."""
        whole = f"{row[1]} {row[2]}"
        named = re.search(r"\(snap-([\w-]+)\)", whole)
        return cls(row[0], row[1].split()[0], row[2], named.group(1) if named else "")

    def is_followed_by(self, others: "list[Expectation]") -> bool:
        """Say whether another expectation is about a later moment of the same request."""
        of_same = (other for other in others if (other.work, other.action) == (self.work, self.action))
        return not self.moment and any(other.moment for other in of_same)

    def judged(self, trace: Trace) -> str:
        """Return right, unhelpful, or wrong."""
        codes = {f"MT-{number}" for number in re.findall(r"(?:MT-|/)(\d{3})", self.text)}
        stage = re.search(r"\b([1-9])\b", re.sub(r"MT-\d+|snap-\S+", "", self.text))
        if re.search(r"\bcomplete\b|\blate\b", self.text, re.IGNORECASE):
            # A moment may be recorded just before the end of the request: then nothing may be blamed.
            is_close = bool(self.moment) and trace.verdict is RequestVerdict.PENDING and trace.failed_stage != 4
            return "right" if trace.verdict is RequestVerdict.COMPLETE or is_close else "wrong"
        if trace.verdict not in _STOPPED or (stage and trace.failed_stage != int(stage.group(1))):
            return "wrong"
        main = trace.main_finding
        return "right" if not codes or (main and main.code in codes) else "unhelpful"


def traces_of(folder: Path) -> tuple[list[Trace], float]:
    """Judge all requests of a folder of logs; return them, and when the logs end."""
    read = scan.scan_all([str(folder)], now=NOW)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    return list(tracer.traces(read.records, environment, options=Options())), environment.end


def scored(folder: Path) -> tuple[int, int]:
    """Print every expectation that does not hold; return how many hold, of how many."""
    moments = {path.name.removeprefix("snap-"): traces_of(path) for path in folder.glob("snap-*")}
    in_order = sorted(moments, key=lambda name: moments[name][1])
    expectations = [Expectation.of(row) for row in json.loads((folder / "truth.json").read_text())]
    right = total = 0
    for expected in expectations:
        having = [
            (moment, trace)
            for moment in in_order
            for trace in moments[moment][0]
            if trace.key.work_name.startswith(expected.work) and trace.key.action == expected.action
            and expected.moment in ("", moment)
        ]  # fmt: skip
        if expected.text.startswith("complete"):
            having = having[-1:]  # in the end
        elif not expected.text.startswith("COMPLETE") or expected.is_followed_by(expectations):
            having = having[:1]
        total += 1
        results = {expected.judged(trace) for _, trace in having} or {"wrong"}
        right += results == {"right"}
        for moment, trace in having:
            result = expected.judged(trace)
            if result != "right":
                main = trace.main_finding
                code = f"{main.code} {main.detail[:90]}" if main else ""
                print(f"{folder.name}/{moment:15} {expected.work:12} {expected.action:7} {result:10} expected "
                      f"{expected.text!r}, is {trace.verdict} {trace.failed_stage or ''} {code}")  # fmt: skip
        if not having:
            print(f"{folder.name} {expected.work} {expected.action}: no such request")
    return right, total


def main() -> None:
    """Score every folder named on the command line."""
    scores = [scored(Path(folder)) for folder in sys.argv[1:]]
    print(f"{sum(right for right, _ in scores)} of {sum(total for _, total in scores)} right")


if __name__ == "__main__":
    main()
