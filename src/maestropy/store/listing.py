"""Read bundles for a list: what is on the page first, then the rows in pieces of bounded size.

Everything of one list comes from one snapshot, so its total, its page and its rows agree. The outline carries a
guess of each row's bytes, which is what keeps memory flat: a batch is cut by bytes, not by rows. This module never
renders JSON and never writes, except for `fill_renditions`.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from maestropy.store import errors, pool, sql

_STATEMENTS = sql.load("listing")
_PLACE = re.compile(r"(?<!:):(condition|order|limit|offset)\b")

DEFAULT_ORDER = "resources.created_at, resources.id"

# A row costs about this much besides its payload: its columns, its keys and its href.
_ROW_OVERHEAD_BYTES = 1024
# Rendering from jsonb costs the database; a reader only ever pays for a few rows beyond its own.
_FILL_BATCH_ROWS = 50


class BundleRow(NamedTuple):
    """One bundle as the table holds it; the JSON columns are bytes, absent when not wanted."""

    id: str
    name: str | None
    consumer_name: str | None
    version: int
    created_at: datetime | None
    updated_at: datetime | None
    deleted_at: datetime | None
    rendered: bool
    data: bytes | None
    metadata: bytes | None
    status: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which bundles, in which order, from where to where. `order` and `condition` are compiled, never raw text."""

    condition: str = "TRUE"
    params: tuple[object, ...] = ()
    order: str = DEFAULT_ORDER
    offset: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which of the heavy columns the reader wants."""

    data: bool = True
    metadata: bool = True
    status: bool = True

    def weight(self) -> str:
        """Return the SQL of a row's rough size; it asks for lengths only, which are known without the values."""
        # jsonb is kept compressed, to about a quarter.
        parts = ["0::bigint"]
        if self.data:
            parts.append("coalesce(octet_length(rendition_data), pg_column_size(resources.payload)::bigint * 4, 0)")
        if self.status:
            parts.append("coalesce(pg_column_size(resources.status)::bigint * 4, 0)")
        return " + ".join(parts)


ALL_COLUMNS = Columns()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What a page holds: how many bundles fit the question, and those on the page with their rough size."""

    total: int
    entries: Sequence[tuple[str, int]]

    def batches(self, limit_bytes: int) -> Iterator[list[str]]:
        """Cut the page into runs of ids that weigh about `limit_bytes`; a heavier bundle travels alone."""
        batch: list[str] = []
        weight = 0
        for bundle_id, size in self.entries:
            if batch and weight + size > limit_bytes:
                yield batch
                batch, weight = [], 0
            batch.append(bundle_id)
            weight += size + _ROW_OVERHEAD_BYTES
        if batch:
            yield batch

    def fits(self, limit_bytes: int) -> bool:
        """Tell whether the whole page weighs at most `limit_bytes`."""
        return sum(size for _, size in self.entries) + _ROW_OVERHEAD_BYTES * len(self.entries) <= limit_bytes


class Snapshot:
    """The bundles at one moment."""

    def __init__(self, connection: pool.Connection) -> None:
        self._connection = connection

    async def outline(self, question: Question, columns: Columns = ALL_COLUMNS) -> Outline:
        """Return what the page of `question` holds, weighed by the columns that will be read."""
        entries: list[tuple[str, int]] = []
        if question.limit:
            statement = compose(_STATEMENTS["outline"].replace(":weight", columns.weight()), question)
            entries = [tuple(row) for row in await self._connection.fetch(statement, *question.params)]
        # A page that is not full ends the list, so its end is the total and counting would repeat the search.
        if entries and len(entries) < question.limit:
            return Outline(total=question.offset + len(entries), entries=entries)
        total = await self._connection.fetchval(compose(_STATEMENTS["count"], question), *question.params)
        return Outline(total=total, entries=entries)

    async def rows(self, ids: Sequence[str], columns: Columns) -> list[BundleRow]:
        """Return the bundles `ids` in their order."""
        found = await self._connection.fetch(_STATEMENTS["rows"], ids, columns.data, columns.metadata, columns.status)
        by_id = {row["id"]: BundleRow._make(row) for row in found}
        return [by_id[bundle_id] for bundle_id in ids]


@asynccontextmanager
async def snapshot(database: pool.Database) -> AsyncIterator[Snapshot]:
    """Hold one moment of the database; it costs a connection for as long as it is held."""
    async with database.snapshot() as connection:
        yield Snapshot(connection)


async def get(database: pool.Database, bundle_id: str) -> BundleRow | None:
    """Return one bundle, also while it is being deleted."""
    async with database.connection() as connection:
        found = await connection.fetchrow(_STATEMENTS["rows"], [bundle_id], True, True, True)  # noqa: FBT003 - SQL parameters have no names
    return None if found is None else BundleRow._make(found)


async def fill_renditions(database: pool.Database, ids: Sequence[str]) -> None:
    """Render the bundles `ids` where no valid rendition is; one that changes or goes meanwhile is left alone."""
    for start in range(0, len(ids), _FILL_BATCH_ROWS):
        try:
            async with database.transaction(durable=False) as connection:
                await connection.execute(_STATEMENTS["fill"], ids[start : start + _FILL_BATCH_ROWS])
        except errors.Dangling:
            # A bundle of this batch was removed between the read and the write; the next reader tries again.
            continue


def compose(statement: str, question: Question) -> str:
    """Fill the places of a statement in one pass, so that no part is ever searched for the places of another."""
    parts = {
        "condition": question.condition,
        "order": question.order,
        "limit": str(int(question.limit)),
        "offset": str(int(question.offset)),
    }
    return _PLACE.sub(lambda place: parts[place[1]], statement)
