"""The tools over archives of `maestro diagnose collect`: no system is reached. The first archive is asked about."""

import asyncio
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import orjson

from maestropy.console import rows
from maestropy.console.picture import Picture
from maestropy.diagnose import archive as archives
from maestropy.diagnose import connections, works_of
from maestropy.diagnose import manifest as manifests
from maestropy.diagnose.analysis import analyze as analysing
from maestropy.diagnose.analysis import diff
from maestropy.diagnose.analysis.analyze import Analysis
from maestropy.mcp import definitions as arguments
from maestropy.mcp import log_lines, requests
from maestropy.mcp.answers import Result, ToolError
from maestropy.mcp.evidence import EvidenceStore, file_and_line
from maestropy.mcp.results import documents
from maestropy.mcp.results import findings as finding_results
from maestropy.mcp.results import fleet as fleet_results
from maestropy.mcp.results import history as history_results
from maestropy.mcp.results import traces as trace_results
from maestropy.mcp.texts import Ours
from maestropy.mcp.translation import translated
from maestropy.sdk.consumers import Consumer
from maestropy.sdk.history import HistoryEntry
from maestropy.trace import library
from maestropy.trace.access.options import HcpAccess
from maestropy.trace.errors import InputUnreadable
from maestropy.trace.findings.codes import CODES
from maestropy.trace.logs.judge import pauses
from maestropy.trace.offline import OfflineDatabase
from maestropy.trace.output import Evidence
from maestropy.trace.work import gather, parse, query
from maestropy.trace.work.judge.facts import Expectations
from maestropy.trace.work.live_objects import LookupDepth
from maestropy.trace.work.model import TracedResource
from maestropy.trace.work.report import work_report

_HISTORIES: Final = ("server/history.jsonl", "database/history.jsonl")


class OpenArchive:
    """One unpacked archive, with what was computed from it."""

    def __init__(self, opened: archives.Opened) -> None:
        self.opened = opened
        self.name = opened.path.name
        self.manifest = opened.manifest or manifests.Manifest(schema=manifests.SCHEMA)
        self.files = {name: opened.folder / name for name in opened.files}
        self._lock = asyncio.Lock()
        self._analysis: Analysis | None = None

    async def analysis(self) -> Analysis:
        """Return the analysis; it is made once, in a thread, and goes on if the call is cancelled."""
        async with self._lock:
            if self._analysis is None:
                self._analysis = await asyncio.to_thread(analysing.analyze, self.opened)
        return self._analysis

    @cached_property
    def database(self) -> OfflineDatabase:
        """The works of the archive; raises InputUnreadable."""
        return works_of.database(self.opened.folder)

    @cached_property
    def readers(self) -> gather.Readers:
        """Database and clusters, as the tracer reads them; raises InputUnreadable."""
        return works_of.readers(self.opened, self.manifest, database=self.database)

    @cached_property
    def lines(self) -> dict[str, Evidence]:
        """The lines of the works, by resource ID."""
        found: dict[str, Evidence] = {}
        for name in works_of.ROWS:
            for number, document in works_of.documents(self.opened.folder / name, problems=[]):
                found.setdefault(str(document.get("id")), Evidence(where=f"{name}:{number}", says="the work"))
        return found

    def documents(self, name: str) -> list[tuple[int, dict[str, Any]]]:
        """Return the documents of a file with their line numbers."""
        return list(works_of.documents(self.opened.folder / name, problems=[]))

    def history(self) -> list[tuple[str, HistoryEntry]]:
        """Return the entries with their evidence IDs, the newest first."""
        for name in _HISTORIES:
            found = [(f"{name}:{number}", _entry(document)) for number, document in self.documents(name)]
            if found:
                return sorted(found, key=lambda item: item[1].time, reverse=True)
        return []


def _entry(document: Mapping[str, Any]) -> HistoryEntry:
    """Return an entry of the REST API, or of the table, which has one column for all subjects and JSON as a text."""
    subject = "resource_id" if str(document.get("kind", "")).startswith("work.") else "consumer_id"
    detail = document.get("detail")
    if isinstance(detail, str):
        try:
            detail = orjson.loads(detail)
        except orjson.JSONDecodeError:
            detail = {"text": detail}
    return HistoryEntry.from_dict({subject: document.get("subject_id"), **document, "detail": detail})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSystem:
    """One archive, and others to compare it with."""

    archives: tuple[OpenArchive, ...]

    @property
    def description(self) -> str:
        """What answers call it."""
        first = self.archives[0]
        return f"archive {first.name} collected {first.manifest.collected_at or 'at an unknown time'}"

    def handlers(self) -> Mapping[str, Any]:
        """Return the tools of one session."""
        return ArchiveSession(self.archives).handlers


@contextmanager
def opened(paths: Sequence[Path]) -> Iterator[ArchiveSystem]:
    """Unpack archives while entered; raise InputUnreadable for one of which nothing can be read."""
    with ExitStack() as stack:
        found = []
        for path in paths:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="maestro-mcp-")))
            found.append(OpenArchive(stack.enter_context(archives.opened(path, folder=folder))))
        yield ArchiveSystem(archives=tuple(found))


class ArchiveSession:
    """The tools of one session over archives."""

    def __init__(self, several: Sequence[OpenArchive]) -> None:
        self._archives = several
        self._archive = several[0]
        self._store = EvidenceStore()
        self._picture: Picture | None = None
        tools = (
            self.find, self.fleet, self.stuck, self.trace_work, self.trace_request, self.trace_hcp, self.history,
            self.explain, self.logs_around, self.diff, self.check, self.archive,
        )  # fmt: skip
        self.handlers = {tool.__name__: translated(tool) for tool in tools}

    async def fleet(self, asked: arguments.Fleet) -> Result:
        """Return the state of the fleet at the time of the collection."""
        picture, now = await self._pictured()
        return fleet_results.of_fleet(picture, self._store, text=asked.text, now=now)

    async def find(self, asked: arguments.Find) -> Result:
        """Return works of the archive."""
        picture, now = await self._pictured()
        return fleet_results.of_search(picture, text=asked.text, now=now)

    async def stuck(self, asked: arguments.Stuck) -> Result:
        """Return works that did not go on."""
        picture, now = await self._pictured()
        return fleet_results.of_stuck(picture, consumer=asked.consumer, now=now)

    async def trace_work(self, asked: arguments.TraceWork) -> Result:
        """Trace a work as far as the archive goes."""
        if not asked.work:
            raise ToolError("work is missing", remedy="Give a resource ID or a name; call find to search for one.")
        archived = self._archive
        identifier: Any = {**query.named_by(asked.work), "consumer": asked.consumer}
        wanted = query.from_identifier(**identifier)
        found = (await archived.database.find(wanted)).rows
        if not found and wanted.entry == "work-name":
            # Clients may choose resource IDs that look like names.
            by_id = query.from_identifier(resource_id=asked.work, consumer=asked.consumer)
            found = (await archived.database.find(by_id)).rows
            wanted = by_id if found else wanted
        readers = _readers_for(archived, found)
        result = await gather.gather(wanted, readers, depth=LookupDepth(objects=bool(readers.clusters)))
        analysis = await self._archive.analysis()
        report = work_report.build(result, now=analysis.now, expectations=Expectations())
        located = {key: (item,) for key, item in self._archive.lines.items()}
        return trace_results.of_work(report, self._store, located=located, files=self._archive.files)

    async def trace_request(self, asked: arguments.TraceRequest) -> Result:
        """Trace requests through the logs of the archive."""
        folder = self._archive.opened.folder / "logs"
        if not any(name.startswith("logs/") for name in self._archive.files):
            raise ToolError(
                "the archive holds no logs", remedy="Collect again with --logs, or use trace_work and history."
            )
        names = log_lines.names_of(self._archive.files)
        analysis = await self._archive.analysis()
        dump = self._archive.database.dump
        known = pauses.known(dump.pauses, dump.rows)
        options = await asyncio.to_thread(connections.options, self._archive.opened.folder)
        now = analysis.now.timestamp()
        logs = requests.Logs(roots=[folder], names=names, now=now, known=known, options=options)
        return await requests.trace(logs, asked, self._store)

    async def trace_hcp(self, asked: arguments.TraceHcp) -> Result:
        """Walk a hosted control plane from the documents of the archive."""
        folder = self._archive.opened.folder / "hcp"
        collected = [str(document.get("identifier")) for _, document in self._archive.documents("hcp.jsonl")]
        identifier = asked.identifier or (collected[0] if collected else "")
        if not folder.is_dir() or not identifier:
            raise ToolError(
                "the archive holds no hosted control plane", remedy="Collect again with `--hcp IDENTIFIER`."
            )
        analysis = await self._archive.analysis()
        walk = await library.hcp(identifier, access=HcpAccess(offline=folder), at=analysis.now)
        return trace_results.of_walk(walk, self._store)

    async def history(self, asked: arguments.History) -> Result:
        """Return entries of the history that were collected."""
        entries = self._archive.history()
        if not entries:
            raise ToolError(
                "the archive holds no history", remedy="Only servers of maestropy keep one; use trace_work."
            )
        resource_id = history_results.only_work(asked, self._archive.database.dump.rows)
        return history_results.of_entries(entries, asked, resource_id=resource_id)

    async def explain(self, asked: arguments.Explain) -> Result:
        """Explain a code."""
        return finding_results.of_code(asked.code)

    async def logs_around(self, asked: arguments.LogsAround) -> Result:
        """Return lines around a record of a log of the archive."""
        return await requests.lines_around(asked, self._archive.files)

    async def diff(self, asked: arguments.Diff) -> Result:
        """Compare two archives, or two versions of a work."""
        if asked.work:
            entries = self._archive.history()
            wanted = arguments.History(work=asked.work)
            resource_id = history_results.only_work(wanted, self._archive.database.dump.rows)
            return history_results.of_versions(entries, asked, resource_id=resource_id)
        if len(self._archives) < 2:
            raise ToolError(
                "there is only one archive", remedy="Start `maestro mcp` with --archive twice, or give work."
            )
        before, after = self._named(asked.before, default=1), self._named(asked.after, default=0)
        difference = diff.compare(await before.analysis(), await after.analysis())
        return finding_results.of_difference(difference, self._store, files=self._archive.files)

    def _named(self, name: str, *, default: int) -> OpenArchive:
        found = [archive for archive in self._archives if name in {archive.name, str(archive.opened.path)}]
        if name and not found:
            names = ", ".join(archive.name for archive in self._archives)
            raise ToolError(f"there is no archive {name}; there are {names}", remedy="Name one of them.")
        return found[0] if name else self._archives[default]

    async def check(self, asked: arguments.Check) -> Result:
        """Return the findings of the engines."""
        engines = () if asked.part == "all" else (asked.part,)
        analysis = await self._archive.analysis()
        return finding_results.of_analysis(analysis, self._store, engines=engines, files=self._archive.files)

    async def archive(self, asked: arguments.Archive) -> Result:
        """Open evidence, or say what was collected."""
        if not asked.evidence:
            return await self._overview()
        return opened_evidence(asked.evidence, self._store, self._archive)

    async def _overview(self) -> Result:
        first = self._archive
        analysis = await first.analysis()
        manifest = first.manifest
        items: list[dict[str, Any]] = [
            {
                "section": Ours(section.name) if section.name.isidentifier() else section.name,
                "state": Ours(section.state),
                "reason": section.reason,
                "items": section.items,
            }
            for section in manifest.sections
        ]
        items += [{"file": name, "bytes": path.stat().st_size} for name, path in first.files.items()]
        head = {
            "archives": [archive.name for archive in self._archives],
            "schema": manifest.schema,
            "version": manifest.version,
            "collected": manifest.collected_at,
            "clusters": [{"cluster": entry.label, "consumer": entry.consumer} for entry in manifest.clusters],
            "isCut": first.opened.is_cut,
            "isAnonymised": manifest.is_anonymised,
            "hiddenValues": sum(manifest.hidden.values()),
        }
        return Result(head=head, items=items, unknown=analysis.unknown)

    async def _pictured(self) -> tuple[Picture, float]:
        analysis = await self._archive.analysis()
        if self._picture is None:
            self._picture = await asyncio.to_thread(picture_of, self._archive, analysis)
        return self._picture, analysis.now.timestamp()


def _readers_for(archive: OpenArchive, found: Sequence[TracedResource]) -> gather.Readers:
    """Return the readers for what was found: a work whose cluster was not collected is not searched on others."""
    unseen = works_of.of_uncollected_clusters(archive.database, archive.readers)
    elsewhere = {row_id for several in unseen.values() for row_id in several}
    if found and all(row.id in elsewhere for row in found):
        return works_of.without_cluster(archive.readers, found[0].consumer)
    return archive.readers


def picture_of(archive: OpenArchive, analysis: Analysis) -> Picture:
    """Return the picture of the console at the time of the collection, with the verdicts of the analysis."""
    picture = Picture(archive.name)
    try:
        dump = archive.database.dump
    except InputUnreadable as error:
        picture.source.problem = str(error)
        return picture
    holds = {hold.consumer: hold for hold in dump.holds}
    pauses = {pause.consumer: pause for pause in dump.pauses}
    listed = [Consumer.from_dict(document) for _, document in archive.documents("server/consumers.jsonl")]
    picture.put_consumers({consumer.name: consumer for consumer in listed}, holds, pauses)
    judged = {work.id: work.main for work in analysis.works if work.code in CODES}
    for resource in dump.rows:
        row = rows.of_resource(
            resource, now=analysis.now, hold=holds.get(resource.consumer), pause=pauses.get(resource.consumer)
        )
        # The analysis has seen clusters too; the list of a console has not.
        picture.put([rows.with_verdict(row, judged[row.id]) if row.id in judged else row])
    entries = archive.history()
    for _, entry in reversed(entries):
        moment = parse.moment(entry.time)
        picture.take(entry, at=moment.timestamp() if moment else 0.0)
    picture.source.history = "yes" if entries else "unknown"
    picture.source.total = len(picture.works)
    picture.source.is_complete = True
    picture.source.read_at = analysis.now.timestamp()
    return picture


def opened_evidence(evidence: str, store: EvidenceStore, archive: OpenArchive | None) -> Result:
    """Return the document behind an evidence ID; raise ToolError if there is none."""
    kept = store.get(evidence)
    if kept is not None:
        return documents.of_document(kept, about={"evidence": evidence})
    if archive is None:
        raise _not_known(evidence)
    if evidence.startswith("row:"):
        line = archive.lines.get(evidence.removeprefix("row:"))
        evidence = line.where if line is not None else evidence
    elif evidence.startswith("consumer:"):
        name = evidence.removeprefix("consumer:")
        numbers = [number for number, item in archive.documents("server/consumers.jsonl") if item.get("name") == name]
        evidence = f"server/consumers.jsonl:{numbers[0]}" if numbers else evidence
    place = file_and_line(evidence)
    if place is None or place[0] not in archive.files:
        raise _not_known(evidence)
    name, number = place
    if name.endswith(".jsonl"):
        found = next((item for line_number, item in archive.documents(name) if line_number == number), None)
        if found is not None:
            return documents.of_document(found, about={"evidence": evidence})
    return log_lines.around(archive.files[name], name=name, line=number, before=5, after=40)


def _not_known(evidence: str) -> ToolError:
    return ToolError(
        f"nothing is known under {evidence}",
        remedy="Copy an evidence ID from an answer of this session, or call archive without one for the files.",
    )
