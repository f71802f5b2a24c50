"""The searchable columns of resources and consumers with their types.

These tables are the only source of column names in the SQL of this package: a name from a client is looked up here and
never copied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from types import MappingProxyType

from maestropy.store.search.errors import SearchError


@unique
class ColumnType(Enum):
    """The type of a column; it decides which literals are valid."""

    TEXT = "text"
    BIGINT = "bigint"
    TIMESTAMPTZ = "timestamptz"
    JSONB = "jsonb"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """One REST collection: table, searchable columns, and noun in error texts."""

    table: str
    columns: Mapping[str, ColumnType]
    noun: str

    def fields(self) -> str:
        """Return the searchable names as a list for a sentence."""
        return ", ".join(self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A resolved column."""

    name: str
    type: ColumnType
    sql: str


RESOURCES = Collection(
    table="resources",
    noun="Resource",
    columns=MappingProxyType(
        {
            "id": ColumnType.TEXT,
            "name": ColumnType.TEXT,
            "created_at": ColumnType.TIMESTAMPTZ,
            "updated_at": ColumnType.TIMESTAMPTZ,
            "deleted_at": ColumnType.TIMESTAMPTZ,
            "source": ColumnType.TEXT,
            "consumer_name": ColumnType.TEXT,
            "version": ColumnType.BIGINT,
            "type": ColumnType.TEXT,
            "payload": ColumnType.JSONB,
            "status": ColumnType.JSONB,
        }
    ),
)

CONSUMERS = Collection(
    table="consumers",
    noun="Consumer",
    columns=MappingProxyType(
        {
            "id": ColumnType.TEXT,
            "name": ColumnType.TEXT,
            "created_at": ColumnType.TIMESTAMPTZ,
            "updated_at": ColumnType.TIMESTAMPTZ,
            "deleted_at": ColumnType.TIMESTAMPTZ,
            "labels": ColumnType.JSONB,
        }
    ),
)


def find(parts: Sequence[str], *, collection: Collection) -> Column | None:
    """Return the column called `name` or `table.name`, in any case, or None."""
    *table, name = (part.lower() for part in parts)
    if table not in ([], [collection.table]):
        return None
    for own_name, own_type in collection.columns.items():
        if own_name == name:
            return Column(name=own_name, type=own_type, sql=f"{collection.table}.{own_name}")
    return None


def json_path(parts: Sequence[str], *, collection: Collection) -> str:
    """Return how to write a name with dots: as a path into JSON, if it looks like one, and the fields there are."""
    columns = [name for name, kind in collection.columns.items() if kind is ColumnType.JSONB]
    *keys, last = parts[1:] if parts[0] == collection.table else parts
    if keys[:1] in [[name] for name in columns]:
        column, keys = keys[0], keys[1:]
    elif "payload" in columns and keys[:1] in (["metadata"], ["labels"]):
        column, keys = "payload", keys if keys[0] == "metadata" else ["metadata", *keys]
    else:
        return f"searchable fields of {collection.noun}: {collection.fields()}"
    path = "".join(f"->'{key}'" for key in keys)
    return f"a path into JSON is written with arrows: {column}{path}->>'{last}' = 'x'"


def resolve(parts: Sequence[str], *, collection: Collection, has_paths: bool = True) -> Column:
    """Return the column of this name; raises `SearchError`, with a path into JSON where `has_paths` allows one."""
    written = ".".join(parts)
    fields = f"searchable fields of {collection.noun}: {collection.fields()}"
    instead = json_path(parts, collection=collection) if has_paths else fields
    if len(parts) > 1 and parts[0].lower() == "properties":
        raise SearchError(f"{written} is not a valid field name: properties are not stored; {fields}")
    if len(parts) > 1 and parts[0].lower() != collection.table:
        raise SearchError(f"{parts[0]} is not a related resource of {collection.noun}; {instead}")
    if len(parts) > 2:
        raise SearchError(f"{written} is not a valid field name; {instead}")

    column = find(parts, collection=collection)
    if column is None:
        raise SearchError(f"{written} is not a valid field name; {fields}")
    return column
