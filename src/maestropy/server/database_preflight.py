"""Check a database in operation: `maestro check database`. Changes nothing.

What a server needs at its start is checked by `preflight`; this adds what goes wrong later: full queues, used up
connections, events that nobody delivers, broken indexes, and a read replica of another database.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from maestropy.aio import checks
from maestropy.aio import clock as clocks
from maestropy.server import preflight
from maestropy.server.settings import ServerSettings, reading_address
from maestropy.store import dsn as dsns
from maestropy.store import errors, inspection
from maestropy.store.inspection import Load

_BUSY: Final = 0.9
_QUEUE_WARNING: Final = 0.1
_QUEUE_FAILED: Final = 0.5
_UNDELIVERED_SECONDS: Final = 900.0
_LONG_TRANSACTION_SECONDS: Final = 600.0
"""The thresholds are those of the alerts in `monitoring/`."""
_SHOWN: Final = 5


async def run(settings: ServerSettings, dsn: dsns.Dsn | None, *, clock: clocks.Clock) -> list[checks.Check]:
    """Check the database, how it is used and its replica at the same time, and return the results in this order."""
    if dsn is None:
        return list(await preflight.database(settings, dsn, clock=clock))
    seconds = preflight.SECONDS
    groups = await asyncio.gather(
        preflight.database(settings, dsn, clock=clock),
        checks.bounded("database-load", lambda: _load(dsn), seconds=seconds),
        checks.bounded("database-replica", lambda: _replica(settings, dsn), seconds=seconds),
    )
    if checks.has_failed(check for check in groups[0] if check.name == "database"):
        # The reason is told once.
        return list(groups[0])
    return [check for group in groups for check in group]


async def _load(dsn: dsns.Dsn) -> Sequence[checks.Check]:
    try:
        return list(judge(await inspection.load(dsn)))
    except errors.StoreError as error:
        return [checks.not_seen("database-load", str(error))]


def judge(found: Load) -> Iterator[checks.Check]:
    """Yield what the use of a database means."""
    if found.identity:
        yield checks.ok("database-identity", found.identity)
    else:
        yield checks.not_seen("database-identity", "the database has none: it is that of a Go server, or not migrated")
    yield _connections(found)
    yield _queue(found)
    yield _pending(found)
    if found.invalid_indexes:
        shown = ", ".join(found.invalid_indexes[:_SHOWN])
        yield checks.warning("database-indexes", f"invalid: {shown}", remedy="run `maestro migration`; it builds them")
    else:
        yield checks.ok("database-indexes", "none is invalid")
    if found.oldest_transaction_seconds > _LONG_TRANSACTION_SECONDS:
        minutes = found.oldest_transaction_seconds / 60
        yield checks.warning(
            "database-transactions",
            f"a transaction has been open for {minutes:.0f} minutes; it keeps old rows and notifications",
            remedy="find it in pg_stat_activity, and end its client",
        )


def _connections(found: Load) -> checks.Check:
    detail = f"{found.connections} of {found.max_connections} are used"
    if found.connections <= _BUSY * found.max_connections:
        return checks.ok("database-connections", detail)
    remedy = "lower --max-open-connections of servers, or put PgBouncer in between (docs/postgresql.md)"
    return checks.warning("database-connections", detail, remedy=remedy)


def _queue(found: Load) -> checks.Check:
    name, detail = "database-notification-queue", f"{found.notification_queue:.0%} full"
    remedy = "end the connection that listens and stays in a transaction: see pg_stat_activity"
    if found.notification_queue >= _QUEUE_FAILED:
        return checks.failed(name, f"{detail}; when it is full, no server can commit", remedy=remedy)
    if found.notification_queue >= _QUEUE_WARNING:
        return checks.warning(name, detail, remedy=remedy)
    return checks.ok(name, detail)


def _pending(found: Load) -> checks.Check:
    name = "database-pending-events"
    if found.pending is None:
        return checks.not_seen(name, "the database has no tables of Maestro")
    if not found.pending:
        return checks.ok(name, "no spec event waits for delivery")
    minutes = found.oldest_pending_seconds / 60
    detail = f"{found.pending} wait for delivery, the oldest for {minutes:.0f} minutes"
    if found.oldest_pending_seconds <= _UNDELIVERED_SECONDS:
        return checks.ok(name, detail)
    remedy = "run `maestro server status` and `maestro history --all --kind agent --since 24h`"
    return checks.failed(name, detail, remedy=remedy)


async def _replica(settings: ServerSettings, dsn: dsns.Dsn) -> Sequence[checks.Check]:
    address, name = reading_address(settings, dsn), "database-replica"
    if address is None:
        return []
    try:
        found = await inspection.replica_state(address)
        own = (await inspection.load(dsn)).identity
    except errors.StoreError as error:
        remedy = "check --db-read-dsn; until then lists are read from the primary"
        return [checks.warning(name, f"{address} cannot be used: {error}", remedy=remedy)]
    if not found.is_standby:
        remedy = "give --db-read-dsn the address of a streaming replica"
        return [checks.failed(name, f"{address} is no standby", remedy=remedy)]
    if found.database_id != own:
        remedy = "give --db-read-dsn the address of a replica of --db-dsn"
        return [checks.failed(name, f"{address} is a replica of another database", remedy=remedy)]
    return [checks.ok(name, f"{address} is a standby of this database")]
