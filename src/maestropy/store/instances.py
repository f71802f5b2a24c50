"""Read and write server instances: heartbeats, readiness, and locks for tasks of one instance at a time."""

from datetime import datetime

from maestropy.store import sql
from maestropy.store.postgres import pool

_QUERIES = sql.load("instances")


async def write_heartbeat(connection: pool.Connection, instance: str, *, now: datetime, ready: bool) -> None:
    """Write a heartbeat; `ready` marks `instance` as ready, and a heartbeat never takes that back."""
    await connection.execute(_QUERIES["write_heartbeat"], instance, now, ready)


async def register_own(connection: pool.Connection, instance: str, *, now: datetime) -> None:
    """Record that `instance` is a maestropy server, not a Go server."""
    await connection.execute(_QUERIES["register_own"], instance, now)


async def set_ready(connection: pool.Connection, instance: str, *, ready: bool, now: datetime) -> None:
    """Mark `instance` as ready or not ready."""
    await connection.execute(_QUERIES["set_ready"], instance, ready, now)


async def ready(connection: pool.Connection) -> list[str]:
    """Return the ready instances."""
    return [row["id"] for row in await connection.fetch(_QUERIES["ready_instances"])]


async def last_heartbeat(connection: pool.Connection, instance: str) -> datetime | None:
    """Return the time of the last heartbeat of `instance`; None if it is unknown."""
    row = await connection.fetchrow(_QUERIES["read_instance"], instance)
    return row["last_heartbeat"] if row is not None else None


async def is_ready(connection: pool.Connection, instance: str) -> bool | None:
    """Return whether `instance` is marked ready; None if it is unknown."""
    row = await connection.fetchrow(_QUERIES["read_instance"], instance)
    return None if row is None else bool(row["ready"])


async def update_readiness(
    connection: pool.Connection, *, alive_since: datetime, now: datetime
) -> tuple[list[str], list[str]]:
    """Mark instances by the age of their heartbeat; return those that became ready and those that became not ready."""
    rows = await connection.fetch(_QUERIES["update_readiness"], alive_since, now)
    return [row["id"] for row in rows if row["ready"]], [row["id"] for row in rows if not row["ready"]]


async def remove_instances(connection: pool.Connection, *, silent_since: datetime) -> list[str]:
    """Remove instances without a heartbeat since `silent_since`."""
    return [row["id"] for row in await connection.fetch(_QUERIES["remove_instances"], silent_since)]


async def try_lock(connection: pool.Connection, key: tuple[int, int]) -> bool:
    """Try to take an advisory lock for this transaction; False if another instance holds it."""
    return bool(await connection.fetchval(_QUERIES["try_lock"], *key))


async def database_time(connection: pool.Connection) -> float:
    """Return the time of the database clock, in seconds since 1970."""
    return float(await connection.fetchval(_QUERIES["database_time"]))
