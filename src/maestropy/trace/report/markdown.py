"""Format requests as Markdown: one request in full, or many in tables. Pure; log text is escaped."""

from collections.abc import Callable, Sequence

from maestropy.trace.logs.log_records import LogRecord
from maestropy.trace.logs.model import RequestFinding, RequestKey, Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.markdown_text import code, code_block, escaped, table
from maestropy.trace.report.formatting import clock, describe, span
from maestropy.trace.report.json_model import pods, shown_records
from maestropy.trace.report.statistics import Statistics
from maestropy.trace.report.waterfall import inputs_line, left_out_note, outcome
from maestropy.trace.stages import STAGES

Quote = Callable[[LogRecord], str]


def many(traces: Sequence[Trace], numbers: Statistics) -> str:
    """Return requests as tables: how many, how long, and those in `traces`."""
    counts = ", ".join(f"{n:,} {verdict}" for verdict, n in numbers.by_verdict.items())
    lines = [f"**{numbers.total:,} request{'s' * (numbers.total != 1)}**: {counts}", ""]
    if numbers.first_missing:
        stopped = ", ".join(f"{n:,} at {at} ({STAGES[at][1]})" for at, n in numbers.first_missing.items() if at)
        lines += [f"Stopped: {stopped}", ""]
    if numbers.hops:
        times = [
            (key.replace("-", " to "), f"{hop.count:,}",
             *(span(ms / 1000) for ms in (hop.p50, hop.p90, hop.p99, hop.most)))
            for key, hop in numbers.hops.items()
        ]  # fmt: skip
        lines += [*table(("hop", "requests", "p50", "p90", "p99", "max"), times), ""]
    rows = [
        (f"{trace.key.action} v{trace.key.version}", trace.key.work_name, trace.key.resource, trace.key.consumer,
         outcome(trace), span(trace.duration), " ".join(finding.code for finding in trace.findings))
        for trace in traces
    ]  # fmt: skip
    lines += table(("request", "work", "resource", "consumer", "verdict", "took", "findings"), rows)
    rest = numbers.total - len(traces)
    lines += ["", f"… and {rest:,} more; --top 0 shows all"] if rest else []
    return "\n".join(lines) + "\n"


def one(trace: Trace, environment: Environment, *, quote: Quote = describe) -> str:
    """Return one request in full: identifiers, stages, findings with evidence and advice, records."""
    key = trace.key
    facts = [("resource", key.resource), ("op-id", key.op_id), ("consumer", key.consumer), ("source", key.source)]
    lines = [
        f"## {escaped(key.work_name or key.resource)}: {escaped(f'{key.action} v{key.version}, {outcome(trace)}')}",
        "",
        ", ".join(f"{name} {code(value)}" for name, value in facts if value),
        "",
        escaped(inputs_line(environment)),
        "",
    ]
    rows = [
        (str(stage.number), STAGES[stage.number][1], stage.state.value, clock(stage.first),
         span(stage.hop) if stage.hop is not None else "", ", ".join(pods(stage.records, environment)), stage.note)
        for stage in trace.stages
    ]  # fmt: skip
    lines += [*table(("#", "stage", "state", "time", "+hop", "pod", ""), rows), ""]
    for finding in trace.findings:
        lines += _finding(finding, environment, trace.key, quote=quote)
    shown, left_out = shown_records(trace.timeline)
    records = [
        (
            clock(record.at),
            str(record.stage),
            f"{environment.writers[record.file].path}:{record.line}",
            describe(record),
        )
        for record in shown
    ]
    if records:
        lines += ["### Records", "", *table(("time", "stage", "where", "what"), records), ""]
        lines += [*(line.strip() for line in left_out_note(left_out)), ""] if left_out else []
    return "\n".join(lines)


def _finding(finding: RequestFinding, environment: Environment, key: RequestKey, *, quote: Quote) -> list[str]:
    entry = finding.entry
    lines = [f"### {entry.code} {escaped(entry.title)} ({entry.severity}, {finding.confidence})", ""]
    if entry.severity == "error" and entry.stage:
        lines += [f"ERROR: {STAGES[entry.stage][2]}", ""]
    lines += [*code_block(finding.detail.splitlines()[:5]), ""] if finding.detail else []
    lines += [escaped(entry.cause), "", *(f"- {escaped(command)}" for command in finding.advice(key)), ""]
    for record in finding.evidence:
        lines += [*code_block([f"{environment.writers[record.file].path}:{record.line}", quote(record)]), ""]
    return lines
