"""Read from the migration files which tables, keys and indexes they create. Pure.

A restore that was interrupted leaves all migrations recorded and the objects incomplete: pg_restore creates keys and
indexes last. Indexes that are built concurrently are compared by `schema`, which can build them again.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_TABLE: Final = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+) (PARTITION OF|\()(.*?);", re.DOTALL)
_INDEX: Final = re.compile(r"CREATE (UNIQUE )?INDEX IF NOT EXISTS (\w+)\s+ON (\w+)")
_CONSTRAINT: Final = re.compile(r"ALTER TABLE (\w+) ADD CONSTRAINT (\w+)")
_DROPPED: Final = re.compile(r"DROP (?:TABLE|INDEX)(?: CONCURRENTLY)? IF EXISTS (\w+)")
_SHOWN: Final = 5

REMEDY: Final = (
    "if the database was restored, restore it again completely, into an empty database and with pg_restore "
    "--exit-on-error; otherwise compare its pg_dump --schema-only with that of an empty one after `maestro migration`"
)


class SchemaObject(NamedTuple):
    """A table, a primary key, a constraint or an index of a table."""

    kind: str
    """`table`, `primary key`, `constraint`, `unique index` or `index`."""
    table: str
    name: str
    """Empty for a table and its primary key."""

    def __str__(self) -> str:
        if self.kind == "table":
            return f"table {self.table}"
        return f"{self.kind} {self.name} of {self.table}" if self.name else f"{self.kind} of {self.table}"


def needed(absent: Sequence[SchemaObject]) -> str:
    """Return, in words, what servers cannot do without: all but indexes, which only make statements fast."""
    names = [str(each) for each in absent if each.kind != "index"]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def created_by(texts: Sequence[str]) -> tuple[SchemaObject, ...]:
    """Return what these migrations, in their order, leave behind."""
    found: dict[SchemaObject, None] = {}
    for text in texts:
        for dropped in _DROPPED.findall(text):
            found = {each: None for each in found if dropped not in (each.name, each.table)}
        found |= dict.fromkeys(_objects(text))
    return tuple(found)


def _objects(text: str) -> Iterator[SchemaObject]:
    for table, _, body in _TABLE.findall(text):
        yield SchemaObject("table", table, "")
        if "PRIMARY KEY" in body.upper():
            yield SchemaObject("primary key", table, "")
    for unique, name, table in _INDEX.findall(text):
        yield SchemaObject("unique index" if unique else "index", table, name)
    for table, name in _CONSTRAINT.findall(text):
        yield SchemaObject("constraint", table, name)
