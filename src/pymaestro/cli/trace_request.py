"""`maestro trace request` and `requests`: where each request is, and why it stopped; `explain`: what a code means."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Group, Parameter

from pymaestro.cli import trace_inputs, trace_pods
from pymaestro.trace.errors import BadQuestion
from pymaestro.trace.exits import Exit

Format = Literal["text", "json", "yaml", "md", "csv", "html", "mermaid", "log"]

request = App(
    name="request",
    usage="maestro trace request [OPTIONS] [ARGS...]",
    help="Follow one request, or all requests of one resource, through all stages.",
    help_epilogue="""\
Examples:

  maestro trace request 83dcf85d-3b0a-5f98-a940-fa44f1d2d465 ./maestro-logs
      by resource ID; op-id, work name and event id do as well

  maestro trace request nginx-work server.csv agent.csv --nth -1 --show timeline
      the last request of a work, from Kusto exports

  maestro trace request --live hello
      the newest request of a work of `maestro up`, while it happens

Exit codes: 0 complete, 1 a problem, 2 usage, 3 no Maestro log, 4 not found, 5 no access, 6 inconclusive,
7 ambiguous.""",
    help_format="plaintext",
    version_flags=[],
)
requests = App(
    name="requests",
    usage="maestro trace requests [OPTIONS] [ARGS...]",
    help="All requests in the logs at once: verdicts, latencies, where they stop.",
    help_epilogue="""\
Examples:

  maestro trace requests ./maestro-logs --status failed --status incomplete
  maestro trace requests logs.tar.gz --slow 2s --group-by consumer
  maestro trace requests ./maestro-logs --html report.html
  maestro trace requests --follow --server-context svc --agent-context mgmt --for 10m
  kubectl logs deploy/maestro | maestro trace requests - -o json""",
    help_format="plaintext",
    version_flags=[],
)
explain = App(name="explain", help="Explain a finding's code.", help_format="plaintext", version_flags=[])


@Parameter(group=Group("Report", sort_key=3))
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
    expect_instances: Annotated[int, Parameter(name="--expect-instances")] = 0
    """How many servers there are; if logs of fewer are given, their stages count as not observable."""
    subscription: Annotated[Literal["auto", "broadcast", "shared"], Parameter(name="--subscription")] = "auto"
    """How several servers share statuses; the logs usually show it."""


@Parameter(group=Group("Which request", sort_key=1), show_default=False)
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


@Parameter(group=Group("Report", sort_key=3), show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How much to show of a request."""

    show: Annotated[Literal["stages", "timeline"], Parameter(name="--show")] = "stages"
    """stages, or stages and every record in order of time."""
    db_dsn: Annotated[str, Parameter(name="--db-dsn")] = ""
    """A Maestro database; the checks of the findings are run on it, read-only."""
    trace_log: Annotated[bool, Parameter(name="--trace-log", negative=())] = False
    """Write the lines themselves to trace_request.<timestamp>.log beside the logs as well."""
    output_dir: Annotated[Path | None, Parameter(name="--output-dir")] = None
    """Where to write that file instead; implies --trace-log."""


@Parameter(group=Group("While it happens", sort_key=4))
@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """While it happens."""

    live: Annotated[bool, Parameter(name="--live", negative=())] = False
    """Draw the newest request, or the newest of that name, while it happens; without logs those of `maestro up`."""
    is_next: Annotated[bool, Parameter(name="--next", negative=())] = False
    """With --live: wait for one that comes after now."""
    timeout: Annotated[str, Parameter(name="--timeout")] = "60s"
    """With --live: how long to wait."""
    pods: Annotated[trace_pods.Pods, Parameter(name="*")] = trace_pods.NO_PODS


@Parameter(group=Group("Report", sort_key=3))
@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """How to list many requests."""

    group_by: Annotated[
        Literal["none", "consumer", "source", "action", "stage", "code"], Parameter(name="--group-by")
    ] = "none"
    """Count per consumer, source, action, stage where it stopped, or finding."""
    top: Annotated[int, Parameter(name="--top")] = 20
    """How many requests to list: the problems first, then the slowest; 0 for all."""
    jobs: Annotated[int, Parameter(name="--jobs")] = 0
    """How many processes read; 0 for one per processor."""
    index: Annotated[str, Parameter(name="--index")] = "auto"
    """Where to keep what was read while the logs do not change: a file; auto: the user's cache, for large logs; off."""
    verbose: Annotated[bool, Parameter(name=("--verbose", "-v"), negative=())] = False
    """Say what became of the index."""


@Parameter(group=Group("While they happen", sort_key=5), show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """While they happen."""

    follow: Annotated[bool, Parameter(name=("--follow", "-f"), negative=())] = False
    """Go on: print each request when its verdict is final; without files the pods that the contexts lead to."""
    during: Annotated[str, Parameter(name="--for")] = ""
    """With --follow: for how long, such as 60s or 5m; without it until Ctrl-C."""
    pods: Annotated[trace_pods.Pods, Parameter(name="*")] = trace_pods.NO_PODS


_REPORTING = Reporting()
_CHOICE = Choice()
_DEPTH = Depth()
_LIVE = Live()
_LISTING = Listing()
_FOLLOW = Follow()


@request.default
def trace_request(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True)],
    choice: Annotated[Choice, Parameter(name="*")] = _CHOICE,
    depth: Annotated[Depth, Parameter(name="*")] = _DEPTH,
    reporting: Annotated[Reporting, Parameter(name="*")] = _REPORTING,
    logs: Annotated[trace_inputs.Logs, Parameter(name="*")] = trace_inputs.NO_LOGS,
    live: Annotated[Live, Parameter(name="*")] = _LIVE,
) -> int:
    """Trace one request.

    Parameters
    ----------
    words
        Identifiers, and the files, directories, archives or - (standard input) to read.
    """

    def act() -> int:
        chosen = _with_environment(choice, os.environ)
        given = trace_inputs.separated(words, logs, environ=os.environ)
        named = (chosen.resource_id, chosen.op_id, chosen.work_name, chosen.manifest_name, chosen.event_id)
        identifiers = tuple(dict.fromkeys([*given.identifiers, *filter(None, named)]))
        if live.live:
            return _live(given.paths, identifiers, live=live, reporting=reporting)
        from pymaestro.cli import trace_reports

        question = trace_reports.Question(
            identifiers=identifiers,
            must_all_fit=sum(map(bool, named)) > 1,
            action=chosen.resource_request.removesuffix("_request"),
            version=chosen.version,
            nth=chosen.nth,
            with_timeline=depth.show == "timeline",
            dsn=depth.db_dsn,
        )
        named_place = os.environ.get("output_dir", "") if given.is_by_variables else ""  # noqa: SIM112 - as scripts spell it
        place = depth.output_dir or (Path(named_place) if named_place else None)
        is_logged = depth.trace_log or given.is_by_variables or place is not None
        report = replace(_plain(reporting), trace_log=is_logged, trace_log_dir=place)
        return trace_reports.one(given.needed(), question, reporting=report)

    return trace_inputs.guarded(act, exit_zero=reporting.exit_zero)


def _live(paths: Sequence[str], identifiers: tuple[str, ...], *, live: Live, reporting: Reporting) -> int:
    from pymaestro.cli import trace_live
    from pymaestro.cli.trace_follow import Sources
    from pymaestro.cli.up import data_home
    from pymaestro.trace.request.tails import existing

    found = existing(paths)
    if not found and not live.pods.is_given:
        folder = data_home()
        if not folder.is_dir():
            raise BadQuestion("no logs are given and `maestro up` has none; name files or a directory, or contexts")
        found = [folder]
    wanted = trace_live.Wanted(
        identifiers=identifiers,
        is_next=live.is_next,
        timeout=trace_inputs.seconds(live.timeout, option="--timeout"),
        options=_plain(reporting).options,
    )
    return trace_live.live(Sources(paths=tuple(found), pods=live.pods), wanted)


@requests.default
def trace_requests(
    *paths: Annotated[str, Parameter(allow_leading_hyphen=True)],
    reporting: Annotated[Reporting, Parameter(name="*")] = _REPORTING,
    logs: Annotated[trace_inputs.Logs, Parameter(name="*")] = trace_inputs.NO_LOGS,
    select: Annotated[trace_inputs.Selection, Parameter(name="*")] = trace_inputs.ALL,
    listing: Annotated[Listing, Parameter(name="*")] = _LISTING,
    follow: Annotated[Follow, Parameter(name="*")] = _FOLLOW,
) -> int:
    """Trace all requests.

    Parameters
    ----------
    paths
        Files, directories, archives, or - for standard input.
    """

    def act() -> int:
        given = trace_inputs.separated(paths, logs, environ=os.environ)
        if given.identifiers:
            raise trace_inputs.not_there(given.identifiers[0])
        if follow.follow:
            return _follow(given.paths, select, follow=follow, reporting=reporting)
        from pymaestro.cli import trace_index, trace_reports

        return trace_reports.all_of(
            given.needed(),
            select,
            reporting=_plain(reporting),
            group_by=listing.group_by,
            top=listing.top,
            reading=trace_index.Reading(
                jobs=listing.jobs or os.cpu_count() or 1, index=listing.index, is_verbose=listing.verbose
            ),
        )

    return trace_inputs.guarded(act, exit_zero=reporting.exit_zero)


def _follow(paths: Sequence[str], select: trace_inputs.Selection, *, follow: Follow, reporting: Reporting) -> int:
    from pymaestro.cli import trace_follow
    from pymaestro.trace.request.tails import existing

    if reporting.output not in ("text", "json") or reporting.html or reporting.out:
        raise BadQuestion("--follow writes text or, with -o json, a JSON document per line; leave out other outputs")
    if not paths and not follow.pods.is_given:
        raise BadQuestion(
            "nothing to follow is given; name files or directories, or --server-context and --agent-context for pods"
        )
    asked = trace_follow.Following(
        select=select,
        options=_plain(reporting).options,
        is_json=reporting.output == "json",
        seconds=trace_inputs.seconds(follow.during, option="--for") if follow.during else 0.0,
    )
    return trace_follow.requests(trace_follow.Sources(paths=tuple(existing(paths)), pods=follow.pods), asked)


@explain.default
def explain_code(code: str = "", *, list_all: Annotated[bool, Parameter(name="--list", negative=())] = False) -> int:
    """Print cause, advice and checks of a finding.

    Parameters
    ----------
    code
        Such as MT-404; or the sentence of a runbook, such as "Maestro agent does not receive the spec request".
    list_all
        Print all codes with their titles.
    """
    from pymaestro.trace.request.codes import CODES, STAGES, explained
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
    if wanted in CODES:
        sys.stdout.write(explained(wanted))
        return Exit.HEALTHY
    sentence = wanted.removeprefix("ERROR:").strip()
    stage = next((number for number, names in STAGES.items() if names[2].upper() == sentence), 0)
    if not stage:
        sys.stderr.write(f"Error: there is no code {code}; see `maestro trace explain --list`\n")
        return Exit.USAGE
    causes = [each.code for each in CODES.values() if each.stage == stage and each.severity != "info"]
    sys.stdout.write(f"Stage {stage}, {STAGES[stage][1]}: {STAGES[stage][2]}. It may be one of these.\n\n")
    sys.stdout.write("\n".join(explained(each) for each in causes))
    return Exit.HEALTHY


def _plain(reporting: Reporting) -> trace_inputs.Report:
    from pymaestro.trace.request.model import Options

    options = Options(
        stage_timeout=reporting.stage_timeout,
        broker=reporting.broker,
        subscription=reporting.subscription,
        expected_instances=reporting.expect_instances,
    )
    return trace_inputs.Report(format=reporting.output, out=reporting.out, options=options, html=reporting.html)


def _with_environment(choice: Choice, environ: Mapping[str, str]) -> Choice:
    """Take the variables of the older scripts where an option is not given."""
    return replace(
        choice,
        resource_id=choice.resource_id or environ.get("resource_id", ""),
        work_name=choice.work_name or environ.get("work_name", ""),
        op_id=choice.op_id or environ.get("op_id", ""),
        manifest_name=choice.manifest_name or environ.get("manifest_name", ""),
        resource_request=choice.resource_request or environ.get("resource_request", ""),
    )
