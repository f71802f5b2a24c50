"""Own consumers: handle the status updates of some, where a message broker delivers each update to every instance.

Instances agree without messages: each computes the same hash ring from the ready instances in the database. While they
do not agree yet, all of them may skip an update. So an instance that gains a consumer requests its statuses.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import MembershipPhrase
from maestropy.server.context import Context
from maestropy.server.decide import hash_ring
from maestropy.store import consumers, instances

EVERY_SECONDS = 5.0
"""How often the ready instances are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RingRules:
    """How consumers are distributed; the same for all instances."""

    partitions: int = hash_ring.PARTITIONS
    replicas: int = hash_ring.REPLICAS
    load: float = hash_ring.LOAD


class ConsumerOwnership:
    """The consumers of this instance; without rules all of them, because the broker distributes the updates."""

    def __init__(
        self, context: Context, rules: RingRules | None, *, on_gained: Callable[[Iterable[str]], None]
    ) -> None:
        self._context = context
        self._journal = context.journal.bind({LogKey.LOGGER: Logger.SERVER})
        self._rules = rules
        self._on_gained = on_gained
        self._ring = hash_ring.Ring(())

    def owns(self, consumer: str) -> bool:
        """Return whether this instance handles the status updates of `consumer`."""
        return self._is_owned(self._ring, consumer)

    async def owned(self) -> list[str]:
        """Return the consumers that this instance owns now."""
        async with self._context.database.connection() as connection:
            names = await consumers.names(connection)
        return [name for name in names if self.owns(name)]

    async def refresh(self) -> None:
        """Read the ready instances, and call `on_gained` with the consumers that this instance owns from now on."""
        if self._rules is None:
            return
        async with self._context.database.connection() as connection:
            members = await instances.ready(connection)
            rules = self._rules
            current = hash_ring.build(members, partitions=rules.partitions, replicas=rules.replicas, load=rules.load)
            if current == self._ring:
                return
            names = await consumers.names(connection)
        previous, self._ring = self._ring, current
        owned = [name for name in names if self._is_owned(current, name)]
        gained = [name for name in owned if not self._is_owned(previous, name)]
        self._journal.info(
            MembershipPhrase.RING_CHANGED,
            {LogKey.READY_INSTANCE_IDS: sorted(members), LogKey.COUNT: len(owned), LogKey.ADDED_MEMBERS: len(gained)},
        )
        self._on_gained(gained)

    def _is_owned(self, table: hash_ring.Ring, consumer: str) -> bool:
        return self._rules is None or table.owner(consumer) == self._context.instance_id
