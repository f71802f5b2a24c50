"""Two bundles of one id within one second: a late echo of the end of the first does not end the second."""

import asyncio
import json
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry

from maestropy.aio.tasks import TaskOwner
from maestropy.server.context import Context
from maestropy.server.controllers.status.status_writer import StatusWriter
from maestropy.server.decide import status_intake
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store import resources, rows
from maestropy.store.dsn import Dsn
from maestropy.store.postgres import pool
from maestropy.wire import ordering
from maestropy.wire.events import event, stored_event
from tests.simulation.actors import Listener

SECOND = "2026-08-20T10:11:12"
PATIENCE_SECONDS = 30
PARTS = stored_event.StoredParts(
    envelope=b'{"id":"e","source":"s","type":"t","specversion":"1.0"}', metadata=b"{}", data=b"{}"
)


def moment(fraction: int) -> datetime:
    return datetime.fromisoformat(f"{SECOND}.{fraction:06d}").replace(tzinfo=UTC)


def end(number: int) -> status_intake.StatusUpdate:
    """An agent says that all is gone; the number grows with every report it makes."""
    received = event.CloudEvent(
        id=f"report-{number}",
        source="c-agent",
        type=event.STATUS_UPDATE,
        extensions={
            event.RESOURCE_ID: "b",
            event.RESOURCE_VERSION: 1,
            event.CLUSTER_NAME: "c",
            event.ORIGINAL_SOURCE: "maestro",
            event.SEQUENCE_ID: str(int(ordering.Snowflake(1_700_000_000_000 + number, ordering.AGENT_NODE, 0))),
            event.METADATA: json.dumps({"creationTimestamp": f"{SECOND}Z"}),
        },
        data=b'{"conditions":[{"type":"Deleted","status":"True"}]}',
    )
    return status_intake.read_status_update(received, source_id="maestro", operation_id="")


async def live(database: pool.Database, number: int) -> None:
    """Create the bundle, and ask for its deletion."""
    fresh = rows.NewSpec(id="b", source="s", consumer="c", version=1, parts=PARTS, event_id=f"create-{number}")
    async with database.transaction() as connection:
        assert await resources.insert_new(connection, [fresh], now=moment(number))
        await resources.mark_deleting(connection, ["b"], event_ids=[f"delete-{number}"], now=moment(number + 1))


async def test_an_echo_of_the_first_end_does_not_end_the_second(database: Dsn) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        opened, task_owner = await pool.connect(database, max_connections=4), TaskOwner()
        context = Context(
            database=opened,
            journal=Listener(None, []),
            metrics=Metrics(CollectorRegistry()),
            instance_id="server",
        )
        absorb = StatusWriter(context)
        task_owner.start("absorb", absorb.run())
        async with opened.transaction() as connection:
            await connection.execute("INSERT INTO consumers (id, name) VALUES ('c', 'c')")
        await live(opened, 1)
        assert await absorb.submit(end(1)) == status_intake.Remove()
        await live(opened, 3)
        assert isinstance(await absorb.submit(end(1)), status_intake.Ignore)
        assert await absorb.submit(end(2)) == status_intake.Remove()
        await task_owner.stop()
        await opened.close()
