"""The options of `maestro trace request` and `requests`, grouped as `--help` shows them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from maestropy.cli.trace.logs import pods as trace_pods
from maestropy.trace.errors import InvalidArguments

if TYPE_CHECKING:
    from maestropy.trace.logs.model import Options

_MOST_CONTEXT_LINES = 100
_MOST_INSTANCES = 1000
_MOST_JOBS = 256
_MOST_LISTED = 10_000_000
_LAST_VERSION = (1 << 31) - 1
_LONGEST_TIMEOUT = 86400
_LARGEST_SKEW = 7 * 86400
Format = Literal["text", "json", "jsonl", "yaml", "md", "csv", "html", "mermaid", "log"]


@Parameter(group=Group("Report", sort_key=3))
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportingOptions:
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
    """Seconds after which a stage without a record counts as missing."""
    broker: Annotated[Literal["auto", "mqtt", "grpc"], Parameter(name="--broker")] = "auto"
    """The broker between servers and agents; usually detected from the logs."""
    expect_instances: Annotated[int, Parameter(name="--expect-instances")] = 0
    """How many servers there are; if logs of fewer are given, their stages count as not observable."""
    subscription: Annotated[Literal["auto", "broadcast", "shared"], Parameter(name="--subscription")] = "auto"
    """How several servers share statuses; the logs usually show it."""
    skew: Annotated[tuple[str, ...], Parameter(name="--skew", negative=(), show_default=False)] = ()
    """Clock skew: auto (default) corrects proven skew, off corrects none; POD=MS: the clock of this pod is ahead."""


@Parameter(group=Group("Which request", sort_key=1), show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class RequestChoice:
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
    consumer: Annotated[str, Parameter(name="--consumer")] = ""
    """Only requests of this consumer; works of several consumers may have one name."""
    resource_request: Annotated[str, Parameter(name="--resource-request")] = ""
    """create_request, update_request or delete_request."""
    version: Annotated[int, Parameter(name="--version")] = 0
    """The version that the request led to."""
    nth: Annotated[int | None, Parameter(name="--nth", allow_leading_hyphen=True)] = None
    """Which one in order of time: 0 the first, -1 the last."""
    at: Annotated[str, Parameter(name="--at")] = ""
    """The request in progress at this time (RFC 3339) or this long ago (30m); else the last one started before."""


@Parameter(group=Group("Report", sort_key=3), show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class DepthSelection:
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
class LiveOptions:
    """While it happens."""

    live: Annotated[bool, Parameter(name="--live", negative=())] = False
    """Draw the newest request, or the newest of that name, while it happens; without logs those of `maestro up`."""
    is_next: Annotated[bool, Parameter(name="--next", negative=())] = False
    """With --live: wait for a request that starts from now on."""
    timeout: Annotated[str, Parameter(name="--timeout")] = "60s"
    """With --live: maximum time to wait."""
    pods: Annotated[trace_pods.Pods, Parameter(name="*")] = trace_pods.NO_PODS


@Parameter(group=Group("Report", sort_key=3))
@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
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
    """Report whether the index was used or written."""


@Parameter(group=Group("While they happen", sort_key=5), show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """While they happen."""

    follow: Annotated[bool, Parameter(name=("--follow", "-f"), negative=())] = False
    """Follow the logs: print each request when its verdict is final; without files, follow the pods."""
    during: Annotated[str | None, Parameter(name="--for")] = None
    """With --follow: for how long, such as 60s or 5m; without it until Ctrl-C."""
    pods: Annotated[trace_pods.Pods, Parameter(name="*")] = trace_pods.NO_PODS


def judging(reporting: ReportingOptions) -> "Options":
    """Return how strictly to judge; raise InvalidArguments for what makes no sense."""
    from maestropy.trace.logs.model import Options

    if not 0 < reporting.stage_timeout <= _LONGEST_TIMEOUT:  # also what is no number
        raise InvalidArguments(
            f"--stage-timeout {reporting.stage_timeout:g} is not a timeout; write seconds, such as 30, at most "
            f"{_LONGEST_TIMEOUT}"
        )
    _check_range("--expect-instances", reporting.expect_instances, _MOST_INSTANCES, remedy="0 stands for those named")
    return Options(
        stage_timeout=reporting.stage_timeout,
        broker=reporting.broker,
        subscription=reporting.subscription,
        expected_instances=reporting.expect_instances,
        are_clocks_compared="off" not in reporting.skew,
        clocks=_clocks(reporting.skew),
    )


def check_listing(listing: ListOptions) -> None:
    """Raise InvalidArguments for a list that cannot be made."""
    _check_range("--top", listing.top, _MOST_LISTED, remedy="0 stands for all")
    _check_range("--jobs", listing.jobs, _MOST_JOBS, remedy="0 stands for one per processor")


def check_choice(choice: RequestChoice) -> None:
    """Raise InvalidArguments for a request that cannot exist."""
    _check_range("--version", choice.version, _LAST_VERSION, remedy="0 stands for any")


def _check_range(option: str, value: int, most: int, *, remedy: str) -> None:
    if not 0 <= value <= most:
        raise InvalidArguments(f"{option} {value} is not between 0 and {most}; {remedy}")


def check_depth(depth: DepthSelection) -> None:
    """Raise InvalidArguments for a depth that cannot be shown."""
    if not 0 <= depth.context_lines <= _MOST_CONTEXT_LINES:
        raise InvalidArguments(f"--context-lines {depth.context_lines} is not between 0 and {_MOST_CONTEXT_LINES}")
    if depth.context_lines and depth.show != "timeline":
        raise InvalidArguments("--context-lines belongs to --show timeline; add that")


def _clocks(arguments: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    """Read what is known of clocks; `auto` and `off` are about those of which nothing is."""
    if {"auto", "off"} <= set(arguments):
        raise InvalidArguments("--skew auto and --skew off contradict each other; leave one out")
    clocks: dict[str, float] = {}
    for argument in arguments:
        if argument in ("auto", "off"):
            continue
        pod, _, text = argument.rpartition("=")
        try:
            ahead = float(text) / 1000
        except ValueError:
            ahead = math.nan
        if not pod or math.isnan(ahead):
            raise InvalidArguments(
                f"--skew {argument!r} is none; write auto, off or POD=MS, such as maestro-agent-0=350"
            )
        if abs(ahead) > _LARGEST_SKEW:
            raise InvalidArguments(f"--skew {argument!r} is more than a week; write milliseconds, such as {pod}=350")
        if pod in clocks:
            raise InvalidArguments(f"--skew names {pod} twice; leave one out")
        clocks[pod] = ahead
    return tuple(clocks.items())


def action_of(choice: RequestChoice) -> str:
    """Return create, update or delete, or nothing for all."""
    action = choice.resource_request.removesuffix("_request")
    if action not in ("", "create", "update", "delete"):
        raise InvalidArguments(
            f"--resource-request {choice.resource_request!r} is none; "
            "write create_request, update_request or delete_request"
        )
    return action


def with_environment(choice: RequestChoice, environ: Mapping[str, str]) -> RequestChoice:
    """Use the variables of older scripts where an option is not given."""
    return replace(
        choice,
        resource_id=choice.resource_id or environ.get("resource_id", ""),
        work_name=choice.work_name or environ.get("work_name", ""),
        op_id=choice.op_id or environ.get("op_id", ""),
        manifest_name=choice.manifest_name or environ.get("manifest_name", ""),
        resource_request=choice.resource_request or environ.get("resource_request", ""),
    )
