"""Stage: which consumers' reports this instance handles, when an outside broker gives every report to every instance.

Instances agree without talking: each computes the same ring from the ready instances in the database. A report that
falls into the moment in which they do not agree yet may be passed over by all of them; that is why whoever gains a
consumer asks its agent for the statuses that are lacking.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from maestropy.journal.fields import Key, Logger
from maestropy.journal.fields import Membership as Phrase
from maestropy.server.decide import ring
from maestropy.server.world import World
from maestropy.store import consumers, instances

EVERY_SECONDS = 5.0
"""How often the ready instances are read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How consumers are spread; the same for all instances."""

    partitions: int = ring.PARTITIONS
    replicas: int = ring.REPLICAS
    load: float = ring.LOAD


class Ownership:
    """What is ours; without rules everything is, because the broker itself spreads the reports."""

    def __init__(self, world: World, rules: Rules | None, *, gained: Callable[[Iterable[str]], None]) -> None:
        self._world = world
        self._journal = world.journal.bind({Key.LOGGER: Logger.SERVER})
        self._rules = rules
        self._gained = gained
        self._ring = ring.Ring(())

    def owns(self, consumer: str) -> bool:
        """Say whether the reports of `consumer` are for us."""
        return self._is_mine(self._ring, consumer)

    async def owned(self) -> list[str]:
        """Return the consumers that are ours now."""
        async with self._world.database.connection() as connection:
            names = await consumers.names(connection)
        return [name for name in names if self.owns(name)]

    async def refresh(self) -> None:
        """Look who is ready, and tell which consumers became ours by it."""
        if self._rules is None:
            return
        async with self._world.database.connection() as connection:
            members = await instances.ready(connection)
            rules = self._rules
            fresh = ring.build(members, partitions=rules.partitions, replicas=rules.replicas, load=rules.load)
            if fresh == self._ring:
                return
            names = await consumers.names(connection)
        before, self._ring = self._ring, fresh
        mine = [name for name in names if self._is_mine(fresh, name)]
        gained = [name for name in mine if not self._is_mine(before, name)]
        self._journal.info(
            Phrase.RING_CHANGED,
            {Key.READY_INSTANCE_IDS: sorted(members), Key.COUNT: len(mine), Key.ADDED_MEMBERS: len(gained)},
        )
        self._gained(gained)

    def _is_mine(self, table: ring.Ring, consumer: str) -> bool:
        return self._rules is None or table.owner(consumer) == self._world.instance_id
