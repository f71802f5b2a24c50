"""An instance notices that its database was replaced or restored."""

from collections import defaultdict
from datetime import timedelta

from maestropy.server.controllers.instances.membership import Membership
from maestropy.store import instances
from tests.simulation.memory_postgres import Contents
from tests.unit.server.controllers.scripted_broker import Database


async def test_lost_heartbeat_means_that_the_database_went_back() -> None:
    database, changes = Database(), list[str]()
    context = database.context

    async def changed() -> None:
        changes.append("changed")

    membership = Membership(context, heartbeat=timedelta(seconds=15), on_database_changed=changed)
    await membership.join()
    for _ in range(3):
        await membership.beat()
    assert changes == []
    async with context.database.connection() as connection:
        await instances.set_ready(connection, context.instance_id, ready=False, now=context.now())
        await instances.remove_instances(connection, silent_since=context.now() + timedelta(days=1))
    await membership.beat()
    assert changes == ["changed"]
    assert database.logged("the database was replaced or restored") == 1
    await membership.beat()
    assert changes == ["changed"]


async def test_database_that_is_replaced_before_the_first_heartbeat_is_noticed() -> None:
    database, changes = Database(), list[str]()

    async def changed() -> None:
        changes.append("changed")

    membership = Membership(database.context, heartbeat=timedelta(seconds=15), on_database_changed=changed)
    await membership.join()
    database.engine.swap(Contents("another-database", defaultdict(dict), []))
    await membership.beat()
    assert changes == ["changed"]
