"""What the statements of `maestropy.store.data_safety` do, said in Python; `memory_statements` finds them by name."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.simulation import memory_rows

if TYPE_CHECKING:
    from tests.simulation.memory_postgres import Row, Transaction


DATABASE_ID = "a-simulated-database"
"""The identity of the first database; one that replaces it has another."""


async def identity(tx: "Transaction") -> "list[Row]":
    return [{"id": tx.engine.database_id}]


async def write_hold(tx: "Transaction", consumer: str, *columns: Any) -> "list[Row]":
    await tx.put("holds", consumer, {"consumer_name": consumer, "columns": columns})
    return []


async def remove_hold(tx: "Transaction", consumer: str) -> "list[Row]":
    await tx.put("holds", consumer, None)
    return []


async def held_consumers(tx: "Transaction", consumers: Iterable[str]) -> "list[Row]":
    return memory_rows.found(tx, "holds", consumers)


async def held(tx: "Transaction") -> "list[Row]":
    # `columns` begin with the ID; the number of works is the fifth.
    counts = [row["columns"][4] for row in tx.rows("holds") if row["columns"][4] > 0]
    return [{"works": sum(counts), "consumers": len(counts), "pending_evictions": 0, "next_eviction": 0.0}]


async def adopted(tx: "Transaction", hold_ids: Iterable[str]) -> "list[Row]":
    return memory_rows.found(tx, "adoptions", hold_ids)
