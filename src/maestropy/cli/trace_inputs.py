"""What the commands over logs share: which words are paths, which requests are meant, how a command ends."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from maestropy.trace.errors import BadQuestion, NoAccess, TraceError, Unreadable
from maestropy.trace.exits import Exit

if TYPE_CHECKING:
    from maestropy.trace.request.model import Options

Status = Literal["complete", "failed", "incomplete", "pending", "superseded", "no-op", "unknown"]


@Parameter(group=Group("Logs", sort_key=2), show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """Where the logs are."""

    logs_dir: Annotated[str, Parameter(name="--logs-dir")] = ""
    """A directory of dumped pod logs."""
    server_csv: Annotated[str, Parameter(name=("--server-csv", "--svr-log", "--server-files"))] = ""
    """A Kusto export of the servers' logs."""
    agent_csv: Annotated[str, Parameter(name=("--agent-csv", "--agent-log", "--agent-files"))] = ""
    """A Kusto export of the agents' logs."""


@Parameter(group=Group("Which requests", sort_key=1), show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which requests."""

    status: Annotated[tuple[Status, ...], Parameter(name="--status", negative=())] = ()
    """Only with this verdict; may be repeated."""
    slow: Annotated[str, Parameter(name="--slow")] = ""
    """Only those that took at least so long, such as 2s or 500ms."""
    consumer: Annotated[str, Parameter(name="--consumer")] = ""
    """Only for this consumer."""
    source: Annotated[str, Parameter(name="--source")] = ""
    """Only of this source."""
    action: Annotated[Literal["create", "update", "delete"] | None, Parameter(name="--action")] = None
    """Only requests to do this."""
    code: Annotated[str, Parameter(name="--code")] = ""
    """Only with this finding."""
    since: Annotated[str, Parameter(name="--since")] = ""
    """Only requests that began at this time (RFC 3339), or so long ago (30m), or later."""
    until: Annotated[str, Parameter(name="--until")] = ""
    """Only requests that began at this time or earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What to write, where, and how strictly to judge."""

    format: str
    out: Path | None
    options: "Options"
    html: Path | None = None
    """A page to write besides."""
    csv: Path | None = None
    """A table to write besides."""
    trace_log: bool = False
    """Whether the lines themselves go to a file as well, under the name that runbooks know."""
    trace_log_dir: Path | None = None
    """Where that file goes; beside the logs if nobody says."""


NO_LOGS = Logs()
ALL = Selection()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the words of a command line are."""

    paths: list[str]
    identifiers: list[str]
    is_by_variables: bool = False
    """Whether the logs are named by the variables of the older scripts, so that their users run this."""

    def needed(self) -> list[str]:
        """Return the paths, which must not be missing; without any, the place where runbooks dump logs."""
        usual = Path.home() / "maestro-logs"
        if not self.paths and usual.is_dir():
            sys.stderr.write(f"Reading {usual}, as no logs are given\n")
            return [str(usual)]
        if not self.paths:
            raise BadQuestion("no logs are given; name files, a directory, an archive, or - for standard input")
        return self.paths


def separated(words: Sequence[str], logs: Logs, *, environ: Mapping[str, str]) -> Given:
    """Tell paths from identifiers: what exists, `-` and patterns are paths."""
    unknown = next((word for word in words if word.startswith("-") and word != "-"), "")
    if unknown:
        raise BadQuestion(f"unknown option {unknown}; see --help")
    paths = [word for word in words if _is_path(word)]
    identifiers = [word for word in words if word not in paths]
    paths += [path for path in (logs.logs_dir, logs.server_csv, logs.agent_csv) if path]
    if paths:
        return Given(paths=paths, identifiers=identifiers)
    found = [path for name in ("logs_dir", "svr_log", "agent_log") if (path := environ.get(name, ""))]
    return Given(paths=found, identifiers=identifiers, is_by_variables=bool(found))


def _is_path(word: str) -> bool:
    is_pattern = re.search(r"[*?].*\.[a-z]|\.[a-z].*[*?]", word) is not None
    try:
        return word == "-" or "/" in word or is_pattern or Path(word).exists()
    except (OSError, ValueError):
        return False  # no file can be named so


def not_there(word: str) -> BadQuestion:
    """Return the error for a word that is no path."""
    return BadQuestion(f"{word} does not exist; name files, a directory, an archive, or - for standard input")


def guarded(act: Callable[[], int], *, exit_zero: bool) -> int:
    """Run a command to the end that its exit codes promise."""
    from maestropy.trace.request.sources import SourceError

    codes: tuple[tuple[type[Exception], Exit], ...] = (
        (BadQuestion, Exit.USAGE),
        (SourceError, Exit.UNREADABLE),
        (Unreadable, Exit.UNREADABLE),
        (NoAccess, Exit.NO_ACCESS),
    )
    try:
        code = act()
    except (TraceError, SourceError) as error:
        sys.stderr.write(f"Error: {error}\n")
        return next((code for kind, code in codes if isinstance(error, kind)), Exit.UNREADABLE)
    except BrokenPipeError:
        # Whoever read has seen enough; Python would complain again when it closes standard output.
        sys.stdout = None
        return Exit.HEALTHY
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
    if size < 64 << 20 or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    # It is drawn by whoever reads, not by a thread: beside threads no processes can be forked to help.
    bar = Progress("reading", BarColumn(), DownloadColumn(), TransferSpeedColumn(), console=Console(stderr=True),
                   transient=True, auto_refresh=False)  # fmt: skip
    with bar:
        task = bar.add_task("reading", total=size)
        yield lambda amount: bar.update(task, advance=amount, refresh=True)


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    return path.stat().st_size if path.exists() else 0


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


def seconds(text: str, *, option: str) -> float:
    """Read a duration given by the user."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", text.strip())
    if found is None or not float(found.group(1)):
        raise BadQuestion(f"{option} {text!r} is no duration; write 60s, 5m or 1h")
    return float(found.group(1)) * _UNITS[found.group(2)]


def moment(text: str, *, option: str) -> float:
    """Read a time given by the user."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadQuestion(f"{option} {text!r} is no time; write 2026-01-15T09:00:00Z") from error
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def dated(select: Selection, *, now: float) -> Selection:
    """Return the selection with times in place of ages."""

    def date(text: str, option: str) -> str:
        at = moment_or_age(text, option=option, now=now) if text else 0.0
        return datetime.fromtimestamp(at, UTC).isoformat() if text else ""

    return replace(select, since=date(select.since, "--since"), until=date(select.until, "--until"))


def moment_or_age(text: str, *, option: str, now: float) -> float:
    """Read a time given by the user, or how long ago it was."""
    return (
        now - seconds(text, option=option) if re.fullmatch(r"[\d.]+(ms|s|m|h)", text) else moment(text, option=option)
    )
