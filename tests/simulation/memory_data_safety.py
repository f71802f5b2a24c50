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
    # As `write_hold` has them: ID, reason, message, database, count, works, now, pending count, works, since, deadline.
    columns = [row["columns"] for row in tx.rows("holds")]
    deadlines = [each[10].timestamp() for each in columns if each[7] > 0 and each[10] is not None]
    return [
        {
            "works": sum(each[4] for each in columns),
            "consumers": sum(each[4] > 0 for each in columns),
            "pending_evictions": sum(each[7] for each in columns),
            "next_eviction": min(deadlines, default=0.0),
        }
    ]


async def adopted(tx: "Transaction", hold_ids: Iterable[str]) -> "list[Row]":
    return memory_rows.found(tx, "adoptions", hold_ids)
