"""Read the outline of a page: the IDs on it with their sizes, the total, and where the next page begins.

No statement runs for longer than `pool.READER_STATEMENT_MS`. The total is counted up to `EXACT_TOTAL`, and up to
`FEW_MATCHES` where counting reads documents; beyond that, and on a continued page that is not the last, it is an
estimate, which is above the end of the page exactly while there are more items.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import asyncpg
import msgspec

from maestropy.store import sql
from maestropy.store.lists import keyset
from maestropy.store.lists import query as queries
from maestropy.store.lists.query import ListQuery
from maestropy.store.postgres import pool

_STATEMENTS = sql.load("listing")

EXACT_TOTAL: Final = 100_000
"""Counting an index takes 10 ms for so many, and would take longer with every resource."""
FEW_MATCHES: Final = 10_000
"""So many matches are sorted soon; with more, reading in order finds a page of them. Documents are stored out of line:
reading so many takes longer than counting ten times as many index entries."""
SOON_MS: Final = 1000
"""How long reading in order may take, where matches are known to exist, before all of them are sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The IDs on a page with their approximate size, the total number of matches, and the last item."""

    total: int
    entries: Sequence[tuple[str, int]]
    is_exact: bool = True
    """Whether `total` was counted; else it is an estimate."""
    last: keyset.Position | None = None
    """Where the next page begins; None if there is none, or if the order has no continuation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    entries: list[tuple[str, int]]
    matches: int | None = None
    """How many rows match, if they were counted on the way."""
    has_many: bool = False
    """Whether there are more matches than are counted for this query."""


async def read(connection: pool.Connection, query: ListQuery, *, weight: str) -> Page:
    """Return the outline of the page; `weight` is SQL for the size of a row."""
    # One more than the page has: whether there is a next page must not need the total.
    found = await _read_entries(connection, query, weight=weight) if query.limit else _Read(entries=[])
    has_more = len(found.entries) > query.limit
    entries = found.entries[: query.limit]
    seen = (query.after.seen if query.after else query.offset) + len(entries)
    total, is_exact = await _total(connection, query, found=found, seen=seen, has_more=has_more)
    last = None
    if has_more and entries and keyset.can_continue(query.keys):
        values = await _values(connection, query, entries[-1][0])
        last = keyset.Position(values=values, seen=seen, total=total)
    return Page(total=total, entries=entries, is_exact=is_exact, last=last)


async def _read_entries(connection: pool.Connection, query: ListQuery, *, weight: str) -> _Read:
    wanted = query.limit + 1
    if query.after is None:
        return await _read_range(connection, replace(query, limit=wanted), weight=weight)
    entries: list[tuple[str, int]] = []
    for segment in keyset.segments(query.keys, query.after.values):
        part = queries.narrow(query, segment.condition, *segment.params)
        part = replace(part, limit=wanted - len(entries))
        entries += (await _read_range(connection, part, weight=weight)).entries
        if len(entries) == wanted:
            break
    return _Read(entries=entries)


async def _read_range(connection: pool.Connection, query: ListQuery, *, weight: str) -> _Read:
    if not query.reads_matches_first:
        return await _read_in_order(connection, query, weight=weight)
    found = await _read_matches(connection, query, weight=weight, most=FEW_MATCHES)
    if found is not None:
        return found
    try:
        async with connection.transaction():  # a savepoint, with which the timeout ends
            await connection.execute(f"SET LOCAL statement_timeout TO {SOON_MS}")
            found = await _read_in_order(connection, query, weight=weight)
            await connection.execute(f"SET LOCAL statement_timeout TO {pool.READER_STATEMENT_MS}")
    except asyncpg.QueryCanceledError:
        # The matches are together at the other end of the order: sorting all of them is faster.
        found = await _read_matches(connection, query, weight=weight, most=EXACT_TOTAL)
        if found is None:
            found = await _read_in_order(connection, query, weight=weight)
    return replace(found, has_many=query.reads_documents and found.matches is None)


async def _read_matches(connection: pool.Connection, query: ListQuery, *, weight: str, most: int) -> _Read | None:
    """Find the matches and sort them; return None if there are more than `most`."""
    statement = _STATEMENTS["matches"].replace(":most", str(most + 1))
    records = await connection.fetch(_composed(statement, query, weight=weight), *query.params)
    matches = records[0]["matches"] if records else 0
    if query.offset and not records:
        # All of them may be before this page.
        matches = await _count(connection, query, most=most)
    if matches > most:
        return None
    return _Read(entries=[(row["id"], row["size"]) for row in records], matches=matches)


async def _read_in_order(connection: pool.Connection, query: ListQuery, *, weight: str) -> _Read:
    records = await connection.fetch(_composed(_STATEMENTS["outline"], query, weight=weight), *query.params)
    return _Read(entries=[(row["id"], row["size"]) for row in records])


async def _count(connection: pool.Connection, query: ListQuery, *, most: int) -> int:
    """Count the matches; `most + 1` stands for any larger number."""
    statement = queries.compose(_STATEMENTS["count"].replace(":most", str(most + 1)), query)
    return int(await connection.fetchval(statement, *query.params))


async def _total(
    connection: pool.Connection, query: ListQuery, *, found: _Read, seen: int, has_more: bool
) -> tuple[int, bool]:
    """Return the total and whether it was counted."""
    if query.after is not None and not query.limit:
        return query.after.total, False
    if query.after is not None:
        # The total of the first page, which may be old by now: to count again on every page would cost more than it.
        return (max(query.after.total, seen + 1), False) if has_more else (seen, True)
    if found.matches is not None:
        return found.matches, True
    # A page that is not full is the last one: its end is the total, and counting would repeat the search.
    if query.limit and not has_more and (found.entries or not query.offset):
        return seen, True
    most = min(FEW_MATCHES, EXACT_TOTAL) if query.reads_documents else EXACT_TOTAL
    # The search for matches has found more than it counts to; a second count would end there too.
    counted = most + 1 if found.has_many else await _count(connection, query, most=most)
    if counted <= most:
        return counted, True
    estimate = max(await _estimate(connection, query), most + 1)
    if has_more:
        return max(estimate, seen + 1), False
    # A page behind the end: the total is not above its beginning.
    return (min(estimate, query.offset), False) if query.limit else (estimate, False)


async def _estimate(connection: pool.Connection, query: ListQuery) -> int:
    """Return how many rows the planner expects to match."""
    plan = await connection.fetchval(queries.compose(_STATEMENTS["estimate"], query), *query.params)
    return int(msgspec.json.decode(plan)[0]["Plan"]["Plan Rows"])


async def _values(connection: pool.Connection, query: ListQuery, resource_id: str) -> tuple[keyset.Value, ...]:
    columns = ", ".join(key.column.sql for key in query.keys)
    record = await connection.fetchrow(_STATEMENTS["order_values"].replace(":columns", columns), resource_id)
    return tuple(record)


def _composed(statement: str, query: ListQuery, *, weight: str) -> str:
    return queries.compose(statement.replace(":weight", weight), query)
