"""Watch the primary of the database: whether it takes writes, and whether a standby was promoted in its place.

A database that is read-only, or a standby, still answers: without this check a server would look healthy while every
request fails. A promoted standby may lack the last transactions of the former primary: the agents have to resync.
"""

from collections.abc import Awaitable, Callable

from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import DatabasePhrase
from maestropy.server.context import Context
from maestropy.store import errors
from maestropy.store.postgres import servers

CHECK_EVERY_SECONDS = 3.0
"""How often the state is read when nobody asks for it."""


class PrimaryWatch:
    """What is known of the primary of the database."""

    def __init__(self, context: Context, *, on_promotion: Callable[[], Awaitable[None]]) -> None:
        """Prepare; `on_promotion` is called when a standby has become the primary."""
        self._context = context
        self._on_promotion = on_promotion
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._problem = ""
        self._timeline = ""
        self._has_timelines = True

    async def check(self) -> str:
        """Return why the database takes no writes; empty if it takes them. Raises `StoreError` without a database."""
        started = self._context.clock.monotonic()
        try:
            problem = await self._read()
        except errors.StoreError:
            self._context.metrics.dependencies.database_failed()
            raise
        self._context.metrics.dependencies.database_answered(self._context.clock.monotonic() - started)
        self._context.metrics.database_read_only(is_read_only=bool(problem))
        if problem and not self._problem:
            self._journal.warning(DatabasePhrase.READ_ONLY, {LogKey.REASON: problem})
        if self._problem and not problem:
            self._journal.info(DatabasePhrase.WRITABLE)
        self._problem = problem
        return problem

    async def run(self) -> None:
        """Read the state once, for log and metrics."""
        await self.check()

    async def _read(self) -> str:
        try:
            async with self._context.database.connection() as connection:
                problem = await servers.write_problem(connection)
        except errors.DatabaseReadOnly as error:
            return str(error)
        if problem:
            # Another host may take writes, or this one again in a new session.
            await self._context.database.replace_connections()
            return f"the database {problem}"
        await self._compare_timelines()
        return ""

    async def _compare_timelines(self) -> None:
        if not self._has_timelines:
            return
        try:
            async with self._context.database.connection() as connection:
                timeline = await servers.timeline(connection)
        except errors.StatementError as error:
            # Some databases that speak the protocol of PostgreSQL have none, or keep it from users.
            self._has_timelines = False
            self._journal.info(DatabasePhrase.NO_TIMELINE, {LogKey.REASON: str(error)})
            return
        former, self._timeline = self._timeline, timeline or self._timeline
        if former and self._timeline != former:
            self._journal.warning(DatabasePhrase.PROMOTED, {LogKey.REASON: f"timeline {former}, now {timeline}"})
            await self._on_promotion()
