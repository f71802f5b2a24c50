"""Read the migration files, and compare a database with them.

An ID in the table of migrations does not prove a schema: revisions of one migration differ, and an interrupted
`CREATE INDEX CONCURRENTLY` leaves an index that PostgreSQL does not use. So columns and indexes are compared too.
"""

import re
from dataclasses import dataclass
from importlib import resources
from typing import Final

from maestropy.store import sql
from maestropy.store.migrations import objects
from maestropy.store.postgres import pool

OWN_PREFIX: Final = "maestropy_"
_CONCURRENTLY: Final = "-- concurrently\n"
_CREATED_INDEX: Final = re.compile(r"CREATE INDEX CONCURRENTLY (\w+)")
_STATEMENTS = sql.load("schema")
_COLUMNS: Final = {
    "202609141000": (
        ("resources", "delete_retry_at"),
        ("resources", "delete_retry_delay"),
        ("delete_recovery_consumers", "next_at"),
        ("delete_recovery_schedule", "next_at"),
        ("delete_recovery_schedule", "cooldown_pending"),
    )
}
"""Columns by migration, for those that have had revisions under one ID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A statement outside a transaction; `index` is the index that it creates, empty for another statement."""

    statement: str
    index: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A migration file: one transaction, and then statements that PostgreSQL executes only outside of one."""

    id: str
    transaction: str
    """Empty if it has only such statements."""
    steps: tuple[Step, ...]

    @property
    def is_own(self) -> bool:
        """Whether it is recorded in our own table, which a Go server ignores."""
        return self.id.startswith(OWN_PREFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defects:
    """What a database lacks although its migration is recorded."""

    columns: tuple[str, ...]
    indexes: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.columns or self.indexes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """A database compared with the migrations of this version."""

    missing: tuple[str, ...]
    """Migrations that are not recorded."""
    defects: dict[str, Defects]
    """By recorded migration, what the database lacks of it."""
    absent: tuple[objects.SchemaObject, ...] = ()
    """Tables, keys and indexes of recorded migrations that are not there, as after an interrupted restore."""
    newer: tuple[str, ...]
    """Recorded migrations that this version does not know, newer than all that it knows."""

    @property
    def absent_columns(self) -> tuple[str, ...]:
        """Columns, and the row of the schedule, that this version needs and the database lacks."""
        return tuple(column for defects in self.defects.values() for column in defects.columns)

    @property
    def unusable_indexes(self) -> tuple[str, ...]:
        """Indexes that are absent or invalid: statements work without them, slowly."""
        return tuple(index for defects in self.defects.values() for index in defects.indexes)


def names() -> tuple[str, ...]:
    """Return the IDs of all migrations in the order in which they apply."""
    files = resources.files("maestropy.store") / "migrations"
    stems = [entry.name.removesuffix(".sql") for entry in files.iterdir() if entry.name.endswith(".sql")]
    return tuple(sorted(stems))


def read(name: str) -> Migration:
    """Return a migration; what follows the line `-- concurrently` runs statement by statement."""
    text = (resources.files("maestropy.store") / "migrations" / f"{name}.sql").read_text(encoding="utf-8")
    transaction, _, concurrent = text.partition(_CONCURRENTLY)
    statements = [statement.strip() for statement in concurrent.split(";\n") if statement.strip()]
    steps = tuple(Step(statement=statement, index=_index_of(statement)) for statement in statements)
    return Migration(id=name, transaction=_without_comments(transaction), steps=steps)


async def compare(connection: pool.Connection) -> SchemaState:
    """Return what the database lacks of this version's migrations, and what it has beyond them."""
    recorded = await recorded_ids(connection)
    known = names()
    comparisons = [(name, await defects_of(connection, read(name))) for name in known if name in recorded]
    return SchemaState(
        missing=tuple(name for name in known if name not in recorded),
        defects={name: defects for name, defects in comparisons if defects},
        absent=await _absent(connection, [name for name in known if name in recorded]),
        newer=_newer(recorded, known),
    )


async def _absent(connection: pool.Connection, recorded: list[str]) -> tuple[objects.SchemaObject, ...]:
    migrations = map(read, recorded)
    # Steps drop indexes too.
    texts = [";\n".join([each.transaction, *(step.statement for step in each.steps)]) for each in migrations]
    expected = objects.created_by(texts)
    if not expected:
        return ()
    kinds, tables, labels = (list(each) for each in zip(*expected, strict=True))
    found = await connection.fetch(_STATEMENTS["absent_objects"], kinds, tables, labels)
    return tuple(expected[row["number"] - 1] for row in found)


async def recorded_ids(connection: pool.Connection) -> frozenset[str]:
    """Return the IDs recorded in both tables; a missing table has none."""
    recorded: set[str] = set()
    for table, statement in (
        ("migrations", _STATEMENTS["recorded_migrations"]),
        ("maestropy_migrations", _STATEMENTS["recorded_own_migrations"]),
    ):
        if await connection.fetchval("SELECT to_regclass($1)", table) is not None:
            recorded.update(row["id"] for row in await connection.fetch(statement))
    return frozenset(recorded)


async def defects_of(connection: pool.Connection, migration: Migration) -> Defects:
    """Return what the database lacks of one migration."""
    tables, columns = zip(*_COLUMNS.get(migration.id, ()), strict=True) if migration.id in _COLUMNS else ((), ())
    absent = await connection.fetch(_STATEMENTS["absent_columns"], list(tables), list(columns)) if columns else []
    missing = [f"{row['table_name']}.{row['column_name']}" for row in absent]
    # Without its one row no server would send a deletion again, and none would say so.
    if columns and not absent and await connection.fetchval(_STATEMENTS["has_no_schedule"]):
        missing.append("the row of delete_recovery_schedule")
    indexes = [step.index for step in migration.steps if step.index]
    unusable = await connection.fetch(_STATEMENTS["unusable_indexes"], indexes) if indexes else []
    return Defects(columns=tuple(missing), indexes=tuple(row["name"] for row in unusable))


async def try_lock(connection: pool.Connection) -> bool:
    """Try to take the lock under which one process at a time migrates, until the transaction ends."""
    return bool(await connection.fetchval(_STATEMENTS["try_lock_migrations"]))


async def lock_holder(connection: pool.Connection) -> str:
    """Return the process that holds this lock, in words; empty if the lock is free again."""
    row = await connection.fetchrow(_STATEMENTS["holder_of_migrations_lock"])
    if row is None:
        return ""
    return f"pid {row['pid']} (application {row['application'] or 'unnamed'}, user {row['role'] or 'unknown'})"


def _without_comments(text: str) -> str:
    """Leave out lines of comment: the driver fails on a text without any statement."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


def _index_of(statement: str) -> str:
    created = _CREATED_INDEX.search(statement)
    return created[1] if created else ""


def _newer(recorded: frozenset[str], known: tuple[str, ...]) -> tuple[str, ...]:
    """Return unknown IDs above the newest known one of their table; older ones are of Maestro's first months."""
    newest_own = max(name for name in known if name.startswith(OWN_PREFIX))
    newest = max(name for name in known if not name.startswith(OWN_PREFIX))
    return tuple(
        sorted(
            name
            for name in recorded.difference(known)
            if name > (newest_own if name.startswith(OWN_PREFIX) else newest)
        )
    )
