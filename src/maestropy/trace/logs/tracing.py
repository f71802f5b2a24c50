"""Trace requests from log files: read what is needed, judge it. The entry of the tracer over logs.

All requests need every record. One request needs the records around its identifiers; only if it has stopped, the cause
may be anywhere: then records of components are searched near the time at which it stopped, and records that change what
is connected (subscriptions, starts and stops) in the whole logs. Small logs, and logs full of one request, are read
completely.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Final

from maestropy.aio.clock import Clock
from maestropy.journal.phrases import RestPhrase
from maestropy.trace.errors import InputUnreadable, InvalidArguments
from maestropy.trace.logs import index, tracer
from maestropy.trace.logs.evidence import NAMED_BY_ID
from maestropy.trace.logs.judge import subscribers
from maestropy.trace.logs.model import SETTLED, Options, StageState, Trace
from maestropy.trace.logs.read import scan
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.logs.selection import RequestQuery, short_word
from maestropy.trace.output import printable
from maestropy.trace.stages import Stage

READ_WHOLE: Final = 48 << 20
"""Logs up to this size are read completely, even for one request."""
_LASTING: Final = {
    "server": (
        (frozenset({1, 2, 6, 7}), "from the hash ring"),
        (frozenset({2}), RestPhrase.ACTION),
        (frozenset({8, 9}), "broadcaster client"),
        (frozenset({8, 9}), "Starting gRPC server"),
        (frozenset({1, 2, 6, 7, 8, 9}), "hutting down"),
    ),
    "agent": ((frozenset({3, 4, 5}), "hutting down"), (frozenset({3}), "subscribed to ")),
}
"""Texts of records that hold until another one ends it, by the role of their writer and the stages they explain."""
_GRPC_BROKER: Final = ("istering subscriber", "nregister subscriber", "Starting gRPC server")
_BEFORE: Final = 60.0
_AFTER: Final = 5.0
_LONGEST: Final = 600.0
_DEFAULTS: Final = Options()
_MOST_NAMED: Final = 8
Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
"""Files, directories and archives; one of them may stand alone."""
Progress = Callable[[int], None]
Warn = Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class TracedLogs:
    """Judged requests, and the logs they were found in."""

    traces: list[Trace]
    environment: Environment
    scan: scan.Scan
    resources: dict[str, set[str]]
    """The resource IDs behind each identifier that was asked for."""


class RequestTracer:
    """Traces the requests behind a few identifiers, reading as little as possible."""

    def __init__(
        self,
        paths: Sequence[str],
        *,
        options: Options,
        now: float,
        progress: Progress = scan.silent,
        whole: int = READ_WHOLE,
    ) -> None:
        self._paths = paths
        self._options = options
        self._now = now
        self._progress = progress
        self._matches: scan.Matches = {}
        self._is_read_whole = scan.total_size(paths) <= whole

    def find(self, identifiers: Sequence[str]) -> TracedLogs:
        """Read the records of the identifiers, without judging them."""
        read = self._whole() if self._is_read_whole else self._around(identifiers)
        environment = tracer.read_environment(read.records, read.writers, options=self._options)
        resources = scan.resources_of(read.records, identifiers)
        return TracedLogs(traces=[], environment=environment, scan=read, resources=resources)

    def judge(self, logs: TracedLogs, chosen: frozenset[str], identifiers: Sequence[str]) -> TracedLogs:
        """Judge the requests of the chosen resources, reading more where it is needed."""
        needles = [*chosen, *identifiers]
        if not self._is_read_whole and not set(chosen) <= set(identifiers):
            logs = replace(logs, scan=self._around(needles))
        logs = self._judged(logs, chosen)
        stopped = [
            trace
            for trace in logs.traces
            if trace.verdict not in SETTLED or _has_no_client(trace) or _has_unseen_client(trace)
        ]
        if stopped and not self._is_read_whole:
            window = scan.Window(
                since=min(trace.start for trace in stopped) - _BEFORE,
                until=max(trace.end for trace in stopped) + self._options.stage_timeout + _AFTER,
                lasting=_lasting({trace.failed_stage or 0 for trace in stopped}, logs.environment),
            )
            logs = self._judged(replace(logs, scan=self._around(needles, window=window)), chosen)
            is_unclear = any(_is_silent(trace) or _has_unseen_client(trace) for trace in logs.traces)
            if is_unclear and not self._is_read_whole:
                # Whether objects that are logged without their work are of this one, and whether other statuses were
                # sent to a client, only all records show.
                self._is_read_whole = True
                logs = self._judged(replace(logs, scan=self._whole()), chosen)
        elif logs.traces and not self._is_read_whole:
            # A restart, or a stream to a client that broke, may be all that happened around it.
            last = max(logs.traces, key=lambda trace: trace.end)
            since = max(min(trace.start for trace in logs.traces), last.start - _LONGEST)
            window = scan.Window(since=since - 1.0, until=last.end + _AFTER, lasting={})
            logs = self._judged(replace(logs, scan=self._around(needles, window=window)), chosen)
        return logs

    def number_lines(self, logs: TracedLogs, chosen: frozenset[str]) -> TracedLogs:
        """Set the line numbers of the records that the traces show, which a search does not count."""
        if self._is_read_whole:
            return logs
        shown = {
            (record.file, record.offset)
            for trace in logs.traces
            for record in (*trace.timeline, *(record for finding in trace.findings for record in finding.evidence))
        }
        scan.count_lines(logs.scan, shown)
        return self._judged(logs, chosen)

    def _around(self, needles: Sequence[str], *, window: scan.Window | None = None) -> scan.Scan:
        try:
            return scan.scan_around(
                self._paths, needles, now=self._now, progress=self._progress, matches=self._matches, window=window
            )
        except scan.FoundEverywhere:
            self._is_read_whole = True
            return self._whole()

    def _whole(self) -> scan.Scan:
        return scan.scan_all(self._paths, now=self._now, progress=self._progress)

    def _judged(self, logs: TracedLogs, chosen: frozenset[str]) -> TracedLogs:
        environment = tracer.read_environment(logs.scan.records, logs.scan.writers, options=self._options)
        traces = list(tracer.traces(logs.scan.records, environment, options=self._options, wanted=chosen))
        traces.sort(key=lambda trace: trace.start)
        return replace(logs, traces=traces, environment=environment)


def _has_no_client(trace: Trace) -> bool:
    """Say whether its status was sent to nobody: the client may have subscribed long before, on another instance."""
    return any(finding.code == "MT-901" for finding in trace.findings)


def _has_unseen_client(trace: Trace) -> bool:
    """Say whether its own records do not show if a client was subscribed."""
    return any(finding.detail == subscribers.UNSEEN for finding in trace.findings)


def _is_silent(trace: Trace) -> bool:
    """Say whether no record that names a request shows what the agent did with it."""
    main = trace.main_finding
    is_absent = trace.failed_stage == Stage.AGENT_HANDLES and main is not None and main.code == "MT-412"
    return is_absent or trace.stages[Stage.AGENT_HANDLES - 1].state is StageState.UNKNOWN


def _lasting(stages: set[int], environment: Environment) -> dict[str, tuple[bytes, ...]]:
    """Return the texts to search in the whole log of each writer, by its path, for requests that stopped there."""
    texts: dict[str, tuple[bytes, ...]] = {}
    for writer in environment.writers:
        own = [text for explained, text in _LASTING.get(writer.role, ()) if explained & stages or 0 in stages]
        if writer.role == "server" and environment.broker == "grpc" and stages & {0, 2, 3}:
            own += _GRPC_BROKER
        texts[str(writer.origin)] = tuple(text.encode() for text in dict.fromkeys(own))
    return texts


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLogs:
    """All records of some logs, whose requests can be judged one after the other."""

    scan: scan.Scan
    environment: Environment
    resources: tracer.ClassifiedResources
    options: Options

    @property
    def resource_count(self) -> int:
        return len(self.resources.plain) + len(self.resources.others.indices)

    def traces(self, *, evidence: tracer.EvidenceKept = "all") -> Iterator[Trace]:
        """Judge all requests; `evidence` says which records the traces keep."""
        return tracer.traces(
            self.scan.records, self.environment, options=self.options, resources=self.resources, evidence=evidence
        )


def read_all(
    paths: Sequence[str], *, reading: index.ReadOptions, options: Options = _DEFAULTS, warn: Warn = scan.silent
) -> RequestLogs:
    """Read all records; raise InputUnreadable when none is of Maestro, `warn` of what cannot be read."""
    if not options.are_clocks_compared or options.clocks:
        reading = replace(reading, index="off")  # an index stores measured clocks
    logs = index.read(paths, reading)
    _check(logs.scan, options, warn=warn)
    environment = tracer.read_environment(
        logs.scan.records, logs.scan.writers, options=options, are_clocks_known=logs.resources is not None
    )
    resources = index.classified(logs, environment.writers, reading)
    return RequestLogs(scan=logs.scan, environment=environment, resources=resources, options=options)


def trace_requests(
    request_tracer: RequestTracer, query: RequestQuery, *, options: Options = _DEFAULTS, warn: Warn = scan.silent
) -> TracedLogs:
    """Judge the requests that a query asks for.

    Raise NotFound or Ambiguous when its identifiers name none or several, InputUnreadable when no log is of Maestro.
    """
    if not query.identifiers:
        raise InvalidArguments("no identifier is given; name a resource ID, op-id, work name or event id")
    logs = request_tracer.find(query.identifiers)
    _check(logs.scan, options, warn=warn)
    resources = query.resources(logs.resources, warn=warn, consumers=_consumers(logs))
    logs = request_tracer.judge(logs, resources, query.identifiers)
    if query.needs_lines or any(trace.findings for trace in logs.traces):
        # Counting lines takes longer than searching, so it comes last and only if line numbers are shown.
        logs = request_tracer.number_lines(logs, resources)
    return replace(logs, traces=query.chosen(logs.traces))


def _consumers(logs: TracedLogs) -> dict[str, frozenset[str]]:
    """Return the consumers of each resource that was found."""
    found = {resource for resources in logs.resources.values() for resource in resources}
    consumers: dict[str, set[str]] = {resource: set() for resource in found}
    for record in logs.scan.records.select(*NAMED_BY_ID):
        if record.consumer and record.resource in consumers:
            consumers[record.resource].add(record.consumer)
    return {resource: frozenset(own) for resource, own in consumers.items()}


def requests(paths: Paths, *, options: Options = _DEFAULTS) -> list[Trace]:
    """Return all requests in the logs behind `paths` (files, directories, archives), judged, in order of time.

    Raise InputUnreadable when none of them is a log of Maestro.
    """
    logs = read_all(_paths(paths), reading=index.ReadOptions(now=Clock().epoch()), options=options)
    return sorted(logs.traces(), key=lambda trace: trace.start)


def request(paths: Paths, *identifiers: str, options: Options = _DEFAULTS) -> list[Trace]:
    """Return the requests of the resources that `identifiers` name, judged, in order of time; at least one.

    An identifier is a resource ID, an op-id, the name of a work or of an object in it, or the ID of an event. Its
    errors have the exit codes of `maestro trace request` as `error.exit`.

    Raises:
        NotFound: none of the identifiers is in the logs (exit code 4).
        Ambiguous: an identifier, such as a work name, stands for several resources; the message lists them (7).
        InputUnreadable: none of the files is a log of Maestro (3).
        InvalidArguments: no identifier is given (2).
    """
    request_tracer = RequestTracer(_paths(paths), options=options, now=Clock().epoch())
    return trace_requests(request_tracer, RequestQuery(identifiers=identifiers), options=options).traces


def _paths(paths: Paths) -> list[str]:
    """Return paths as texts; raise InvalidArguments for what is none."""
    several: Sequence[str | PathLike[str]] = [paths] if isinstance(paths, str | PathLike) else paths
    try:
        return [fspath(path) for path in several]
    except TypeError as error:
        raise InvalidArguments(f"paths: {error}; give a path, or a list of paths") from error


def environment_of(
    paths: Sequence[str], *, now: float, progress: Progress = scan.silent, warn: Warn = scan.silent
) -> Environment:
    """Return what the logs show of the system: pods, the times they cover, how verbose they are."""
    read = scan.scan_all(paths, now=now, progress=progress)
    _check(read, _DEFAULTS, warn=warn)
    return tracer.read_environment(read.records, read.writers, options=_DEFAULTS)


def _check(read: scan.Scan, options: Options, *, warn: Warn) -> None:
    """Raise InputUnreadable for what is no log of Maestro, InvalidArguments for a clock of a pod that is not there."""
    if read.unreadable and not read.writers:
        raise InputUnreadable("; ".join(read.unreadable) + "; give logs of Maestro servers and agents")
    # First, because a file that breaks off early may be why nothing was recognised.
    for problem in read.unreadable:
        warn(printable(problem))
    if not any(writer.record_count for writer in read.writers):
        names = ", ".join(dict.fromkeys(writer.path for writer in read.writers[:5]))
        raise InputUnreadable(f"no line of Maestro was recognised in {names}; give logs of Maestro servers and agents")
    pods = sorted({writer.pod for writer in read.writers})
    unknown = next((pod for pod, _ in options.clocks if pod not in pods), "")
    if unknown:
        names = printable(", ".join(pods[:_MOST_NAMED]) + (", …" if len(pods) > _MOST_NAMED else ""))
        raise InvalidArguments(f"--skew: there is no pod {short_word(unknown)} in these logs; there are {names}")
