"""Requests as Markdown: one in full, or many in tables. Pure; no text of a log becomes markup."""

import re
from collections.abc import Callable, Sequence

from maestropy.trace.output import printable
from maestropy.trace.request.codes import STAGES
from maestropy.trace.request.document import pods
from maestropy.trace.request.hits import Hit
from maestropy.trace.request.inputs import Environment
from maestropy.trace.request.model import Finding, Trace
from maestropy.trace.request.statistics import Statistics
from maestropy.trace.request.waterfall import inputs_line, outcome
from maestropy.trace.request.words import clock, said, span

_SPECIAL = re.compile(r"([\\`*_<>\[\]|#~])")
Quote = Callable[[Hit], str]


def cell(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", printable(text))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(cell(each) for each in row) + " |" for row in rows)]


def many(traces: Sequence[Trace], numbers: Statistics) -> str:
    """Return all requests as tables: how many, how long, which."""
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
        lines += [*_table(("hop", "requests", "p50", "p90", "p99", "max"), times), ""]
    rows = [
        (f"{each.key.action} v{each.key.version}", each.key.work_name, each.key.resource, each.key.consumer,
         outcome(each), span(each.duration), " ".join(found.code for found in each.findings))
        for each in traces
    ]  # fmt: skip
    lines += _table(("request", "work", "resource", "consumer", "verdict", "took", "findings"), rows)
    return "\n".join(lines) + "\n"


def one(trace: Trace, known: Environment, *, quote: Quote = said) -> str:
    """Return one request in full: who, stages, findings with evidence and advice, records."""
    key = trace.key
    facts = [("resource", key.resource), ("op-id", key.op), ("consumer", key.consumer), ("source", key.source)]
    lines = [
        f"## {cell(key.work_name or key.resource)}: {cell(f'{key.action} v{key.version}')}, {cell(outcome(trace))}",
        "",
        ", ".join(f"{name} `{printable(value).replace('`', '')}`" for name, value in facts if value),
        "",
        cell(inputs_line(known)),
        "",
    ]
    rows = [
        (str(stage.number), STAGES[stage.number][1], stage.state.value, clock(stage.first),
         span(stage.hop) if stage.hop is not None else "", ", ".join(pods(stage.hits, known)), stage.note)
        for stage in trace.stages
    ]  # fmt: skip
    lines += [*_table(("#", "stage", "state", "time", "+hop", "pod", ""), rows), ""]
    for finding in trace.findings:
        lines += _finding(finding, known, quote=quote)
    records = [
        (clock(hit.at), str(hit.stage), f"{known.writers[hit.file].path}:{hit.line}", said(hit))
        for hit in trace.timeline
    ]
    if records:
        lines += ["### Records", "", *_table(("time", "stage", "where", "what"), records), ""]
    return "\n".join(lines)


def _finding(finding: Finding, known: Environment, *, quote: Quote) -> list[str]:
    entry = finding.entry
    lines = [f"### {entry.code} {cell(entry.title)} ({entry.severity}, {finding.confidence})", ""]
    if entry.severity == "error" and entry.stage:
        lines += [f"ERROR: {STAGES[entry.stage][2]}", ""]
    lines += [*(f"    {printable(part)}" for part in finding.detail.splitlines()[:5]), ""] if finding.detail else []
    lines += [cell(entry.cause), "", *(f"- {cell(each)}" for each in entry.advice), ""]
    for hit in finding.evidence:
        lines += [f"    {known.writers[hit.file].path}:{hit.line}", f"    {quote(hit)}", ""]
    return lines
