"""Consumers: the clusters that bundles are sent to.

Every write is one statement. Nothing is validated here; the constraints of the schema speak through the store's
errors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import msgspec

from maestropy.store import listing, pool, sql

_STATEMENTS = sql.load("consumers")

DEFAULT_ORDER = "consumers.created_at, consumers.id"


class ConsumerRow(NamedTuple):
    """One consumer as the table holds it; `labels` is JSON, or None when there are none."""

    id: str
    name: str
    labels: bytes | None
    created_at: datetime | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of consumers and how many there are in all."""

    total: int
    rows: list[ConsumerRow]


async def create(database: pool.Database, row: ConsumerRow) -> ConsumerRow:
    """Add a consumer; its name must be new (`Conflict`)."""
    labels = None if row.labels is None else row.labels.decode()
    async with database.connection() as connection:
        found = await connection.fetchrow(_STATEMENTS["create"], row.id, row.name, labels, row.created_at)
    return ConsumerRow._make(found)


async def get(database: pool.Database, consumer_id: str) -> ConsumerRow | None:
    """Return a consumer by its id."""
    async with database.connection() as connection:
        found = await connection.fetchrow(_STATEMENTS["get"], consumer_id)
    return None if found is None else ConsumerRow._make(found)


async def names(connection: pool.Connection) -> list[str]:
    """Return the names of all consumers."""
    return [row["name"] for row in await connection.fetch(_STATEMENTS["names"])]


async def set_labels(
    database: pool.Database, consumer_id: str, *, labels: Mapping[str, str] | None, now: datetime
) -> ConsumerRow | None:
    """Replace the labels of a consumer; None leaves them, an empty mapping takes them away."""
    text = None if not labels else encode_labels(labels).decode()
    async with database.connection() as connection:
        found = await connection.fetchrow(_STATEMENTS["set_labels"], consumer_id, labels is not None, text, now)
    return None if found is None else ConsumerRow._make(found)


async def delete(database: pool.Database, consumer_id: str) -> None:
    """Remove a consumer, or nothing when it is not there; one that has bundles stays (`Dangling`)."""
    async with database.connection() as connection:
        await connection.execute(_STATEMENTS["delete"], consumer_id)


async def page(database: pool.Database, question: listing.Question) -> Page:
    """Return a page of consumers; its total and its rows are of one moment."""
    async with database.snapshot() as connection:
        total = await connection.fetchval(listing.compose(_STATEMENTS["count"], question), *question.params)
        if not question.limit:
            return Page(total=total, rows=[])
        found = await connection.fetch(listing.compose(_STATEMENTS["page"], question), *question.params)
    return Page(total=total, rows=[ConsumerRow._make(row) for row in found])


def encode_labels(labels: Mapping[str, str]) -> bytes:
    """Return labels as JSON."""
    return msgspec.json.encode(labels, order="sorted")
