"""Analyse an unpacked archive: ask all verdict engines, and rank what they find. Offline: no system is reached.

The engines of `maestropy.trace` judge works, requests and hosted clusters; their rules are not repeated here. Ages are
computed for the moment of the collection, so that the verdict is that of then.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from maestropy.diagnose import connections, works_of
from maestropy.diagnose import manifest as manifests
from maestropy.diagnose.analysis import causes, health
from maestropy.diagnose.analysis.ranking import Ranked, rank
from maestropy.diagnose.archive import Opened
from maestropy.trace import library, offline
from maestropy.trace.access.options import HcpAccess
from maestropy.trace.errors import InputUnreadable, TraceError
from maestropy.trace.exit_codes import Exit
from maestropy.trace.findings.codes import CODES
from maestropy.trace.hcp.model import Walk
from maestropy.trace.logs import index, tracing
from maestropy.trace.logs.judge import pauses
from maestropy.trace.logs.log_records import LogRecord
from maestropy.trace.logs.model import PROBLEMS, SETTLED, RequestFinding, Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.output import Evidence, Finding
from maestropy.trace.report.formatting import describe
from maestropy.trace.stages import Stage
from maestropy.trace.work import gather, parse
from maestropy.trace.work.judge.facts import Expectations
from maestropy.trace.work.live_objects import LookupDepth
from maestropy.trace.work.query import WorkQuery
from maestropy.trace.work.report import work_report
from maestropy.trace.work.report.work_report import Traced

_AT_ONCE: Final = 1000
_MOST_EVIDENCE: Final = 5
_TEXT_BYTES: Final = 32 << 20
_HEALTHY: Final = "MW-001"
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedWork:
    """The verdict on one work."""

    id: str
    name: str
    consumer: str
    code: str
    verdict: str
    exit: Exit
    main: Finding
    """The finding that is the verdict, with its evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRequest:
    """The verdict on one request."""

    resource_id: str
    work_name: str
    consumer: str
    action: str
    version: int
    verdict: str
    failed_stage: int | None
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Everything that was found in an archive."""

    archive: str
    manifest: manifests.Manifest
    now: datetime
    findings: tuple[Ranked, ...]
    works: tuple[JudgedWork, ...] = ()
    requests: tuple[JudgedRequest, ...] = ()
    unknown: tuple[str, ...] = ()
    """What nothing is said about, and why; one sentence each."""
    exit: Exit = Exit.HEALTHY


@dataclass(slots=True, kw_only=True)
class _Results:
    findings: list[Ranked] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    works: list[JudgedWork] = field(default_factory=list)
    requests: list[JudgedRequest] = field(default_factory=list)


def analyze(opened: Opened, *, jobs: int = 1) -> Analysis:
    """Analyse an archive as far as it goes."""
    results = _Results()
    manifest = opened.manifest or manifests.Manifest(schema=manifests.SCHEMA)
    now = moment(opened, manifest)
    _archive_findings(opened, manifest, results)
    _works(opened, manifest, results, now=now)
    _requests(opened, results, scope=manifest.scope, known=_known(opened), now=now, jobs=jobs)
    _hcp(opened, results, now=now)
    _health(opened, results, now=now)
    findings = rank(results.findings)
    section = manifest.section("works")
    has_works = section is not None and section.state == "collected"
    if not has_works and not results.works:
        results.unknown.append("works: the archive holds none, of a database, a REST API or a cluster")
    return Analysis(
        archive=opened.path.name,
        manifest=manifest,
        now=now,
        findings=tuple(findings),
        works=tuple(results.works),
        requests=tuple(results.requests),
        unknown=tuple(dict.fromkeys(results.unknown)),
        exit=_exit(findings, results, has_works=has_works),
    )


def _exit(findings: Sequence[Ranked], results: _Results, *, has_works: bool) -> Exit:
    """A problem counts most; without one, what is unknown keeps the archive from being called healthy."""
    if any(finding.exit is Exit.PROBLEM for finding in findings):
        return Exit.PROBLEM
    is_known = has_works or bool(results.works)
    is_unclear = any(finding.exit is Exit.INCONCLUSIVE for finding in findings)
    return Exit.HEALTHY if is_known and not is_unclear else Exit.INCONCLUSIVE


def moment(opened: Opened, manifest: manifests.Manifest) -> datetime:
    """Return when an archive was collected; without a manifest, when its newest file was written."""
    try:
        now = datetime.fromisoformat(manifest.collected_at)
        seconds = (now if now.tzinfo else now.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        seconds = max((path.stat().st_mtime for path in opened.folder.rglob("*") if path.is_file()), default=0.0)
    # Whatever a stranger wrote there, ages can be computed from it.
    return datetime.fromtimestamp(min(max(seconds, _EARLIEST), _LATEST), tz=UTC)


def _archive_findings(opened: Opened, manifest: manifests.Manifest, results: _Results) -> None:
    if opened.problems:
        code = "MD-002"
        evidence = [Evidence(where=opened.path.name, says=problem) for problem in opened.problems]
        results.findings.append(Ranked.of(health.finding(code, evidence=evidence), engine="archive"))
        results.unknown += opened.problems
    if opened.manifest is None:
        results.unknown.append("what was collected: the archive has no manifest that can be read")
    elif manifest.schema > manifests.SCHEMA:
        says = f"schema {manifest.schema}; this version knows {manifests.SCHEMA}"
        evidence = [Evidence(where=manifests.NAME, says=says)]
        results.findings.append(Ranked.of(health.finding("MD-003", evidence=evidence), engine="archive"))
        results.unknown.append(f"what schema {manifest.schema} has added or moved")
    results.unknown += manifests.unknown(manifest)
    missing = [section for section in manifest.sections if section.state in {"failed", "partial"}]
    if missing:
        evidence = [Evidence(where=manifests.NAME, says=f"{section.name} {section.state}") for section in missing]
        names = ", ".join(section.name for section in missing)
        title = f"Unknown, because not or only partly collected: {names}."
        results.findings.append(Ranked.of(health.finding("MD-001", evidence=evidence, title=title), engine="archive"))


def _works(opened: Opened, manifest: manifests.Manifest, results: _Results, *, now: datetime) -> None:
    try:
        lines = _Lines(opened.folder)
        for traced in traced_works(opened, manifest, now=now):
            _judge_work(traced, results, lines=lines)
    except InputUnreadable as error:
        results.unknown.append(f"works: {error}")
        return
    results.unknown += lines.problems


def traced_works(opened: Opened, manifest: manifests.Manifest, *, now: datetime) -> Iterator[Traced]:
    """Yield every work of an archive with its verdict; raise InputUnreadable if a file is too large.

    Lists of works take their verdicts from here, so that they say what the report and the page of a work say.
    """
    database = works_of.database(opened.folder)
    readers = works_of.readers(opened, manifest, database=database)
    ids = {row.id for row in database.dump.rows}
    unseen = works_of.of_uncollected_clusters(database, readers)
    elsewhere = {row_id for several in unseen.values() for row_id in several}
    lost = _without_row(readers, ids, manifest=manifest)
    # A hold names works that the database does not have any more; it explains them.
    held = {work for hold in database.dump.holds for work in hold.works} - ids - set(lost)
    groups: list[tuple[list[str], gather.Readers]] = [([*(ids - elsewhere), *lost, *held], readers)]
    groups += [(several, works_of.without_cluster(readers, consumer)) for consumer, several in unseen.items()]
    for values, own_readers in groups:
        for start in range(0, len(values), _AT_ONCE):
            query = WorkQuery(entry="file", values=tuple(sorted(values)[start : start + _AT_ONCE]))
            depth = LookupDepth(objects=bool(own_readers.clusters))
            result = asyncio.run(gather.gather(query, own_readers, depth=depth))
            yield from work_report.build(result, now=now, expectations=Expectations()).works


def _judge_work(traced: Traced, results: _Results, *, lines: "_Lines") -> None:
    facts, verdict = traced.facts, traced.verdict
    resource_id = work_report.resource_id(facts) or facts.data.requested
    name, consumer = work_report.work_name(facts) or resource_id, facts.consumer or ""
    results.works.append(
        JudgedWork(
            id=resource_id,
            name=name,
            consumer=consumer,
            code=verdict.code,
            verdict=verdict.name,
            exit=verdict.exit,
            main=verdict.findings[0],
        )
    )
    if verdict.code == _HEALTHY:
        return
    paths = lines.of_work(resource_id, [applied.name for applied in facts.data.applied])
    for number, found in enumerate(verdict.findings):
        # The first is the verdict; others that are no more than notes would hide it.
        if number and found.severity == "info":
            continue
        located = replace(found, evidence=_located(found, paths))
        subject = f"work {name}{f' of {consumer}' if consumer else ''}"
        results.findings.append(
            Ranked.of(
                located,
                engine="works",
                subject=subject,
                cause=causes.of_work(found, consumer=consumer),
                exit=verdict.exit if not number else None,
            )
        )


def _located(found: Finding, paths: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Put the lines of the archive beside what the engine says."""
    return (*found.evidence[:_MOST_EVIDENCE], *paths[:_MOST_EVIDENCE])


def _without_row(readers: gather.Readers, ids: set[str], *, manifest: manifests.Manifest) -> list[str]:
    """Return works that are applied on a cluster and that the database does not have.

    Only of hubs that other works belong to: a work within a work has no row either. Only if all works were collected.
    """
    section = manifest.section("works")
    if (section is not None and section.state != "collected") or manifest.scope.work:
        return [] if readers.database else works_of.applied_names(readers)
    if readers.database is None:
        return works_of.applied_names(readers)
    lost: list[str] = []
    for cluster in readers.clusters:
        assert isinstance(cluster, offline.OfflineCluster)
        if manifest.scope.consumer and cluster.consumer != manifest.scope.consumer:
            continue
        applied = [parse.applied_work(item, cluster=cluster.label) for item in cluster.all_applied_works()]
        hubs = {work.hub_hash for work in applied if work.work_name in ids}
        lost += [work.work_name for work in applied if work.hub_hash in hubs and work.work_name not in ids]
    return list(dict.fromkeys(lost))


class _Lines:
    """Where works and their applied works stand in the archive."""

    def __init__(self, folder: Path) -> None:
        self.problems: list[str] = []
        self._rows: dict[str, Evidence] = {}
        self._applied: dict[str, Evidence] = {}
        for name in works_of.ROWS:
            for number, document in works_of.documents(folder / name, problems=self.problems):
                where = Evidence(where=f"{name}:{number}", says="the work, its status and its spec events")
                self._rows.setdefault(str(document.get("id")), where)
        for path in sorted(folder.glob("clusters/*/*.jsonl")):
            if path.name not in {"objects.jsonl", "appliedmanifestworks.jsonl"}:
                continue
            name = path.relative_to(folder).as_posix()
            for number, document in works_of.documents(path, problems=self.problems):
                metadata = document.get("metadata")
                if document.get("kind") == "AppliedManifestWork" and isinstance(metadata, dict):
                    where = Evidence(where=f"{name}:{number}", says="its AppliedManifestWork")
                    self._applied.setdefault(str(metadata.get("name")), where)

    def of_work(self, resource_id: str, applied: Sequence[str]) -> list[Evidence]:
        """Return the lines of one work."""
        found = [self._rows.get(resource_id), *(self._applied.get(name) for name in applied)]
        return [evidence for evidence in found if evidence is not None]


def _requests(
    opened: Opened, results: _Results, *, scope: manifests.Scope, known: pauses.Known, now: datetime, jobs: int
) -> None:
    folder = opened.folder / "logs"
    if not folder.is_dir() or not any(path.is_file() for path in folder.rglob("*")):
        results.unknown.append("requests: the archive holds no logs")
        return
    reading = index.ReadOptions(now=now.timestamp(), jobs=jobs)
    warnings: list[str] = []
    try:
        logs = tracing.read_all(
            [str(folder)], reading=reading, options=connections.options(opened.folder), warn=warnings.append
        )
    except TraceError as error:
        results.unknown.append(f"requests: {str(error).replace(str(opened.folder), '')}")
        return
    results.unknown += [f"logs: {warning}" for warning in warnings]
    healthy = {work.id for work in results.works if work.code == _HEALTHY}
    # One at a time: gigabytes of logs hold a million requests, and only what is wrong with them is kept.
    for judged in logs.traces(evidence="brief"):
        trace = pauses.refined(judged, known)
        if not _is_in_scope(trace, scope, results.works):
            continue
        trace = trace if trace.verdict in SETTLED else pauses.with_evidence(trace)
        main = trace.main_finding
        key = trace.key
        results.requests.append(
            JudgedRequest(
                resource_id=key.resource,
                work_name=key.work_name,
                consumer=key.consumer,
                action=key.action,
                version=key.version,
                verdict=trace.verdict.value,
                failed_stage=trace.failed_stage,
                code=main.code if main else _unsent(trace),
            )
        )
        if trace.verdict not in SETTLED and main is not None:
            located = [
                Evidence(where=_log_line(logs.environment, record, folder=opened.folder), says=describe(record))
                for record in main.evidence[:_MOST_EVIDENCE]
            ]
            is_past = key.resource in healthy
            results.findings.append(_request_finding(trace, main, evidence=located, is_past=is_past))


def _known(opened: Opened) -> pauses.Known:
    """Return works and pauses; none if they cannot be read, which the works have told."""
    try:
        dump = works_of.database(opened.folder).dump
    except InputUnreadable:
        return pauses.Known()
    return pauses.known(dump.pauses, dump.rows)


def _is_in_scope(trace: Trace, scope: manifests.Scope, works: Sequence[JudgedWork]) -> bool:
    """Return whether a request is about what was collected; the logs of a limited archive are those of all works."""
    if scope.work:
        return trace.key.resource in {work.id for work in works}
    return not scope.consumer or trace.key.consumer in {"", scope.consumer}


def _unsent(trace: Trace) -> str:
    """Return why nobody was told of a request that is complete otherwise; empty if somebody was."""
    codes = (found.code for found in trace.findings)
    return next((code for code in codes if CODES[code].stage == Stage.SERVER_SENDS_STATUS), "")


def _request_finding(trace: Trace, main: RequestFinding, *, evidence: Sequence[Evidence], is_past: bool) -> Ranked:
    """Return what is wrong with a request; of a work that is healthy now, it is only history."""
    key, entry = trace.key, main.entry
    is_problem = trace.verdict in PROBLEMS and not is_past
    stage = f" at stage {trace.failed_stage}" if trace.failed_stage else ""
    version = f"version {key.version}" if key.version else "an unknown version"
    past = "; the work is healthy by now" if is_past else ""
    found = Finding(
        code=main.code,
        severity=entry.severity if is_problem else "info",
        title=f"{key.action} of {version} {trace.verdict.value}{stage}: {entry.title}{past}",
        detail="\n".join(part for part in (main.detail, entry.cause) if part),
        evidence=tuple(evidence),
        advice=main.advice(key),
    )
    subject = f"work {key.work_name or key.resource}{f' of {key.consumer}' if key.consumer else ''}"
    exit_code = Exit.PROBLEM if is_problem else Exit.HEALTHY
    cause = causes.of_request(found, main.detail, consumer=key.consumer)
    return Ranked.of(found, engine="requests", subject=subject, cause=cause, exit=exit_code)


def _log_line(environment: Environment, record: LogRecord, *, folder: Path) -> str:
    writer = environment.writers[record.file]
    path = writer.origin
    name = path.relative_to(folder).as_posix() if path is not None and path.is_relative_to(folder) else writer.path
    return f"{name}:{record.line}"


def _hcp(opened: Opened, results: _Results, *, now: datetime) -> None:
    folder = opened.folder / "hcp"
    identifiers = [str(document.get("identifier")) for _, document in works_of.documents(opened.folder / "hcp.jsonl")]
    if not identifiers or not folder.is_dir():
        return
    for identifier in identifiers[:10]:
        try:
            walk = asyncio.run(library.hcp(identifier, access=HcpAccess(offline=folder), at=now))
        except TraceError as error:
            results.unknown.append(f"hosted control plane: {str(error).replace(str(folder), 'hcp')}")
            continue
        results.findings += _walk_findings(walk, identifier)


def _walk_findings(walk: Walk, identifier: str) -> Iterator[Ranked]:
    verdict = walk.verdict
    if verdict.exit is Exit.HEALTHY:
        return
    found = Finding(
        code=verdict.code,
        severity="error" if verdict.exit is Exit.PROBLEM else "warn",
        title=f"{verdict.hop}: {verdict.reason}" if verdict.hop else verdict.reason,
        evidence=tuple(Evidence(where=f"hcp/ {item.where}", says=item.says) for item in verdict.evidence),
        advice=verdict.next,
    )
    yield Ranked.of(found, engine="hcp", subject=f"hosted control plane {identifier}", exit=verdict.exit)


def _health(opened: Opened, results: _Results, *, now: datetime) -> None:
    texts: dict[str, str] = {}
    for name in opened.files:
        path = opened.folder / name
        if name.endswith((".health.txt", ".metrics.txt")) and path.stat().st_size <= _TEXT_BYTES:
            texts[name] = path.read_text(encoding="utf-8", errors="replace")
    problems: list[str] = []
    content = health.Content(
        documents=lambda name: list(works_of.documents(opened.folder / name, problems=problems)),
        texts=texts,
        files=opened.files,
        now=now,
    )
    results.findings += [Ranked.of(found, engine=engine) for engine, found in health.judge(content)]
    results.unknown += problems
