"""Serve the console over an unpacked archive of `maestro diagnose`: the same pages as over a Maestro that runs.

The archive is read once, nothing is reached, and the time of all pages is that of the collection. What the archive does
not hold is named, and never looks healthy. An archive may come from a stranger: a document that cannot be understood is
left out and counted.
"""

import asyncio
import heapq
import shlex
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from maestropy.aio.clock import Clock
from maestropy.console import redaction, rows, sessions
from maestropy.console.actions import OperatorPages
from maestropy.console.app import Console
from maestropy.console.pages import work_page
from maestropy.console.pages.work_page import NoSuchWork, WorkPages
from maestropy.console.picture import ArchiveOrigin, Picture
from maestropy.console.requests import MOST, RequestFeed
from maestropy.diagnose import connections, works_of
from maestropy.diagnose import manifest as manifests
from maestropy.diagnose.analysis import analyze
from maestropy.diagnose.archive import Opened
from maestropy.sdk.consumers import Consumer
from maestropy.sdk.history import HistoryEntry
from maestropy.trace.errors import InputUnreadable, TraceError
from maestropy.trace.logs import index, tracing
from maestropy.trace.logs.judge import pauses
from maestropy.trace.offline import OfflineDatabase
from maestropy.trace.work import gather, parse
from maestropy.trace.work.judge.facts import Expectations
from maestropy.trace.work.live_objects import LookupDepth
from maestropy.trace.work.model import TracedResource
from maestropy.trace.work.query import WorkQuery
from maestropy.trace.work.report import work_report
from maestropy.trace.work.report.work_report import WorkReport

_MOST_ENTRIES: Final = 50_000
_MOST_CONSUMERS: Final = 50_000
_SHOWN_ENTRIES: Final = 300
_SHOWN_MISSING: Final = 50
_HISTORY: Final = ("database/history.jsonl", "server/history.jsonl")
_CONSUMERS: Final = ("database/consumers.jsonl", "server/consumers.jsonl")
_LISTS: Final = ("changes", "objects", "conditions")
_UNUSABLE: Final = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What a document raises that no collection writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """What the pages show of an archive."""

    readers: gather.Readers
    resources: Mapping[str, TracedResource]
    elsewhere: Mapping[str, str]
    """Works whose cluster is not in the archive, with their consumer."""
    history: Mapping[str, Sequence[HistoryEntry]]
    """The entries of each work, the newest first."""
    history_problem: str


@asynccontextmanager
async def archived(opened: Opened) -> AsyncIterator[Console]:
    """Read an archive, and run a console over it while entered; raises `TraceError` if its works are too large."""
    manifest = opened.manifest or manifests.Manifest(schema=manifests.SCHEMA)
    now = analyze.moment(opened, manifest)
    picture = Picture(f"archive {rows.shortened(opened.path.name)}")
    content, problems = await asyncio.to_thread(_load, opened, manifest, picture, now=now)
    logs = _logs(opened.folder)
    feed = RequestFeed(logs, on_change=picture.touch, on_problem=lambda _text: None)
    if logs:
        known = pauses.known(picture.pauses.values(), content.resources.values())
        picture.source.log_problem = await asyncio.to_thread(_read_requests, feed, opened.folder, known=known, now=now)
    missing = [*opened.problems, *manifests.unknown(manifest), *problems]
    if opened.manifest is None:
        missing.append("what was collected: the archive has no manifest that can be read")
    elif manifest.schema > manifests.SCHEMA:
        missing.append(f"what schema {manifest.schema} has added or moved")
    picture.source.archive = ArchiveOrigin(
        name=rows.shortened(opened.path.name),
        collected=now.timestamp(),
        missing=tuple(rows.shortened(text) for text in missing[:_SHOWN_MISSING]),
        is_anonymised=manifest.is_anonymised,
    )
    works = ArchivedWorks(content=content, path=opened.path, now=now)
    gate = sessions.Gate(allows_host=sessions.loopback_host)
    running = Console(
        picture=picture,
        collector=ArchivedFleet(content=content, picture=picture),
        requests=feed,
        pages=WorkPages(reader=works, picture=picture, requests=feed),
        gate=gate,
        operator=OperatorPages(picture=picture, gate=gate),
        title=picture.source.description,
        clock=Clock(epoch=now.timestamp),
    )
    try:
        yield running
    finally:
        running.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedFleet:
    """The picture of an archive: it is complete, and never changes."""

    content: _Content
    picture: Picture

    def want(self) -> None:
        """Read nothing: all of it was read at the start."""

    async def ids_of_source(self, source: str) -> set[str]:
        """Return the IDs of the works of a source, by their rows and by the history."""
        named = {work_id for work_id, row in self.content.resources.items() if row.source == source}
        return named | {work_id for work_id, name in self.picture.origins.items() if name == source}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedWorks:
    """Reads single works from an archive."""

    content: _Content = field(repr=False)
    path: Path
    now: datetime

    async def trace(self, work_id: str) -> tuple[WorkReport, str]:
        """Judge a work as `maestro diagnose analyze` does, at the time of the collection."""
        readers = self.content.readers
        consumer = self.content.elsewhere.get(work_id)
        if consumer is not None:
            readers = works_of.without_cluster(readers, consumer)
        depth = LookupDepth(objects=bool(readers.clusters))
        try:
            result = await gather.gather(WorkQuery(entry="file", values=(work_id,)), readers, depth=depth)
            return work_report.build(result, now=self.now, expectations=Expectations()), ""
        except _UNUSABLE as error:
            raise InputUnreadable(
                f"the archive has documents of this work that cannot be understood ({type(error).__name__})"
            ) from error

    async def history(self, work_id: str) -> tuple[list[HistoryEntry], str]:
        """Return the collected entries of a work."""
        return list(self.content.history.get(work_id, ())[:_SHOWN_ENTRIES]), self.content.history_problem

    async def manifests(self, work_id: str) -> tuple[Sequence[Mapping[str, Any]], object]:
        """Return the collected manifests; the collection has redacted them."""
        found = self.content.resources.get(work_id)
        if found is None:
            raise NoSuchWork(work_id)
        return found.manifests, found.version

    def commands(self, work_id: str) -> list[str]:
        """Return commands that read the same archive."""
        path = shlex.quote(str(self.path))
        return [f"maestro trace request --resource-id {work_id} {path}", f"maestro diagnose analyze {path}"]


def _load(
    opened: Opened, manifest: manifests.Manifest, picture: Picture, *, now: datetime
) -> tuple[_Content, Sequence[str]]:
    """Fill the picture; return what single works are read from, and what could not be read."""
    problems: list[str] = []
    database = works_of.database(opened.folder)
    readers = works_of.readers(opened, manifest, database=database)
    elsewhere = works_of.of_uncollected_clusters(database, readers)
    _put_consumers(opened.folder, picture, database, problems=problems)
    _put_works(opened.folder, picture, now=now, problems=problems)
    _put_verdicts(opened, manifest, picture, now=now, problems=problems)
    if not works_of.has_rows(opened.folder):
        problems.append(f"works: {readers.database_problem}")
    history = _put_history(opened.folder, picture, problems=problems)
    source = picture.source
    source.loaded = source.total = len(picture.works)
    source.read_at, source.is_complete = now.timestamp(), True
    return _Content(
        readers=readers,
        resources={row.id: row for row in database.dump.rows},
        elsewhere={work_id: consumer for consumer, several in elsewhere.items() for work_id in several},
        history=history,
        history_problem="" if source.history == "yes" else "The archive holds no history: it was not collected.",
    ), problems


def _put_consumers(folder: Path, picture: Picture, database: OfflineDatabase, *, problems: list[str]) -> None:
    dump = database.dump
    consumers = {row.consumer: Consumer(id="", name=row.consumer) for row in dump.rows if row.consumer}
    for name in _CONSUMERS:
        for document in islice(_documents(folder / name, problems), _MOST_CONSUMERS):
            found = parse.text(document.get("name"))
            labels = {key: parse.text(value) for key, value in parse.mapping(document.get("labels")).items()}
            if found:
                consumers[found] = Consumer(id=parse.text(document.get("id")), name=found, labels=labels)
    holds = {hold.consumer: hold for hold in dump.holds}
    paused = {pause.consumer: pause for pause in dump.pauses}
    picture.put_consumers(consumers, holds, paused)


def _put_works(folder: Path, picture: Picture, *, now: datetime, problems: list[str]) -> None:
    unusable = 0
    for name in works_of.ROWS:
        for document in _documents(folder / name, problems):
            try:
                cleaned = redaction.document(document)
                is_row = isinstance(cleaned.get("payload"), Mapping)
                resource = parse.row(cleaned) if is_row else parse.bundle(cleaned)
                if not resource.id or (not is_row and resource.id in picture.works):
                    continue
                hold, pause = picture.holds.get(resource.consumer), picture.pauses.get(resource.consumer)
                picture.put([rows.of_resource(resource, now=now, hold=hold, pause=pause)])
            except _UNUSABLE:
                unusable += 1
    if unusable:
        problems.append(f"works: {unusable} cannot be understood and are left out")


def _put_verdicts(
    opened: Opened, manifest: manifests.Manifest, picture: Picture, *, now: datetime, problems: list[str]
) -> None:
    """Put the verdicts of the analysis into the list, so that it says what the page of each work says."""
    try:
        for traced in analyze.traced_works(opened, manifest, now=now):
            row = picture.works.get(work_report.resource_id(traced.facts))
            if row is not None:
                picture.put([rows.with_verdict(row, work_page.headline(traced))])
    except _UNUSABLE as error:
        problems.append(f"verdicts with clusters: documents cannot be understood ({type(error).__name__})")


def _put_history(folder: Path, picture: Picture, *, problems: list[str]) -> Mapping[str, Sequence[HistoryEntry]]:
    """Put connections of agents and recent changes into the picture; return the entries of each work."""
    found = next((folder / name for name in _HISTORY if (folder / name).is_file()), None)
    picture.source.history = "yes" if found is not None else "absent"
    entries = list(_entries(found, problems)) if found is not None else []
    by_work: dict[str, list[HistoryEntry]] = defaultdict(list)
    # The newest are first in the file; the picture takes changes in the order in which they happened.
    for entry in reversed(entries):
        moment = parse.moment(entry.time)
        picture.take(entry, at=moment.timestamp() if moment is not None else 0.0)
    for entry in entries:
        if entry.kind.startswith("work."):
            by_work[entry.resource_id].append(entry)
    return by_work


def _entries(path: Path, problems: list[str]) -> Iterator[HistoryEntry]:
    unusable = 0
    for document in islice(_documents(path, problems), _MOST_ENTRIES):
        try:
            yield _entry(document)
        except _UNUSABLE:
            unusable += 1
    if unusable:
        problems.append(f"history: {unusable} entries cannot be understood and are left out")


def _entry(document: Mapping[str, Any]) -> HistoryEntry:
    """Return an entry; the database calls the work or consumer of an entry its subject."""
    is_of_work = parse.text(document.get("kind")).startswith("work.")
    subject = document.get("resource_id") or (document.get("subject_id") if is_of_work else "")
    detail = parse.mapping(document.get("detail"))
    usable = {name: value for name, value in detail.items() if name not in _LISTS or isinstance(value, list)}
    return HistoryEntry.from_dict({**document, "resource_id": subject, "detail": usable})


def _documents(path: Path, problems: list[str]) -> Iterator[Mapping[str, Any]]:
    return (document for _, document in works_of.documents(path, problems=problems))


def _logs(folder: Path) -> tuple[Path, ...]:
    home = folder / "logs"
    return (home,) if home.is_dir() and any(path.is_file() for path in home.rglob("*")) else ()


def _read_requests(feed: RequestFeed, folder: Path, *, known: pauses.Known, now: datetime) -> str:
    """Judge the requests of the logs as the analysis does, and keep the newest; return why there are none."""
    reading = index.ReadOptions(now=now.timestamp(), jobs=1)
    try:
        options = connections.options(folder)
        logs = tracing.read_all([str(folder / "logs")], reading=reading, options=options, warn=lambda _text: None)
        # One at a time: gigabytes of logs hold more requests than memory.
        newest = heapq.nlargest(MOST, logs.traces(), key=lambda trace: trace.start)
        newest = [pauses.with_evidence(pauses.refined(trace, known)) for trace in newest]
    except TraceError as error:
        return rows.shortened(str(error).replace(str(folder), ""))
    feed.keep(sorted(newest, key=lambda trace: trace.start), logs.environment)
    return ""
