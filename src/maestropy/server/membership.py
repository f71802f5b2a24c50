"""Stage: which instances live.

Each instance writes heartbeats; one at a time judges all of them. Go servers on the same database read and write the
same rows by the same rules.
"""

from collections.abc import Callable
from datetime import timedelta

from maestropy.journal.fields import Key, Logger
from maestropy.journal.fields import Membership as Phrase
from maestropy.server.world import World
from maestropy.store import instances, locks

# A pod that has been gone for a day does not come back under its name.
_FORGET_AFTER = timedelta(days=1)


class Membership:
    """The heartbeat of this instance, and its view of the others."""

    def __init__(self, world: World, *, heartbeat: timedelta, can_take_part: Callable[[], bool] = lambda: True) -> None:
        self._world = world
        self._can_take_part = can_take_part
        self._has_stepped_back = False
        self._journal = world.journal.bind({Key.LOGGER: Logger.SERVER})
        self._heartbeat = heartbeat
        self._serving = False

    async def join(self) -> None:
        """Take part from now on: this instance listens, delivers and broadcasts."""
        now = self._world.now()
        async with self._world.database.transaction() as connection:
            seen = await instances.last_heartbeat(connection, self._world.instance_id)
            said_goodbye = not await instances.is_ready(connection, self._world.instance_id)
            await instances.beat(connection, self._world.instance_id, now=now, ready=True)
            await instances.claim(connection, self._world.instance_id, now=now)
            await instances.set_ready(connection, self._world.instance_id, ready=True, now=now)
        if seen is not None and not said_goodbye and now - seen < self._heartbeat:
            self._journal.warning(
                "an instance with this id was alive a moment ago; if it still is, give each its own --client-id",
                {Key.INSTANCE_ID: self._world.instance_id},
            )
        self._serving = True

    async def leave(self) -> None:
        """Stop taking part; readiness goes off at once."""
        self._serving = False
        async with self._world.database.transaction() as connection:
            await instances.set_ready(connection, self._world.instance_id, ready=False, now=self._world.now())

    async def beat(self) -> None:
        """Write one heartbeat; or step back while what this instance owns cannot reach it, so that another one has it.

        Without a heartbeat: a Go server would call an instance back that has one.
        """
        if self._serving and not self._can_take_part():
            await self._step_back()
            return
        if self._has_stepped_back:
            self._has_stepped_back = False
            self._journal.info("this instance takes part again", {Key.INSTANCE_ID: self._world.instance_id})
        async with self._world.database.connection() as connection:
            await instances.beat(connection, self._world.instance_id, now=self._world.now(), ready=self._serving)

    async def _step_back(self) -> None:
        if not self._has_stepped_back:
            self._has_stepped_back = True
            reason = "the message broker cannot be reached"
            told = {Key.INSTANCE_ID: self._world.instance_id, Key.REASON: reason}
            self._journal.warning("this instance leaves its consumers to the others", told)
        async with self._world.database.transaction() as connection:
            await instances.set_ready(connection, self._world.instance_id, ready=False, now=self._world.now())

    async def judge(self) -> None:
        """Mark who lives and who does not, unless another instance is at it."""
        now = self._world.now()
        async with self._world.database.transaction() as connection:
            if not await instances.try_lock(connection, locks.LIVENESS_CHECK):
                self._journal.info(Phrase.CHECKED_ELSEWHERE, v=4)
                return
            ready, unready = await instances.judge_liveness(connection, alive_since=now - 3 * self._heartbeat, now=now)
            forgotten = await instances.forget_instances(connection, silent_since=now - _FORGET_AFTER)
        if ready or unready or forgotten:
            self._journal.info(
                "server instances changed",
                {Key.ACTIVE_INSTANCE_IDS: ready, Key.INACTIVE_INSTANCE_IDS: unready + forgotten},
            )

    async def is_ready(self) -> bool:
        """Say whether this instance serves, as the database knows it; raises when it cannot be asked.

        One that stepped back still serves sources: if the broker is gone for all, somebody has to.
        """
        if not self._serving:
            return False
        async with self._world.database.connection() as connection:
            is_ready = await instances.is_ready(connection, self._world.instance_id)
        return bool(is_ready) or self._has_stepped_back
