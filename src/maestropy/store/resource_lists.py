"""Read lists of resources in batches of bounded size.

A list comes from one snapshot, so that its total, its page and its rows agree. The outline of a page estimates the
bytes of each row, and batches are cut by bytes, so that memory stays bounded. This module never renders JSON, and
writes only in `fill_renditions`.
"""

import re
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from maestropy.store import errors, pool, sql

_STATEMENTS = sql.load("listing")
_PLACEHOLDER = re.compile(r"(?<!:):(condition|order|limit|offset)\b")

DEFAULT_ORDER = "resources.created_at, resources.id"

# Approximate size of a row besides its payload: columns, keys and href.
_ROW_OVERHEAD_BYTES = 1024
# Rendering from jsonb is expensive for the database; one transaction renders only a few rows.
_FILL_BATCH_ROWS = 50


class ResourceRow(NamedTuple):
    """A row of `resources`; the JSON columns are bytes, or None if they were not selected."""

    id: str
    name: str | None
    consumer_name: str | None
    version: int
    created_at: datetime | None
    updated_at: datetime | None
    deleted_at: datetime | None
    is_rendered: bool
    data: bytes | None
    metadata: bytes | None
    status: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """Condition, order and page of a list. `order` and `condition` are compiled SQL, never user input."""

    condition: str = "TRUE"
    params: tuple[object, ...] = ()
    order: str = DEFAULT_ORDER
    offset: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceColumns:
    """Selection of the large columns."""

    data: bool = True
    metadata: bool = True
    status: bool = True

    def weight(self) -> str:
        """Return the SQL for the approximate size of a row; it uses lengths only and reads no values."""
        # jsonb is stored compressed to about a quarter.
        parts = ["0::bigint"]
        if self.data:
            parts.append("coalesce(octet_length(rendition_data), pg_column_size(resources.payload)::bigint * 4, 0)")
        if self.status:
            parts.append("coalesce(pg_column_size(resources.status)::bigint * 4, 0)")
        return " + ".join(parts)


ALL_COLUMNS = ResourceColumns()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOutline:
    """The total number of matches, and the IDs on the page with their approximate size."""

    total: int
    entries: Sequence[tuple[str, int]]

    def batches(self, limit_bytes: int) -> Iterator[list[str]]:
        """Cut the page into batches of IDs of about `limit_bytes`; a larger resource is a batch of its own."""
        batch: list[str] = []
        weight = 0
        for resource_id, size in self.entries:
            if batch and weight + size > limit_bytes:
                yield batch
                batch, weight = [], 0
            batch.append(resource_id)
            weight += size + _ROW_OVERHEAD_BYTES
        if batch:
            yield batch

    def fits(self, limit_bytes: int) -> bool:
        """Return whether the whole page has at most `limit_bytes`."""
        return sum(size for _, size in self.entries) + _ROW_OVERHEAD_BYTES * len(self.entries) <= limit_bytes


class ResourceSnapshot:
    """The resources in one snapshot of the database."""

    def __init__(self, connection: pool.Connection) -> None:
        self._connection = connection

    async def outline(self, query: ListQuery, columns: ResourceColumns = ALL_COLUMNS) -> PageOutline:
        """Return the outline of the page of `query`; sizes count the columns that will be read."""
        entries: list[tuple[str, int]] = []
        if query.limit:
            statement = compose(_STATEMENTS["outline"].replace(":weight", columns.weight()), query)
            entries = [tuple(row) for row in await self._connection.fetch(statement, *query.params)]
        # A page that is not full is the last one: its end is the total, and counting would repeat the search.
        if entries and len(entries) < query.limit:
            return PageOutline(total=query.offset + len(entries), entries=entries)
        total = await self._connection.fetchval(compose(_STATEMENTS["count"], query), *query.params)
        return PageOutline(total=total, entries=entries)

    async def rows(self, ids: Sequence[str], columns: ResourceColumns) -> list[ResourceRow]:
        """Return the resources `ids` in this order."""
        records = await self._connection.fetch(_STATEMENTS["rows"], ids, columns.data, columns.metadata, columns.status)
        by_id = {row["id"]: ResourceRow._make(row) for row in records}
        return [by_id[resource_id] for resource_id in ids]


@asynccontextmanager
async def snapshot(database: pool.Database) -> AsyncIterator[ResourceSnapshot]:
    """Open a snapshot of the database; it holds a connection until the block ends."""
    async with database.snapshot() as connection:
        yield ResourceSnapshot(connection)


async def get(database: pool.Database, resource_id: str) -> ResourceRow | None:
    """Return one resource, also while it is being deleted."""
    async with database.connection() as connection:
        record = await connection.fetchrow(_STATEMENTS["rows"], [resource_id], True, True, True)  # noqa: FBT003 - SQL parameters have no names
    return None if record is None else ResourceRow._make(record)


def by_id(resource_id: str) -> ListQuery:
    """Return the query for one resource."""
    return ListQuery(condition="resources.id = $1", params=(resource_id,), limit=1)


def of_sources(query: ListQuery, sources: Collection[str]) -> ListQuery:
    """Limit a query to the resources of `sources`."""
    return narrow(query, "resources.source = ANY({}::text[])", list(sources))


def narrow(query: ListQuery, condition: str, param: object) -> ListQuery:
    """Add a condition to a query; `{}` in it stands for the parameter."""
    added = condition.format(f"${len(query.params) + 1}")
    return replace(query, condition=f"({query.condition}) AND {added}", params=(*query.params, param))


async def fill_renditions(database: pool.Database, ids: Sequence[str]) -> None:
    """Write the renditions of the resources `ids` that have no valid one; skip those that change meanwhile."""
    for start in range(0, len(ids), _FILL_BATCH_ROWS):
        try:
            async with database.transaction(durable=False) as connection:
                await connection.execute(_STATEMENTS["fill"], ids[start : start + _FILL_BATCH_ROWS])
        except errors.ForeignKeyViolation:
            # A resource of this batch was removed between read and write; the next reader tries again.
            continue


def compose(statement: str, query: ListQuery) -> str:
    """Fill the placeholders of a statement in one pass, so that a value is never searched for placeholders."""
    parts = {
        "condition": query.condition,
        "order": query.order,
        "limit": str(int(query.limit)),
        "offset": str(int(query.offset)),
    }
    return _PLACEHOLDER.sub(lambda match: parts[match[1]], statement)
