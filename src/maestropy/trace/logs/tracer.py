"""Trace requests: from a table of log records to judged requests. Pure: takes what `scan` has read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from maestropy.trace.logs.judge import complete_requests
from maestropy.trace.logs.judge.judge import judge
from maestropy.trace.logs.judge.lifecycles import clock
from maestropy.trace.logs.judge.request_context import RequestContext
from maestropy.trace.logs.log_records import RecordTable
from maestropy.trace.logs.match import (
    attribution,
    clock_steps,
    log_environment,
    row_order,
    server_clocks,
    spec_requests,
)
from maestropy.trace.logs.match.untied_records import UntiedRecords
from maestropy.trace.logs.model import LazyDetails, Options, RequestFinding, Trace, TraceDetails, all_done
from maestropy.trace.logs.read.log_writers import Environment, LogWriter

_NOTABLE_SKEW = 0.1
EvidenceKept = Literal["all", "again", "brief"]


def read_environment(
    records: RecordTable, writers: Sequence[LogWriter], *, options: Options, are_clocks_known: bool = False
) -> Environment:
    """Return the system that the logs show; corrects the writers' clocks, unless that was done before."""
    if not are_clocks_known:
        log_environment.correct_years(records, writers)
        row_order.correct(records, writers)
        for writer, skew in zip(writers, _skews(records, writers, options), strict=True):
            writer.skew = skew
    return log_environment.derive(
        writers,
        attribution.component_records(records, skews=[writer.skew for writer in writers]),
        options=options,
        reported=log_environment.reported_consumers(records),
        # Only servers of this project are silent about statuses that nobody is subscribed to.
        told=log_environment.told_sources(records) if any(writer.is_ours for writer in writers) else frozenset(),
    )


def _skews(records: RecordTable, writers: Sequence[LogWriter], options: Options) -> list[float]:
    """Return the skew of each writer's clock: from the options, else measured if that is enabled."""
    configured = dict(options.clocks)
    known = [configured.get(writer.pod, 0.0) for writer in writers]
    if not options.are_clocks_compared:
        return known
    servers = server_clocks.offsets(records, writers)
    if any(servers):
        measured = log_environment.skews(records, writers, known=servers)
        servers = server_clocks.nearest_to_agents(servers, measured, writers)
    known = [configured.get(writer.pod, servers[file]) for file, writer in enumerate(writers)]
    pairs = clock_steps.correct(records, writers, known=known)
    measured = log_environment.skews(records, writers, known=known, pairs=pairs)
    is_known = [writer.pod in configured or writer.role == "server" for writer in writers]
    return [known[file] if is_known[file] else measured[file] for file in range(len(writers))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifiedResources:
    """The resources of a table, in two classes: certainly complete, and all others with their records."""

    plain: complete_requests.CompleteRequests
    others: attribution.RecordsByResource


def classify(records: RecordTable, writers: Sequence[LogWriter]) -> ClassifiedResources:
    """Separate resources with one certainly complete request from others; needs the writers' skews."""
    owned = attribution.attribute(records)
    skews, pods = [writer.skew for writer in writers], [writer.pod for writer in writers]
    plain = complete_requests.find_complete(records, owned, skews=skews, pods=pods)
    return ClassifiedResources(plain=plain, others=owned.by_resource(without=plain.resources))


def traces(
    records: RecordTable,
    environment: Environment,
    *,
    options: Options,
    wanted: frozenset[str] | None = None,
    resources: ClassifiedResources | None = None,
    evidence: EvidenceKept = "all",
) -> Iterator[Trace]:
    """Judge all requests, or those of the `wanted` resources; `resources` avoids classifying them again.

    `evidence` says which records the traces keep: all, or only those of the last one. When the next one is asked for,
    they are forgotten, and found again if they are read. If it is brief, plainly complete requests have none at all.
    """
    classified = classify(records, environment.writers) if resources is None else resources
    resource_judge = ResourceJudge(records=records, environment=environment, options=options)
    numbers = None if wanted is None else {records.number(resource) for resource in wanted}
    yield from classified.plain.traces(
        records,
        details=_brief_details if evidence == "brief" else resource_judge.details,
        is_kept=evidence == "all",
        wanted=numbers,
    )
    for number in classified.others.indices:
        if numbers is None or number in numbers:
            judged = resource_judge.judged(number, classified.others)
            if evidence == "all":
                yield from judged
                continue
            for at, trace in enumerate(judged):
                lean = resource_judge.lean(trace, number, classified.others, at=at)
                yield lean
                lean.details.release()


def _brief_details(_: int, moments: Sequence[float]) -> TraceDetails:
    return all_done(moments)


class ResourceJudge:
    """Judges the requests of one resource with everything that is known of it."""

    def __init__(self, *, records: RecordTable, environment: Environment, options: Options) -> None:
        self._records = records
        self._environment = environment
        self._options = options
        self._skews = [writer.skew for writer in environment.writers]
        self._components = sorted(
            (
                *attribution.component_records(records, skews=self._skews),
                *attribution.unattributed_records(records, skews=self._skews),
            ),
            key=lambda record: record.at,
        )
        self._records_by_resource: attribution.RecordsByResource | None = None
        self._untied: UntiedRecords | None = None
        self._again = self._details_again  # one bound method for all requests

    def judged(self, number: int, records_by_resource: attribution.RecordsByResource) -> list[Trace]:
        if self._untied is None:
            self._untied = UntiedRecords(self._records, records_by_resource.untied)
        own_records = attribution.records_of(self._records, records_by_resource, number, skews=self._skews)
        return [
            judge(
                RequestContext(
                    request=request,
                    environment=self._environment,
                    components=self._components,
                    options=self._options,
                    untied=self._untied,
                )
            )
            for request in spec_requests.spec_requests_of(self._records.text(number), own_records)
        ]

    def lean(self, trace: Trace, number: int, records: attribution.RecordsByResource, *, at: int) -> Trace:
        """Return a trace whose records can be released, and are then found again for each report."""
        again = partial(self._again, number, records, at)
        return replace(trace, details=LazyDetails(again, made=trace.details.value))

    def _details_again(self, number: int, records: attribution.RecordsByResource, at: int) -> TraceDetails:
        return self.judged(number, records)[at].details.value

    def details(self, number: int, _: Sequence[float]) -> TraceDetails:
        """Return how the only request of a resource went."""
        if self._records_by_resource is None:
            self._records_by_resource = attribution.attribute(self._records).by_resource()
        return self.judged(number, self._records_by_resource)[0].details.value


def log_findings(environment: Environment) -> list[RequestFinding]:
    """Return findings about the logs themselves."""
    findings = [finding for writer in environment.writers for finding in _writer_findings(writer)]
    generations = log_environment.generations(environment.writers)
    if len(generations) > 1:
        findings.append(RequestFinding("MT-007", "certain", detail=", ".join(sorted(generations))))
    if environment.lacks_instances:
        findings.append(RequestFinding("MT-004", "certain", detail=environment.missing_instances))
    return findings


def _writer_findings(writer: LogWriter) -> Iterator[RequestFinding]:
    pod, path = writer.pod, writer.path
    if abs(writer.skew) >= _NOTABLE_SKEW:
        detail = f"{pod} is {abs(writer.skew) * 1000:.0f} ms {'ahead' if writer.skew > 0 else 'behind'}"
        yield RequestFinding("MT-005", "likely", detail=detail)
    for at, seconds in writer.steps:
        way = f"set {'forward' if seconds > 0 else 'back'} by {abs(seconds):.1f} s at {clock(at)}"
        detail = f"the clock of {pod} was {way}, or those of the servers the other way; its times are corrected"
        yield RequestFinding("MT-005", "likely", detail=detail)
    if writer.unstamped:
        detail = f"{path}: {writer.unstamped:,} rows of {pod}; the times of their records are used"
        yield RequestFinding("MT-009", "certain", detail=detail)
    if writer.cut_off:
        detail = f"{path}: {writer.cut_off:,} records of {pod} are cut off before they name their resource"
        yield RequestFinding("MT-006", "certain", detail=detail)
    if writer.is_truncated:
        yield RequestFinding("MT-006", "certain", detail=f"{path} begins within a record")
    if writer.torn_line:
        yield RequestFinding("MT-006", "certain", detail=f"{path} is cut within line {writer.torn_line:,}")
