"""One request as text: stages with a waterfall, findings with evidence and advice, the timeline. Never prints."""

from collections.abc import Callable, Sequence

from maestropy.trace.output import printable, table
from maestropy.trace.request.codes import SQL, STAGES
from maestropy.trace.request.document import pods, stamp
from maestropy.trace.request.hits import Hit
from maestropy.trace.request.inputs import Environment
from maestropy.trace.request.model import Finding, Stage, State, Trace, Verdict
from maestropy.trace.request.words import clock, said, short, span

_BAR = 28
_LOUD = frozenset({State.FAILED, State.MISSING})
_MOST_SURROUNDED = 5
Quote = Callable[[Hit], str]
Around = Callable[[Hit], Sequence[tuple[int, str]]]
"""What stands around a record: lines with their numbers."""


def nothing_around(_: Hit) -> Sequence[tuple[int, str]]:
    """Show a record alone."""
    return ()


def headline(trace: Trace) -> str:
    """Return one line that says which request this is and what became of it."""
    key = trace.key
    name = key.work_name or "-"
    parts = [f"{key.action} v{key.version}" if key.version else key.action, name, key.resource]
    parts += [f"op {short(key.op)}"] if key.op else []
    parts += [f"consumer {key.consumer}"] if key.consumer else []
    parts += [f"life {key.life}"] if key.life > 1 else []
    return f"Request  {printable('  '.join(parts))}\nVerdict  {outcome(trace)}"


def outcome(trace: Trace) -> str:
    """Return the verdict as a phrase."""
    cause = trace.main_finding
    code = cause.code if cause else ""
    if trace.verdict is Verdict.COMPLETE:
        return f"COMPLETE in {span(trace.duration)}"
    if trace.verdict is Verdict.SUPERSEDED:
        return f"SUPERSEDED by {trace.superseded_by}" if trace.superseded_by else "SUPERSEDED"
    if trace.failed_stage:
        verb = {Verdict.PENDING: "WAITS", Verdict.INCOMPLETE: "STOPPED"}.get(trace.verdict, "FAILED")
        return f"{verb} at stage {trace.failed_stage} ({STAGES[trace.failed_stage][1]})  {code}".rstrip()
    return trace.verdict.value.upper()


def inputs_line(known: Environment) -> str:
    """Return one line about the logs."""
    servers, agents = {each.pod for each in known.servers}, {each.pod for each in known.agent_logs}
    generations = sorted({each.generation for each in known.writers if each.generation != "unknown"})
    skewed = [f"{each.pod} clock {each.skew * 1000:+.0f} ms" for each in known.writers if each.skew]
    first = min((each.first for each in known.writers if each.first), default=0.0)
    parts = [
        f"{len(servers)} server pod{'s' * (len(servers) != 1)}, {len(agents)} agent{'s' * (len(agents) != 1)}",
        "/".join(generations) or "no known generation",
        f"broker {known.broker}",
        *([known.subscription] if known.subscription != "unknown" else []),
        *skewed,
        f"{(stamp(first) or '-')[:19]}Z to {clock(known.end)[:8]}",
    ]
    return "Inputs   " + "; ".join(parts)


def text(
    trace: Trace,
    known: Environment,
    *,
    quote: Quote = said,
    around: Around = nothing_around,
    with_timeline: bool = False,
) -> str:
    """Return the whole report on one request."""
    lines = [headline(trace), inputs_line(known), "", *stages(trace, known), ""]
    for finding in trace.findings:
        lines += _finding(finding, known, quote=quote, around=around, resource=trace.key.resource)
    if with_timeline:
        lines += ["Timeline", *timeline(trace, known), ""]
    return "\n".join(lines) + "\n"


def stages(trace: Trace, known: Environment) -> list[str]:
    """Return a row per stage, with its time and its bar."""
    begin, length = trace.start, trace.duration
    rows = [
        (
            str(stage.number),
            STAGES[stage.number][1],
            stage.state.value.upper() if stage.state in _LOUD else stage.state.value,
            clock(stage.first),
            f"{span(stage.hop):>7}" if stage.hop is not None else "",
            _where(stage, known),
            _bar(stage, begin=begin, length=length),
            stage.note + (f" (via {stage.via})" if stage.via != "direct" else ""),
        )
        for stage in trace.stages
    ]
    return table(rows, head=("#", "stage", "state", "time", "   +hop", "pod", f"0 .. {span(length)}", ""))


def _where(stage: Stage, known: Environment) -> str:
    names = pods(stage.hits, known)
    return "" if not names else names[0] if len(names) == 1 else f"{len(names)} pods"


def _bar(stage: Stage, *, begin: float, length: float) -> str:
    if not stage.first:
        return ""
    end = min(_BAR - 1, max(0, round((stage.first - begin) / length * (_BAR - 1)))) if length else 0
    took = min(end, round((stage.hop or 0) / length * (_BAR - 1))) if length and (stage.hop or 0) > 0 else 0
    return " " * (end - took) + "=" * took + ("X" if stage.state is State.FAILED else "|")


def finding_lines(finding: Finding, known: Environment, trace: Trace) -> list[str]:
    """Return a finding of a request: what, why, on what evidence, and what to do."""
    return _finding(finding, known, quote=said, around=nothing_around, resource=trace.key.resource)


def _finding(finding: Finding, known: Environment, *, quote: Quote, around: Around, resource: str) -> list[str]:
    entry = finding.entry
    # The sentence that runbooks are searched by stands at the beginning of its line.
    lines = [f"ERROR: {STAGES[entry.stage][2]}"] if entry.severity == "error" and entry.stage else []
    lines.append(f"{entry.code} {entry.severity}  {entry.title}  ({finding.confidence})")
    lines += [f"  {printable(part)}" for part in finding.detail.splitlines()[:5]]
    for place, hit in enumerate(finding.evidence):
        lines.append(f"  evidence  {known.writers[hit.file].path}:{hit.line}  {printable(quote(hit))}")
        near = around(hit) if place < _MOST_SURROUNDED else ()
        lines += [f"  {number:>8}  {printable(line)}" for number, line in near]
    lines.append(f"  why       {entry.cause}")
    lines += [f"  do        {each}" for each in entry.advice]
    if entry.severity == "error":
        lines += [f"  check     {SQL[each].replace('$1', _sql_text(resource))}" for each in entry.sql]
    return [*lines, ""]


def _sql_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def timeline(trace: Trace, known: Environment) -> list[str]:
    """Return every record of the request in order of time."""
    rows = [
        (clock(hit.at), str(hit.stage), known.writers[hit.file].pod, f"{known.writers[hit.file].path}:{hit.line}",
         said(hit))
        for hit in trace.timeline
    ]  # fmt: skip
    return table(rows, head=("time", "stage", "pod", "where", "what"))


def summary(traces: Sequence[Trace]) -> list[str]:
    """Return one line per request of a resource."""
    rows = [
        (str(number), each.key.action, f"v{each.key.version}", clock(each.start), outcome(each))
        for number, each in enumerate(traces)
    ]
    return table(rows, head=("nth", "action", "version", "start", "verdict"))
