"""Read the logs of servers and agents for an archive: files, exports of a log service, or pods.

Lines pass the redactor one by one and are never written otherwise. Of a log that is too large, the end is kept.
"""

import codecs
import csv
import os
import re
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Final

from maestropy.diagnose.collection.scope import Scope
from maestropy.diagnose.collection.sources import left_out
from maestropy.diagnose.collection.staging import LogFile, SizeLimitReached, Staging
from maestropy.kube import errors
from maestropy.trace.access import pod_logs
from maestropy.trace.access.cluster import ClusterTarget, TracedCluster
from maestropy.trace.access.pod_logs import ComponentPods, Extent
from maestropy.trace.errors import InputUnreadable, NoAccess
from maestropy.trace.logs.read.inputs import log_inputs
from maestropy.trace.logs.read.lines import RawRecord, RecordClock, starts_record

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_CELL: Final = 16 << 20
_SERVER: Final = "app=maestro"
_AGENT: Final = "app=maestro-agent"


def collect_files(
    paths: Sequence[str],
    staging: Staging,
    *,
    scope: Scope,
    now: float,
    stop: threading.Event | None = None,
) -> tuple[int, Sequence[str]]:
    """Write log files until `stop`; return how many, and sentences about what is missing of them."""
    problems: list[str] = []
    names: set[str] = set()
    inputs = log_files(paths, problems)
    for number, path in enumerate(inputs):
        share = staging.left // (len(inputs) - number)
        # A name may hold a secret that its safe form would hide from the detectors.
        shown = f"{staging.redactor.text(path.stem)}{path.suffix}"
        name = _free(f"logs/files/{_UNSAFE.sub('-', shown).lstrip('-.') or 'log'}", names)
        try:
            problem = _copy(path, staging, name, window=_Window(scope=scope, share=share, now=now, stop=stop))
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
        except SizeLimitReached:
            problem = "is cut at the limit of --max-size"
        if problem:
            problems.append(f"{shown} {problem}")
    return len(names), problems


def log_files(paths: Sequence[str], problems: list[str]) -> list[Path]:
    """Return the logs and exports in files and folders, the smallest first; add to `problems` what is unreadable."""
    found: list[Path] = []
    for path in paths:
        try:
            files = log_inputs.plain_files([path])
        except InputUnreadable as error:
            problems.append(str(error))
            continue
        # A folder may hold other files, such as those of a database; only what begins as a log does is one.
        is_folder = Path(path).is_dir()
        files += _not_regular(Path(path)) if is_folder else []
        for file in files:
            reason = left_out.reason(file, is_in_folder=is_folder)
            if reason is None:
                found.append(file)
            elif reason:
                problems.append(f"{file.name} is left out: {reason}")
    return sorted(found, key=lambda file: file.stat().st_size)


def _not_regular(folder: Path) -> list[Path]:
    """Return pipes and the like in a folder whose names are those of logs; they are not opened."""
    return [file for file in sorted(folder.rglob("*")) if file.suffix in left_out.ENDINGS and left_out.is_special(file)]


def _free(name: str, names: set[str]) -> str:
    stem, dot, ending = name.rpartition(".")
    number, free = 1, name
    while free in names:
        number += 1
        free = f"{stem}-{number}{dot}{ending}" if dot and "/" not in ending else f"{name}-{number}"
    names.add(free)
    return free


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """What of a file is copied."""

    scope: Scope
    share: int
    """Bytes at its end."""
    now: float
    stop: threading.Event | None = None
    """When it is set, nothing more is copied."""

    def checked(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield lines until the stop."""
        for line in lines:
            if self.stop is not None and self.stop.is_set():
                raise InputUnreadable("the collection is stopped")
            yield line


def _copy(path: Path, staging: Staging, name: str, *, window: _Window) -> str:
    """Copy the end of a file that fits; return what is missing of it."""
    share = window.share
    with path.open("rb") as stream, LogFile(staging, name) as target:
        stat = os.fstat(stream.fileno())
        is_table = path.suffix == ".csv"
        skipped = max(0, stat.st_size - share)
        encoding = left_out.wide_encoding(stream)
        header = stream.readline() if skipped and is_table and not encoding else b""
        if skipped:
            # A character of UTF-16 has two or four bytes.
            stream.seek(skipped & ~3)
        lines = window.checked(_decoded(stream, encoding) if encoding else stream)
        if skipped:
            next(lines, None)
        if is_table:
            return _copy_table(chain([header] if header else [], lines), target) or _cut(stat.st_size, share)
        stripped = (line.rstrip(b"\r\n") for line in lines)
        for line in _in_window(stripped, window.scope, modified=stat.st_mtime or window.now):
            target.add(line.decode("utf-8", "surrogateescape"))
    os.utime(staging.path(name), (stat.st_mtime, stat.st_mtime))
    return _cut(stat.st_size, share)


def _cut(size: int, share: int) -> str:
    return f"has {size} bytes, of which the last {share} are collected; raise --max-size" if size > share else ""


def _decoded(stream: IO[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the lines of a wide encoding, such as that of PowerShell's `>`, in UTF-8."""
    for line in codecs.getreader(encoding)(stream, "replace"):
        yield line.lstrip("\ufeff").encode("utf-8", "replace")


def _copy_table(lines: Iterable[bytes], target: LogFile) -> str:
    """Copy a CSV: cells are redacted without the quotes that CSV doubles, and written with them; return a problem."""
    csv.field_size_limit(_LONGEST_CELL)
    rows = csv.reader(line.decode("utf-8", "surrogateescape").replace("\0", "") for line in lines)
    try:
        for row in rows:
            target.add_row(row)
    except csv.Error as error:
        return f"is no CSV from line {rows.line_num} on ({error}), and its rest is left out; export it again"
    return ""


def _in_window(lines: Iterator[bytes], scope: Scope, *, modified: float) -> Iterator[bytes]:
    """Yield the lines of records in the window; a line without a time belongs to the record before."""
    if not scope.since and not scope.until:
        yield from lines
        return
    clock = RecordClock(around=modified)
    is_wanted = True
    for line in lines:
        if starts_record(line):
            at = clock.at(RawRecord(number=0, offset=0, text=line))
            is_wanted = scope.has(at) if at else is_wanted
        if is_wanted:
            yield line


def components(
    service: ClusterTarget | None, agents: Sequence[ClusterTarget], *, namespace: str
) -> list[ComponentPods]:
    """Return the pods whose logs are read."""
    found = []
    if service is not None:
        found.append(
            ComponentPods(name="server", target=service, namespaces=(namespace,), label=_SERVER, options="--namespace")
        )
    found += [
        ComponentPods(
            name=f"agent-{_UNSAFE.sub('-', target.label)}",
            target=target,
            namespaces=(target.agent_namespace,),
            label=_AGENT,
            options="--agent-namespace",
        )
        for target in agents
    ]
    return found


async def collect_pods(
    component: ComponentPods, staging: Staging, *, scope: Scope, now: float
) -> tuple[int, Sequence[str]]:
    """Write the logs of a component's pods, current and previous; return how many, and what is missing."""
    problems: list[str] = []
    count = 0
    async with TracedCluster(component.target) as cluster:
        pods = await pod_logs.pods_of(cluster.client, component)
        logs = [log for pod in pods for log in pod_logs.logs_of(pod)]
        age = max(1, round(now - scope.since)) if scope.since else 0
        for log in logs:
            for previous in (False, True) if log.restarts else (False,):
                ending = ".previous.log" if previous else ".log"
                name = f"logs/{component.name}/{_UNSAFE.sub('-', log.name)}{ending}"
                extent = Extent(is_previous=previous, since_seconds=0 if previous else age)
                try:
                    with LogFile(staging, name) as target:
                        async for line in _split(pod_logs.read(cluster.client, log, extent)):
                            target.add(line)
                    count += 1
                except errors.KubeError as error:
                    problems.append(f"{log.name}: {error.message}")
                except SizeLimitReached:
                    problems.append(f"{log.name} is cut at the limit of --max-size")
                    return count + 1, problems
    if not logs:
        raise NoAccess(f"no pod of {component.name} has a container")
    return count, problems


async def _split(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "surrogateescape").rstrip("\r")
    if rest:
        yield rest.decode("utf-8", "surrogateescape")
