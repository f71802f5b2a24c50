"""Carry out a trace over logs: read, judge, write. The only place where the tracer's parts over logs meet."""

import asyncio
import gc
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from maestropy.aio.clock import Clock
from maestropy.cli import trace_index, trace_inputs, trace_writing
from maestropy.cli.trace_selection import exit_code, is_selected, under_way
from maestropy.trace.database import DsnDatabase
from maestropy.trace.errors import BadQuestion, Unreadable
from maestropy.trace.output import Exit, json_text, printable
from maestropy.trace.request import coverage, evidence, markdown, nearby, overview, scan, survey, tally, waterfall
from maestropy.trace.request.inputs import Environment
from maestropy.trace.request.model import Finding, Trace, Verdict
from maestropy.trace.request.pagerows import Rows
from maestropy.trace.request.statistics import hop_times, statistics

_READ_WHOLE = 128 << 20
_LONGEST_WORD = 80
_MOST_NAMED = 8
_COMPONENTS = (
    "registering subscriber", "unregister subscriber", "broadcaster client", "cloudevents client",
    "recreate the listener", "stopping channel", "Listener: the state", "failed to send ", "send channel is full",
    "Serving gRPC", "Setting up ", "subscribed to ", "subscribe after connection", "cloudevents receiver",
    "failed to receive cloudevents", "mqtt client error", "MQTT error message", "certificate rotation",
    "clustername do not match", "invalid event", "parse cloud event type", "unsupported event",
    "Failed to handle the event", "another worker", "by this instance", "failed to decode s", "failed to handle s",
    "Could not ",
)  # fmt: skip
_SETTLED = frozenset({Verdict.COMPLETE, Verdict.NO_OP, Verdict.SUPERSEDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which requests are asked for."""

    identifiers: tuple[str, ...]
    must_all_fit: bool = False
    action: str = ""
    version: int = 0
    nth: int | None = None
    at: float | None = None
    """Seconds since 1970: only what was under way then."""
    with_timeline: bool = False
    context_lines: int = 0
    """How many lines to show before and after each that supports a finding."""
    dsn: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """What to show of many requests besides their list."""

    group_by: str = "none"
    top: int = 20
    matrix: bool = False
    histogram: bool = False


def one(paths: Sequence[str], question: Question, *, reporting: trace_inputs.Report) -> int:
    """Trace the requests of one resource or a few."""
    if not question.identifiers:
        raise BadQuestion("no identifier is given; name a resource ID, op-id, work name or event id")
    with trace_inputs.seekable(paths) as inputs, trace_inputs.progress(inputs) as told:
        now = Clock().epoch()
        finds: scan.Finds = {}
        first = scan.about(inputs, question.identifiers, now=now, progress=told, finds=finds)
        _check(first)
        _check_pods(first, reporting)
        found = scan.resources_of(first.hits, question.identifiers)
        wanted = _wanted(found, question)
        if isinstance(wanted, int):
            return wanted
        names = [*wanted, *question.identifiers]
        is_resource = set(wanted) <= set(question.identifiers)
        read = first if is_resource else scan.about(inputs, names, now=now, finds=finds)
        traces, known = _judged(read, wanted, reporting)
        if any(each.verdict not in _SETTLED for each in traces):
            # Why it stopped may stand anywhere: who was connected, and who was not.
            small = read.bytes < _READ_WHOLE
            more = [*names, *_COMPONENTS]
            read = scan.everything(inputs, now=now) if small else scan.about(inputs, more, now=now, finds=finds)
            traces, known = _judged(read, wanted, reporting)
        if _shows_lines(traces, question, reporting):
            # Counting lines takes longer than finding them, so it comes last and only where numbers are shown.
            scan.count_lines(read)
            traces, known = _judged(read, wanted, reporting)
        traces = [_asked_by_operation(each, question) for each in _chosen(traces, question, found)]
        if not traces:
            sys.stderr.write("Error: the resource is in the logs, but no such request of it; leave out the filters\n")
            return Exit.NOT_FOUND
        answers = [evidence.Answers()] * len(traces)
        if question.dsn:
            answers = asyncio.run(_asked(question.dsn, traces))
            traces = [evidence.refined(trace, answer) for trace, answer in zip(traces, answers, strict=True)]
        code = exit_code(traces)
        trace_writing.write(_one_text(traces, answers, known, question, reporting=reporting, code=code), reporting)
        _write_also(traces, known, reporting=reporting, code=code)
        if reporting.trace_log:
            flow = trace_writing.formatted(traces, known, statistics(traces), form="log", code=code, now=now)
            moment = f"{Clock().now():%Y-%m-%d_%H-%M-%S}"
            trace_writing.put_trace_log(flow, paths, moment=moment, folder=reporting.trace_log_dir)
    return code


def _shows_lines(traces: Sequence[Trace], question: Question, reporting: trace_inputs.Report) -> bool:
    is_more_than_text = reporting.format != "text" or reporting.html is not None or reporting.trace_log
    return is_more_than_text or question.with_timeline or any(each.findings for each in traces)


def _write_also(traces: Sequence[Trace], known: Environment, *, reporting: trace_inputs.Report, code: int) -> None:
    if reporting.csv is not None:
        trace_writing.put(overview.csv_text(traces), out=reporting.csv, option="--csv")
    if reporting.html is not None:
        rows = trace_writing.page_rows(known)
        rows.extend(traces)
        trace_writing.put(trace_writing.html(rows, code=code, now=Clock().epoch()), out=reporting.html, option="--html")


async def _asked(dsn: str, traces: Sequence[Trace]) -> list[evidence.Answers]:
    database = DsnDatabase(dsn=dsn)
    return [await evidence.ask(database, trace) for trace in traces]


def _check(read: scan.Scan) -> None:
    if read.unreadable and not read.writers:
        raise Unreadable("; ".join(read.unreadable) + "; give logs of Maestro servers and agents")
    if not any(each.hits for each in read.writers):
        names = ", ".join(each.path for each in read.writers[:5])
        raise Unreadable(f"no line of Maestro was recognised in {names}; give logs of Maestro servers and agents")
    for each in read.unreadable:
        sys.stderr.write(f"Warning: {each}\n")


def _check_pods(read: scan.Scan, report: trace_inputs.Report) -> None:
    pods = sorted({each.pod for each in read.writers})
    unknown = next((pod for pod, _ in report.options.clocks if pod not in pods), "")
    if unknown:
        names = ", ".join(pods[:_MOST_NAMED]) + (", …" if len(pods) > _MOST_NAMED else "")
        raise BadQuestion(f"--skew: there is no pod {_short(unknown)} in these logs; there are {printable(names)}")


def _asked_by_operation(trace: Trace, question: Question) -> Trace:
    """Say so when a delete was asked for by the op-id that only its arrival has."""
    if trace.key.action != "delete" or not trace.key.op or trace.key.op not in question.identifiers:
        return trace
    found = Finding(code="MT-008", confidence="certain", detail="its other records were found by the resource ID")
    return replace(trace, findings=(*trace.findings, found))


def _short(word: str) -> str:
    """Return what somebody typed, fit for a terminal."""
    return printable(word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}…")


def _wanted(found: dict[str, set[str]], question: Question) -> frozenset[str] | int:
    """Return the resources that are meant; an exit code when there are none or too many."""
    unknown = [each for each, resources in found.items() if not resources]
    if unknown and (question.must_all_fit or len(unknown) == len(found)):
        names = ", ".join(_short(each) for each in unknown)
        sys.stderr.write(
            f"Error: {names} is not in these logs; check the identifier, and what the logs cover: "
            "maestro trace logs check\nIf it was sent in that time: Maestro server does not receive the spec request "
            "(maestro trace explain MT-101)\n"
        )
        return Exit.NOT_FOUND
    for each in unknown:
        sys.stderr.write(f"Warning: {_short(each)} is not in these logs\n")
    if question.must_all_fit:
        common = frozenset.intersection(*(frozenset(each) for each in found.values()))
        if not common:
            sys.stderr.write("Error: no resource fits all identifiers together; leave one out\n")
            return Exit.NOT_FOUND
        return common
    for each, resources in found.items():
        if len(resources) > 1 and each not in resources:
            sys.stderr.write(f"Error: {_short(each)} stands for several resources; name one of them:\n")
            sys.stderr.write("".join(f"  {printable(one)}\n" for one in sorted(resources)))
            return Exit.AMBIGUOUS
    return frozenset().union(*found.values())


def _judged(
    read: scan.Scan, wanted: frozenset[str] | None, report: trace_inputs.Report
) -> tuple[list[Trace], Environment]:
    known = survey.surroundings(read.hits, read.writers, options=report.options)
    traces = list(survey.traces(read.hits, known, options=report.options, wanted=wanted))
    traces.sort(key=lambda each: each.start)
    return traces, known


def _chosen(traces: list[Trace], question: Question, found: dict[str, set[str]]) -> list[Trace]:
    operations = {each for each in question.identifiers if any(trace.key.op == each for trace in traces)}
    if operations and len(operations) == len(found):
        traces = [each for each in traces if each.key.op in operations]
    if question.action:
        traces = [each for each in traces if each.key.action == question.action]
    if question.version:
        traces = [each for each in traces if each.key.version == question.version]
    if question.at is not None:
        traces = under_way(traces, question.at)
    if question.nth is not None:
        place = question.nth if question.nth >= 0 else len(traces) + question.nth
        traces = traces[place : place + 1] if 0 <= place < len(traces) else []
    return traces


def _one_text(
    traces: Sequence[Trace],
    answers: Sequence[evidence.Answers],
    known: Environment,
    question: Question,
    *,
    reporting: trace_inputs.Report,
    code: int,
) -> str:
    if reporting.format == "md":
        return "\n".join(markdown.one(each, known, quote=trace_writing.quoting(known.writers)) for each in traces)
    if reporting.format != "text":
        numbers = statistics(traces)
        return trace_writing.formatted(traces, known, numbers, form=reporting.format, code=code, now=Clock().epoch())
    quote = trace_writing.quoting(known.writers)
    near = partial(nearby.around, known.writers, count=question.context_lines)
    parts = []
    if len(traces) > 1:
        parts.append("\n".join(waterfall.summary(traces)) + "\n")
    for trace, answer in zip(traces, answers, strict=True):
        text = waterfall.text(trace, known, quote=quote, around=near, with_timeline=question.with_timeline)
        parts.append(text + "".join(f"{line}\n" for line in evidence.lines(answer)))
    return "\n".join(parts)


def all_of(
    paths: Sequence[str],
    select: trace_inputs.Selection,
    *,
    reporting: trace_inputs.Report,
    views: Views,
    reading: trace_index.Reading,
) -> int:
    """Trace every request in the logs."""
    clock = Clock()
    started = clock.monotonic()
    # Millions of small values and no cycles among them: looking for cycles would take as long as reading.
    gc.disable()
    with trace_inputs.seekable(paths) as inputs, trace_inputs.progress(inputs) as told:
        # What came through a pipe is gone when this ends, and so would be its index; it holds clocks as the logs show.
        is_usual = "-" not in paths and reporting.options.are_clocks_compared and not reporting.options.clocks
        how = reading if is_usual else replace(reading, index="off")
        found = trace_index.read(inputs, how, now=clock.epoch(), progress=told)
    read = found.scan
    _check(read)
    _check_pods(read, reporting)
    known = survey.surroundings(
        read.hits, read.writers, options=reporting.options, are_clocks_known=found.resources is not None
    )
    resources = trace_index.sorted_out(found, known, how)
    # A page takes what it needs of each request as it comes: the records of all are more than memory should hold.
    rows = trace_writing.page_rows(known) if reporting.format == "html" or reporting.html else None
    matrix = tally.Matrix(known) if views.matrix else None
    is_brief = reporting.format in ("text", "csv", "md", "html")
    takers = [taker for taker in (rows, matrix) if taker is not None]
    judged = survey.traces(
        read.hits, known, options=reporting.options, resources=resources, is_brief=is_brief and not takers
    )
    selected = (each for each in judged if is_selected(each, select))
    traces = [_shown_to(each, takers, is_brief=is_brief) for each in selected]
    traces.sort(key=lambda each: each.start)
    numbers = statistics(traces, top=views.top or 5)
    code = exit_code(traces)
    if reporting.csv is not None:
        trace_writing.put(overview.csv_text(traces), out=reporting.csv, option="--csv")
    if rows is not None:
        text = trace_writing.html(rows, code=code, now=clock.epoch())
        if reporting.html is not None:
            trace_writing.put(text, out=reporting.html, option="--html")
        if reporting.format == "html":
            trace_writing.write(text, reporting)
            return code
    if reporting.format != "text":
        text = trace_writing.formatted(traces, known, numbers, form=reporting.format, code=code, now=clock.epoch())
        trace_writing.write(text, reporting)
        return code
    took = clock.monotonic() - started
    shown = sorted(traces, key=lambda each: (each.verdict in _SETTLED, -each.duration))[: views.top or len(traces)]
    text = overview.text(numbers, known, shown, read=f"read {read.bytes / 1e6:,.1f} MB in {took:.1f} s")
    trace_writing.write(text + _more(traces, known, matrix, views=views), reporting)
    return code


def _shown_to(trace: Trace, takers: Sequence[Rows | tally.Matrix], *, is_brief: bool) -> Trace:
    """Give a request to those who take what they need of its records; return what is kept of it."""
    for taker in takers:
        taker.add(trace)
    return trace.without_records() if is_brief and takers else trace


def _more(traces: Sequence[Trace], known: Environment, matrix: tally.Matrix | None, *, views: Views) -> str:
    """Return what was asked for besides the list, and what is to be said of the logs."""
    parts = []
    if views.group_by != "none":
        parts.append(overview.grouped(traces, views.group_by))
    if matrix is not None:
        parts.append(matrix.lines(top=views.top))
    if views.histogram:
        parts.append(tally.histogram(hop_times(traces)))
    notes = [f"{each.code} {each.entry.title}: {each.detail}\n" for each in survey.notes(known)]
    return "".join("\n" + "\n".join(lines) + "\n" for lines in parts) + "".join(notes)


def check(paths: Sequence[str], *, output: str) -> int:
    """Say what the logs cover."""
    with trace_inputs.seekable(paths) as inputs, trace_inputs.progress(inputs) as told:
        read = scan.everything(inputs, now=Clock().epoch(), progress=told)
    _check(read)
    from maestropy.trace.request.model import Options

    known = survey.surroundings(read.hits, read.writers, options=Options())
    sys.stdout.write(json_text(coverage.model(known)) if output == "json" else coverage.text(known))
    return Exit.HEALTHY
