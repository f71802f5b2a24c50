"""Trace works and hosted control planes within an event loop. The command line calls these functions and prints.

`maestropy.trace.work` and `maestropy.trace.hcp` are the same for programs without an event loop.
"""

import os
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Unpack

from maestropy.aio.clock import Clock
from maestropy.trace.access import cluster_selection, work_readers
from maestropy.trace.access.confirmation import Confirmer, NoConfirmer
from maestropy.trace.access.hcp.live_systems import LiveSystems
from maestropy.trace.access.options import HcpAccess, WorkAccess
from maestropy.trace.database import DsnDatabase
from maestropy.trace.hcp import identity, walk
from maestropy.trace.hcp.documents import offline
from maestropy.trace.hcp.model import Walk
from maestropy.trace.hcp.query import Snapshot
from maestropy.trace.logs.judge import database_checks, pauses
from maestropy.trace.logs.model import Trace
from maestropy.trace.work import gather, query
from maestropy.trace.work.judge.facts import Expectations
from maestropy.trace.work.live_objects import LookupDepth
from maestropy.trace.work.query import WorkIdentifier, WorkTraceOptions
from maestropy.trace.work.readers import SqlDatabaseReader
from maestropy.trace.work.report import time_zones, work_report
from maestropy.trace.work.report.work_report import WorkReport

_MOST_LIVE = 100
"""Up to this many works every object is read, unless the options say otherwise."""


async def work(
    *,
    access: WorkAccess,
    options: WorkTraceOptions | None = None,
    confirmer: Confirmer | None = None,
    **identifier: Unpack[WorkIdentifier],
) -> WorkReport:
    """Trace a work; `confirmer` asks a person before a critical database is queried."""
    options = options or WorkTraceOptions()
    work_query = query.from_identifier(**identifier)
    reads_objects = options.live if options.live is not None else len(work_query.values) <= _MOST_LIVE
    depth = LookupDepth(objects=reads_objects or options.compare, nested=options.nested, whole=options.compare)
    async with AsyncExitStack() as stack:
        setup = work_readers.AccessSetup(
            access=access, confirmer=confirmer or NoConfirmer(), stack=stack, is_quiet=options.is_quiet
        )
        readers = await work_readers.open_readers(setup)
        result = await gather.gather(work_query, readers, depth=depth)
    expectations = Expectations(
        broker_host=options.broker_host,
        agent_namespace=access.agent_namespace,
        compare=options.compare,
        access_flags=access.flags,
        logs=access.logs,
    )
    shown = time_zones.shown_in(result, options.zone)
    return work_report.build(shown, now=Clock().now(), expectations=expectations)


async def check_requests(dsn: str, traces: Sequence[Trace]) -> tuple[list[Trace], list[database_checks.CheckResults]]:
    """Run the checks of the findings on requests in a Maestro database; return the traces refined by the results."""
    database = DsnDatabase(dsn=dsn)
    results = [await database_checks.run_checks(database, trace) for trace in traces]
    refined = [database_checks.refined(trace, result) for trace, result in zip(traces, results, strict=True)]
    known = pauses.known(await SqlDatabaseReader(database, reads_holds=True).pauses())
    refined = [_with_consumer(trace, result) for trace, result in zip(refined, results, strict=True)]
    return [pauses.refined(trace, known) for trace in refined], results


def _with_consumer(trace: Trace, result: database_checks.CheckResults) -> Trace:
    row = next(iter(result.get("resource", ())), {})
    consumer = trace.key.consumer or str(row.get("consumer_name") or "")
    return replace(trace, key=trace.key._replace(consumer=consumer))


async def hcp(
    identifier: str,
    *,
    access: HcpAccess,
    at: datetime | None = None,
    operation: str = "",
    hop_names: Collection[str] = (),
) -> Walk:
    """Trace a hosted control plane; `hop_names` limits the walk to some hops."""
    known = replace(identity.parse(identifier), operation=operation)
    hops = [hop for hop in walk.HOPS if not hop_names or hop.name in hop_names]
    if access.offline is not None:
        directory = offline.read(access.offline)
        snapshot = Snapshot(
            now=at or directory.taken_at or Clock().now(),
            source=access.source,
            is_offline=True,
            problems=directory.unreadable,
        )
        return await walk.run(known, runner=directory, snapshot=snapshot, hops=hops)
    location = cluster_selection.KubeconfigLocation(environ=os.environ, home=Path.home())
    async with LiveSystems(access, location=location) as systems:
        snapshot = Snapshot(now=at or Clock().now(), source=access.source)
        return await walk.run(known, runner=systems, snapshot=snapshot, hops=hops)
