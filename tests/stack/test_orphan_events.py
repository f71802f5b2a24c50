"""Events whose resources were removed by somebody else: a Go server, or a person with SQL."""

import io
from datetime import timedelta

from prometheus_client import CollectorRegistry

from maestropy.aio import clock as clocks
from maestropy.journal import emit
from maestropy.server.context import Context
from maestropy.server.controllers.maintenance import Maintenance, Thresholds
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store.dsn import Dsn
from maestropy.store.postgres import pool

ORPHAN = """INSERT INTO events (id, source, source_id, event_type, created_at, updated_at)
            VALUES ('e1', 'Resources', 'removed', 'Update', now(), now())"""
IS_RECONCILED = "SELECT reconciled_date IS NOT NULL FROM events WHERE id = 'e1'"


async def test_orphan_events_are_retired_but_not_with_every_purge(database: Dsn) -> None:
    connections = await pool.connect(database, max_connections=2)
    clock = clocks.Clock()
    context = Context(
        database=connections,
        journal=emit.Journal(io.BytesIO(), clock=clock.epoch, verbosity=2, format="json"),
        metrics=Metrics(CollectorRegistry()),
        instance_id="one",
        clock=clock,
    )
    hour = timedelta(hours=1)
    thresholds = Thresholds(undelivered=hour, stale_delete=hour, event_retention=hour)
    maintenance = Maintenance(context, thresholds=thresholds, rescan=lambda: None)
    try:
        async with connections.connection() as connection:
            await connection.execute(ORPHAN)
        # Every two seconds: it must not compare all pending events with all resources.
        await maintenance.purge()
        async with connections.connection() as connection:
            assert not await connection.fetchval(IS_RECONCILED)
        await maintenance.retire_orphans()
        async with connections.connection() as connection:
            assert await connection.fetchval(IS_RECONCILED)
    finally:
        await connections.close()
