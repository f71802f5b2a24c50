"""The options of `maestro trace request` and `requests`, grouped as `--help` shows them, and how they are read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from maestropy.cli import trace_inputs, trace_pods
from maestropy.trace.errors import BadQuestion

_MOST_CONTEXT_LINES = 100
Format = Literal["text", "json", "yaml", "md", "csv", "html", "mermaid", "log"]


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
    csv: Annotated[Path | None, Parameter(name="--csv")] = None
    """A file for a table with a row per request, besides the other output."""
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
    skew: Annotated[tuple[str, ...], Parameter(name="--skew", negative=(), show_default=False)] = ()
    """Clocks: auto (if not given) corrects those that are provably off, off takes them as they are; POD=MS is ahead."""


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
    at: Annotated[str, Parameter(name="--at")] = ""
    """The one under way at this time (RFC 3339), or so long ago (30m); else the last that began before."""


@Parameter(group=Group("Report", sort_key=3), show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How much to show of a request."""

    show: Annotated[Literal["stages", "timeline"], Parameter(name="--show")] = "stages"
    """stages, or stages and every record in order of time."""
    context_lines: Annotated[int, Parameter(name="--context-lines")] = 0
    """With --show timeline: so many lines of the log before and after each that supports a finding."""
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
    matrix: Annotated[bool, Parameter(name="--matrix", negative=())] = False
    """Count, per work, how often each stage was done, and mark what is less than it must be."""
    histogram: Annotated[bool, Parameter(name="--histogram", negative=())] = False
    """Show how many requests took how long, hop by hop."""
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


def plain(reporting: Reporting) -> trace_inputs.Report:
    """Return how to report."""
    from maestropy.trace.request.model import Options

    if not reporting.stage_timeout > 0:  # also what is no number
        raise BadQuestion(f"--stage-timeout {reporting.stage_timeout:g} is no time to wait; write seconds, such as 30")
    if reporting.expect_instances < 0:
        raise BadQuestion(f"--expect-instances {reporting.expect_instances} is no number of servers")
    options = Options(
        stage_timeout=reporting.stage_timeout,
        broker=reporting.broker,
        subscription=reporting.subscription,
        expected_instances=reporting.expect_instances,
        are_clocks_compared="off" not in reporting.skew,
        clocks=_clocks(reporting.skew),
    )
    return trace_inputs.Report(
        format=reporting.output, out=reporting.out, options=options, html=reporting.html, csv=reporting.csv
    )


def check_depth(depth: Depth) -> None:
    """Refuse what cannot be shown."""
    if not 0 <= depth.context_lines <= _MOST_CONTEXT_LINES:
        raise BadQuestion(f"--context-lines {depth.context_lines} is not between 0 and {_MOST_CONTEXT_LINES}")
    if depth.context_lines and depth.show != "timeline":
        raise BadQuestion("--context-lines belongs to --show timeline; add that")


def _clocks(words: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    """Read what is known of clocks; `auto` and `off` are about those of which nothing is."""
    if {"auto", "off"} <= set(words):
        raise BadQuestion("--skew auto and --skew off contradict each other; leave one out")
    clocks: dict[str, float] = {}
    for word in words:
        if word in ("auto", "off"):
            continue
        pod, _, text = word.rpartition("=")
        try:
            ahead = float(text) / 1000
        except ValueError:
            ahead = math.nan
        if not pod or not math.isfinite(ahead):
            raise BadQuestion(f"--skew {word!r} is none; write auto, off or POD=MS, such as maestro-agent-0=350")
        if pod in clocks:
            raise BadQuestion(f"--skew names {pod} twice; leave one out")
        clocks[pod] = ahead
    return tuple(clocks.items())


def action_of(choice: Choice) -> str:
    """Return create, update or delete, or nothing for all."""
    action = choice.resource_request.removesuffix("_request")
    if action not in ("", "create", "update", "delete"):
        raise BadQuestion(
            f"--resource-request {choice.resource_request!r} is none; "
            "write create_request, update_request or delete_request"
        )
    return action


def with_environment(choice: Choice, environ: Mapping[str, str]) -> Choice:
    """Take the variables of the older scripts where an option is not given."""
    return replace(
        choice,
        resource_id=choice.resource_id or environ.get("resource_id", ""),
        work_name=choice.work_name or environ.get("work_name", ""),
        op_id=choice.op_id or environ.get("op_id", ""),
        manifest_name=choice.manifest_name or environ.get("manifest_name", ""),
        resource_request=choice.resource_request or environ.get("resource_request", ""),
    )
