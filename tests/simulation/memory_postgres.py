"""A PostgreSQL in memory that knows the statements of `maestropy.store` and keeps PostgreSQL's promises about them.

Played here: tables as dictionaries, read-committed transactions (nobody sees what is not committed, a statement sees
all that is), row locks with `SKIP LOCKED`, advisory locks, deadlocks found at once, notifications at commit, sessions
that can be cut at any moment with or without the answer to the last statement. What each named statement does is in
`memory_statements`; everything above a connection (`pool.Database` and all of `maestropy.store`) is the real code.

Not played: disks, so a commit is durable when it is made; constraints that no stage can violate.

`tests/stack/test_store_double.py` puts the same questions to this one and to PostgreSQL.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple

import asyncpg

from maestropy.store.postgres import pool
from tests.simulation import memory_data_safety, memory_rows, memory_statements

Row = dict[str, Any]
Key = tuple[str, Any]
"""A table and a primary key."""


class Change(NamedTuple):
    """What a commit did to one row."""

    table: str
    key: Any
    before: Row | None
    after: Row | None


class Contents(NamedTuple):
    """All that a database is."""

    database_id: str
    tables: "dict[str, dict[Any, Row]]"
    commits: "list[tuple[float, list[Change]]]"


class Engine:
    """One database."""

    def __init__(self, travel: Callable[[str], Awaitable[None]] | None = None) -> None:
        self.tables: dict[str, dict[Any, Row]] = defaultdict(dict)
        self.travel = travel or _at_once
        """Called with the owner of a session for the way to the database and for the way back."""
        self.row_locks: dict[Key, Transaction] = {}
        self.advisory_locks: dict[tuple[int, int], Transaction] = {}
        self.committed: list[Callable[[Sequence[Change]], None]] = []
        """Who is on_commit of every commit."""
        self.listening: dict[object, tuple[str, Callable[[str, str], None]]] = {}
        """Who hears notifications, under which owner."""
        self.sessions: set[Session] = set()
        self.frozen: set[str] = set()
        """Consumers whose resources a trigger protects from every write, while they move to another cell."""
        self.database_id = memory_data_safety.DATABASE_ID
        self._commits: list[tuple[float, list[Change]]] = []
        """What was changed, and when, to go back to an earlier moment."""
        self._new_ids = 0
        self.recorded = 0
        """How many entries the history ever had: their keys."""

    def new_id(self) -> str:
        """Return what gen_random_uuid() would."""
        self._new_ids += 1
        return f"00000000-0000-4000-8000-{self._new_ids:012d}"

    def cut(self, owner: str) -> None:
        """End every session of `owner`, as a killed process or a broken network does."""
        for session in [each for each in self.sessions if each.owner == owner]:
            session.die()
        for heard in [key for key, (who, _) in self.listening.items() if who == owner]:
            del self.listening[heard]

    def record(self, changes: "list[Change]") -> None:
        """Remember a commit, for `restore`."""
        self._commits.append((asyncio.get_running_loop().time(), changes))

    def restore(self, moment: float) -> None:
        """Be as at an earlier moment, as after the restore of a backup; every session ends."""
        self._cut_all()
        while self._commits and self._commits[-1][0] > moment:
            _, changes = self._commits.pop()
            for change in reversed(changes):
                if change.before is None:
                    self.tables[change.table].pop(change.key, None)
                else:
                    self.tables[change.table][change.key] = change.before

    def swap(self, contents: "Contents") -> "Contents":
        """Be another database from now on, and return what this one was; every session ends."""
        self._cut_all()
        before = Contents(self.database_id, self.tables, self._commits)
        self.database_id, self.tables, self._commits = contents
        return before

    def _cut_all(self) -> None:
        owners = {session.owner for session in self.sessions} | {owner for owner, _ in self.listening.values()}
        for owner in sorted(owners):
            self.cut(owner)

    def notify(self, notices: Sequence[tuple[str, str]]) -> None:
        for channel, payload in notices:
            for _, hear in list(self.listening.values()):
                hear(channel, payload)


class Transaction:
    """What one session has changed and locked and not yet committed."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.writes: dict[Key, Row | None] = {}
        self.notices: list[tuple[str, str]] = []
        self._locked: set[Key] = set()
        self._advisory: set[tuple[int, int]] = set()
        self._waiting_for: Transaction | None = None
        self._over: asyncio.Future[None] | None = None
        self.lock_seconds = pool.LOCK_TIMEOUT_MS / 1000
        self.is_over = False

    def get(self, table: str, key: Any) -> Row | None:
        """Return a row as this transaction sees it."""
        if (table, key) in self.writes:
            return self.writes[table, key]
        return self.engine.tables[table].get(key)

    def rows(self, table: str) -> Iterator[Row]:
        """Yield a table as this transaction sees it."""
        for key, row in list(self.engine.tables[table].items()):
            seen = self.writes.get((table, key), row)
            if seen is not None:
                yield seen
        for (of, key), written in list(self.writes.items()):
            if of == table and written is not None and key not in self.engine.tables[table]:
                yield written

    async def put(self, table: str, key: Any, row: Row | None) -> None:
        """Write a row, or remove it, when nobody else has it locked."""
        before = self.get(table, key)
        written = row or before
        is_frozen = table == "resources" and written is not None and written["consumer_name"] in self.engine.frozen
        if is_frozen and memory_rows.content(row) != memory_rows.content(before):
            raise asyncpg.LockNotAvailableError("the consumer moves to another cell")
        await self.lock(table, key)
        self.writes[table, key] = row

    async def lock(self, table: str, key: Any) -> None:
        """Wait for the lock of a row."""
        while not self.try_lock(table, key):
            await self._wait_for(self.engine.row_locks[table, key])

    def try_lock(self, table: str, key: Any) -> bool:
        """Take the lock of a row unless somebody else has it."""
        self._check()
        if self.engine.row_locks.setdefault((table, key), self) is not self:
            return False
        self._locked.add((table, key))
        return True

    async def lock_advisory(self, key: tuple[int, int]) -> None:
        while not self.try_lock_advisory(key):
            await self._wait_for(self.engine.advisory_locks[key])

    def try_lock_advisory(self, key: tuple[int, int]) -> bool:
        self._check()
        if self.engine.advisory_locks.setdefault(key, self) is not self:
            return False
        self._advisory.add(key)
        return True

    async def _wait_for(self, holder: "Transaction") -> None:
        follow: Transaction | None = holder
        while follow is not None:
            if follow is self:
                raise asyncpg.DeadlockDetectedError("deadlock detected")
            follow = follow._waiting_for
        self._waiting_for = holder
        if holder._over is None:
            holder._over = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self.lock_seconds):
                await asyncio.shield(holder._over)
        except TimeoutError:
            raise asyncpg.LockNotAvailableError("canceling statement due to lock timeout") from None
        finally:
            self._waiting_for = None

    def commit(self) -> None:
        """Make everything visible, and tell."""
        self._check()
        changes = []
        for (table, key), row in self.writes.items():
            before = self.engine.tables[table].get(key)
            if row is None:
                self.engine.tables[table].pop(key, None)
            else:
                self.engine.tables[table][key] = row
            if before is not row:
                changes.append(Change(table, key, before, row))
        self._end()
        if changes:
            self.engine.record(changes)
            for on_commit in self.engine.committed:
                on_commit(changes)
        self.engine.notify(self.notices)

    def _check(self) -> None:
        if self.is_over:
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    def roll_back(self) -> None:
        """Undo everything."""
        if not self.is_over:
            self._end()

    def _end(self) -> None:
        self.is_over = True
        for key in self._locked:
            del self.engine.row_locks[key]
        for held in self._advisory:
            del self.engine.advisory_locks[held]
        if self._over is not None and not self._over.done():
            self._over.set_result(None)


class Session:
    """One connection, with the methods of asyncpg's that `maestropy.store` uses."""

    def __init__(self, engine: Engine, owner: str) -> None:
        self.engine = engine
        self.owner = owner
        self.is_dead = False
        self._transaction: Transaction | None = None
        engine.sessions.add(self)

    def die(self) -> None:
        """Be cut off: what was not committed is undone."""
        self.is_dead = True
        self.engine.sessions.discard(self)
        if self._transaction is not None:
            self._transaction.roll_back()

    async def fetch(self, statement: str, *params: Any) -> list[Row]:
        rows, _ = await self._run(statement, params)
        return rows

    async def fetchrow(self, statement: str, *params: Any) -> Row | None:
        rows, _ = await self._run(statement, params)
        return rows[0] if rows else None

    async def fetchval(self, statement: str, *params: Any) -> Any:
        rows, _ = await self._run(statement, params)
        return next(iter(rows[0].values())) if rows else None

    async def execute(self, statement: str, *params: Any) -> str:
        _, count = await self._run(statement, params)
        return f"DONE {count}"

    def transaction(self) -> "Block":
        return Block(self)

    def terminate(self) -> None:
        self.die()

    async def begin(self) -> None:
        self._check()
        self._transaction = Transaction(self.engine)

    async def commit(self) -> None:
        assert self._transaction is not None
        await self._travel()
        transaction, self._transaction = self._transaction, None
        transaction.commit()
        await self._travel()

    async def roll_back(self) -> None:
        if self._transaction is not None:
            self._transaction.roll_back()
            self._transaction = None

    async def _run(self, statement: str, params: tuple[Any, ...]) -> tuple[list[Row], int]:
        do = memory_statements.find(statement)
        await self._travel()
        if self._transaction is not None:
            found = await do(self._transaction, *params)
            self._check()
        else:
            alone = Transaction(self.engine)
            try:
                found = await do(alone, *params)
                self._check()
                alone.commit()
            finally:
                alone.roll_back()
            if alone.writes:
                await self._travel()  # only here does it matter whether the answer arrives
        return found if isinstance(found, tuple) else (found, len(found))

    async def _travel(self) -> None:
        self._check()
        await self.engine.travel(self.owner)
        self._check()

    def _check(self) -> None:
        if self.is_dead:
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")


class Block:
    """A transaction as asyncpg hands it out."""

    def __init__(self, session: Session) -> None:
        self.start = session.begin
        self.commit = session.commit
        self.rollback = session.roll_back


class Pool:
    """Sessions of one owner, for `maestropy.store.postgres.pool.Database`."""

    def __init__(self, engine: Engine, owner: str, *, may_connect: Callable[[], bool] = lambda: True) -> None:
        self._engine = engine
        self._owner = owner
        self._may_connect = may_connect

    async def acquire(self, *, timeout: float) -> Session:
        if not self._may_connect():
            raise ConnectionRefusedError("the database cannot be reached")
        return Session(self._engine, self._owner)

    async def release(self, session: Session, *, timeout: float | None = None) -> None:
        await session.roll_back()
        self._engine.sessions.discard(session)

    async def expire_connections(self) -> None:
        """Every session is used once, so there is nothing to distrust."""

    async def close(self) -> None:
        self._engine.cut(self._owner)

    def terminate(self) -> None:
        self._engine.cut(self._owner)


async def _at_once(_owner: str) -> None:
    await asyncio.sleep(0)
