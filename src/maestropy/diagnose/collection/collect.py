"""Collect an archive with whatever access there is. What cannot be read is named in the manifest; the rest goes on.

Each section is stored when it is done, so that an interrupted collection can go on. Logs come last: they may use up the
limit of bytes.
"""

import asyncio
import platform
import re
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from maestropy import __version__
from maestropy.aio.clock import Clock
from maestropy.diagnose import archive, works_of
from maestropy.diagnose import manifest as manifests
from maestropy.diagnose.collection import pack
from maestropy.diagnose.collection.scope import Scope
from maestropy.diagnose.collection.sources import broker as broker_source
from maestropy.diagnose.collection.sources import clusters, database, logs, pod_ports, server
from maestropy.diagnose.collection.staging import SizeLimitReached, Staging, check_free
from maestropy.diagnose.redaction import anonymise
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import MaestroError
from maestropy.trace import library
from maestropy.trace.access import work_readers
from maestropy.trace.access.cluster import ClusterTarget, TracedCluster
from maestropy.trace.access.confirmation import Confirmer
from maestropy.trace.access.options import HcpAccess, WorkAccess
from maestropy.trace.access.pod_logs import ComponentPods
from maestropy.trace.errors import InputUnreadable, InvalidArguments, NoAccess, TraceError
from maestropy.trace.hcp.documents import saved_documents
from maestropy.trace.rest_reader import RestReader
from maestropy.trace.work import gather, parse
from maestropy.trace.work.live_objects import LookupDepth
from maestropy.trace.work.query import WorkQuery
from maestropy.trace.work.readers import ClusterReader, SqlDatabaseReader

Progress = Callable[[str], None]
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")
_READ_AT_ONCE: Final = 1000
"""Works whose objects are read before they are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectOptions:
    """What to collect, and where from."""

    access: WorkAccess
    hcp_access: HcpAccess
    output: Path
    scope: Scope = field(default_factory=Scope)
    logs: tuple[str, ...] = ()
    """Log files, folders and exports; without any, the logs of pods are read."""
    health_urls: tuple[str, ...] = ()
    metrics_urls: tuple[str, ...] = ()
    broker_config: Path | None = None
    """The configuration file of an MQTT broker or of Pub/Sub, as servers have it."""
    hcp: str = ""
    """The identifier of a hosted control plane to walk."""
    most_bytes: int = 512 << 20
    key_file: Path | None = None
    """With it, names and addresses are replaced; the file is read, or created."""
    is_resumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The archive that was written."""

    path: Path
    manifest: manifests.Manifest
    bytes: int

    @property
    def missing(self) -> list[manifests.Section]:
        """The sections that are not complete."""
        return [section for section in self.manifest.sections if section.state in {"partial", "failed"}]


class _Noted(Exception):
    """A section is complete; the message says what there is to know about it."""


class _Incomplete(Exception):
    """A section was read in part; the message says what is missing."""


def staging_folder(output: Path) -> Path:
    """Return where a collection is staged until its archive is complete."""
    return output.with_name(f"{output.name}.partial")


async def collect(options: CollectOptions, *, confirmer: Confirmer, progress: Progress, clock: Clock) -> Result:
    """Collect, and write the archive; raise NoAccess if nothing at all could be read."""
    folder = staging_folder(options.output)
    if folder.is_dir() and not folder.is_symlink():
        check_free(folder)
    if folder.exists() and not options.is_resumed:
        raise InvalidArguments(
            f"{folder} is left from an interrupted collection; continue it with --resume, or delete the folder"
        )
    archive.check_installed()
    key = pack.read_key(options.key_file) if options.key_file else None
    staging = Staging(folder, most_bytes=options.most_bytes)
    with closing(staging):
        return await _collected(options, staging, key=key, confirmer=confirmer, progress=progress, clock=clock)


async def _collected(
    options: CollectOptions,
    staging: Staging,
    *,
    key: anonymise.Key | None,
    confirmer: Confirmer,
    progress: Progress,
    clock: Clock,
) -> Result:
    folder = staging.folder
    manifest = (staging.load() if options.is_resumed else None) or manifests.Manifest(
        version=__version__, started_at=clock.now().isoformat(timespec="seconds"), scope=options.scope.model
    )
    if manifest.scope != options.scope.model:
        raise InvalidArguments(
            f"{folder} was begun with other limits; give the same --consumer, --work, --since, --until"
        )
    collection = _Collection(options, staging, manifest, progress=progress, clock=clock)
    await collection.run(confirmer)
    if not any(section.items for section in manifest.sections):
        archive.discard(folder)
        reasons = "; ".join(f"{section.name}: {section.reason}" for section in manifest.sections if section.reason)
        raise NoAccess(f"nothing could be collected: {reasons}")
    manifest.collected_at = clock.now().isoformat(timespec="seconds")
    progress(f"writing {options.output}")
    pack.finish(staging, manifest, output=options.output, key=key, key_file=options.key_file)
    archive.discard(folder)
    return Result(path=options.output, manifest=manifest, bytes=options.output.stat().st_size)


class _Collection:
    """One run over all sections."""

    def __init__(
        self,
        options: CollectOptions,
        staging: Staging,
        manifest: manifests.Manifest,
        *,
        progress: Progress,
        clock: Clock,
    ) -> None:
        self._options = options
        self._scope = options.scope
        self._staging = staging
        self._manifest = manifest
        self._progress = progress
        self._clock = clock

    async def run(self, confirmer: Confirmer) -> None:
        """Read all sections in turn."""
        async with AsyncExitStack() as stack:
            access = self._options.access
            setup = work_readers.AccessSetup(access=access, confirmer=confirmer, stack=stack, is_quiet=True)
            readers = await work_readers.open_readers(setup)
            client = await self._rest_client(stack, readers)
            await self._section("collector", self._collector)
            await self._server(client, setup, readers)
            await self._database(readers, client)
            await self._clusters(readers)
            await self._hcp()
            await self._logs(setup, readers)

    async def _section(self, name: str, read: Callable[[], Awaitable[int]]) -> None:
        """Read one section and record how it went."""
        earlier = self._manifest.section(name)
        if earlier is not None and earlier.state == "collected":
            return
        self._manifest.sections = [section for section in self._manifest.sections if section.name != name]
        self._progress(f"collecting {name}")
        begun, before = self._clock.monotonic(), set(self._staging.files())
        state: manifests.State = "collected"
        reason, items = "", 0
        try:
            items = await read()
        except _Incomplete as error:
            state, reason, items = "partial", str(error), 1
        except SizeLimitReached:
            state, reason, items = "partial", "the limit of bytes is reached; raise --max-size, or narrow the scope", 1
        except _Noted as error:
            reason, items = str(error), 1
        except _Skipped as error:
            state, reason = "skipped", str(error)
        except (TraceError, MaestroError, OSError) as error:
            state, reason = "failed", " ".join(str(error).split()) or type(error).__name__
        reason = self._staging.redactor.text(reason)
        files = sorted(set(self._staging.files()) - before)
        seconds = round(self._clock.monotonic() - begun, 3)
        self._manifest.sections.append(
            manifests.Section(name=name, state=state, reason=reason, files=files, items=items, seconds=seconds)
        )
        self._manifest.hidden = dict(self._staging.redactor.hidden)
        self._staging.save(self._manifest)
        if state != "collected":
            self._progress(f"{name}: {state}: {reason}")

    async def _rest_client(self, stack: AsyncExitStack, readers: gather.Readers) -> AsyncMaestro | None:
        if isinstance(readers.database, RestReader):
            return readers.database.client
        access = self._options.access
        if not access.rest_url:
            return None
        settings: dict[str, Any] = {"timeout": access.timeout_seconds, **access.rest_settings}
        return await stack.enter_async_context(AsyncMaestro(**{**settings, "api_url": access.rest_url}))

    async def _collector(self) -> int:
        facts = {
            "trace": "collector",
            "version": __version__,
            "python": sys.version.split()[0],
            "system": f"{platform.system()} {platform.machine()}",
            "time": self._clock.epoch(),
            "access": _access_words(self._options.access),
        }
        self._staging.document("collector.jsonl", facts)
        # It says nothing about the system: a collection with this section only is empty.
        return 0

    async def _server(
        self, client: AsyncMaestro | None, setup: work_readers.AccessSetup, readers: gather.Readers
    ) -> None:
        async def rest() -> int:
            if client is None:
                raise _Skipped("no address of the REST API; give --rest-url")
            missing = list(await server.collect_rest(client, self._staging, scope=self._scope))
            missing.append(self._unknown_consumer("server/consumers.jsonl"))
            missing.append(await server.collect_certificate(self._staging, "server/rest", url=client.settings.api_url))
            return _complete(missing)

        async def endpoints() -> int:
            options = self._options
            urls = [("health", url) for url in options.health_urls] + [("metrics", url) for url in options.metrics_urls]
            if not urls:
                return await self._pod_ports(setup, readers)
            missing: list[str] = []
            for number, (kind, url) in enumerate(urls, 1):
                name = f"server/endpoint-{number}"
                missing += await server.collect_endpoint(self._staging, name, url=url, kind=kind)
                missing.append(await server.collect_certificate(self._staging, name, url=url))
            return _complete(missing)

        async def broker() -> int:
            if self._options.broker_config is None:
                raise _Skipped("no configuration of a message broker; give --broker-config to have it checked")
            now = self._clock.now()
            path = self._options.broker_config
            return await broker_source.collect_broker(self._staging, path, scope=self._scope, now=now)

        await self._section("server", rest)
        await self._section("endpoints", endpoints)
        await self._section("broker", broker)

    async def _pod_ports(self, setup: work_readers.AccessSetup, readers: gather.Readers) -> int:
        """Ask the pods of servers and agents; where there are no pods, the reason says what to give."""
        missing: list[str] = []
        absent: list[str] = []
        found = self._components(setup, readers)
        for component in found:
            folder = "server/pods" if component.name == "server" else f"agents/{component.name}"
            try:
                missing += await pod_ports.collect_ports(component, self._staging, folder=folder)
            except NoAccess as error:
                absent.append(str(error))
        if len(absent) == len(found):
            reasons = "; ".join(dict.fromkeys(absent)) or "no cluster with pods of servers"
            raise _Skipped(f"{reasons}; or give --health-url and --metrics-url")
        return _complete([*missing, *absent])

    def _components(self, setup: work_readers.AccessSetup, readers: gather.Readers) -> list[ComponentPods]:
        opened = [reader for reader in readers.clusters if isinstance(reader, TracedCluster)]
        agents = [reader.target for reader in opened if self._is_wanted(reader)]
        return logs.components(_service_target(setup), agents, namespace=setup.access.namespace)

    def _is_wanted(self, cluster: ClusterReader) -> bool:
        """Return whether a cluster may be that of the consumer that the collection is limited to."""
        return not self._scope.consumer or cluster.consumer in {"", self._scope.consumer}

    async def _database(self, readers: gather.Readers, client: AsyncMaestro | None) -> None:
        reader = readers.database

        async def works() -> int:
            try:
                if isinstance(reader, SqlDatabaseReader):
                    return self._matched(await database.collect_works(reader.runner, self._staging, scope=self._scope))
                if client is not None:
                    return self._matched(await server.collect_works(client, self._staging, scope=self._scope))
            except database.TooManyWorks:
                raise _Incomplete(
                    f"only {database.MOST_WORKS} works are collected; collect one --consumer at a time"
                ) from None
            raise NoAccess(readers.database_problem or "no database and no REST API; give --db-dsn or --rest-url")

        async def facts() -> int:
            if not isinstance(reader, SqlDatabaseReader):
                why = await server.collect_history(client, self._staging, scope=self._scope) if client else ""
                raise _Skipped(f"the database is not read by SQL; give --db-dsn{f' ({why})' if why else ''}")
            now = self._clock.epoch()
            missing = await database.collect_facts(reader.runner, self._staging, scope=self._scope, now=now)
            return _complete([*missing, self._unknown_consumer("database/consumers.jsonl")])

        await self._section("works", works)
        await self._section("database", facts)

    def _matched(self, count: int) -> int:
        """Return how many works there are; raise InputUnreadable if none matches --work."""
        if not count and self._scope.work:
            of = f" of consumer {self._scope.consumer}" if self._scope.consumer else ""
            raise InputUnreadable(f"nothing matches --work {self._scope.work}{of}; maestro get works lists the works")
        return count or 1

    def _unknown_consumer(self, name: str) -> str:
        """Return that nothing matches --consumer, if it is so."""
        path = self._staging.folder / name
        if not self._scope.consumer or not path.is_file() or path.stat().st_size:
            return ""
        return f"nothing matches --consumer {self._scope.consumer}; maestro get consumers lists the consumers"

    async def _clusters(self, readers: gather.Readers) -> None:
        """Read every cluster; those that cannot be reached are named."""
        folders: set[str] = set()
        known = {cluster.label: cluster for cluster in self._manifest.clusters}
        entries: list[manifests.Cluster] = []
        for status in readers.unreachable_clusters:
            label = status.description.removeprefix("cluster ")
            entries.append(
                manifests.Cluster(
                    label=label, folder=_folder(label, folders), consumer=status.consumer, problem=status.problem
                )
            )
        for reader in readers.clusters:
            if not self._is_wanted(reader):
                continue
            entry = known.get(reader.label) or manifests.Cluster(
                label=reader.label, folder=_folder(reader.label, folders), consumer=reader.consumer
            )
            entries.append(entry)
        self._manifest.clusters = entries
        opened = {reader.label: reader for reader in readers.clusters if isinstance(reader, TracedCluster)}
        for entry in entries:
            name = f"cluster {entry.label}"
            await self._section(name, partial(self._cluster, opened.get(entry.label), entry))
            section = self._manifest.section(name)
            if section is not None and section.state == "failed":
                entry.problem = section.reason

    async def _cluster(self, reader: TracedCluster | None, entry: manifests.Cluster) -> int:
        if reader is None:
            raise NoAccess(entry.problem)
        # The rows as the archive has them, so that a reader of the archive asks for the same objects.
        rows = works_of.database(self._staging.folder)
        names = {parse.manifest_key(manifest).name for row in rows.dump.rows for manifest in row.manifests}
        recording = clusters.RecordingCluster(reader, names=names)
        ids = [row.id for row in rows.dump.rows]
        for start in range(0, len(ids), _READ_AT_ONCE):
            query = WorkQuery(entry="file", values=tuple(ids[start : start + _READ_AT_ONCE]))
            self._progress(
                f"collecting cluster {entry.label}: objects of {start + len(query.values)} of {len(ids)} works"
            )
            readers = gather.Readers(database=rows, clusters=[recording])
            result = await gather.gather(query, readers, depth=LookupDepth())
            lost = next((status for status in result.clusters if not status.is_readable), None)
            if lost is not None:
                raise NoAccess(lost.problem)
        entry.consumer = entry.consumer or await reader.agent_consumer()
        folder = f"clusters/{entry.folder}"
        missing, note = await clusters.collect_cluster(recording, self._staging, folder, scope=self._scope)
        if note and not missing:
            raise _Noted(note)
        return _complete([*missing, note])

    async def _hcp(self) -> None:
        if not self._options.hcp:
            return

        async def walk() -> int:
            walked = await library.hcp(self._options.hcp, access=self._options.hcp_access)
            count = 0
            for name, content in saved_documents.files(walked):
                self._staging.document(f"hcp/{name}", content)
                count += 1
            self._staging.document("hcp.jsonl", {"trace": "hcp", "identifier": self._options.hcp})
            return count

        await self._section("hcp", walk)

    async def _logs(self, setup: work_readers.AccessSetup, readers: gather.Readers) -> None:
        access, now = self._options.access, self._clock.epoch()
        paths = self._options.logs or ((access.logs,) if access.logs else ())

        async def files() -> int:
            stop = threading.Event()
            try:
                count, problems = await asyncio.to_thread(
                    logs.collect_files, paths, self._staging, scope=self._scope, now=now, stop=stop
                )
            finally:
                # A thread cannot be cancelled, and the process would wait for it.
                stop.set()
            if not count:
                raise InputUnreadable("; ".join(problems) or f"{', '.join(paths)} holds no logs")
            return _complete(problems, items=count)

        if paths:
            await self._section("logs", files)
            return
        found = self._components(setup, readers)
        for component in found:

            async def pods(component: Any = component) -> int:
                count, problems = await logs.collect_pods(component, self._staging, scope=self._scope, now=now)
                return _complete(problems, items=count)

            await self._section(f"logs {component.name}", pods)
        if not found:
            await self._section("logs", _no_logs)


async def _no_logs() -> int:
    raise _Skipped("no logs are named and no cluster with pods; give --logs FILE_OR_FOLDER")


class _Skipped(Exception):
    """A section was not asked for, or cannot exist; the message says what to give."""


def _complete(missing: Sequence[str], *, items: int = 1) -> int:
    problems = [problem for problem in missing if problem]
    if problems:
        raise _Incomplete("; ".join(problems))
    return items


def _service_target(setup: work_readers.AccessSetup) -> ClusterTarget | None:
    access = setup.access
    if not access.svc_context and not access.svc_kubeconfig:
        return None
    return work_readers.service_target(setup)


def _access_words(access: WorkAccess) -> list[str]:
    """Return the kinds of access, without addresses."""
    words = {
        "database": access.db_dsn,
        "rest": access.rest_url,
        "service cluster": access.svc_context or access.svc_kubeconfig,
        "management clusters": access.mgmt_contexts or access.mgmt_kubeconfigs,
        "log folder": access.logs,
    }
    return [word for word, value in words.items() if value]


def _folder(label: str, taken: set[str]) -> str:
    name = _UNSAFE.sub("-", label).strip("-")[:60] or "cluster"
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    taken.add(free)
    return free
