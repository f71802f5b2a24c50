"""Read the logs of servers and agents for an archive: files, exports of a log service, or pods.

Lines pass the redactor one by one and are never written otherwise. Of a log that is too large, the end is kept.
"""

import os
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import IO, Final

from maestropy.diagnose.scope import Scope
from maestropy.diagnose.staging import LogFile, SizeLimitReached, Staging
from maestropy.kube import errors
from maestropy.trace.access import pod_logs
from maestropy.trace.access.cluster import ClusterTarget, TracedCluster
from maestropy.trace.access.pod_logs import ComponentPods, Extent
from maestropy.trace.errors import InputUnreadable, NoAccess
from maestropy.trace.logs.read import log_inputs
from maestropy.trace.logs.read.lines import RawRecord, RecordClock, starts_record

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_SAMPLE: Final = 64 << 10
_SERVER: Final = "app=maestro"
_AGENT: Final = "app=maestro-agent"


def collect_files(paths: Sequence[str], staging: Staging, *, scope: Scope, now: float) -> tuple[int, Sequence[str]]:
    """Write log files; return how many, and sentences about what is missing of them."""
    problems: list[str] = []
    names: set[str] = set()
    inputs = log_files(paths, problems)
    for number, path in enumerate(inputs):
        share = staging.left // (len(inputs) - number)
        name = _free(f"logs/files/{_UNSAFE.sub('-', path.name).lstrip('-.') or 'log'}", names)
        try:
            problem = _copy(path, staging, name, scope=scope, share=share, now=now)
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
        except SizeLimitReached:
            problem = "is cut at the limit of --max-size"
        if problem:
            problems.append(f"{path.name} {problem}")
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
        found += [file for file in files if not Path(path).is_dir() or _is_log(file)]
    return sorted(found, key=lambda file: file.stat().st_size)


def _is_log(path: Path) -> bool:
    """Return whether a file of a folder is a log of Maestro or an export; a database's own log is none."""
    if path.suffix not in {".log", ".csv", ".txt", ".jsonl"}:
        return False
    try:
        with path.open("rb") as file:
            head = file.read(_SAMPLE)
    except OSError:
        return True  # opening it again raises the error
    return path.suffix == ".csv" or any(map(starts_record, head.splitlines()))


def _free(name: str, names: set[str]) -> str:
    stem, dot, ending = name.rpartition(".")
    number, free = 1, name
    while free in names:
        number += 1
        free = f"{stem}-{number}{dot}{ending}" if dot and "/" not in ending else f"{name}-{number}"
    names.add(free)
    return free


def _copy(path: Path, staging: Staging, name: str, *, scope: Scope, share: int, now: float) -> str:
    """Copy the end of a file that fits; return what is missing of it."""
    with path.open("rb") as stream, LogFile(staging, name) as target:
        stat = os.fstat(stream.fileno())
        is_table = path.suffix == ".csv"
        skipped = max(0, stat.st_size - share)
        if skipped and is_table:
            target.add(stream.readline().decode("utf-8", "surrogateescape").rstrip("\r\n"))
        if skipped:
            stream.seek(skipped)
            stream.readline()
        lines = _lines(stream)
        for line in lines if is_table else _in_window(lines, scope, modified=stat.st_mtime or now):
            target.add(line.decode("utf-8", "surrogateescape"))
    os.utime(staging.path(name), (stat.st_mtime, stat.st_mtime))
    return f"has {stat.st_size} bytes, of which the last {share} are collected; raise --max-size" if skipped else ""


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    for line in stream:
        yield line.rstrip(b"\r\n")


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
