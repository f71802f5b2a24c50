"""Options that the commands over logs share: paths, request filters, and error handling."""

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from maestropy.cli import screen
from maestropy.cli.trace import endings
from maestropy.trace.errors import InvalidArguments, TraceError
from maestropy.trace.exit_codes import Exit

if TYPE_CHECKING:
    from maestropy.trace.logs.selection import RequestFilter

Status = Literal["complete", "failed", "incomplete", "pending", "superseded", "no-op", "unknown"]


@Parameter(group=Group("Logs", sort_key=2), show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """Where the logs are."""

    logs_dir: Annotated[str | None, Parameter(name="--logs-dir")] = None
    """A directory of dumped pod logs."""
    server_csv: Annotated[str | None, Parameter(name=("--server-csv", "--svr-log", "--server-files"))] = None
    """A Kusto export of the servers' logs."""
    agent_csv: Annotated[str | None, Parameter(name=("--agent-csv", "--agent-log", "--agent-files"))] = None
    """A Kusto export of the agents' logs."""


@Parameter(group=Group("Which requests", sort_key=1), show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which requests."""

    status: Annotated[tuple[Status, ...], Parameter(name="--status", negative=())] = ()
    """Only with this verdict; may be repeated."""
    slow: Annotated[str | None, Parameter(name="--slow")] = None
    """Only those that took at least so long, such as 2s or 500ms."""
    consumer: Annotated[str | None, Parameter(name="--consumer")] = None
    """Only for this consumer."""
    source: Annotated[str | None, Parameter(name="--source")] = None
    """Only of this source."""
    action: Annotated[Literal["create", "update", "delete"] | None, Parameter(name="--action")] = None
    """Only requests to do this."""
    code: Annotated[str | None, Parameter(name="--code")] = None
    """Only with this finding."""
    since: Annotated[str | None, Parameter(name="--since")] = None
    """Only requests that began at this time (RFC 3339), or so long ago (30m), or later."""
    until: Annotated[str | None, Parameter(name="--until")] = None
    """Only requests that began at this time or earlier."""


NO_LOGS = Logs()
ALL = Selection()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The arguments of a command, separated."""

    paths: list[str]
    identifiers: list[str]
    is_by_variables: bool = False
    """Whether the logs are named by the variables of the older scripts, so that their users run this."""

    def needed(self) -> list[str]:
        """Return the paths; without any, the directory where runbooks dump logs. Raise if there is none."""
        usual = Path.home() / "maestro-logs"
        if not self.paths and usual.is_dir():
            screen.write_error(f"Reading {usual}, as no logs are given\n")
            return [str(usual)]
        if not self.paths:
            raise InvalidArguments("no logs are given; name files, a directory, an archive, or - for standard input")
        return self.paths


def separate(arguments: Sequence[str], logs: Logs, *, environ: Mapping[str, str]) -> Arguments:
    """Separate paths from identifiers: existing files, `-` and patterns are paths."""
    unknown = next((argument for argument in arguments if argument.startswith("-") and argument != "-"), "")
    if unknown:
        raise InvalidArguments(f"unknown option {unknown}; see --help")
    paths = [argument for argument in arguments if _is_path(argument)]
    identifiers = [argument for argument in arguments if argument not in paths]
    paths += [path for path in (logs.logs_dir, logs.server_csv, logs.agent_csv) if path is not None]
    if "" in paths:
        raise InvalidArguments("an empty path is given; name files, a directory, an archive, or - for standard input")
    if paths:
        return Arguments(paths=paths, identifiers=identifiers)
    found_paths = [path for name in ("logs_dir", "svr_log", "agent_log") if (path := environ.get(name, ""))]
    return Arguments(paths=found_paths, identifiers=identifiers, is_by_variables=bool(found_paths))


def _is_path(argument: str) -> bool:
    is_pattern = re.search(r"[*?].*\.[a-z]|\.[a-z].*[*?]", argument) is not None
    try:
        return argument == "-" or "/" in argument or is_pattern or Path(argument).exists()
    except (OSError, ValueError):
        return False  # no file can be named so


def not_a_path(argument: str) -> InvalidArguments:
    """Return the error for an argument that is not a path."""
    return InvalidArguments(f"{argument} does not exist; name files, a directory, an archive, or - for standard input")


def no_identifier(words: Sequence[str]) -> InvalidArguments:
    """Return the error for a command line without an identifier; a word may be taken for a file of that name."""
    file = next((word for word in words if "/" not in word and word not in ("-", ".", "..") and _is_path(word)), "")
    if not file or not Path(file).exists():
        return InvalidArguments("no identifier is given; name a resource ID, op-id, work name or event id")
    kind = "directory" if Path(file).is_dir() else "file"
    return InvalidArguments(
        f"no identifier is given: {file} is a {kind} here, and was taken as logs; "
        f"if it is the name of a work, write --work-name {file}, else --resource-id or --op-id"
    )


def guarded(act: Callable[[], int], *, exit_zero: bool) -> int:
    """Run a command to the end that its exit codes promise."""
    try:
        code = act()
    except TraceError as error:
        return endings.failed(error)
    return Exit.HEALTHY if exit_zero and code in (Exit.PROBLEM, Exit.INCONCLUSIVE) else code


@contextmanager
def seekable(paths: Sequence[str]) -> Iterator[list[str]]:
    """Keep standard input and pipes in files while they are needed: they may have to be read twice."""
    flowing = [path for path in dict.fromkeys(paths) if path == "-" or Path(path).is_fifo()]
    if not flowing:
        yield list(paths)
        return
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="maestro-trace-") as folder:
        copies = {path: Path(folder) / ("stdin" if path == "-" else f"pipe-{Path(path).name}") for path in flowing}
        for path, copy in copies.items():
            with (
                nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as source,
                copy.open("wb") as kept,
            ):
                shutil.copyfileobj(source, kept)
        yield [str(copies.get(path, path)) for path in paths]


@contextmanager
def progress(paths: Sequence[str]) -> Iterator[Callable[[int], None]]:
    """Show a bar while large inputs are read, on a terminal only."""
    size = sum(_size(Path(path)) for path in paths)
    if size < 64 << 20 or not screen.can_draw(sys.stderr):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    # The reader draws the bar, not a thread: with other threads no process can be forked.
    bar = Progress("reading", BarColumn(), DownloadColumn(), TransferSpeedColumn(), console=Console(stderr=True),
                   transient=True, auto_refresh=False)  # fmt: skip
    with bar:
        task = bar.add_task("reading", total=size)
        yield lambda amount: bar.update(task, advance=amount, refresh=True)


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size if path.exists() else 0


_LONGEST = 10 * 366 * 86400.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


def seconds(text: str, *, option: str) -> float:
    """Read a duration given by the user."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", text.strip())
    duration = float(match.group(1)) * _UNITS[match.group(2)] if match is not None else 0.0
    if not 0 < duration <= _LONGEST:
        raise InvalidArguments(f"{option} {text!r} is not a duration of up to ten years; write 60s, 5m or 1h")
    return duration


def moment(text: str, *, option: str) -> float:
    """Read a time given by the user."""
    try:
        parsed = datetime.fromisoformat(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise InvalidArguments(f"{option} {text!r} is not a time; write 2026-01-15T09:00:00Z") from error


def request_filter(select: Selection, *, now: float) -> "RequestFilter":
    """Return the filter that the flags stand for."""
    from maestropy.trace.findings.codes import CODES
    from maestropy.trace.logs.selection import RequestFilter

    texts = {"slow": select.slow, "consumer": select.consumer, "source": select.source, "code": select.code,
             "since": select.since, "until": select.until}  # fmt: skip
    empty = next((name for name, text in texts.items() if text == ""), "")
    if empty:
        raise InvalidArguments(f"--{empty} is empty; give a value, or leave it out")
    if select.code and select.code.upper() not in CODES:
        raise InvalidArguments(f"there is no code {select.code}; see `maestro trace explain --list`")
    since = moment_or_age(select.since, option="--since", now=now) if select.since else -math.inf
    until = moment_or_age(select.until, option="--until", now=now) if select.until else math.inf
    if until < since:
        raise InvalidArguments(
            f"--until {select.until} is before --since {select.since}, so no request can match; exchange them"
        )
    return RequestFilter(
        verdicts=select.status,
        slow=seconds(select.slow, option="--slow") if select.slow else 0.0,
        consumer=select.consumer or "",
        source=select.source or "",
        action=select.action or "",
        code=(select.code or "").upper(),
        since=since,
        until=until,
    )


def moment_or_age(text: str, *, option: str, now: float) -> float:
    """Read a time given by the user, or how long ago it was."""
    return (
        now - seconds(text, option=option) if re.fullmatch(r"[\d.]+(ms|s|m|h)", text) else moment(text, option=option)
    )
