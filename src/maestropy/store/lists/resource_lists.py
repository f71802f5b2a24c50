"""Read lists of resources in batches of bounded size.

A list comes from one snapshot, so that its total, its page and its rows agree. The outline of a page estimates the
bytes of each row, and batches are cut by bytes, so that memory stays bounded. This module never renders JSON, and
writes only in `fill_renditions`.
"""

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from maestropy.store import errors, sql
from maestropy.store.lists import outline as outlines
from maestropy.store.lists.query import ListQuery, narrow
from maestropy.store.postgres import pool
from maestropy.store.search import Reach

_STATEMENTS = sql.load("listing")

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
class PageOutline(outlines.Page):
    """The outline of a page of resources."""

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
        page = await outlines.read(self._connection, query, weight=columns.weight())
        return PageOutline(total=page.total, entries=page.entries, is_exact=page.is_exact, last=page.last)

    async def rows(self, ids: Sequence[str], columns: ResourceColumns) -> list[ResourceRow]:
        """Return the resources `ids` in this order."""
        records = await self._connection.fetch(_STATEMENTS["rows"], ids, columns.data, columns.metadata, columns.status)
        by_id = {row["id"]: ResourceRow._make(row) for row in records}
        return [by_id[resource_id] for resource_id in ids]


@asynccontextmanager
async def snapshot(database: pool.Snapshots) -> AsyncIterator[ResourceSnapshot]:
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
    return ListQuery(condition="resources.id = $1", params=(resource_id,), limit=1, reach=Reach.MATCHES)


def of_sources(query: ListQuery, sources: Collection[str]) -> ListQuery:
    """Limit a query to the resources of `sources`."""
    narrowed = narrow(query, "resources.source = ANY({}::text[])", list(sources))
    return replace(narrowed, reach=Reach.MATCHES, is_ordered_by_index=False, unserved=())


async def fill_renditions(database: pool.Database, ids: Sequence[str]) -> None:
    """Write the renditions of the resources `ids` that have no valid one; skip those that change meanwhile."""
    for start in range(0, len(ids), _FILL_BATCH_ROWS):
        try:
            async with database.transaction(durable=False) as connection:
                await connection.execute(_STATEMENTS["fill"], ids[start : start + _FILL_BATCH_ROWS])
        except errors.ForeignKeyViolation:
            # A resource of this batch was removed between read and write; the next reader tries again.
            continue
