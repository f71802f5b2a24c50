"""`maestro trace request` and `requests`: trace requests through logs; `explain`: print the entry of a code."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from maestropy.cli import screen
from maestropy.cli.trace.logs import inputs
from maestropy.cli.trace.logs import request_options as options
from maestropy.trace.errors import InvalidArguments
from maestropy.trace.exit_codes import Exit

if TYPE_CHECKING:
    from maestropy.trace.logs.selection import RequestFilter

request = App(
    name="request",
    usage="maestro trace request [OPTIONS] [ARGS...]",
    help="Trace one request, or all requests of one resource, through all stages.",
    help_epilogue="""\
Examples:

  maestro trace request 83dcf85d-3b0a-5f98-a940-fa44f1d2d465 ./maestro-logs
      by resource ID; op-id, work name and event ID work too

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
    help="Trace all requests in the logs: verdicts, latencies, where they stop.",
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
    help="Explain the code of a finding.",
    help_epilogue="""\
Examples:

  maestro trace explain MT-404
  maestro trace explain "Maestro agent does not receive the spec request"
  maestro trace explain --list""",
    help_format="plaintext",
    version_flags=[],
)


_REPORTING = options.ReportingOptions()
_CHOICE = options.RequestChoice()
_DEPTH = options.DepthSelection()
_LIVE = options.LiveOptions()
_LISTING = options.ListOptions()
_FOLLOW = options.FollowOptions()


@request.default
def trace_request(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True)],
    choice: Annotated[options.RequestChoice, Parameter(name="*")] = _CHOICE,
    depth: Annotated[options.DepthSelection, Parameter(name="*")] = _DEPTH,
    reporting: Annotated[options.ReportingOptions, Parameter(name="*")] = _REPORTING,
    logs: Annotated[inputs.Logs, Parameter(name="*")] = inputs.NO_LOGS,
    live: Annotated[options.LiveOptions, Parameter(name="*")] = _LIVE,
) -> int:
    """Trace one request.

    Parameters
    ----------
    words
        Identifiers, and the files, directories, archives or - (standard input) to read.
    """

    def act() -> int:
        options.check_depth(depth)
        options.check_choice(choice)
        chosen = options.with_environment(choice, os.environ)
        arguments = inputs.separate(words, logs, environ=os.environ)
        named = (chosen.resource_id, chosen.op_id, chosen.work_name, chosen.manifest_name, chosen.event_id)
        identifiers = tuple(dict.fromkeys([*arguments.identifiers, *filter(None, named)]))
        if live.live:
            if chosen.at:
                raise InvalidArguments("--at selects past requests; leave it out with --live")
            if chosen.consumer:
                raise InvalidArguments("--consumer selects among requests in logs; with --live, name the resource ID")
            return _live(arguments.paths, identifiers, live=live, reporting=reporting)
        if not identifiers:
            raise inputs.no_identifier(words)
        from maestropy.aio.clock import Clock
        from maestropy.cli.trace.logs import run as log_trace
        from maestropy.trace.logs.selection import RequestQuery

        query = RequestQuery(
            identifiers=identifiers,
            required=tuple(filter(None, named)),
            consumer=chosen.consumer,
            resource_id=chosen.resource_id,
            action=options.action_of(chosen),
            version=chosen.version,
            nth=chosen.nth,
            at=inputs.moment_or_age(chosen.at, option="--at", now=Clock().epoch()) if chosen.at else None,
        )
        named_place = os.environ.get("output_dir", "") if arguments.is_by_variables else ""  # noqa: SIM112 - as scripts spell it
        folder = depth.output_dir or (Path(named_place) if named_place else None)
        is_logged = depth.trace_log or arguments.is_by_variables or folder is not None
        logged = replace(depth, trace_log=is_logged, output_dir=folder)
        return log_trace.trace_one(arguments.needed(), query, reporting=reporting, depth=logged)

    return inputs.guarded(act, exit_zero=reporting.exit_zero)


def _live(
    paths: Sequence[str],
    identifiers: tuple[str, ...],
    *,
    live: options.LiveOptions,
    reporting: options.ReportingOptions,
) -> int:
    from maestropy.cli.dev.up import data_home
    from maestropy.cli.trace.logs import live as trace_live
    from maestropy.trace.follow import LiveTarget
    from maestropy.trace.logs.file_tails import existing

    files = existing(paths)
    if not files and not live.pods.is_given:
        folder = data_home()
        if not folder.is_dir():
            raise InvalidArguments(
                "no logs are given and `maestro up` has none; name files or a directory, or contexts"
            )
        files = [folder]
    target = LiveTarget(
        identifiers=identifiers,
        is_next=live.is_next,
        timeout=inputs.seconds(live.timeout, option="--timeout"),
        options=options.judging(reporting),
    )
    return trace_live.live(live.pods.with_files(files), target)


@requests.default
def trace_requests(
    *paths: Annotated[str, Parameter(allow_leading_hyphen=True)],
    reporting: Annotated[options.ReportingOptions, Parameter(name="*")] = _REPORTING,
    logs: Annotated[inputs.Logs, Parameter(name="*")] = inputs.NO_LOGS,
    select: Annotated[inputs.Selection, Parameter(name="*")] = inputs.ALL,
    listing: Annotated[options.ListOptions, Parameter(name="*")] = _LISTING,
    follow: Annotated[options.FollowOptions, Parameter(name="*")] = _FOLLOW,
) -> int:
    """Trace all requests.

    Parameters
    ----------
    paths
        Files, directories, archives, or - for standard input.
    """

    def act() -> int:
        arguments = inputs.separate(paths, logs, environ=os.environ)
        if arguments.identifiers:
            raise inputs.not_a_path(arguments.identifiers[0])
        options.check_listing(listing)
        _check_together(listing, reporting, follow)
        from maestropy.aio.clock import Clock

        chosen = inputs.request_filter(select, now=Clock().epoch())
        if follow.follow:
            return _follow(arguments.paths, chosen, follow=follow, reporting=reporting)
        from maestropy.cli.trace.logs import run as log_trace

        return log_trace.trace_all(arguments.needed(), chosen, reporting=reporting, listing=listing)

    return inputs.guarded(act, exit_zero=reporting.exit_zero)


def _check_together(
    listing: options.ListOptions, reporting: options.ReportingOptions, follow: options.FollowOptions
) -> None:
    if follow.follow and (
        reporting.output not in ("text", "json") or reporting.html or reporting.csv or reporting.out
        or listing.matrix or listing.histogram
    ):  # fmt: skip
        raise InvalidArguments(
            "--follow writes text or, with -o json, a JSON document per line; leave out other outputs"
        )
    if follow.during is not None and not follow.follow:
        raise InvalidArguments("--for belongs to --follow; add that, or leave it out")
    if (listing.matrix or listing.histogram) and reporting.output != "text":
        raise InvalidArguments(
            "--matrix and --histogram are text; leave out -o, or use --csv FILE and --html FILE besides"
        )


def _follow(
    paths: Sequence[str],
    select: "RequestFilter",
    *,
    follow: options.FollowOptions,
    reporting: options.ReportingOptions,
) -> int:
    from maestropy.cli.trace.logs import follow as trace_follow
    from maestropy.trace.logs.file_tails import existing

    if not paths and not follow.pods.is_given:
        raise InvalidArguments(
            "nothing to follow is given; name files or directories, or --server-context and --agent-context for pods"
        )
    following = trace_follow.Following(
        select=select,
        options=options.judging(reporting),
        is_json=reporting.output == "json",
        seconds=inputs.seconds(follow.during, option="--for") if follow.during is not None else 0.0,
    )
    return trace_follow.requests(follow.pods.with_files(existing(paths)), following)


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
    from maestropy.trace.findings import explain as explanations

    if list_all or not code:
        rows = [f"{name}  {severity:5}  {title}\n" for name, severity, title in explanations.titles()]
        screen.write("".join(rows))
        return Exit.HEALTHY
    text = explanations.explained(code.upper()) or explanations.of_sentence(code)
    if not text:
        screen.write_error(f"Error: there is no code {code}; see `maestro trace explain --list`\n")
        return Exit.USAGE
    screen.write(text)
    return Exit.HEALTHY
