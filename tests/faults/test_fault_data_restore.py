"""A backup is restored while server or agent keep running: nothing is deleted, and nothing is ignored."""

from pathlib import Path

import pytest

from maestropy.wire.events import event
from tests import waiting
from tests.faults import fault_programs
from tests.faults.data_safety_fleet import CONSUMER, SECONDS, running_fleet
from tests.stack import harness

pytestmark = pytest.mark.long


@pytest.mark.timeout(300)
async def test_small_cluster_keeps_everything_when_its_consumer_is_created_again(
    postgres: fault_programs.Postgres, tmp_path: Path
) -> None:
    """A backup that is older than the consumer is restored, and an operator creates the consumer."""
    async with running_fleet(postgres, tmp_path) as fleet:
        await fleet.publish(0, 3, "old")
        await fleet.wait_for_objects(0, 3, "old")
        await fleet.agent.kill()
        fleet.agent.command = [*fleet.agent.command, "--appliedmanifestwork-eviction-grace-period=0s"]
        await fleet.agent.start()
        await fleet.server.stop()
        await harness.sql(fleet.database("live"), "TRUNCATE resources, events, status_events, consumers CASCADE")
        await fleet.server.start()

        async def is_unknown() -> bool:
            return await fleet.metric("UnknownConsumer") == 3

        await waiting.until(is_unknown, seconds=SECONDS, what="the hold of a consumer that the server does not have")
        await fleet.server.running().add_consumer(CONSUMER)
        await fleet.assert_held("TooManyOrphans", works=3)
        assert await fleet.kube.config_maps() == dict.fromkeys(("w0", "w1", "w2"), "old")
        log = fleet.agent.log.read_text() + fleet.server.log.read_text()
        assert "data-safety hold ended" not in log


@pytest.mark.timeout(300)
async def test_database_restored_under_a_running_server_makes_agents_resync(
    postgres: fault_programs.Postgres, tmp_path: Path
) -> None:
    async with running_fleet(postgres, tmp_path) as fleet:
        await fleet.publish(0, 5, "old")
        await fleet.wait_for_objects(0, 5, "old")
        # Everything but the works' first version is lost while the server keeps running.
        await harness.sql(fleet.database("live"), "CREATE TABLE backup AS SELECT * FROM resources")
        await fleet.publish(0, 5, "newer", kind=event.SPEC_UPDATE)
        await fleet.wait_for_objects(0, 5, "newer")
        connection = fleet.database("live")
        await harness.sql(
            connection,
            """WITH gone AS (DELETE FROM renditions), beats AS (DELETE FROM server_instances)
               UPDATE resources r SET version = b.version, payload = b.payload FROM backup b WHERE b.id = r.id""",
        )
        await fleet.assert_held("OlderVersion", works=5)
        assert "the database was replaced or restored" in fleet.server.log.read_text()
        # The source wants what the database has: its word counts, although the database does not change.
        await fleet.publish(0, 5, "old", kind=event.SPEC_UPDATE)
        await fleet.wait_for_objects(0, 5, "old")
        await fleet.wait_until_released()
