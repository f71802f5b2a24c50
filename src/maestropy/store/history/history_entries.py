"""Write and read the history of works, consumers and requests.

The entry of a changed resource is written by the statement that changes it (`resources`, `statuses`), so that neither
exists without the other. Nothing is decided here; `history_partitions` creates and drops the partitions.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from maestropy.store import rows, sql
from maestropy.store.lists import query as queries
from maestropy.store.postgres import pool

_STATEMENTS = sql.load("history")
_ORDERS = {False: "at, id", True: "at DESC, id DESC"}


class HistoryRow(NamedTuple):
    """A row of `maestropy_history`; `detail` is JSON."""

    id: int
    at: datetime
    kind: str
    subject_id: str
    consumer: str
    source: str
    version: int
    actor: str
    address: str
    operation_id: str
    result: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """Which entries to read."""

    work_id: str | None = None
    consumer: str | None = None
    """The name of a consumer; without it and `work_id`: all entries."""
    sources: Collection[str] | None = None
    """Only entries of these sources; None: of all."""
    kinds: Collection[str] = ()
    """Kinds such as `work.created`, or their first words; empty: all."""
    since: datetime | None = None
    until: datetime | None = None
    after: tuple[datetime, int] | None = None
    """Time and ID of the last entry of the page before."""
    is_descending: bool = False
    limit: int = 100


Columns = tuple[list[str | None], list[str | None], list[str | None], list[str | None]]


def columns(records: Sequence[rows.Record | None]) -> Columns:
    """Return what statements that change resources need of their records: user, address, operation ID, detail."""
    return (
        [None if record is None else record.requester.user for record in records],
        [None if record is None else record.requester.address for record in records],
        [None if record is None else record.operation_id for record in records],
        [None if record is None else record.detail for record in records],
    )


async def record(connection: pool.Connection, entries: Sequence[rows.HistoryEntry]) -> None:
    """Add entries; in the transaction of what they record, if there is one."""
    if not entries:
        return
    await connection.execute(
        _STATEMENTS["record"],
        [entry.at for entry in entries],
        [entry.kind for entry in entries],
        [entry.subject_id for entry in entries],
        [entry.consumer for entry in entries],
        [entry.source for entry in entries],
        [entry.version for entry in entries],
        [entry.requester.user for entry in entries],
        [entry.requester.address for entry in entries],
        [entry.operation_id for entry in entries],
        [entry.result for entry in entries],
        [entry.detail for entry in entries],
    )


async def attributed(connection: pool.Connection, entries: Sequence[rows.HistoryEntry]) -> Sequence[rows.HistoryEntry]:
    """Return the entries with the names of their consumers, where a request named a consumer by its ID, or only a work.

    So the history of a consumer has the refused requests about it and its works, whatever they called it.
    """
    keys = {entry.consumer for entry in entries if entry.consumer and not entry.subject_id}
    works = {entry.subject_id for entry in entries if entry.subject_id and not entry.consumer}
    names: dict[str, str] = {row["key"]: row["name"] for row in await _fetched(connection, "consumers_named", keys)}
    owners: dict[str, str] = {row["id"]: row["name"] for row in await _fetched(connection, "consumers_of_works", works)}

    def consumer_of(entry: rows.HistoryEntry) -> str:
        if entry.consumer:
            return entry.consumer if entry.subject_id else names.get(entry.consumer, entry.consumer)
        return owners.get(entry.subject_id, "")

    return [replace(entry, consumer=consumer_of(entry)) for entry in entries]


async def _fetched(connection: pool.Connection, statement: str, keys: Collection[str]) -> Sequence[Any]:
    return await connection.fetch(_STATEMENTS[statement], sorted(keys)) if keys else ()


async def end_lost_connections(
    connection: pool.Connection, *, after: datetime | None, seen_before: datetime, now: datetime
) -> list[str]:
    """Record the end of connections whose agents were last seen between two times, and return their consumers."""
    records = await connection.fetch(_STATEMENTS["end_lost_connections"], after, seen_before, now)
    return [row["consumer_name"] for row in records]


async def page(database: pool.Database, query: HistoryQuery) -> list[HistoryRow]:
    """Return the entries that match, in the order of time."""
    listed = _compiled(query)
    async with database.snapshot() as connection:
        records = await connection.fetch(queries.compose(_STATEMENTS["page"], listed), *listed.params)
    return [HistoryRow._make(row) for row in records]


async def consumer_name(database: pool.Database, key: str) -> str | None:
    """Return the name of a consumer with this ID or name, also of one that only the history knows."""
    async with database.connection() as connection:
        name: str | None = await connection.fetchval(_STATEMENTS["consumer_name"], key)
    return name


def _compiled(query: HistoryQuery) -> queries.ListQuery:
    listed = queries.ListQuery(order=_ORDERS[query.is_descending], limit=query.limit)
    if query.work_id is not None:
        # A consumer's own entries carry its ID in the same column.
        listed = queries.narrow(listed, "subject_id = {} AND kind NOT LIKE 'consumer.%'", query.work_id)
    if query.consumer is not None:
        listed = queries.narrow(listed, "consumer_name = {}", query.consumer)
    if query.sources is not None:
        listed = queries.narrow(listed, "source = ANY({}::text[])", list(query.sources))
    if query.kinds:
        kinds = list(query.kinds)
        listed = queries.narrow(
            listed, "(kind = ANY({}::text[]) OR split_part(kind, '.', 1) = ANY({}::text[]))", kinds, kinds
        )
    if query.since is not None:
        listed = queries.narrow(listed, "at >= {}::timestamptz", query.since)
    if query.until is not None:
        listed = queries.narrow(listed, "at < {}::timestamptz", query.until)
    if query.after is not None:
        # The bound on `at` alone lets PostgreSQL leave out whole partitions.
        sign = "<" if query.is_descending else ">"
        at, entry_id = query.after
        condition = f"at {sign}= {{}}::timestamptz AND (at, id) {sign} ({{}}::timestamptz, {{}}::bigint)"
        listed = queries.narrow(listed, condition, at, at, entry_id)
    return listed
