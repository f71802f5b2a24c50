"""Trace requests through log files for the tools, and open lines of them. Reading logs happens in a thread."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from maestropy.mcp import log_lines
from maestropy.mcp.answers import Result, ToolError
from maestropy.mcp.definitions import LogsAround, TraceRequest
from maestropy.mcp.evidence import EvidenceStore, file_and_line
from maestropy.mcp.results import traces as trace_results
from maestropy.trace.logs import tracing
from maestropy.trace.logs.judge import pauses
from maestropy.trace.logs.model import Options
from maestropy.trace.logs.selection import RequestQuery
from maestropy.trace.logs.tracing import RequestTracer, TracedLogs


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """Logs to trace in, and what is known besides them."""

    roots: Sequence[Path]
    names: Mapping[Path, str]
    """The names of files that can be opened."""
    now: float
    known: pauses.Known
    options: Options = field(default_factory=Options)


async def trace(source: Logs, asked: TraceRequest, store: EvidenceStore) -> Result:
    """Trace the requests of an identifier."""
    if not asked.identifier:
        raise ToolError(
            "identifier is missing", remedy="Give a resource ID or the name of a work; call find to search for one."
        )
    warnings: list[str] = []
    wanted = RequestQuery(
        identifiers=(asked.identifier,),
        consumer=asked.consumer,
        action=asked.action,
        version=asked.version,
        needs_lines=True,
    )

    def read() -> TracedLogs:
        tracer = RequestTracer([str(root) for root in source.roots], options=source.options, now=source.now)
        return tracing.trace_requests(tracer, wanted, options=source.options, warn=warnings.append)

    logs = await asyncio.to_thread(read)
    openable = {
        number: source.names[writer.origin.resolve()]
        for number, writer in enumerate(logs.environment.writers)
        if writer.origin is not None and writer.origin.resolve() in source.names
    }
    traces = [pauses.with_evidence(pauses.refined(trace, source.known)) for trace in logs.traces]
    return trace_results.of_requests(traces, logs.environment, store, names=openable, warnings=warnings)


async def lines_around(asked: LogsAround, files: Mapping[str, Path]) -> Result:
    """Return the lines around a record of one of the files."""
    place = file_and_line(asked.evidence)
    if place is None or place[0] not in files:
        raise ToolError(
            f"{asked.evidence} is no line of a log that is known here",
            remedy="Give an evidence ID of the form FILE:LINE from another answer; open others with archive.",
        )
    name, line = place
    return await asyncio.to_thread(
        log_lines.around, files[name], name=name, line=line, before=asked.before, after=asked.after
    )
