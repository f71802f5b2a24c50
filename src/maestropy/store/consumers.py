"""Read and write consumers: the clusters that resources are sent to.

Every write is one transaction, with its history. Nothing is validated here; a violated constraint raises an error of
the store.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import msgspec

from maestropy.store import rows, sql
from maestropy.store.history import history_entries
from maestropy.store.lists import query as queries
from maestropy.store.postgres import pool

_STATEMENTS = sql.load("consumers")

DEFAULT_ORDER = "consumers.created_at, consumers.id"


class ConsumerRow(NamedTuple):
    """A row of `consumers`; `labels` is JSON, or None if there are none."""

    id: str
    name: str
    labels: bytes | None
    created_at: datetime | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPage:
    """One page of consumers and the total number of matches."""

    total: int
    rows: list[ConsumerRow]


async def count_with_works(connection: pool.Connection, *, connected: Collection[str]) -> rows.ConsumerCounts:
    """Return how many consumers have resources, and how many of them are among `connected`."""
    row = await connection.fetchrow(_STATEMENTS["count_with_works"], list(connected))
    return rows.ConsumerCounts(with_works=row["with_works"], connected=row["connected"])


EntryOf = Callable[[ConsumerRow], rows.HistoryEntry | None]
"""Returns what the history records of a changed consumer, in the transaction of the change; None: nothing."""


def _no_entry(_: ConsumerRow) -> None:
    return None


async def create(database: pool.Database, row: ConsumerRow, *, entry_of: EntryOf = _no_entry) -> ConsumerRow:
    """Add a consumer; its name must be new (`Conflict`)."""
    labels = None if row.labels is None else row.labels.decode()
    async with database.transaction() as connection:
        record = await connection.fetchrow(_STATEMENTS["create"], row.id, row.name, labels, row.created_at)
        return await _recorded(connection, record, entry_of)


async def get(database: pool.Database, consumer_id: str) -> ConsumerRow | None:
    """Return a consumer by its ID."""
    async with database.connection() as connection:
        record = await connection.fetchrow(_STATEMENTS["get"], consumer_id)
    return None if record is None else ConsumerRow._make(record)


async def names(connection: pool.Connection) -> list[str]:
    """Return the names of all consumers."""
    return [row["name"] for row in await connection.fetch(_STATEMENTS["names"])]


async def set_labels(
    database: pool.Database,
    consumer_id: str,
    *,
    labels: Mapping[str, str] | None,
    now: datetime,
    entry_of: EntryOf = _no_entry,
) -> ConsumerRow | None:
    """Replace the labels of a consumer; None keeps them, an empty mapping removes them."""
    text = None if not labels else encode_labels(labels).decode()
    async with database.transaction() as connection:
        record = await connection.fetchrow(_STATEMENTS["set_labels"], consumer_id, labels is not None, text, now)
        return None if record is None else await _recorded(connection, record, entry_of)


async def delete(database: pool.Database, consumer_id: str, *, entry_of: EntryOf = _no_entry) -> None:
    """Remove a consumer, if it exists; one that has resources stays (`Dangling`)."""
    async with database.transaction() as connection:
        record = await connection.fetchrow(_STATEMENTS["delete"], consumer_id)
        if record is not None:
            await _recorded(connection, record, entry_of)


async def _recorded(connection: pool.Connection, record: pool.Connection, entry_of: EntryOf) -> ConsumerRow:
    row = ConsumerRow._make(record)
    entry = entry_of(row)
    await history_entries.record(connection, [] if entry is None else [entry])
    return row


async def page(database: pool.Snapshots, query: queries.ListQuery) -> ConsumerPage:
    """Return a page of consumers; total and rows come from one snapshot."""
    async with database.snapshot() as connection:
        total = await connection.fetchval(queries.compose(_STATEMENTS["count"], query), *query.params)
        if not query.limit:
            return ConsumerPage(total=total, rows=[])
        records = await connection.fetch(queries.compose(_STATEMENTS["page"], query), *query.params)
    return ConsumerPage(total=total, rows=[ConsumerRow._make(row) for row in records])


def by_id(consumer_id: str) -> queries.ListQuery:
    """Return the query for one consumer."""
    return queries.ListQuery(condition="consumers.id = $1", params=(consumer_id,), order=DEFAULT_ORDER, limit=1)


def of_sources(query: queries.ListQuery, sources: Collection[str]) -> queries.ListQuery:
    """Limit a query to the consumers that have a resource of `sources`."""
    return queries.narrow(
        query,
        "EXISTS (SELECT FROM resources WHERE consumer_name = consumers.name AND source = ANY({}::text[]))",
        list(sources),
    )


def encode_labels(labels: Mapping[str, str]) -> bytes:
    """Return labels as JSON."""
    return msgspec.json.encode(labels, order="sorted")
