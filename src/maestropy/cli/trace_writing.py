"""Bring a trace over logs into the form that was asked for, and to where it was asked to go."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from maestropy import __version__
from maestropy.cli import trace_inputs
from maestropy.trace.errors import BadQuestion
from maestropy.trace.output import envelope, json_text, yaml_text
from maestropy.trace.request import document, markdown, overview, page, scan, survey
from maestropy.trace.request.hits import Hit
from maestropy.trace.request.inputs import Environment, Writer
from maestropy.trace.request.model import Trace
from maestropy.trace.request.pagerows import Rows, shown_line
from maestropy.trace.request.statistics import Statistics
from maestropy.trace.request.tracelog import trace_log
from maestropy.trace.request.words import said

_LONGEST_QUOTE = 300


def formatted(
    traces: Sequence[Trace], known: Environment, numbers: Statistics, *, form: str, code: int, now: float
) -> str:
    """Return the report in one of the forms that hold all requests at once."""
    match form:
        case "csv":
            return overview.csv_text(traces)
        case "md":
            return markdown.many(traces, numbers)
        case "mermaid":
            return "\n".join(overview.mermaid(each, known) for each in traces)
        case "log":
            return trace_log(traces, known, quote=quoting(known.writers, longest=1 << 16))
        case "html":
            rows = page_rows(known)
            rows.extend(traces)
            return html(rows, code=code, now=now)
    body = {
        "inputs": document.inputs_model(known),
        "requests": [document.trace_model(each, known) for each in traces],
        "notes": [document.finding_model(each, known) for each in survey.notes(known)],
        "stats": document.statistics_model(numbers),
    }
    model = envelope(version=__version__, generated_at=document.stamp(now) or "", exit_code=code, body=body)
    return yaml_text(model) if form == "yaml" else json_text(model)


def quoting(writers: Sequence[Writer], *, longest: int = _LONGEST_QUOTE) -> "Quoting":
    """Return what quotes lines of these files."""
    return Quoting(writers, longest=longest)


class Quoting:
    """Quotes the line behind a record as it may be shown; what it says where the line cannot be had."""

    def __init__(self, writers: Sequence[Writer], *, longest: int) -> None:
        self._writers = writers
        self._longest = longest

    def __call__(self, hit: Hit) -> str:
        line = self.line(hit)
        return shown_line(line, longest=self._longest) if line else said(hit)

    def line(self, hit: Hit) -> str:
        """Return the line itself; nothing where it cannot be had."""
        return scan.line_of(self._writers, hit, longest=max(4000, self._longest))


def page_rows(known: Environment) -> Rows:
    """Return empty rows of a page over these logs."""
    return Rows(known=known, quote=quoting(known.writers).line)


def html(rows: Rows, *, code: int, now: float) -> str:
    """Return the page."""
    known = rows.known
    about = {"line": _about(known), "version": __version__, "generatedAt": document.stamp(now), "exitCode": code}
    model = rows.model(notes=survey.notes(known), about=about)
    return page.page(model, title=f"Maestro requests: {rows.count:,}")


def _about(known: Environment) -> str:
    """Return one line about the logs."""
    firsts = [each.first for each in known.writers if each.first]
    first, last = document.stamp(min(firsts, default=0.0)) or "", document.stamp(known.end) or ""
    day, end = first[:10], last[11:19] if first[:10] == last[:10] else last[:19].replace("T", " ")
    servers, agents = {each.pod for each in known.servers}, {each.pod for each in known.agent_logs}
    parts = [
        f"{day} {first[11:19]} to {end} UTC" if first else "no times",
        f"{len(servers)} server{'s' * (len(servers) != 1)}, {len(agents)} agent{'s' * (len(agents) != 1)}",
        f"{sum(each.bytes for each in known.writers) / 1e6:,.1f} MB of logs",
    ]
    return "  ·  ".join(parts)


def put(text: str, *, out: Path | None, option: str = "--out") -> None:
    """Write a report to standard output or to a file."""
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadQuestion(f"{option} {out} cannot be written: {error.strerror}; name another file") from error
    # What is written besides must not stand in the middle of a document.
    stream = sys.stdout if option == "--out" else sys.stderr
    stream.write(f"Report written to {out}\n")


def put_trace_log(text: str, paths: Iterable[str], *, moment: str, folder: Path | None) -> None:
    """Write `trace_request.<moment>.log` beside the logs, where runbooks look for it; never over another one."""
    if folder is None:
        folder = next((Path(each) for each in paths if Path(each).is_dir()), Path())
    name = folder / f"trace_request.{moment}.log"
    for number in range(2, 100):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with name.open("x", encoding="utf-8") as stream:
                stream.write(text)
        except FileExistsError:
            name = folder / f"trace_request.{moment}-{number}.log"
        except OSError as error:
            raise BadQuestion(f"{name} cannot be written: {error.strerror}; use -o log --out FILE") from error
        else:
            sys.stdout.write(f"Trace log: {name}\n")
            return


def write(text: str, report: trace_inputs.Report) -> None:
    """Write a report as its options say."""
    put(text, out=report.out)
