"""What an agent lacks: read once for a resync, whichever way the answer goes to it.

Sending is for `deliver` (agents connected here) and `resyncs` (agents behind a broker); they keep the order in which
states of one bundle are sent, each in its own way.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from maestropy.server.decide import delivery
from maestropy.server.world import World
from maestropy.store import events, pool, resources
from maestropy.wire import event, resync


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """What the agent of a consumer says it has: versions of bundles, by id."""

    consumer: str
    versions: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacks:
    """The difference between an agent and the database."""

    send: Sequence[str]
    """Bundles to send as they are."""
    orphans: Sequence[resync.Row]
    """What the agent has and nobody knows any more."""
    pending: Sequence[str]
    """Events that are delivered once all this is sent."""


async def find(world: World, agents: Sequence[Holdings]) -> list[Lacks]:
    """Compare what agents have with the database, in one look for all of them."""
    consumers = {agent.consumer for agent in agents}
    async with world.database.connection() as connection:
        # Before the bundles are read: what comes later is not answered by this.
        pending = await events.pending_of_consumers(connection, consumers)
        known = await resources.versions_of_consumers(connection, consumers)
    return [_compare(agent, known=known[agent.consumer], pending=pending[agent.consumer]) for agent in agents]


async def settle(world: World, pending: Sequence[str]) -> None:
    """Take events off the queue that an answer has made superfluous."""
    if pending:
        async with world.database.transaction(durable=False) as connection:
            await events.reconcile(connection, pending, now=world.now())


async def deletions(
    world: World, connection: pool.Connection, orphans: Sequence[resync.Row], *, consumer: str
) -> Iterator[tuple[str, event.Event]]:
    """Return what tells an agent to drop orphans, by id; those that were created meanwhile are none any more."""
    found = await resources.read_specs(connection, [orphan.id for orphan in orphans])
    created_meanwhile = {spec.id for spec in found}
    return (
        (
            orphan.id,
            delivery.orphan_deletion(
                orphan,
                consumer=consumer,
                source_id=world.source_id,
                fresh_id=world.new_id(),
                now=world.timestamp(),
            ),
        )
        for orphan in orphans
        if orphan.id not in created_meanwhile
    )


def _compare(agent: Holdings, *, known: Sequence[resync.Row], pending: Sequence[str]) -> Lacks:
    answer = resync.spec_answer(known, agent.versions)
    return Lacks(send=answer.send, orphans=_rows(answer.orphans), pending=pending)


def _rows(orphans: Mapping[str, int]) -> list[resync.Row]:
    return [resync.Row(each, version, is_deleting=True) for each, version in orphans.items()]
