"""Format many requests: list, matrix and latencies as text or CSV; and one request as a Mermaid diagram."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from maestropy.trace.findings.codes import CODES
from maestropy.trace.logs.model import PROBLEMS, StageState, Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.output import printable, table
from maestropy.trace.report.formatting import describe, short, span
from maestropy.trace.report.json_model import stamp
from maestropy.trace.report.statistics import Statistics
from maestropy.trace.report.waterfall import inputs_line, outcome
from maestropy.trace.stages import STAGES

_SIGNS = {
    StageState.OK: "+",
    StageState.FAILED: "X",
    StageState.MISSING: "!",
    StageState.PENDING: ".",
    StageState.SKIPPED: "s",
    StageState.LEGIT_ABSENT: "-",
    StageState.UNKNOWN: "?",
    StageState.NOT_OBSERVABLE: " ",
}
_LEGEND = (
    "+ ok  X failed  ! missing  . pending  s skipped  - not needed  ? no record, proven later  blank not observable"
)
_FORMULA_STARTS = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_PIECE = 1 << 16
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_COLUMNS = ("resource", "work", "consumer", "source", "action", "version", "life", "op", "start", "duration_ms",
            "verdict", "failed_stage", "codes")  # fmt: skip


def text(numbers: Statistics, environment: Environment, shown: Sequence[Trace], *, read: str) -> str:
    """Return the summary, the latencies, and the requests in `shown`."""
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in numbers.by_verdict.items())
    actions = ", ".join(f"{action} {count:,}" for action, count in numbers.by_action.items())
    counts = f"{numbers.total:,} requests ({actions}): {verdicts}" if numbers.total else "0 requests"
    lines = [f"{counts}       {read}", inputs_line(environment)]
    if numbers.first_missing:
        lines.append("stopped at stage:  " + "  ".join(f"{at}:{count}" for at, count in numbers.first_missing.items()))
    if numbers.by_code:
        lines.append("findings:  " + "  ".join(f"{code}:{count}" for code, count in numbers.by_code.items()))
    lines += ["", *_hops(numbers), "", *matrix(shown)]
    return "\n".join(lines) + "\n"


def _hops(numbers: Statistics) -> list[str]:
    rows = [
        (key, f"{hop.count:>7,}", *(f"{span(value / 1000):>8}" for value in (hop.p50, hop.p90, hop.p99, hop.most)))
        for key, hop in numbers.hops.items()
    ]
    return table(rows, head=("hop", "      n", "     p50", "     p90", "     p99", "     max")) if rows else []


def signs(trace: Trace) -> str:
    """Return one sign per stage."""
    return "".join(_SIGNS[stage.state] for stage in trace.outline)


def matrix(traces: Sequence[Trace]) -> list[str]:
    """Return a row per request with a sign per stage."""
    if not traces:
        return []
    rows = [
        (
            (stamp(trace.start) or "")[11:23],
            short(trace.key.resource),
            trace.key.work_name or "-",
            trace.key.consumer or "-",
            f"{trace.key.action} v{trace.key.version}",
            signs(trace),
            f"{span(trace.duration):>7}",
            outcome(trace),
        )
        for trace in traces
    ]
    head = ("start", "resource", "work", "consumer", "request", "123456789", "   took", "verdict")
    return [*table(rows, head=head), f"  {_LEGEND}"]


def grouped(traces: Sequence[Trace], by: str) -> list[str]:
    """Return counts per consumer, source, action, stage or code."""

    def keys(trace: Trace) -> list[str]:
        if by == "code":
            return [finding.code for finding in trace.findings] or ["-"]
        if by == "stage":
            return [str(trace.failed_stage or "-")]
        return [str(getattr(trace.key, by)) or "-"]

    total: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    for trace in traces:
        for key in keys(trace):
            total[key] += 1
            bad[key] += trace.verdict in PROBLEMS
    rows = [
        (key, f"{count:,}", f"{bad[key]:,}", CODES[key].title if key in CODES else "")
        for key, count in total.most_common()
    ]
    return table(rows, head=(by, "requests", "problems", ""))


def _row(trace: Trace) -> list[str]:
    key = trace.key
    return [key.resource, key.work_name, key.consumer, key.source, key.action, str(key.version),
            str(key.incarnation), key.op_id, stamp(trace.start) or "",
            f"{trace.duration * 1000:.3f}", trace.verdict.value,
            str(trace.failed_stage or ""), " ".join(finding.code for finding in trace.findings)]  # fmt: skip


def csv_pieces(traces: Sequence[Trace]) -> Iterator[str]:
    """Yield a row per request, with the state of each stage and its time since the start."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    states, times = ([f"stage{number}{suffix}" for number in STAGES] for suffix in ("", "_ms"))
    writer.writerow([*_COLUMNS, *states, *times])
    for trace in traces:
        stages = trace.outline
        after = (f"{(stage.first - trace.start) * 1000:.3f}" if stage.first else "" for stage in stages)
        row = [*_row(trace), *(stage.state.value for stage in stages), *after]
        writer.writerow([_cell(value) for value in row])
        if out.tell() > _PIECE:
            yield out.getvalue()
            out.seek(0)
            out.truncate()
    yield out.getvalue()


def _cell(value: str) -> str:
    """Return a cell that no spreadsheet takes for a formula; numbers stay numbers."""
    is_formula = value[:1] in _FORMULA_STARTS and not _NUMBER.fullmatch(value)
    return f"'{printable(value)}" if is_formula else printable(value)


def mermaid(trace: Trace, environment: Environment) -> str:
    """Return one request as a sequence diagram."""
    lines = [
        "sequenceDiagram",
        "    participant C as client",
        "    participant S as server",
        "    participant A as agent",
    ]
    arrows = {
        1: "C->>S",
        2: "S->>A",
        3: "A->>A",
        4: "A->>A",
        5: "A->>S",
        6: "S->>S",
        7: "S->>S",
        8: "S->>S",
        9: "S->>C",
    }
    for stage in trace.outline:
        hop = f" +{span(stage.hop)}" if stage.hop is not None else ""
        label = f"{stage.number} {STAGES[stage.number][1]}: {stage.state.value}{hop}"
        arrow = arrows[stage.number].replace(
            "->>", "-x" if stage.state in (StageState.FAILED, StageState.MISSING) else "->>"
        )
        lines.append(f"    {arrow}: {label}")
        errors = [
            record for finding in trace.findings if finding.entry.stage == stage.number for record in finding.evidence
        ]
        for record in errors[:1]:
            note = describe(record)[:120]
            pod = printable(environment.writers[record.file].pod)
            lines.append(f"    Note right of A: {_note(f'{pod} line {record.line} {note}')}")
    return "\n".join(lines) + "\n"


def _note(text: str) -> str:
    """Return the text of a note: without what ends it, and with entities for what a browser takes for markup."""
    text = text.replace(";", ",").replace("#", " ").replace(":", " ")
    return text.replace("&", "#amp;").replace("<", "#lt;").replace(">", "#gt;")
