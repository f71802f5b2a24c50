"""The tools over live systems, with whatever access there is: REST API, database, clusters and log files.

The picture of the fleet is the console's, kept up to date by its collector while tools ask for it; one work is traced
as `maestro trace work` does; `check` collects an archive into a folder of this process and analyses that.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from maestropy.aio import tasks
from maestropy.aio.clock import Clock
from maestropy.console.collector import Collector
from maestropy.console.picture import Picture
from maestropy.diagnose import archive as archives
from maestropy.diagnose.collection import collect
from maestropy.diagnose.collection.scope import Scope
from maestropy.mcp import archive_system, log_lines, requests
from maestropy.mcp import definitions as arguments
from maestropy.mcp.actions import Actions
from maestropy.mcp.answers import Result, ToolError
from maestropy.mcp.evidence import EvidenceStore
from maestropy.mcp.results import documents
from maestropy.mcp.results import findings as finding_results
from maestropy.mcp.results import fleet as fleet_results
from maestropy.mcp.results import history as history_results
from maestropy.mcp.results import traces as trace_results
from maestropy.mcp.texts import Ours
from maestropy.mcp.translation import translated
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.history import HistoryEntry
from maestropy.trace import library
from maestropy.trace.access.confirmation import NoConfirmer
from maestropy.trace.access.options import HcpAccess, WorkAccess
from maestropy.trace.errors import NoAccess
from maestropy.trace.exit_codes import Exit
from maestropy.trace.logs.judge import pauses
from maestropy.trace.rest_reader import RestReader
from maestropy.trace.work import gather, parse, query
from maestropy.trace.work.judge.facts import Expectations
from maestropy.trace.work.live_objects import LookupDepth
from maestropy.trace.work.query import WorkTraceOptions
from maestropy.trace.work.report import work_report
from maestropy.trace.work.report.work_report import WorkReport

_FRESH_SECONDS: Final = 5.0
"""So long a tool waits for a picture that is newer than the question; then it says how old the picture is."""
_LOAD_SECONDS: Final = 45.0
_TRACE_SECONDS: Final = 40.0
_MOST_ENTRIES: Final = 2_000
_CHECK_BYTES: Final = 128 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """How live systems are reached."""

    client: AsyncMaestro
    access: WorkAccess | None = None
    """Database and clusters; None: the REST API alone."""
    hcp_access: HcpAccess = field(default_factory=HcpAccess)
    logs: tuple[Path, ...] = ()
    health_urls: tuple[str, ...] = ()
    metrics_urls: tuple[str, ...] = ()

    @property
    def collect_access(self) -> WorkAccess:
        """The access of a collection: at least the REST API."""
        url = self.client.settings.api_url
        if self.access is None:
            return WorkAccess(db="rest", rest_url=url, no_cluster=True)
        return self.access if self.access.rest_url else replace(self.access, rest_url=url)


class LiveSystem:
    """The systems of one environment, and what was read of them."""

    def __init__(self, options: LiveOptions) -> None:
        self.options = options
        self.picture = Picture(options.client.settings.api_url)
        self.collector = Collector(options.client, self.picture)
        self.checking = asyncio.Lock()
        """Held by the check that collects; another one would remove the files that it reads."""
        self.checked: archive_system.OpenArchive | None = None
        """What the last check collected."""

    @property
    def description(self) -> str:
        """What answers call it."""
        return f"live systems of {self.options.client.settings.api_url}"

    def handlers(self) -> Mapping[str, Any]:
        """Return the tools of one session."""
        return LiveSession(self).handlers


@asynccontextmanager
async def opened(options: LiveOptions) -> AsyncIterator[LiveSystem]:
    """Keep the picture of the fleet up to date while entered; nothing is read before a tool asks."""
    system = LiveSystem(options)
    owner = tasks.TaskOwner()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(owner.stop)
        stack.callback(lambda: archives.discard(system.checked.opened.folder) if system.checked else None)
        owner.start("mcp collector", system.collector.run())
        yield system


class LiveSession:
    """The tools of one session over live systems."""

    def __init__(self, system: LiveSystem) -> None:
        self._system = system
        self._options = system.options
        self._client = system.options.client
        self._store = EvidenceStore()
        self._clock = Clock()
        actions = Actions(self._client)
        tools = (
            self.find, self.fleet, self.stuck, self.trace_work, self.trace_request, self.trace_hcp, self.history,
            self.explain, self.logs_around, self.diff, self.check, self.archive, actions.plan_action,
            actions.perform_action,
        )  # fmt: skip
        self.handlers = {tool.__name__: translated(tool) for tool in tools}

    async def fleet(self, asked: arguments.Fleet) -> Result:
        """Return the state of the fleet."""
        picture = await self._pictured()
        return fleet_results.of_fleet(picture, self._store, text=asked.text, now=self._clock.epoch())

    async def find(self, asked: arguments.Find) -> Result:
        """Return works."""
        return fleet_results.of_search(await self._pictured(), text=asked.text, now=self._clock.epoch())

    async def stuck(self, asked: arguments.Stuck) -> Result:
        """Return works that do not go on."""
        return fleet_results.of_stuck(await self._pictured(), consumer=asked.consumer, now=self._clock.epoch())

    async def _pictured(self) -> Picture:
        """Return a picture that is newer than the question, or say what is wrong with it."""
        picture, asked_at = self._system.picture, self._clock.epoch()
        self._system.collector.want()
        began = self._clock.monotonic()
        source = picture.source
        while not (source.read_at >= asked_at and source.is_complete):
            waited = self._clock.monotonic() - began
            if source.problem or waited > (_FRESH_SECONDS if source.is_complete else _LOAD_SECONDS):
                break
            await asyncio.sleep(0.05)
        if source.problem and not picture.works and not picture.consumers:
            raise ToolError(source.problem, remedy="Check address and token of the environment, and ask again.")
        return picture

    async def trace_work(self, asked: arguments.TraceWork) -> Result:
        """Trace a work in database and clusters, or by REST alone."""
        if not asked.work:
            raise ToolError("work is missing", remedy="Give a resource ID or a name; call find to search for one.")
        identifier: dict[str, Any] = {**query.named_by(asked.work), "consumer": asked.consumer}
        report, problem = await self._traced(identifier)
        if report.exit is Exit.NOT_FOUND and "work_name" in identifier:
            # Clients may choose resource IDs that look like names.
            by_id, _ = await self._traced({"resource_id": asked.work, "consumer": asked.consumer})
            report = report if by_id.exit is Exit.NOT_FOUND else by_id
        result = trace_results.of_work(report, self._store, located={}, files=self._files())
        unknown = [*result.unknown, *([f"database and clusters: {problem}"] if problem else [])]
        if self._options.access is None:
            unknown.append("objects on the clusters: no kubeconfig is configured (mgmt-context of `maestro config`)")
        return replace(result, unknown=unknown)

    async def _traced(self, identifier: dict[str, Any]) -> tuple[WorkReport, str]:
        problem = ""
        if self._options.access is not None:
            try:
                async with asyncio.timeout(_TRACE_SECONDS):
                    options = WorkTraceOptions(is_quiet=True)
                    report = await library.work(access=self._options.access, options=options, **identifier)
                if report.result.database.is_readable:
                    return report, ""
                problem = report.result.database.problem
            except NoAccess as error:
                problem = str(error)
            except TimeoutError:
                problem = f"they did not respond within {_TRACE_SECONDS:g} s"
        readers = gather.Readers(database=RestReader(client=self._client))
        result = await gather.gather(query.from_identifier(**identifier), readers, depth=LookupDepth(objects=False))
        return work_report.build(result, now=self._clock.now(), expectations=Expectations()), problem

    async def trace_request(self, asked: arguments.TraceRequest) -> Result:
        """Trace requests through the log files."""
        if not self._options.logs:
            raise ToolError(
                "no logs are configured",
                remedy="Start `maestro mcp` with --logs FOLDER, or set `logs` of the environment; use trace_work and "
                "history meanwhile.",
            )
        files = log_lines.files_of(self._options.logs)
        if not files:
            raise ToolError(
                "the folder of --logs holds no log of Maestro", remedy="Start `maestro mcp` with another one."
            )
        paths, names = list(files.values()), log_lines.names_of(files)
        try:
            known = pauses.Known(pauses=(await self._pictured()).pauses)
        except ToolError:
            known = pauses.Known()  # the logs can be traced without the server
        logs = requests.Logs(roots=paths, names=names, now=self._clock.epoch(), known=known)
        return await requests.trace(logs, asked, self._store)

    async def trace_hcp(self, asked: arguments.TraceHcp) -> Result:
        """Walk a hosted control plane."""
        if not asked.identifier:
            raise ToolError("identifier is missing", remedy="Give the ARM resource ID or the Clusters Service ID.")
        walk = await library.hcp(asked.identifier, access=self._options.hcp_access)
        return trace_results.of_walk(walk, self._store)

    async def history(self, asked: arguments.History) -> Result:
        """Return the history of a work, a consumer or everything."""
        resource_id = await self._resource_id(asked)
        entries = await self._entries(asked, resource_id)
        return history_results.of_entries(entries, asked, resource_id=resource_id)

    async def _entries(self, asked: arguments.History, resource_id: str) -> list[tuple[str, HistoryEntry]]:
        since = asked.since or None
        if since is not None and parse.moment(since) is None:
            raise ToolError(f"since {asked.since} is no time", remedy="Write it as 2026-11-17T10:00:00Z.")
        more: dict[str, Any] = {"since": since, "newest_first": True, "limit": _MOST_ENTRIES}
        if resource_id:
            found = self._client.resource_bundles.history(resource_id, **more)
        elif asked.consumer:
            found = self._client.consumers.history(asked.consumer, **more)
        else:
            found = self._client.history(**more)
        entries = [entry async for entry in found]
        return [(self._keep(entry), entry) for entry in entries]

    def _keep(self, entry: HistoryEntry) -> str:
        fields = {"kind": entry.kind, "time": entry.time, "consumer": entry.consumer, "work": entry.resource_id}
        more = {"source": entry.source, "version": entry.version, "user": entry.user, "address": entry.address}
        rest = {"operationId": entry.operation_id, "result": entry.result, "detail": dict(entry.detail)}
        return self._store.keep(f"history:{entry.id}", {"entry": {**fields, **more, **rest}})

    async def _resource_id(self, asked: arguments.History) -> str:
        """Return the resource ID of a work by its name; an ID is returned as it is, also of a work that is gone."""
        if not asked.work or "work_name" not in query.named_by(asked.work):
            return asked.work
        wanted = query.from_identifier(work_name=asked.work, consumer=asked.consumer)
        found = await RestReader(client=self._client).find(wanted)
        return history_results.only_work(asked, found.rows)

    async def explain(self, asked: arguments.Explain) -> Result:
        """Explain a code."""
        return finding_results.of_code(asked.code)

    async def logs_around(self, asked: arguments.LogsAround) -> Result:
        """Return lines around a record."""
        return await requests.lines_around(asked, self._files())

    def _files(self) -> dict[str, Path]:
        """Return the files that evidence IDs can name: log files, and those of the last check."""
        checked = self._system.checked
        return {**(checked.files if checked else {}), **log_lines.files_of(self._options.logs)}

    async def diff(self, asked: arguments.Diff) -> Result:
        """Compare two versions of a work; archives are compared with --archive."""
        if not asked.work:
            raise ToolError(
                "two archives can be compared only if they are given",
                remedy="Give work to compare versions of a work, or start `maestro mcp` with --archive twice.",
            )
        wanted = arguments.History(work=asked.work)
        resource_id = await self._resource_id(wanted)
        entries = await self._entries(wanted, resource_id)
        return history_results.of_versions(entries, asked, resource_id=resource_id)

    async def check(self, asked: arguments.Check) -> Result:
        """Collect an archive, analyse it, and return the findings."""
        engines = () if asked.part == "all" else (asked.part,)
        async with self._system.checking:
            checked = await self._collected(asked.consumer)
            analysis = await checked.analysis()
        return finding_results.of_analysis(analysis, self._store, engines=engines, files=checked.files)

    async def _collected(self, consumer: str) -> archive_system.OpenArchive:
        options = self._options
        with tempfile.TemporaryDirectory(prefix="maestro-mcp-") as folder:
            wanted = collect.CollectOptions(
                access=options.collect_access,
                hcp_access=options.hcp_access,
                output=Path(folder) / "check.tar.zst",
                scope=Scope(consumer=consumer),
                logs=tuple(map(str, options.logs)),
                health_urls=options.health_urls,
                metrics_urls=options.metrics_urls,
                most_bytes=_CHECK_BYTES,
            )
            result = await collect.collect(
                wanted, confirmer=NoConfirmer(), progress=lambda _text: None, clock=self._clock
            )
            target = Path(tempfile.mkdtemp(prefix="maestro-mcp-"))
            with archives.opened(result.path, folder=target) as opened_archive:
                found = archive_system.OpenArchive(opened_archive)
        before, self._system.checked = self._system.checked, found
        if before is not None:
            archives.discard(before.opened.folder)
        return found

    async def archive(self, asked: arguments.Archive) -> Result:
        """Open evidence, or say what can be read."""
        if not asked.evidence:
            return self._overview()
        evidence = asked.evidence
        if self._store.get(evidence) is None:
            if evidence.startswith("row:"):
                bundle = await self._client.resource_bundles.get(evidence.removeprefix("row:"))
                return documents.of_document(bundle, about={"evidence": evidence})
            if evidence.startswith("consumer:"):
                consumer = await self._client.consumers.get(evidence.removeprefix("consumer:"))
                fields = {"name": consumer.name, "id": consumer.id, "labels": dict(consumer.labels)}
                times = {"created": consumer.created_at, "updated": consumer.updated_at}
                return documents.of_document({**fields, **times}, about={"evidence": evidence})
            if self._system.checked is None or evidence.rpartition(":")[0] not in self._system.checked.files:
                asked_lines = arguments.LogsAround(evidence=evidence, before=5, after=40)
                return await self.logs_around(asked_lines)
        return archive_system.opened_evidence(evidence, self._store, self._system.checked)

    def _overview(self) -> Result:
        options, source = self._options, self._system.picture.source
        access = options.access
        clusters: Sequence[str] = (*access.mgmt_contexts, *access.mgmt_kubeconfigs) if access else ()
        head: dict[str, Any] = {
            "restApi": options.client.settings.api_url,
            "database": Ours("configured" if access and access.db_dsn else "not configured; works come from REST"),
            "clusters": list(clusters),
            "worksRead": len(self._system.picture.works),
            "problem": source.problem,
        }
        items: list[dict[str, Any]] = [
            {"log": name, "bytes": path.stat().st_size} for name, path in log_lines.files_of(options.logs).items()
        ]
        checked = self._system.checked
        items += [
            {"file": name, "bytes": path.stat().st_size} for name, path in (checked.files if checked else {}).items()
        ]
        unknown = [] if options.logs else ["stages of requests: no logs are configured (--logs)"]
        unknown += [] if clusters else ["objects on clusters: no kubeconfig is configured"]
        return Result(head=head, items=items, unknown=unknown)
