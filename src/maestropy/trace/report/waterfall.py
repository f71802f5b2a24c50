"""Format one request as text: stages with a waterfall, findings with evidence and advice, timeline, log lines. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from maestropy.trace.findings.codes import SQL
from maestropy.trace.logs.log_records import LogRecord
from maestropy.trace.logs.model import RequestFinding, RequestVerdict, StageResult, StageState, Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.output import printable, table
from maestropy.trace.report.formatting import clock, describe, short, span
from maestropy.trace.report.json_model import MOST_SHOWN, pods, shown_records, stamp
from maestropy.trace.stages import AGENT_STAGES, STAGES

_BAR = 28
_LOUD = frozenset({StageState.FAILED, StageState.MISSING})
_MOST_SURROUNDED = 5
_NOT_SHOWN = "MT-416"
Quote = Callable[[LogRecord], str]
Around = Callable[[LogRecord], Sequence[tuple[int, str]]]
"""Returns the lines around a record, with their numbers."""


def no_context(_: LogRecord) -> Sequence[tuple[int, str]]:
    """Show a record alone."""
    return ()


def headline(trace: Trace) -> str:
    """Return the identifiers of a request and its verdict, as two lines."""
    key = trace.key
    name = key.work_name or "-"
    parts = [f"{key.action} v{key.version}" if key.version else key.action, name, key.resource]
    parts += [f"op {short(key.op_id)}"] if key.op_id else []
    parts += [f"consumer {key.consumer}"] if key.consumer else []
    parts += [f"incarnation {key.incarnation}"] if key.incarnation > 1 else []
    return f"Request  {printable('  '.join(parts))}\nVerdict  {outcome(trace)}"


def outcome(trace: Trace) -> str:
    """Return the verdict as a phrase."""
    cause = trace.main_finding
    code = cause.code if cause else ""
    if trace.verdict is RequestVerdict.COMPLETE:
        return f"COMPLETE in {span(trace.duration)}"
    if trace.verdict is RequestVerdict.SUPERSEDED:
        return f"SUPERSEDED by {trace.superseded_by}" if trace.superseded_by else "SUPERSEDED"
    if trace.failed_stage:
        stage = f"stage {trace.failed_stage} ({STAGES[trace.failed_stage][1]})"
        return f"{trace.verdict.value.upper()} at {stage}  {code}".rstrip()
    if any(finding.code == _NOT_SHOWN for finding in trace.findings):
        return f"UNKNOWN: reported in {span(trace.duration)}, not shown whether it was applied  {_NOT_SHOWN}"
    return trace.verdict.value.upper()


def inputs_line(environment: Environment) -> str:
    """Return one line about the logs."""
    servers, agents = {server.pod for server in environment.servers}, {server.pod for server in environment.agent_logs}
    generations = sorted({writer.generation for writer in environment.writers if writer.generation != "unknown"})
    skewed = [f"{writer.pod} clock {writer.skew * 1000:+.0f} ms" for writer in environment.writers if writer.skew]
    copies = [f"{copy} of {writer.path}" for writer in environment.writers for copy in writer.copies]
    first = min((writer.first for writer in environment.writers if writer.first), default=0.0)
    parts = [
        f"{len(servers)} server pod{'s' * (len(servers) != 1)}, {len(agents)} agent{'s' * (len(agents) != 1)}",
        "/".join(generations) or "no known generation",
        f"broker {environment.broker}",
        *([environment.subscription] if environment.subscription != "unknown" else []),
        *skewed,
        *(
            [f"{len(copies)} {'copies' if len(copies) > 1 else 'copy'} left out ({', '.join(copies[:3])})"]
            if copies
            else []
        ),
        f"{(stamp(first) or '-')[:19]}Z to {clock(environment.end)[:8]}",
    ]
    return "Inputs   " + "; ".join(parts)


def text(
    trace: Trace,
    environment: Environment,
    *,
    quote: Quote = describe,
    around: Around = no_context,
    with_timeline: bool = False,
) -> str:
    """Return the whole report on one request."""
    lines = [headline(trace), inputs_line(environment), "", *stages(trace, environment), ""]
    for finding in trace.findings:
        lines += finding_lines(finding, environment, trace, quote=quote, around=around)
    if with_timeline:
        lines += ["Timeline", *timeline(trace, environment), ""]
    return "\n".join(lines) + "\n"


def stages(trace: Trace, environment: Environment) -> list[str]:
    """Return a row per stage, with its time and its bar."""
    begin, length = trace.start, trace.duration
    rows = [
        (
            str(stage.number),
            STAGES[stage.number][1],
            stage.state.value.upper() if stage.state in _LOUD else stage.state.value,
            clock(stage.first),
            f"{span(stage.hop):>7}" if stage.hop is not None else "",
            _where(stage, environment),
            _bar(stage, begin=begin, length=length),
            stage.note + (f" (via {stage.via})" if stage.via != "direct" else ""),
        )
        for stage in trace.stages
    ]
    return table(rows, head=("#", "stage", "state", "time", "   +hop", "pod", f"0 .. {span(length)}", ""))


def _where(stage: StageResult, environment: Environment) -> str:
    names = pods(stage.records, environment)
    return "" if not names else names[0] if len(names) == 1 else f"{len(names)} pods"


def _bar(stage: StageResult, *, begin: float, length: float) -> str:
    if not stage.first:
        return ""
    end = min(_BAR - 1, max(0, round((stage.first - begin) / length * (_BAR - 1)))) if length else 0
    took = min(end, round((stage.hop or 0) / length * (_BAR - 1))) if length and (stage.hop or 0) > 0 else 0
    return " " * (end - took) + "=" * took + ("X" if stage.state is StageState.FAILED else "|")


def finding_lines(
    finding: RequestFinding,
    environment: Environment,
    trace: Trace,
    *,
    quote: Quote = describe,
    around: Around = no_context,
) -> list[str]:
    """Return a finding of a request: what, why, on what evidence, and what to do."""
    entry, key = finding.entry, trace.key
    # Runbooks are searched by this sentence, so it starts its line.
    lines = [f"ERROR: {STAGES[entry.stage][2]}"] if entry.severity == "error" and entry.stage else []
    lines.append(f"{entry.code} {entry.severity}  {entry.title}  ({finding.confidence})")
    lines += [f"  {printable(part)}" for part in finding.detail.splitlines()[:5]]
    for index, record in enumerate(finding.evidence):
        lines.append(f"  evidence  {environment.writers[record.file].path}:{record.line}  {printable(quote(record))}")
        near = around(record) if index < _MOST_SURROUNDED else ()
        lines += [f"  {number:>8}  {printable(line)}" for number, line in near]
    lines.append(f"  why       {entry.cause}")
    lines += [f"  do        {command}" for command in map(printable, finding.advice(key))]
    if entry.severity == "error":
        lines += [f"  check     {SQL[name].replace('$1', _sql_text(key.resource))}" for name in entry.sql]
    return [*lines, ""]


def _sql_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def timeline(trace: Trace, environment: Environment) -> list[str]:
    """Return every record of the request in order of time."""
    shown, left_out = shown_records(trace.timeline)
    rows = [
        (clock(record.at), str(record.stage), environment.writers[record.file].pod,
         f"{environment.writers[record.file].path}:{record.line}", describe(record))
        for record in shown
    ]  # fmt: skip
    return [*table(rows, head=("time", "stage", "pod", "where", "what")), *left_out_note(left_out)]


def left_out_note(count: int) -> list[str]:
    """Return the line that says how many records of a timeline are not shown."""
    which = f"repetitions, and those between the first and the last {MOST_SHOWN // 2:,}"
    return [f"  {count:,} records are left out: {which}"] if count else []


def summary(traces: Sequence[Trace]) -> list[str]:
    """Return one line per request of a resource."""
    rows = [
        (str(number), trace.key.action, f"v{trace.key.version}", clock(trace.start), outcome(trace))
        for number, trace in enumerate(traces)
    ]
    return table(rows, head=("nth", "action", "version", "start", "verdict"))


def trace_log(traces: Sequence[Trace], environment: Environment, *, quote: Quote) -> Iterator[str]:
    """Yield the lines of each request, with the runbooks' sentence where a stage is missing or failed."""
    for trace in traces:
        yield f"{headline(trace)}\n\n"
        for stage in trace.stages:
            for pod, records in _by_pod(stage.records, environment):
                writer = "maestro agent" if stage.number in AGENT_STAGES else "maestro server instance"
                yield f"In {writer} {printable(pod)}\n"
                for record in records:
                    yield f"{quote(record)}\n"
            if stage.state in _LOUD:
                yield f"ERROR: {STAGES[stage.number][2]}\n"
        yield "\n"


def _by_pod(records: Iterable[LogRecord], environment: Environment) -> list[tuple[str, list[LogRecord]]]:
    by_pod: dict[str, list[LogRecord]] = {}
    for record in sorted(records, key=lambda record: (record.at, record.file, record.line)):
        by_pod.setdefault(environment.writers[record.file].pod, []).append(record)
    return list(by_pod.items())
