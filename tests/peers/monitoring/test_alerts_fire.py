"""Every alert fires on a real fault: Prometheus scrapes real servers and a real agent, with alerts that do not wait.

Two thresholds of five minutes are seconds here; `test_alert_rules.py` tests all thresholds as they are shipped.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import httpx
import pytest

from maestropy.store.dsn import Dsn
from maestropy.wire.events import event
from tests import waiting
from tests.peers.monitoring import aro_hcp_rules
from tests.peers.monitoring.alert_world import (
    AGENT,
    LOST,
    WORK,
    WORK_AWAY,
    WORK_LOST,
    World,
    of,
    running_world,
)
from tests.peers.monitoring.test_alert_rules import ALERTS
from tests.peers.prometheus import RULES, impatient
from tests.stack import harness
from tests.stack.clients import Source, bundle_data, source

pytestmark = [pytest.mark.peers, pytest.mark.timeout(600)]

SOONER = {
    "MaestroStatusesNotSent": ("> 300", "> 1"),
    "MaestroStatusesNotReported": ("> 300", "> 1"),
}


@dataclass(frozen=True, kw_only=True)
class Databases:
    """A PostgreSQL with the databases of the test."""

    server: harness.Postgres
    a: Dsn
    b: Dsn
    replacement: Dsn


@pytest.fixture
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    with harness.postgres(tmp_path_factory.mktemp("alerts")) as server:
        yield Databases(server=server, a=server.fresh(), b=server.fresh(), replacement=server.fresh())


async def test_every_alert_fires_on_its_fault(databases: Databases, tmp_path: Path) -> None:
    rules = [
        impatient(RULES.read_text(), tmp_path, changes=SOONER),
        impatient(aro_hcp_rules.document(), tmp_path),
    ]
    async with running_world(tmp_path, database=databases.a, other=databases.b, rules=rules) as world:
        watching = asyncio.ensure_future(check_texts(world))
        try:
            await broken_from_the_start(world, databases)
            await works_without_status(world)
            await statuses_not_sent(world)
            await too_many_clients(world)
            await database_down(world, databases)
            await database_read_only(world)
            await server_gone(world)
            await database_replaced(world, databases)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        wanted = {*ALERTS, *(rule.alert for rule in aro_hcp_rules.RULES)} - aro_hcp_rules.OF_KUBE_STATE_METRICS
        assert wanted - world.seen == set()


async def check_texts(world: World) -> None:
    """Check of all alerts that fire that their texts were filled in."""
    while True:
        for alert in await world.firing():
            texts = " ".join(alert.get("annotations", {}).values())
            assert "error expanding template" not in texts, texts
            assert "{{" not in texts, texts
        await asyncio.sleep(0.2)


async def broken_from_the_start(world: World, databases: Databases) -> None:
    await world.b.running().add_consumer(LOST)
    async with source(world.b.sources) as client:
        await client.create(WORK_LOST, LOST, data=bundle_data("first"))
    await harness.sql(databases.b, "UPDATE events SET created_at = now() - interval '1 hour'")
    await world.fires(
        *("MaestroNothingDelivered", "MaestroSpecNotDelivered", "MaestroBrokerDisconnected", "MaestroDatabaseSlow"),
        *("MaestroCertificateExpiresSoon", "MaestroCertificateExpired", "MaestroClockSkew"),
        namespace="troubled",
    )
    await world.fires(
        *("MaestroAgentsAway", "MaestroDeletionsStuck", "MaestroNotificationQueueFilling"),
        *("MaestroEventStuckUnreconciled", "MaestroPostgresNotificationQueueUsageHigh"),
    )
    alerts = await asyncio.to_thread(world.prometheus.alerts)
    assert of(alerts, "MaestroCertificateExpired")["labels"]["certificate"] == "message-broker-ca"
    assert of(alerts, "MaestroCertificateExpiresSoon")["labels"]["certificate"] == "https-cert-file"
    assert float(of(alerts, "MaestroClockSkew")["value"]) == pytest.approx(3600, abs=60)
    assert of(alerts, "MaestroAgentsAway")["value"] == "1e+00"
    # Nothing else is wrong with server A and its agent.
    sound = {"MaestroDatabaseDown", "MaestroDatabaseReadOnly", "MaestroAgentDisconnected", "MaestroWorksHeld"}
    assert sound & {alert["labels"]["alertname"] for alert in alerts} == set()


async def works_without_status(world: World) -> None:
    """The event counts as delivered, and no status comes."""
    await world.sql("UPDATE events SET reconciled_date = now() WHERE source_id = $1", WORK_AWAY)
    await world.sql("UPDATE resources SET updated_at = now() - interval '1 hour' WHERE id = $1", WORK_AWAY)
    await world.fires("MaestroWorksWithoutStatus", namespace="maestro")


async def statuses_not_sent(world: World) -> None:
    """The server cannot record what it has sent; then it cannot even read status events, and notifications pile up."""
    async with world.locking("event_instances", "EXCLUSIVE"):
        await world.change_object("changed once")
        await world.fires("MaestroStatusesNotSent", namespace="maestro")
    async with world.locking("status_events", "ACCESS EXCLUSIVE"):
        # More than one dispatch takes, so that the queue stays deep between two of them.
        notify = "SELECT pg_notify('status_events', 'none-' || n) FROM generate_series(1, 6000) AS n"

        async def is_deep() -> bool:
            await world.sql(notify.replace("none", f"none-{asyncio.get_running_loop().time()}"))
            return "MaestroWorkqueueDepthHigh" in {alert["labels"]["alertname"] for alert in await world.firing()}

        await waiting.until(is_deep, what="a deep queue", seconds=120)


async def too_many_clients(world: World) -> None:
    async with AsyncExitStack() as stack:
        for number in range(101):
            client = await stack.enter_async_context(subscribed(world.a.sources, f"source-{number}"))
            assert client.id
        await world.fires("MaestroGRPCSourceClientExcessConnections")


@asynccontextmanager
async def subscribed(address: str, source_id: str) -> AsyncIterator[Source]:
    async with source(address, source_id) as client, client.subscribe():
        yield client


async def database_down(world: World, databases: Databases) -> None:
    async with databases.server.outage(databases.a), httpx.AsyncClient(timeout=10) as rest:
        stop = asyncio.Event()

        async def ask() -> None:
            while not stop.is_set():
                await rest.get(f"{world.a.rest}/api/maestro/v1/consumers")
                async with source(world.a.sources) as client:
                    await client.refused(client.spec(event.SPEC_UPDATE, WORK, AGENT, data=bundle_data("x"), version=1))
                await asyncio.sleep(0.2)

        asking = asyncio.ensure_future(ask())
        try:
            await world.fires(
                *("MaestroDatabaseDown", "MaestroReconcileErrors", "MaestroSpecControllerReconcileErrors"),
                *("MaestroRESTAPIErrorRate", "MaestroGRPCServerErrorRate"),
            )
        finally:
            stop.set()
            await asking
    await world.a.wait_ready()


async def database_read_only(world: World) -> None:
    setting = f"ALTER DATABASE {world.database.database} SET default_transaction_read_only = "
    await world.sql(f"{setting} on")
    await world.drop_connections()
    await world.fires("MaestroDatabaseReadOnly", namespace="maestro")
    connection = await asyncpg.connect(**world.database.connect_kwargs())
    try:
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute(f"{setting} off")
    finally:
        await connection.close()
    await world.drop_connections()
    await world.a.wait_ready()


async def server_gone(world: World) -> None:
    await world.a.kill()
    await world.change_object("changed while the server is gone")
    await world.fires("MaestroAgentDisconnected", "MaestroStatusesNotReported", namespace="maestro-agent")
    await world.fires("MaestroNotScraped", "MaestroServersGone", namespace="maestro")


async def database_replaced(world: World, databases: Databases) -> None:
    """The server comes back with a database that does not know the works."""
    world.a.env = {**world.a.env, "MAESTRO_DB_DSN": str(databases.replacement)}
    await world.a.start()
    await world.a.running().add_consumer(AGENT)
    await world.fires("MaestroWorksHeld", namespace="maestro")
    # Of a consumer without an agent: an agent that runs would report its own number again.
    await world.a.running().add_consumer(LOST)
    pending = (
        "INSERT INTO maestropy_holds (consumer_name, id, reason, message, database_id, work_count, works, since, "
        "pending_count, pending_works, pending_since, pending_deadline) "
        f"VALUES ('{LOST}', 'e', '', '', '', 0, '{{}}', now(), 1, '{{w9}}', now(), now() + interval '1 hour')"
    )
    await harness.sql(databases.replacement, pending)
    await world.fires("MaestroEvictionPending", namespace="maestro")
