"""Query a Maestro database read-only, by DSN. Identifiers are parameters, never part of a statement.

Each query is one read-only transaction with a statement timeout, on a connection that is closed afterwards. The tracer
has no schema of its own: it reads what this server and the Go server both store.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import asyncpg
import orjson

from maestropy.trace.errors import InvalidArguments, NoAccess

_CONNECT_SECONDS = 10.0
_SCHEMA = ("42P01", "42703")  # no such table, no such column


@dataclass(frozen=True, slots=True, kw_only=True)
class DsnDatabase:
    """The database behind a connection string."""

    dsn: str
    timeout_seconds: int = 15

    @property
    def description(self) -> str:
        """Where it is, without the password."""
        return f"database {_shown(self.dsn)}"

    async def documents(self, sql: str, parameters: Sequence[str]) -> Sequence[dict[str, Any]]:
        """Run one statement and return the JSON documents of its first column."""
        async with AsyncExitStack() as stack:
            connection = await self._connect(stack)
            try:
                async with connection.transaction(readonly=True):
                    # Not a setting of the connection: PgBouncer rejects those.
                    await connection.execute(f"SET LOCAL statement_timeout TO {self.timeout_seconds * 1000}")
                    rows = await connection.fetch(sql, *parameters)
            except asyncpg.PostgresError as error:
                raise self._rejected(error) from error
            except (OSError, TimeoutError, asyncpg.InterfaceError) as error:
                raise NoAccess(f"{self.description} closed the connection during the query; try again") from error
        return [orjson.loads(row[0]) for row in rows]

    async def _connect(self, stack: AsyncExitStack) -> Any:
        try:
            connection = await asyncpg.connect(
                self.dsn,
                timeout=_CONNECT_SECONDS,
                server_settings={"application_name": "maestro trace"},
                statement_cache_size=0,
            )
        except ValueError as error:
            raise InvalidArguments(
                "--db-dsn is not a connection string; write postgresql://user@host:5432/database"
            ) from error
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise NoAccess(
                f"Cannot connect to database: {reason}; check --db-dsn, the network and the login"
            ) from error
        stack.push_async_callback(connection.close, timeout=_CONNECT_SECONDS)
        return connection

    def _rejected(self, error: asyncpg.PostgresError) -> NoAccess:
        state = getattr(error, "sqlstate", "")
        reason = " ".join(str(error).split())
        if state == "57014":
            return NoAccess(
                f"{self.description} timed out after {self.timeout_seconds} s; narrow the query or raise --timeout"
            )
        if state in _SCHEMA:
            return NoAccess(
                f"{self.description} is not a Maestro database ({reason}); check the database's name in --db-dsn"
            )
        return NoAccess(
            f"{self.description} rejects it: {reason}; the login needs SELECT on resources, events, status_events"
        )


def _shown(dsn: str) -> str:
    try:
        parts = urlsplit(dsn)
    except ValueError:
        return "(DSN)"
    host = parts.hostname or dict(parse_qsl(parts.query)).get("host") or "localhost"
    return f"{host}{parts.path}" if parts.scheme else "(DSN)"
