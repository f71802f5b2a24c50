"""The database is emptied, restored and replaced under a living agent: nothing is deleted, and the reason is visible.

Server, PostgreSQL, Kubernetes API and agent are processes of their own. MAESTRO_DATA_SAFETY_WORKS sets the number of
works: 30 by default, 1,000 for the published figure.
"""

from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from maestropy.store.migrations import migrate
from maestropy.wire.events import event
from tests import waiting
from tests.faults import fault_programs
from tests.faults.data_safety_fleet import CONSUMER, SECONDS, WORKS, running_fleet
from tests.stack import harness

NEWER = WORKS // 10
"""Works that are created, and updated, after the backup; few enough to be evicted after the grace period."""

pytestmark = pytest.mark.long


@pytest.mark.timeout(900)
async def test_nothing_is_deleted_when_the_database_is_emptied_restored_or_replaced(
    postgres: fault_programs.Postgres, tmp_path: Path
) -> None:
    async with running_fleet(postgres, tmp_path) as fleet:
        await fleet.publish(0, WORKS, "old")
        await fleet.wait_for_objects(0, WORKS, "old")
        # A backup, and then newer works and newer versions with one object more.
        await fleet.server.stop()
        await fleet.admin("CREATE DATABASE backup TEMPLATE live")
        await fleet.server.start()
        await fleet.publish(WORKS, WORKS + NEWER, "newer")
        await fleet.publish(0, NEWER, "newer", kind=event.SPEC_UPDATE)
        await fleet.wait_for_objects(WORKS, WORKS + NEWER, "newer")
        await fleet.wait_for_objects(0, NEWER, "newer")

        async def is_complete() -> bool:
            return len(await fleet.kube.config_maps()) == WORKS + NEWER + 2 * NEWER

        await waiting.until(is_complete, seconds=SECONDS, what="the additional objects")
        everything = await fleet.kube.config_maps()

        # Emptied under a living server, which then comes back.
        await fleet.server.stop()
        await fleet.admin("CREATE DATABASE emptied TEMPLATE live")
        await harness.sql(fleet.database("emptied"), "TRUNCATE resources, events, status_events CASCADE")
        await fleet.move_to("emptied")
        await fleet.assert_held("TooManyOrphans", works=WORKS + NEWER)
        assert await fleet.kube.config_maps() == everything

        # The right database again: the hold ends by itself.
        await fleet.move_to("live")
        await fleet.wait_until_released()

        # Restored from the older backup: versions went back, and the newest works are missing.
        await fleet.admin("CREATE DATABASE restored TEMPLATE backup")
        await fleet.move_to("restored")
        await fleet.assert_held("OlderVersion", works=NEWER)
        assert await fleet.kube.config_maps() == everything
        # The source publishes again: other contents under a version that the agent has seen.
        await fleet.publish(0, NEWER, "again", kind=event.SPEC_UPDATE)
        await fleet.wait_for_objects(0, NEWER, "again")
        await fleet.wait_until_released()
        assert f"EvictionPending ({NEWER} works)" in await fleet.cli("consumer", "list")
        assert await status_versions(fleet.database("restored"), NEWER) == {2}

        # Replaced by another database, first with a living agent, then with a restarted one.
        everything = await fleet.kube.config_maps()
        await fleet.admin("CREATE DATABASE other")
        await migrate.migrate(fleet.database("other"))
        await fleet.move_to("other")
        await fleet.server.running().add_consumer(CONSUMER)
        await fleet.assert_held("OtherDatabase", works=WORKS + NEWER)
        await fleet.agent.kill()
        fleet.agent.command = [*fleet.agent.command, "--appliedmanifestwork-eviction-grace-period=1s"]
        await fleet.agent.start()
        await fleet.assert_held("OtherDatabase", works=WORKS + NEWER)
        assert await fleet.kube.config_maps() == everything

        # An operator adopts the database: one work is in it, the others are deleted.
        await fleet.publish(0, 1, "adopted")
        plan = await fleet.cli("consumer", "adopt", CONSUMER, "--dry-run")
        assert f"whose objects would be deleted: {WORKS + NEWER - 1}\n" in plan
        assert await fleet.kube.config_maps() == everything
        assert "adopted" in await fleet.cli("consumer", "adopt", CONSUMER, "--yes")
        await fleet.wait_for_objects(0, 1, "adopted")

        async def is_alone() -> bool:
            return await fleet.kube.config_maps() == {"w0": "adopted"}

        await waiting.until(is_alone, seconds=SECONDS, what="the deletion of the works that were given up")
        await fleet.wait_until_released()
        adopted = await harness.sql(fleet.database("other"), "SELECT adopted_by, work_count FROM maestropy_adoptions")
        assert [row["work_count"] for row in adopted] == [WORKS + NEWER]
        assert "unauthenticated from 127.0.0.1" in adopted[0]["adopted_by"]


async def status_versions(address: Dsn, count: int) -> set[int]:
    """Return the versions whose status the server has stored for the first works."""
    names = [f"w{number}" for number in range(count)]
    statement = (
        "SELECT version = (status ->> 'resourceversion')::bigint AS same, version FROM resources WHERE id = ANY($1)"
    )

    async def are_stored() -> bool:
        return all(row["same"] for row in await harness.sql(address, statement, names))

    await waiting.until(are_stored, what="the statuses of the specs that were published again")
    return {row["version"] for row in await harness.sql(address, statement, names)}
