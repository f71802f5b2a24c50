"""Keep the membership of the server instances: heartbeats and readiness.

Each instance writes heartbeats, and one at a time decides which instances are ready. Go servers on the same database
read and write the same rows by the same rules.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import MembershipPhrase
from maestropy.server.context import Context
from maestropy.store import data_safety, instances
from maestropy.store.postgres import locks

# A pod that has been gone for a day does not come back under its name.
_REMOVE_AFTER = timedelta(days=1)


class Membership:
    """The heartbeat of this instance, and the readiness of all."""

    def __init__(
        self,
        context: Context,
        *,
        heartbeat: timedelta,
        can_take_part: Callable[[], bool] = lambda: True,
        on_database_changed: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Prepare; `on_database_changed` is called when the database is another one or an older copy."""
        self._context = context
        self._on_database_changed = on_database_changed
        self._database_id = ""
        self._last_beat: datetime | None = None
        self._can_take_part = can_take_part
        self._has_withdrawn = False
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._heartbeat = heartbeat
        self._is_serving = False

    async def join(self) -> None:
        """Become ready: this instance listens, dispatches and broadcasts from now on."""
        now = self._context.now()
        async with self._context.database.transaction() as connection:
            last_heartbeat = await instances.last_heartbeat(connection, self._context.instance_id)
            has_left = not await instances.is_ready(connection, self._context.instance_id)
            database_id = await data_safety.identity(connection)
            await instances.write_heartbeat(connection, self._context.instance_id, now=now, ready=True)
            await instances.register_own(connection, self._context.instance_id, now=now)
            await instances.set_ready(connection, self._context.instance_id, ready=True, now=now)
        if last_heartbeat is not None and not has_left and now - last_heartbeat < self._heartbeat:
            self._journal.warning(MembershipPhrase.DUPLICATE_ID, {LogKey.INSTANCE_ID: self._context.instance_id})
        # The first heartbeat comes later: a database that is replaced before must be noticed, too.
        self._last_beat, self._database_id = now, database_id
        self._is_serving = True

    async def leave(self) -> None:
        """Become unready at once."""
        self._is_serving = False
        async with self._context.database.transaction() as connection:
            await instances.set_ready(connection, self._context.instance_id, ready=False, now=self._context.now())

    async def beat(self) -> None:
        """Write a heartbeat; or withdraw while the agents of the owned consumers cannot reach this instance.

        Another instance owns the consumers then. No heartbeat is written, because a Go server would make an instance
        with a heartbeat ready again.
        """
        if self._is_serving and not self._can_take_part():
            await self._withdraw()
            return
        if self._has_withdrawn:
            self._has_withdrawn = False
            self._journal.info(MembershipPhrase.REJOINED, {LogKey.INSTANCE_ID: self._context.instance_id})
        now = self._context.now()
        async with self._context.database.connection() as connection:
            stored = await instances.last_heartbeat(connection, self._context.instance_id)
            database_id = await data_safety.identity(connection)
            await instances.write_heartbeat(connection, self._context.instance_id, now=now, ready=self._is_serving)
        is_older = self._last_beat is not None and (stored is None or stored < self._last_beat)
        is_other = bool(self._database_id) and database_id != self._database_id
        self._last_beat, self._database_id = now, database_id
        if is_older or is_other:
            # Agents and sources have to resync: nothing else would tell them which specs and statuses went back. The
            # status events of the new database may have been purged before this instance was registered there.
            self._journal.warning(MembershipPhrase.DATABASE_CHANGED, {LogKey.DATABASE_ID: database_id})
            async with self._context.database.connection() as connection:
                await instances.register_own(connection, self._context.instance_id, now=now)
            if self._on_database_changed is not None:
                await self._on_database_changed()

    async def _withdraw(self) -> None:
        if not self._has_withdrawn:
            self._has_withdrawn = True
            reason = "the message broker cannot be reached"
            fields = {LogKey.INSTANCE_ID: self._context.instance_id, LogKey.REASON: reason}
            self._journal.warning(MembershipPhrase.WITHDRAWN, fields)
        async with self._context.database.transaction() as connection:
            await instances.set_ready(connection, self._context.instance_id, ready=False, now=self._context.now())

    async def update_readiness(self) -> None:
        """Mark instances as ready or not by their heartbeats, unless another instance is doing it."""
        now = self._context.now()
        async with self._context.database.transaction() as connection:
            if not await instances.try_lock(connection, locks.LIVENESS_CHECK):
                self._journal.info(MembershipPhrase.CHECKED_ELSEWHERE, v=4)
                return
            ready, unready = await instances.update_readiness(
                connection, alive_since=now - 3 * self._heartbeat, now=now
            )
            removed = await instances.remove_instances(connection, silent_since=now - _REMOVE_AFTER)
        if ready or unready or removed:
            self._journal.info(
                MembershipPhrase.INSTANCES_CHANGED,
                {LogKey.ACTIVE_INSTANCE_IDS: ready, LogKey.INACTIVE_INSTANCE_IDS: unready + removed},
            )

    async def is_ready(self) -> bool:
        """Return whether this instance serves, according to the database; raises `StoreError` without a database.

        An instance that has withdrawn still serves sources: all have withdrawn when the broker is down.
        """
        if not self._is_serving:
            return False
        async with self._context.database.connection() as connection:
            is_ready = await instances.is_ready(connection, self._context.instance_id)
        return bool(is_ready) or self._has_withdrawn
