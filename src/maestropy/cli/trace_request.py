"""`maestro trace request` and `requests`: where each request is, and why it stopped; `explain`: what a code means."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from maestropy.cli import trace_inputs
from maestropy.cli import trace_request_options as options
from maestropy.trace.errors import BadQuestion
from maestropy.trace.exits import Exit

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
explain = App(
    name="explain",
    help="Explain a finding's code.",
    help_epilogue="""\
Examples:

  maestro trace explain MT-404
  maestro trace explain "Maestro agent does not receive the spec request"
  maestro trace explain --list""",
    help_format="plaintext",
    version_flags=[],
)


_REPORTING = options.Reporting()
_CHOICE = options.Choice()
_DEPTH = options.Depth()
_LIVE = options.Live()
_LISTING = options.Listing()
_FOLLOW = options.Follow()


@request.default
def trace_request(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True)],
    choice: Annotated[options.Choice, Parameter(name="*")] = _CHOICE,
    depth: Annotated[options.Depth, Parameter(name="*")] = _DEPTH,
    reporting: Annotated[options.Reporting, Parameter(name="*")] = _REPORTING,
    logs: Annotated[trace_inputs.Logs, Parameter(name="*")] = trace_inputs.NO_LOGS,
    live: Annotated[options.Live, Parameter(name="*")] = _LIVE,
) -> int:
    """Trace one request.

    Parameters
    ----------
    words
        Identifiers, and the files, directories, archives or - (standard input) to read.
    """

    def act() -> int:
        options.check_depth(depth)
        chosen = options.with_environment(choice, os.environ)
        given = trace_inputs.separated(words, logs, environ=os.environ)
        named = (chosen.resource_id, chosen.op_id, chosen.work_name, chosen.manifest_name, chosen.event_id)
        identifiers = tuple(dict.fromkeys([*given.identifiers, *filter(None, named)]))
        if live.live:
            if chosen.at:
                raise BadQuestion("--at chooses among requests of the past; leave it out with --live")
            return _live(given.paths, identifiers, live=live, reporting=reporting)
        from maestropy.aio.clock import Clock
        from maestropy.cli import trace_reports

        question = trace_reports.Question(
            identifiers=identifiers,
            must_all_fit=sum(map(bool, named)) > 1,
            action=options.action_of(chosen),
            version=chosen.version,
            nth=chosen.nth,
            at=trace_inputs.moment_or_age(chosen.at, option="--at", now=Clock().epoch()) if chosen.at else None,
            with_timeline=depth.show == "timeline",
            context_lines=depth.context_lines,
            dsn=depth.db_dsn,
        )
        named_place = os.environ.get("output_dir", "") if given.is_by_variables else ""  # noqa: SIM112 - as scripts spell it
        place = depth.output_dir or (Path(named_place) if named_place else None)
        is_logged = depth.trace_log or given.is_by_variables or place is not None
        report = replace(options.plain(reporting), trace_log=is_logged, trace_log_dir=place)
        return trace_reports.one(given.needed(), question, reporting=report)

    return trace_inputs.guarded(act, exit_zero=reporting.exit_zero)


def _live(
    paths: Sequence[str], identifiers: tuple[str, ...], *, live: options.Live, reporting: options.Reporting
) -> int:
    from maestropy.cli import trace_live
    from maestropy.cli.trace_follow import Sources
    from maestropy.cli.up import data_home
    from maestropy.trace.request.tails import existing

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
        options=options.plain(reporting).options,
    )
    return trace_live.live(Sources(paths=tuple(found), pods=live.pods), wanted)


@requests.default
def trace_requests(
    *paths: Annotated[str, Parameter(allow_leading_hyphen=True)],
    reporting: Annotated[options.Reporting, Parameter(name="*")] = _REPORTING,
    logs: Annotated[trace_inputs.Logs, Parameter(name="*")] = trace_inputs.NO_LOGS,
    select: Annotated[trace_inputs.Selection, Parameter(name="*")] = trace_inputs.ALL,
    listing: Annotated[options.Listing, Parameter(name="*")] = _LISTING,
    follow: Annotated[options.Follow, Parameter(name="*")] = _FOLLOW,
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
        _check_together(listing, reporting, follow)
        from maestropy.aio.clock import Clock

        chosen = trace_inputs.dated(select, now=Clock().epoch())
        if follow.follow:
            return _follow(given.paths, chosen, follow=follow, reporting=reporting)
        from maestropy.cli import trace_index, trace_reports

        return trace_reports.all_of(
            given.needed(),
            chosen,
            reporting=options.plain(reporting),
            views=trace_reports.Views(
                group_by=listing.group_by, top=listing.top, matrix=listing.matrix, histogram=listing.histogram
            ),
            reading=trace_index.Reading(
                jobs=listing.jobs or os.cpu_count() or 1, index=listing.index, is_verbose=listing.verbose
            ),
        )

    return trace_inputs.guarded(act, exit_zero=reporting.exit_zero)


def _check_together(listing: options.Listing, reporting: options.Reporting, follow: options.Follow) -> None:
    if follow.follow and (
        reporting.output not in ("text", "json") or reporting.html or reporting.csv or reporting.out
        or listing.matrix or listing.histogram
    ):  # fmt: skip
        raise BadQuestion("--follow writes text or, with -o json, a JSON document per line; leave out other outputs")
    if (listing.matrix or listing.histogram) and reporting.output != "text":
        raise BadQuestion("--matrix and --histogram are text; leave out -o, or use --csv FILE and --html FILE besides")


def _follow(
    paths: Sequence[str], select: trace_inputs.Selection, *, follow: options.Follow, reporting: options.Reporting
) -> int:
    from maestropy.cli import trace_follow
    from maestropy.trace.request.tails import existing

    if not paths and not follow.pods.is_given:
        raise BadQuestion(
            "nothing to follow is given; name files or directories, or --server-context and --agent-context for pods"
        )
    asked = trace_follow.Following(
        select=select,
        options=options.plain(reporting).options,
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
    from maestropy.trace.request.codes import CODES, STAGES, explained
    from maestropy.trace.work import codes as of_works

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
