"""Server instances: heartbeats, readiness, and locks for what only one instance should do."""

from datetime import datetime

from maestropy.store import pool, sql

_QUERIES = sql.load("instances")


async def beat(connection: pool.Connection, instance: str, *, now: datetime, ready: bool) -> None:
    """Record a heartbeat; `ready` says that `instance` serves, and is never taken back by a heartbeat."""
    await connection.execute(_QUERIES["beat"], instance, now, ready)


async def claim(connection: pool.Connection, instance: str, *, now: datetime) -> None:
    """Record that `instance` runs this server."""
    await connection.execute(_QUERIES["claim"], instance, now)


async def set_ready(connection: pool.Connection, instance: str, *, ready: bool, now: datetime) -> None:
    """Tell the others whether `instance` takes part."""
    await connection.execute(_QUERIES["set_ready"], instance, ready, now)


async def ready(connection: pool.Connection) -> list[str]:
    """Return the instances that take part."""
    return [row["id"] for row in await connection.fetch(_QUERIES["ready_instances"])]


async def last_heartbeat(connection: pool.Connection, instance: str) -> datetime | None:
    """Return when `instance` was last heard of."""
    row = await connection.fetchrow(_QUERIES["read_instance"], instance)
    return row["last_heartbeat"] if row is not None else None


async def is_ready(connection: pool.Connection, instance: str) -> bool | None:
    """Return whether `instance` is marked ready; None if it is not known."""
    row = await connection.fetchrow(_QUERIES["read_instance"], instance)
    return None if row is None else bool(row["ready"])


async def judge_liveness(
    connection: pool.Connection, *, alive_since: datetime, now: datetime
) -> tuple[list[str], list[str]]:
    """Mark instances by the age of their heartbeat; return who became ready and who stopped being so."""
    rows = await connection.fetch(_QUERIES["judge_liveness"], alive_since, now)
    return [row["id"] for row in rows if row["ready"]], [row["id"] for row in rows if not row["ready"]]


async def forget_instances(connection: pool.Connection, *, silent_since: datetime) -> list[str]:
    """Remove instances that have been gone for long."""
    return [row["id"] for row in await connection.fetch(_QUERIES["forget_instances"], silent_since)]


async def try_lock(connection: pool.Connection, key: tuple[int, int]) -> bool:
    """Take a lock that one instance at a time may hold, for this transaction; False if another one has it."""
    return bool(await connection.fetchval(_QUERIES["try_lock"], *key))


async def database_time(connection: pool.Connection) -> float:
    """Return what the database's clock shows, in seconds since 1970."""
    return float(await connection.fetchval(_QUERIES["database_time"]))
