"""Check before a roll-out whether a server with these settings would work: `maestro check server`. Changes nothing.

Every check has a time limit, and says what it could not see. The embedded PostgreSQL is not started for it.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from maestropy.aio import checks
from maestropy.aio import clock as clocks
from maestropy.flags import SettingsError
from maestropy.server.settings import ServerSettings, listening_address
from maestropy.server.settings.listener_tls import certificate_files
from maestropy.store import dsn as dsns
from maestropy.store import errors, inspection
from maestropy.store.migrations import objects, schema
from maestropy.store.postgres import pooler, remedies
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt import inspection as mqtt_inspection
from maestropy.transport.tls import inspection as tls_inspection

SECONDS: Final = 10.0
"""The time limit of each group of checks."""
MAX_SKEW_SECONDS: Final = 5.0
SLOW_SECONDS: Final = 0.25
"""A database that takes longer to answer one statement is slow."""

_FLAG: Final = "--message-broker-config-file"
_MIGRATE: Final = "run `maestro migration` with the same database flags"


async def run(settings: ServerSettings, dsn: dsns.Dsn | None, *, clock: clocks.Clock) -> list[checks.Check]:
    """Check database, broker and certificates at the same time, and return the results in this order."""
    groups = await asyncio.gather(
        database(settings, dsn, clock=clock),
        checks.bounded("message-broker", lambda: _broker(settings, clock=clock), seconds=SECONDS),
        checks.bounded("certificates", lambda: _certificates(settings, clock=clock), seconds=SECONDS),
    )
    return [check for group in groups for check in group]


async def database(settings: ServerSettings, dsn: dsns.Dsn | None, *, clock: clocks.Clock) -> Sequence[checks.Check]:
    """Check the database that a server with these settings uses."""
    if dsn is None:
        reason = f"the embedded PostgreSQL in {settings.database.data_dir} is started by the server"
        return [checks.not_seen("database", reason)]
    found: inspection.Inspection | None = None

    async def inspect() -> Sequence[checks.Check]:
        nonlocal found
        try:
            found = await inspection.inspect(dsn, epoch=clock.epoch)
        except errors.StoreError as error:
            return [checks.failed("database", remedies.explain(dsn, error, failed="cannot be used"))]
        return [_reached(dsn, found), _writes(found), _privileges(found), _clock(found)]

    results = await checks.bounded("database", inspect, seconds=SECONDS, remedy="check address and network")
    if found is None:
        return results
    seen = found
    auto_migrate = bool(settings.database.auto_migrate)
    # Each with a limit of its own: a slow database must not hide what was found before.
    migrations = checks.bounded(
        "database-migrations", lambda: _migrations(dsn, seen, auto_migrate=auto_migrate), seconds=SECONDS
    )
    notifications = checks.bounded("database-notifications", lambda: _notifications(settings, dsn), seconds=SECONDS)
    return [*results, *await migrations, *await notifications]


def _reached(dsn: dsns.Dsn, found: inspection.Inspection) -> checks.Check:
    detail = f"{dsn}: PostgreSQL {found.version} as {found.user}"
    if found.answer_seconds < SLOW_SECONDS:
        return checks.ok("database", detail)
    slow = f"{detail}; it takes {found.answer_seconds:.2f} s to answer"
    return checks.warning("database", slow, remedy="look for load, and for the network in between")


def _writes(found: inspection.Inspection) -> checks.Check:
    if not found.write_problem:
        return checks.ok("database-writable")
    remedy = "give the address of the primary, or make the database writable"
    return checks.failed("database-writable", f"it {found.write_problem}", remedy=remedy)


async def _migrations(dsn: dsns.Dsn, found: inspection.Inspection, *, auto_migrate: bool) -> Sequence[checks.Check]:
    try:
        state = await inspection.schema_state(dsn)
    except errors.StoreError as error:
        return [checks.not_seen("database-migrations", str(error))]
    return [_schema(state, found, auto_migrate=auto_migrate)]


def _schema(state: schema.SchemaState, found: inspection.Inspection, *, auto_migrate: bool) -> checks.Check:
    name = "database-migrations"
    problem = ""
    if state.missing:
        problem = f"{len(state.missing)} migrations are missing, the first is {state.missing[0]}"
    elif state.absent_columns:
        problem = f"half migrated: {', '.join(state.absent_columns)} is absent"
    if not state.missing and (incomplete := objects.needed(state.absent)):
        detail = f"the schema is incomplete although its migrations are recorded: {incomplete}"
        return checks.failed(name, detail, remedy=objects.REMEDY)
    if problem and auto_migrate and found.may_create:
        return checks.ok(name, f"{problem}; the server migrates at its start (--auto-migrate)")
    if problem:
        grant = "" if found.may_create else f'; first GRANT CREATE ON SCHEMA {found.schema_name} TO "{found.user}"'
        return checks.failed(name, problem, remedy=f"{_MIGRATE}{grant}")
    if state.unusable_indexes:
        detail = f"indexes are absent or invalid: {', '.join(state.unusable_indexes)}; lists are slow"
        return checks.warning(name, detail, remedy=_MIGRATE)
    if state.absent:
        detail = f"indexes are absent: {', '.join(each.name for each in state.absent)}; statements are slow"
        return checks.warning(name, detail, remedy=objects.REMEDY)
    if state.newer:
        detail = f"the database has migrations that this version does not know: {', '.join(state.newer)}"
        return checks.warning(name, detail, remedy="upgrade this version when you can")
    return checks.ok(name, "complete")


def _privileges(found: inspection.Inspection) -> checks.Check:
    if not found.missing_privileges:
        return checks.ok("database-privileges", f"{found.user} may read and write Maestro's tables")
    return checks.failed(
        "database-privileges",
        f"{found.user} lacks {'; '.join(found.missing_privileges)}",
        remedy=f'use the role that has created the tables, or grant these to "{found.user}"',
    )


def _clock(found: inspection.Inspection) -> checks.Check:
    ahead = found.host_ahead_seconds
    detail = f"this host is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} the database"
    if abs(ahead) <= MAX_SKEW_SECONDS:
        return checks.ok("clock", detail)
    return checks.warning("clock", detail, remedy="synchronise the clock of this host (NTP), or that of the database")


async def _notifications(settings: ServerSettings, dsn: dsns.Dsn) -> Sequence[checks.Check]:
    name, address = "database-notifications", listening_address(settings, dsn)
    try:
        pooling = await pooler.detect(address)
    except errors.StoreError as error:
        return [checks.failed(name, f"{address} cannot be used to listen: {error}")]
    return [_listening(name, pooling)]


def _listening(name: str, pooling: pooler.Pooling) -> checks.Check:
    if pooling is pooler.Pooling.TRANSACTION:
        remedy = "give --db-listen-dsn or MAESTRO_DB_LISTEN_DSN the address of PostgreSQL itself"
        return checks.failed(name, "a pooler in transaction mode is in between: LISTEN does not work", remedy=remedy)
    return checks.ok(name, "no pooler" if pooling is pooler.Pooling.NONE else "a pooler in session mode")


async def _broker(settings: ServerSettings, *, clock: clocks.Clock) -> Sequence[checks.Check]:
    match settings.message_broker:
        case "mqtt":
            try:
                endpoint = mqtt_config.read(settings.broker.config_file, flag=_FLAG).endpoint
            except SettingsError as error:
                return [checks.failed("message-broker-config", str(error))]
            return await mqtt_inspection.inspect(
                endpoint, client_id=settings.instance.instance_id, flag=_FLAG, now=clock.now()
            )
        case "pubsub":
            reason = "Pub/Sub: a subscription of this check would take messages from running servers"
            return [checks.not_seen("message-broker", reason)]
        case _:
            return []


async def _certificates(settings: ServerSettings, *, clock: clocks.Clock) -> Sequence[checks.Check]:
    return [
        check
        for files in certificate_files(settings)
        for check in tls_inspection.listener(files, hostname=settings.http.hostname, now=clock.now())
    ]
