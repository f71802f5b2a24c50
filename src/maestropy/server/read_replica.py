"""Read lists from a replica of the database while it is new enough, and from the primary otherwise.

A caller that sends the position of its last write gets at least that, and data that are at most `max_lag` old. A caller
that sends none could have written through another server, or have subscribed a moment ago: its list holds all that was
committed before the request, as on the primary. The replica gets a moment to catch up, then the primary answers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from maestropy.aio import batches
from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import DatabasePhrase
from maestropy.server.context import Context
from maestropy.server.decide import read_routing
from maestropy.server.decide.read_routing import Problem, Reason
from maestropy.store import data_safety, errors, replicas
from maestropy.store import dsn as dsns
from maestropy.store.postgres import pool
from maestropy.wire import positions

_Result = TypeVar("_Result")

# For the position after a write: the write is stored, so its response must not wait long.
_POSITION_SECONDS = 1.0
# A replica that does not respond must not delay the next check.
_CHECK_SECONDS = 3.0
_LONGEST_CHECK_INTERVAL = 1.0


_UNCHECKED = Problem(reason=Reason.UNREACHABLE, text="it has not been checked yet")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSettings:
    """Where the replica is, and what it may be used for."""

    address: dsns.Dsn
    max_lag: float
    """Seconds that its data may be old."""
    wait: float
    """Seconds that a list waits for it to catch up."""
    max_connections: int


class ReadReplica:
    """The replica of one instance."""

    def __init__(self, context: Context, settings: ReplicaSettings) -> None:
        self._context = context
        self._settings = settings
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._database: pool.Database | None = None
        self._freshness = read_routing.Freshness()
        self._primary: positions.Position | None = None
        self._replayed = 0
        self._problem: Problem | None = _UNCHECKED
        self._reported: Reason | None = None
        self._is_first_report = True
        # One statement on the primary serves all that ask while another one runs.
        self._positions: batches.Batcher[None, positions.Position] = batches.Batcher(self._read_position)

    @property
    def check_seconds(self) -> float:
        """How often the replica is compared with the primary."""
        return min(_LONGEST_CHECK_INTERVAL, self._settings.max_lag / 4)

    @property
    def problem(self) -> str:
        """Why lists are read from the primary; empty if they are not."""
        problem = self._current_problem()
        return "" if problem is None else f"{DatabasePhrase.REPLICA_UNUSED}: {problem.text}"

    async def run(self) -> None:
        """Answer questions about the position of the primary until `stop`."""
        await self._positions.run()

    def stop(self) -> None:
        """Accept no more questions."""
        self._positions.stop()

    async def close(self) -> None:
        """Close the connections to the replica."""
        if self._database is not None:
            await self._database.close()

    async def check(self, *, seconds: float = _CHECK_SECONDS) -> Problem | None:
        """Compare the replica with the primary; log a change, and return why it is not used.

        A replica that does not respond for `seconds` is not reachable.
        """
        try:
            database_id = await self._read_primary()
        except errors.StoreError as error:
            # Nothing is known against the replica; it grows too old by itself.
            if self._primary is None:
                text = f"the primary does not tell its position: {error}"
                self._problem = Problem(reason=Reason.UNREACHABLE, text=text)
            return self._report()
        try:
            async with asyncio.timeout(seconds):
                self._problem = await self._compare(database_id)
        except errors.StoreError as error:
            self._problem = Problem(reason=Reason.UNREACHABLE, text=f"it cannot be used: {error}")
        except TimeoutError:
            self._problem = Problem(reason=Reason.UNREACHABLE, text=f"it did not respond in {seconds:g} s")
        return self._report()

    async def check_once(self) -> None:
        """Compare the replica with the primary, for log, metrics and readiness."""
        await self.check()

    async def position_after_write(self) -> str:
        """Return the position that a write of this moment has; empty if the primary does not tell it in time."""
        try:
            async with asyncio.timeout(_POSITION_SECONDS):
                return str(await self._current_position())
        except (errors.StoreError, TimeoutError):
            return ""

    async def read(
        self,
        asked: positions.Position | None,
        attempt: Callable[[pool.Snapshots], Awaitable[_Result]],
        *,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> _Result:
        """Return what `attempt` reads: on the replica, or on the primary if that is not possible.

        An attempt that failed on the replica is repeated on the primary while `may_repeat`. Raises
        `PositionAhead`.
        """
        problem = self._current_problem()
        reason = None if problem is None else problem.reason
        # Without a replica to use, the primary need not be asked, but for a position that may be none of its own.
        needed = await self._needed(asked) if reason is None or asked is not None else None
        if reason is None and needed is not None and self._database is not None:
            snapshots = replicas.Snapshots(database=self._database, lsn=needed.lsn, wait_seconds=self._settings.wait)
            try:
                result = await attempt(snapshots)
            except (errors.StatementTimeout, errors.InvalidValue):
                raise  # of the search, which the primary would not answer either
            except errors.StoreError as error:
                if not may_repeat():
                    raise
                reason = Reason.POSITION if isinstance(error, replicas.Behind) else Reason.FAILED
            else:
                self._context.metrics.list_read(database="replica")
                return result
        self._context.metrics.list_read(database="primary", reason=(reason or Reason.UNREACHABLE).value)
        return await attempt(self._context.database)

    async def _needed(self, asked: positions.Position | None) -> positions.Position:
        """Return the position that the list of a caller must hold."""
        known = self._primary
        if asked is not None and known is not None and asked.is_comparable(known) and asked.lsn <= known.lsn:
            return asked
        current = await self._current_position()
        if asked is None or not asked.is_comparable(current):
            # A position from before a promotion or of another database says nothing about this one.
            return current
        if asked.lsn > current.lsn:
            raise positions.PositionAhead
        return asked

    async def _current_position(self) -> positions.Position:
        try:
            return await self._positions.submit(None, key=object(), size=0)
        except (batches.Overloaded, batches.Stopped) as error:
            raise errors.DatabaseUnavailable("too many requests wait for the position of the database") from error

    async def _read_position(self, asked: Sequence[None]) -> Sequence[positions.Position | BaseException]:
        position = await replicas.primary_position(self._context.database)
        return [position] * len(asked)

    async def _read_primary(self) -> str:
        """Note where the primary is, and return the identity of its database; raises `StoreError`."""
        # The time before the statement: what the primary tells may be older than its answer.
        asked_at = self._context.clock.monotonic()
        primary = await replicas.primary_position(self._context.database)
        async with self._context.database.connection() as connection:
            database_id = await data_safety.identity(connection)
        self._primary = primary
        self._freshness.note(asked_at, primary)
        return database_id

    async def _compare(self, database_id: str) -> Problem | None:
        """Return why the replica is none of this database; raises `StoreError` if it does not respond."""
        if self._primary is None:
            return _UNCHECKED
        if self._database is None:
            self._database = await replicas.connect(
                self._settings.address, max_connections=self._settings.max_connections
            )
        async with self._database.connection() as connection:
            replica = read_routing.Replica(**(await replicas.state(connection))._asdict())
        self._replayed = replica.replayed
        problem = read_routing.identity_problem(replica, primary=self._primary, database_id=database_id)
        if problem is not None:
            # Another host may be the standby now.
            await self._database.replace_connections()
        return problem

    def _age(self) -> float | None:
        return self._freshness.age(self._context.clock.monotonic(), self._replayed)

    def _current_problem(self) -> Problem | None:
        return self._problem or read_routing.lag_problem(self._age(), limit=self._settings.max_lag)

    def _report(self) -> Problem | None:
        problem = self._current_problem()
        address = {LogKey.DATABASE_ADDRESS: str(self._settings.address)}
        self._context.metrics.replica_checked(is_in_use=problem is None, lag=self._age())
        reason = None if problem is None else problem.reason
        if reason is not self._reported or self._is_first_report:
            if problem is None:
                self._journal.info(DatabasePhrase.REPLICA_IN_USE, address)
            else:
                self._journal.warning(DatabasePhrase.REPLICA_UNUSED, {**address, LogKey.REASON: problem.text})
        self._reported, self._is_first_report = reason, False
        return problem
