"""Write traced requests in every format, in pieces of text: a few in full, or all of some logs. Prints nothing."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from maestropy.trace.logs import tracer
from maestropy.trace.logs.judge import database_checks
from maestropy.trace.logs.model import SETTLED, Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.logs.selection import RequestFilter, exit_code
from maestropy.trace.logs.tracing import RequestLogs
from maestropy.trace.output import Exit, json_line
from maestropy.trace.report import documents, json_model, log_lines, markdown, overview, page, stage_counts, waterfall
from maestropy.trace.report.documents import Document, PackedLines
from maestropy.trace.report.page_data import Rows
from maestropy.trace.report.statistics import Statistics, hop_times, statistics

_WITHOUT_EVIDENCE: Final = frozenset({"text", "csv", "md"})
_FOR_PROGRAMS: Final = frozenset({"json", "jsonl", "yaml"})
_LISTED: Final = frozenset({"md", "mermaid", "log"})
"""Formats for people, which list as many requests as are asked for."""
_LONGEST_LOG_LINE: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FewRequests:
    """The report on the requests of one resource, or of a few."""

    traces: Sequence[Trace]
    environment: Environment
    now: float
    checks: Sequence[database_checks.CheckResults] = ()
    """What the database shows of each request, where it was asked."""
    with_timeline: bool = False
    context_lines: int = 0
    """How many lines to show before and after each that supports a finding."""
    is_partial: bool = False
    """Whether a part of the logs could not be read."""

    @property
    def exit_code(self) -> int:
        return exit_code(self.traces, is_partial=self.is_partial)

    def pieces(self, form: str) -> Iterable[str]:
        """Return the report in one of the formats."""
        quote = log_lines.LineQuotes(self.environment.writers)
        document = Document(traces=self.traces, environment=self.environment, numbers=statistics(self.traces),
                            exit_code=self.exit_code, now=self.now, is_in_full=True)  # fmt: skip
        match form:
            case "text":
                return ["\n".join(self._texts(quote))]
            case "md":
                return ["\n".join(markdown.one(trace, self.environment, quote=quote) for trace in self.traces)]
            case "json":
                return documents.json_indented(document)
        return _formatted(document, form)

    def _texts(self, quote: waterfall.Quote) -> Iterator[str]:
        if len(self.traces) > 1:
            yield "\n".join(waterfall.summary(self.traces)) + "\n"
        near = partial(log_lines.around, self.environment.writers, count=self.context_lines)
        for at, trace in enumerate(self.traces):
            text = waterfall.text(trace, self.environment, quote=quote, around=near, with_timeline=self.with_timeline)
            lines = database_checks.lines(self.checks[at]) if self.checks else ()
            yield text + "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """What to show of many requests besides their list."""

    group_by: str = "none"
    top: int = 20
    matrix: bool = False
    histogram: bool = False


@dataclass(slots=True, kw_only=True)
class ManyRequests:
    """The report on all requests of some logs, which are judged one by one: all their records need too much memory."""

    logs: RequestLogs
    views: Views
    now: float
    traces: list[Trace] = field(init=False)
    nothing_matches: str = ""
    """A sentence if filters leave no request."""
    _is_name_unknown: bool = False
    """Whether no request has the consumer and the source of the filters: they may be misspelt."""
    _rows: Rows | None = None
    _matrix: stage_counts.Matrix | None = None
    _numbers: Statistics = field(init=False)
    _packer: PackedLines = field(default_factory=PackedLines)
    _packed: list[bytes] = field(default_factory=list)

    def judge(self, select: RequestFilter, *, form: str, has_page: bool) -> None:
        """Judge the selected requests, and keep of them what a format and a page need."""
        if has_page or form == "html":
            self._rows = page.rows_of(self.logs.environment)
        if self.views.matrix:
            self._matrix = stage_counts.Matrix(self.logs.environment)
        evidence = self._kept_evidence(form)
        is_packed = evidence != "all" and form in _FOR_PROGRAMS
        taken: list[tuple[Trace, bytes]] = []
        judged = named = 0
        for trace in self.logs.traces(evidence=evidence):
            judged += 1
            named += select.names(trace)
            if select.matches(trace):
                self._take(trace)
                taken.append((trace, self._line(trace) if is_packed and trace.verdict not in SETTLED else b""))
        taken.sort(key=lambda pair: pair[0].start)
        self.traces = [trace for trace, _ in taken]
        self._packed = [packed for _, packed in taken] if is_packed else []
        self._numbers = statistics(self.traces, top=self.views.top or 5)
        if select.is_set and not taken:
            self.nothing_matches = f"no request matches the filters; without them there are {judged:,}"
            self._is_name_unknown = bool(select.consumer or select.source) and not named

    def _kept_evidence(self, form: str) -> tracer.EvidenceKept:
        """Return which records the traces must keep: of many requests, only those that need attention are in full."""
        is_small = self.logs.resource_count <= documents.MOST_IN_FULL
        shows_evidence = self._rows is not None or form not in _WITHOUT_EVIDENCE
        if is_small and shows_evidence:
            return "all" if self._matrix is None and self._rows is None else "again"
        return "again" if self._matrix is not None else "brief"

    def _take(self, trace: Trace) -> None:
        """Add a trace to the page and the matrix, while it has its records."""
        for taker in (self._rows, self._matrix):
            if taker is not None:
                taker.add(trace)

    def _line(self, trace: Trace) -> bytes:
        """Return a request in full as a line of JSON, compressed."""
        return self._packer.packed(json_line(json_model.trace_model(trace, self.logs.environment)))

    @property
    def exit_code(self) -> int:
        if self._is_name_unknown:
            return Exit.NOT_FOUND
        return exit_code(self.traces, is_partial=self.logs.scan.is_partial)

    @property
    def listed(self) -> Sequence[Trace]:
        """The requests that are listed for people: problems first, then the slowest."""
        ordered = sorted(self.traces, key=lambda trace: (trace.verdict in SETTLED, -trace.duration))
        return ordered[: self.views.top or len(ordered)]

    def pieces(self, form: str, *, took: float = 0.0) -> Iterable[str]:
        """Return the report in one of the formats; `took` is how long reading and judging took."""
        environment = self.logs.environment
        if form == "html" and self._rows is not None:
            return [page.html(self._rows, code=self.exit_code, now=self.now)]
        if form == "text":
            read = f"read {self.logs.scan.bytes / 1e6:,.1f} MB in {took:.1f} s"
            return [overview.text(self._numbers, environment, self.listed, read=read), *self._more()]
        traces = self.listed if form in _LISTED else self.traces
        packed = self._packed if form in _FOR_PROGRAMS else ()
        document = Document(traces=traces, environment=environment, numbers=self._numbers, exit_code=self.exit_code,
                            now=self.now, packed=packed, packer=self._packer)  # fmt: skip
        return _formatted(document, form)

    def _more(self) -> Iterator[str]:
        """Yield the additional views, and the findings about the logs."""
        parts = []
        if self.views.group_by != "none":
            parts.append(overview.grouped(self.traces, self.views.group_by))
        if self._matrix is not None:
            parts.append(self._matrix.lines(top=self.views.top))
        if self.views.histogram:
            parts.append(stage_counts.histogram(hop_times(self.traces)))
        yield from ("\n" + "\n".join(lines) + "\n" for lines in parts)
        for note in tracer.log_findings(self.logs.environment):
            yield f"{note.code} {note.entry.title}: {note.detail}\n"


def _formatted(document: Document, form: str) -> Iterable[str]:
    """Return requests in one of the formats for programs and documents."""
    traces, environment = document.traces, document.environment
    match form:
        case "csv":
            return overview.csv_pieces(traces)
        case "md":
            return [markdown.many(traces, document.numbers)]
        case "mermaid":
            return (
                ("\n" if number else "") + overview.mermaid(trace, environment) for number, trace in enumerate(traces)
            )
        case "log":
            quote = log_lines.LineQuotes(environment.writers, longest=_LONGEST_LOG_LINE)
            return waterfall.trace_log(traces, environment, quote=quote)
        case "html":
            rows = page.rows_of(environment)
            rows.extend(traces)
            return [page.html(rows, code=document.exit_code, now=document.now)]
        case "jsonl":
            return documents.json_lines(document)
        case "yaml":
            return documents.yaml_pieces(document)
    return documents.json_pieces(document)
