"""`maestro trace request` and `requests`: where each request is, and why it stopped; `explain`: what a code means."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from pymaestro.cli import trace_inputs
from pymaestro.trace.exits import Exit

Format = Literal["text", "json", "yaml", "md", "csv", "html", "mermaid", "log"]

request = App(
    name="request",
    help="Follow one request, or all requests of one resource, through all stages.",
    help_epilogue="""\
Examples:

  maestro trace request 83dcf85d-3b0a-5f98-a940-fa44f1d2d465 ./maestro-logs
      by resource ID; op-id, work name and event id do as well

  maestro trace request nginx-work server.csv agent.csv --nth -1 --show timeline
      the last request of a work, from Kusto exports

Exit codes: 0 complete, 1 a problem, 2 usage, 3 no Maestro log, 4 not found, 5 no access, 6 inconclusive,
7 ambiguous.""",
    help_format="plaintext",
    version_flags=[],
)
requests = App(
    name="requests",
    help="All requests in the logs at once: verdicts, latencies, where they stop.",
    help_epilogue="""\
Examples:

  maestro trace requests ./maestro-logs --status failed --status incomplete
  maestro trace requests logs.tar.gz --slow 2 --group-by consumer
  kubectl logs deploy/maestro | maestro trace requests - -o json""",
    help_format="plaintext",
    version_flags=[],
)
explain = App(name="explain", help="Explain a finding's code.", help_format="plaintext", version_flags=[])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """How to report."""

    output: Annotated[Format, Parameter(name=("-o", "--output"))] = "text"
    """What to write."""
    out: Annotated[Path | None, Parameter(name="--out")] = None
    """A file to write to instead of the terminal."""
    html: Annotated[Path | None, Parameter(name="--html")] = None
    """A file for the report as one web page that needs no network, besides the other output."""
    exit_zero: Annotated[bool, Parameter(name="--exit-zero", negative=())] = False
    """End with 0 whatever was found, for reporting jobs."""
    stage_timeout: Annotated[float, Parameter(name="--stage-timeout")] = 30.0
    """Seconds after which a stage that has not come counts as missing."""
    broker: Annotated[Literal["auto", "mqtt", "grpc"], Parameter(name="--broker")] = "auto"
    """How servers and agents speak; the logs usually show it."""
    subscription: Annotated[Literal["auto", "broadcast", "shared"], Parameter(name="--subscription")] = "auto"
    """How several servers share statuses; the logs usually show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which request; given several, all must fit."""

    resource_id: Annotated[str, Parameter(name="--resource-id")] = ""
    """The ID of the resource bundle."""
    op_id: Annotated[str, Parameter(name="--op-id")] = ""
    """The operation id; of a delete only the arrival carries its own."""
    work_name: Annotated[str, Parameter(name="--work-name")] = ""
    """The name of the ManifestWork."""
    manifest_name: Annotated[str, Parameter(name="--manifest-name")] = ""
    """The name of an object in the work, as the agent's lines show it."""
    event_id: Annotated[str, Parameter(name="--event-id")] = ""
    """The id of the CloudEvent, or of the event in the database."""
    resource_request: Annotated[str, Parameter(name="--resource-request")] = ""
    """create_request, update_request or delete_request."""
    version: Annotated[int, Parameter(name="--version")] = 0
    """The version that the request led to."""
    nth: Annotated[int | None, Parameter(name="--nth", allow_leading_hyphen=True)] = None
    """Which one in order of time: 0 the first, -1 the last."""


_REPORTING = Reporting()
_CHOICE = Choice()


@request.default
def trace_request(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True)],
    choice: Annotated[Choice, Parameter(name="*")] = _CHOICE,
    reporting: Annotated[Reporting, Parameter(name="*")] = _REPORTING,
    logs: Annotated[trace_inputs.Logs, Parameter(name="*")] = trace_inputs.NO_LOGS,
    show: Literal["stages", "timeline"] = "stages",
    db_dsn: Annotated[str, Parameter(name="--db-dsn")] = "",
) -> int:
    """Trace one request.

    Parameters
    ----------
    words
        Identifiers, and the files, directories, archives or - (standard input) to read.
    show
        stages, or stages and every record in order of time.
    db_dsn
        A Maestro database; the checks of the findings are run on it, read-only.
    """
    from pymaestro.cli import trace_reports

    def act() -> int:
        chosen = _with_environment(choice, os.environ)
        paths, identifiers = trace_inputs.separated(words, logs, environ=os.environ)
        named = (chosen.resource_id, chosen.op_id, chosen.work_name, chosen.manifest_name, chosen.event_id)
        identifiers = [*identifiers, *filter(None, named)]
        question = trace_reports.Question(
            identifiers=tuple(dict.fromkeys(identifiers)),
            must_all_fit=sum(map(bool, named)) > 1,
            action=chosen.resource_request.removesuffix("_request"),
            version=chosen.version,
            nth=chosen.nth,
            with_timeline=show == "timeline",
            dsn=db_dsn,
        )
        return trace_reports.one(paths, question, reporting=_plain(reporting))

    return trace_inputs.guarded(act, exit_zero=reporting.exit_zero)


@requests.default
def trace_requests(
    *paths: Annotated[str, Parameter(allow_leading_hyphen=True)],
    reporting: Annotated[Reporting, Parameter(name="*")] = _REPORTING,
    logs: Annotated[trace_inputs.Logs, Parameter(name="*")] = trace_inputs.NO_LOGS,
    select: Annotated[trace_inputs.Selection, Parameter(name="*")] = trace_inputs.ALL,
    group_by: Annotated[
        Literal["none", "consumer", "source", "action", "stage", "code"], Parameter(name="--group-by")
    ] = "none",
    top: int = 20,
    jobs: int = 0,
) -> int:
    """Trace all requests.

    Parameters
    ----------
    paths
        Files, directories, archives, or - for standard input.
    group_by
        Count per consumer, source, action, stage where it stopped, or finding.
    top
        How many requests to list: the problems first, then the slowest; 0 for all.
    jobs
        How many processes read; 0 for one per processor.
    """
    from pymaestro.cli import trace_reports

    def act() -> int:
        found, rest = trace_inputs.separated(paths, logs, environ=os.environ)
        if rest:
            raise trace_inputs.not_there(rest[0])
        return trace_reports.all_of(found, select, reporting=_plain(reporting), group_by=group_by, top=top, jobs=jobs)

    return trace_inputs.guarded(act, exit_zero=reporting.exit_zero)


@explain.default
def explain_code(code: str = "", *, list_all: Annotated[bool, Parameter(name="--list", negative=())] = False) -> int:
    """Print cause, advice and checks of a finding.

    Parameters
    ----------
    code
        Such as MT-404.
    list_all
        Print all codes with their titles.
    """
    from pymaestro.trace.request.codes import CODES, explained
    from pymaestro.trace.work import codes as of_works

    if list_all or not code:
        rows = [f"{each.code}  {each.severity:5}  {each.title}\n" for each in CODES.values()]
        rows += [f"{each.code}  {each.severity:5}  {each.title}\n" for each in of_works.CATALOGUE.values()]
        sys.stdout.write("".join(rows))
        return Exit.HEALTHY
    wanted = code.upper()
    if wanted in of_works.CATALOGUE:
        sys.stdout.write(of_works.explained(wanted))
        return Exit.HEALTHY
    if wanted not in CODES:
        sys.stderr.write(f"Error: there is no code {code}; see `maestro trace explain --list`\n")
        return Exit.USAGE
    sys.stdout.write(explained(wanted))
    return Exit.HEALTHY


def _plain(reporting: Reporting) -> trace_inputs.Report:
    from pymaestro.trace.request.model import Options

    options = Options(
        stage_timeout=reporting.stage_timeout, broker=reporting.broker, subscription=reporting.subscription
    )
    return trace_inputs.Report(format=reporting.output, out=reporting.out, options=options, html=reporting.html)


def _with_environment(choice: Choice, environ: Mapping[str, str]) -> Choice:
    """Take the variables of the older scripts where an option is not given."""
    from dataclasses import replace

    return replace(
        choice,
        resource_id=choice.resource_id or environ.get("resource_id", ""),
        work_name=choice.work_name or environ.get("work_name", ""),
        resource_request=choice.resource_request or environ.get("resource_request", ""),
    )
