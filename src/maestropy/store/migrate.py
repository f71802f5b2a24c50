"""Bring a database to the schema this version needs.

The numbered files are Maestro's own migrations under Maestro's own ids, in the table Maestro keeps them in: a
database that a Go server made is taken over where it stands, and a Go server accepts one that we made. Files that
begin with `maestropy_` add what only we use; a Go server does not notice them, so they are recorded apart.

Each file is one transaction, the whole run holds one advisory lock, so any number of instances may start at once.
"""

from dataclasses import dataclass
from importlib import resources

import asyncpg

from maestropy.store import dsn as dsns
from maestropy.store import errors, locks, pool

OWN_PREFIX = "maestropy_"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    """What a run of the migrations found and did."""

    applied: tuple[str, ...]
    already_there: tuple[str, ...]


async def migrate(address: dsns.Dsn) -> MigrationReport:
    """Apply every migration that `address` lacks."""
    try:
        connection = await asyncpg.connect(**address.connect_kwargs(), timeout=10)
        try:
            return await _migrate(connection)
        finally:
            await connection.close()
    except errors.DRIVER_ERRORS as error:
        raise errors.translate(error) from error


async def missing(database: pool.Database) -> tuple[str, ...]:
    """Return the ids of the migrations that the database still needs."""
    async with database.connection() as connection:
        present = await _recorded(connection)
    return tuple(name for name in names() if name not in present)


def names() -> tuple[str, ...]:
    """Return the ids of all migrations in the order in which they apply."""
    files = resources.files("maestropy.store") / "migrations"
    found = [entry.name.removesuffix(".sql") for entry in files.iterdir() if entry.name.endswith(".sql")]
    return tuple(sorted(found))


async def _migrate(connection: pool.Connection) -> MigrationReport:
    await connection.execute("SELECT pg_advisory_lock($1, $2)", *locks.MIGRATIONS)
    try:
        async with connection.transaction():
            await connection.execute("CREATE TABLE IF NOT EXISTS migrations (id varchar(255) PRIMARY KEY)")
            await connection.execute("CREATE TABLE IF NOT EXISTS maestropy_migrations (id text PRIMARY KEY)")
        present = await _recorded(connection)
        applied = [name for name in names() if name not in present]
        for name in applied:
            await _apply(connection, name)
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1, $2)", *locks.MIGRATIONS)
    return MigrationReport(applied=tuple(applied), already_there=tuple(sorted(present)))


async def _apply(connection: pool.Connection, name: str) -> None:
    text = (resources.files("maestropy.store") / "migrations" / f"{name}.sql").read_text(encoding="utf-8")
    record = (
        "INSERT INTO maestropy_migrations (id) VALUES ($1)"
        if name.startswith(OWN_PREFIX)
        else "INSERT INTO migrations (id) VALUES ($1)"
    )
    async with connection.transaction():
        await connection.execute(text)
        await connection.execute(record, name)


async def _recorded(connection: pool.Connection) -> frozenset[str]:
    """Return the ids both tables hold; a table that does not exist yet holds none."""
    found: set[str] = set()
    for table, query in (
        ("migrations", "SELECT id FROM migrations"),
        ("maestropy_migrations", "SELECT id FROM maestropy_migrations"),
    ):
        if await connection.fetchval("SELECT to_regclass($1)", table) is not None:
            found.update(row["id"] for row in await connection.fetch(query))
    return frozenset(found)
