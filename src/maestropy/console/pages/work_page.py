"""Trace one work for its page: the verdict of `trace work`, its hops, objects, history and commands."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from maestropy.aio.clock import Clock
from maestropy.console import redaction
from maestropy.console.pages import deleted_work, hops, remedies, shared_objects
from maestropy.console.picture import Picture
from maestropy.console.requests import RequestFeed
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import MaestroError, NotFound, Unsupported
from maestropy.sdk.history import HistoryEntry
from maestropy.trace import library
from maestropy.trace.access.options import WorkAccess
from maestropy.trace.errors import NoAccess
from maestropy.trace.findings.codes import CODES
from maestropy.trace.output import Finding
from maestropy.trace.rest_reader import RestReader
from maestropy.trace.work import gather, parse, query
from maestropy.trace.work.judge import deletion
from maestropy.trace.work.judge.facts import Expectations
from maestropy.trace.work.judge.findings import bare_finding
from maestropy.trace.work.judge.manifest_rows import ManifestRow
from maestropy.trace.work.live_objects import LookupDepth
from maestropy.trace.work.query import WorkTraceOptions
from maestropy.trace.work.report import work_report
from maestropy.trace.work.report.work_report import Traced, WorkReport
from maestropy.untrusted.printable import escape

_MOST_ENTRIES: Final = 300
_NOT_READ: Final = "MW-100"
_HEALTHY: Final = "MW-001"
_PARTLY_READ: Final = "Nothing is wrong in what was read: the agent has applied and reported the newest version."
_TRACE_SECONDS: Final = 20.0
_NEED_AGENT: Final = frozenset({"MW-002", "MW-003", "MW-004", "MW-007", "MW-008", "MW-101", "MW-103", "MW-105"})
"""Verdicts on works that only an agent that is connected can bring on."""
_AGAIN: Final = "# again in a minute"


class NoSuchWork(Exception):
    """Nothing is known of a work: no row, no history, no object on a cluster."""


class WorkReader(Protocol):
    """Reads what the page of one work shows; `RestWorks` from a Maestro that runs, `archived` from an archive."""

    async def trace(self, work_id: str) -> tuple[WorkReport, str]:
        """Return the verdict of `trace work`, and what could not be read for it."""

    async def history(self, work_id: str) -> tuple[list[HistoryEntry], str]:
        """Return the newest entries of the history first, and why there are none."""

    async def manifests(self, work_id: str) -> tuple[Sequence[Mapping[str, Any]], object]:
        """Return the manifests of a work and their version; raises `NoSuchWork`."""

    def commands(self, work_id: str) -> list[str]:
        """Return commands that tell more of a work; its ID is quoted for a shell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestWorks:
    """Reads works from a Maestro that runs: database and clusters if they can be reached, else REST alone."""

    client: AsyncMaestro
    picture: Picture
    access: WorkAccess | None = None
    """How the database and the clusters are reached, if they can be; otherwise REST alone is read."""
    api_flags: str = ""
    """The flags that lead commands to the same API, quoted for a shell."""

    async def trace(self, work_id: str) -> tuple[WorkReport, str]:
        """Trace by the database and the clusters if they can be read, else by REST alone, and say why."""
        problem = ""
        if self.access is not None:
            known = self.picture.works.get(work_id)
            access = of_consumer(self.access, known.consumer) if known is not None else self.access
            try:
                async with asyncio.timeout(_TRACE_SECONDS):
                    traced = await library.work(
                        access=access, options=WorkTraceOptions(is_quiet=True), resource_id=work_id
                    )
                if traced.result.database.is_readable:
                    return traced, ""
                problem = traced.result.database.problem
            except NoAccess as error:
                problem = str(error)
            except TimeoutError:
                problem = f"the database or a cluster did not respond within {_TRACE_SECONDS:g} s"
        readers = gather.Readers(database=RestReader(client=self.client))
        depth = LookupDepth(objects=False, nested=False, whole=False)
        result = await gather.gather(query.from_identifier(resource_id=work_id), readers, depth=depth)
        expectations = Expectations(access_flags=self.api_flags)
        return work_report.build(result, now=Clock().now(), expectations=expectations), problem

    async def history(self, work_id: str) -> tuple[list[HistoryEntry], str]:
        """Read the history of a work."""
        entries = self.client.resource_bundles.history(work_id, newest_first=True, limit=_MOST_ENTRIES)
        try:
            return [entry async for entry in entries], ""
        except NotFound:
            return [], ""
        except Unsupported:
            return [], "unsupported"
        except MaestroError as error:
            return [], str(error)

    async def manifests(self, work_id: str) -> tuple[Sequence[Mapping[str, Any]], object]:
        """Read the manifests of a work."""
        try:
            bundle = await self.client.resource_bundles.get(work_id)
        except NotFound:
            raise NoSuchWork(work_id) from None
        return parse.mappings(bundle.get("manifests")), bundle.get("version")

    def commands(self, work_id: str) -> list[str]:
        """Return commands that reach the same Maestro."""
        flags = f" {self.access.flags}" if self.access is not None and self.access.flags else self._flags()
        logs = shlex.quote(self.access.logs) if self.access is not None and self.access.logs else "LOGS"
        return [
            f"maestro trace work --resource-id {work_id}{flags}",
            f"maestro trace request --resource-id {work_id} {logs}",
            f"maestro history {work_id}{self._flags()} -o wide",
            f"maestro resourcebundle get {work_id}{self._flags()}",
        ]

    def _flags(self) -> str:
        return f" {self.api_flags}" if self.api_flags else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPages:
    """Builds pages of single works."""

    reader: WorkReader
    picture: Picture
    requests: RequestFeed

    async def page(self, work_id: str) -> dict[str, Any]:
        """Return everything about a work; raises `NoSuchWork`."""
        history, history_problem = await self.reader.history(work_id)
        report, problem = await self.reader.trace(work_id)
        traced = report.works[0] if report.works else None
        if traced is None or (traced.facts.data.row is None and not traced.facts.data.applied and not history):
            raise NoSuchWork(work_id)
        model = redaction.work_model(work_report.work_model(traced))
        row = traced.facts.data.row
        data = traced.facts.data
        is_gone = data.database.is_readable and row is None and not data.applied and not data.is_held
        ended = deleted_work.deletion(history) if is_gone else None
        if ended is not None:
            # `trace work` knows no history: to it, a work without a row is one that never was.
            deleted_work.headline(model, work_id, history, ended)
        return {
            "generation": self.picture.generation,
            "work": self._headline(traced, model, history),
            "hops": deleted_work.strip(history, ended)
            if ended is not None
            else hops.strip(self._known(traced, model, history)),
            "sides": work_report.model(report)["sides"],
            "problem": problem,
            "history": [entry_model(entry) for entry in history],
            "historyProblem": history_problem,
            "versions": _versions(history),
            "sizes": [len(str(manifest)) for manifest in row.manifests] if row else [],
            "requests": self.requests.listed(resource_id=work_id)[:20],
            "hasLogs": self.requests.has_logs,
            "commands": self.reader.commands(shlex.quote(work_report.resource_id(traced.facts) or work_id)),
            "offers": self._offers(traced, model) if row is not None else [],
        }

    async def manifest(self, work_id: str, index: int) -> dict[str, Any]:
        """Return one manifest as text, without secret values; raises `NoSuchWork`."""
        manifests, version = await self.reader.manifests(work_id)
        if not 0 <= index < len(manifests):
            raise NoSuchWork(f"{work_id}, manifest {index}")
        text, is_cut = await asyncio.to_thread(redaction.manifest_text, manifests[index])
        return {"text": text, "isCut": is_cut, "version": version}

    def _headline(self, traced: Traced, model: dict[str, Any], history: Sequence[HistoryEntry]) -> dict[str, Any]:
        """Return the model with the verdict on what was read: that a cluster was not read comes as a note."""
        findings = model["findings"]
        is_unread = not traced.facts.data.clusters
        if model["code"] == _NOT_READ != headline(traced).code:
            entry = CODES[_HEALTHY]
            # Not the title of the code: that says that everything was verified.
            model |= {"code": entry.code, "verdict": entry.name, "summary": _PARTLY_READ}
            if traced.facts.data.database.is_readable:
                # The page says in a sentence of its own that no cluster was read.
                model["findings"] = [item for item in findings if item["code"] != _NOT_READ]
        model["severity"] = CODES[model["code"]].severity
        self._advise(model, traced)
        owners = [owner for line in traced.facts.manifest_rows for owner in line.owners]
        work_id = work_report.resource_id(traced.facts)
        shared_objects.name(model, shared_objects.others(self.picture, owners, work_id=work_id))
        model["source"] = self._source(traced, history)
        model["clustersRead"] = not is_unread
        model["databaseRead"] = not traced.facts.data.database.description.startswith("REST API")
        return model

    def _advise(self, model: dict[str, Any], traced: Traced) -> None:
        """Put the start of an absent agent first, and leave out logs that are not on this computer."""
        needs_agent = model["code"] in _NEED_AGENT and traced.facts.data.pause is None
        start = remedies.start_agent(self.picture, traced.facts.consumer) if needs_agent else []
        for item in model["findings"]:
            kept = [text for text in item["advice"] if not _is_absent_log(text)]
            if start and item["code"] == model["code"]:
                # Without its agent nothing comes by waiting.
                item["advice"] = [*start, *(text for text in kept if not text.endswith(_AGAIN))]
            else:
                item["advice"] = kept

    def _source(self, traced: Traced, history: Sequence[HistoryEntry]) -> str:
        """Return the source of a work; the picture may not have read its creation yet."""
        row = traced.facts.data.row
        known = row.source if row else ""
        named = next((entry.source for entry in history if entry.kind in _REQUESTS and entry.source), "")
        return known or named or self.picture.origins.get(work_report.resource_id(traced.facts), "")

    def _known(self, traced: Traced, model: dict[str, Any], history: list[HistoryEntry]) -> hops.Known:
        row = traced.facts.data.row
        agent = self.picture.agents.get(traced.facts.consumer)
        state = self.picture.agent_state(traced.facts.consumer)
        if row is None:
            return hops.Known(code=model["code"], summary=model["summary"], agent=state)
        version = row.version
        asked = [entry for entry in history if entry.version == version and entry.kind in _REQUESTS]
        events = [event for event in row.events if event.reconciled]
        status = row.status
        applied = [line for line in traced.facts.manifest_rows if _is_applied(line)]
        reported = [entry for entry in history if entry.kind == "work.status"]
        return hops.Known(
            code=model["code"],
            summary=model["summary"],
            source=model["source"] or (asked[0].source if asked else ""),
            operation_id=row.operation_id or (asked[0].operation_id if asked else ""),
            requested=_seconds(asked[0].time) if asked else 0.0,
            stored=_seconds(asked[0].time) if asked else _epoch_of(row.updated or row.created),
            version=version,
            published=max((event.reconciled.timestamp() for event in events if event.reconciled), default=0.0),
            is_unpublished=any(event.reconciled is None for event in row.events),
            agent=state,
            agent_since=agent.since if agent else 0.0,
            observed=status.version if status else 0,
            objects_applied=len(applied),
            objects=len(row.manifests),
            sent=_epoch_of(work_report.sequence_time(status.sequence)) if status else 0.0,
            status_stored=_seconds(reported[0].time) if reported else 0.0,
            delivered=self.requests.delivered(row.id, version=version),
            deletion=deletion.steps(traced.facts),
        )

    def _offers(self, traced: Traced, model: dict[str, Any]) -> list[dict[str, str]]:
        work_id = work_report.resource_id(traced.facts)
        return remedies.of_work(
            self.picture,
            work_id=work_id,
            name=str(model.get("workName") or ""),
            consumer=traced.facts.consumer,
            code=model["code"],
            is_blocked=hops.is_blocked(deletion.steps(traced.facts)),
        )


def headline(traced: Traced) -> Finding:
    """Return the finding that is the verdict on what was read: healthy, if all that is wrong is that no cluster was."""
    verdict, data = traced.verdict, traced.facts.data
    others = [item for item in verdict.findings if item.severity != "info" and item.code != _NOT_READ]
    if verdict.code == _NOT_READ and not others and not data.clusters and data.row is not None:
        return bare_finding(_HEALTHY, title=_PARTLY_READ)
    return verdict.findings[0]


def of_consumer(access: WorkAccess, consumer: str) -> WorkAccess:
    """Return the access to the clusters of one consumer: those that name another one would only be searched in vain."""
    contexts = tuple(text for text in access.mgmt_contexts if _may_be_of(text, consumer))
    files = tuple(text for text in access.mgmt_kubeconfigs if _may_be_of(text, consumer))
    return replace(access, mgmt_contexts=contexts, mgmt_kubeconfigs=files, no_cluster=not contexts and not files)


def _may_be_of(cluster: str, consumer: str) -> bool:
    """Return whether `consumer=context`, or a context without a consumer, may be the cluster of a consumer."""
    return "=" not in cluster or cluster.partition("=")[0] == consumer


def _is_absent_log(advice: str) -> bool:
    """Return whether an advice shows the end of a log that is not there, as of an agent that never ran here."""
    return advice.startswith("tail -n ") and not Path(shlex.split(advice)[-1]).exists()


_REQUESTS: Final = ("work.created", "work.updated", "work.deletion-requested")


def _is_applied(line: ManifestRow) -> bool:
    return any(condition.type == "Applied" and condition.status == "True" for condition in line.conditions)


def _seconds(text: str) -> float:
    return _epoch_of(parse.moment(text))


def _epoch_of(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0


def entry_model(entry: HistoryEntry) -> dict[str, Any]:
    """Return an entry of the history for a timeline, without secret values."""
    return {
        "id": entry.id,
        "time": entry.time,
        "kind": entry.kind,
        "version": entry.version,
        "by": escape(entry.requester),
        "address": escape(entry.address),
        "operationId": escape(entry.operation_id),
        "detail": redaction.anything(entry.detail),
    }


def _versions(history: list[HistoryEntry]) -> list[dict[str, Any]]:
    """Return what each version changed, the newest first: names of paths, as the history has no values."""
    return [
        {
            "version": entry.version,
            "time": entry.time,
            "kind": entry.kind,
            "changes": entry.detail.get("changes") or [],
            "objects": entry.detail.get("objects") or [],
            "isTruncated": bool(entry.detail.get("truncated")),
        }
        for entry in history
        if entry.kind in ("work.created", "work.updated")
    ]
