"""The loop through a real broker: wishes go down, statuses come up, and what breaks on the way is made up for."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mqtt_agents import agent
from peer_mosquitto import Mosquitto, mosquitto
from stack import harness
from stack.clients import bundle_data, is_about, source

from pymaestro.store.dsn import Dsn
from pymaestro.transport import base
from pymaestro.wire import event, resync

pytestmark = [pytest.mark.peers, pytest.mark.timeout(60)]


@pytest.fixture(scope="session")
def stack_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Postgres]:
    with harness.postgres(tmp_path_factory.mktemp("stack-postgres")) as server:
        yield server


@pytest.fixture
def database(stack_postgres: harness.Postgres) -> Dsn:
    return stack_postgres.fresh()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path / "mosquitto") as running:
        yield running


def is_deleting(received: event.Event) -> bool:
    return event.DELETION_TIMESTAMP in received.extensions


def served(database: Dsn, config: Path, **flags: str):
    return harness.in_process(database, message_broker_type="mqtt", message_broker_config_file=str(config), **flags)


def test_create_update_delete(database: Dsn, broker: Mosquitto) -> None:
    async def scenario() -> None:
        config = broker.config()
        async with served(database, config) as server, source(server.sources) as a, a.subscribe() as told:
            await server.add_consumer("cluster1")
            await harness.until(lambda: bool(server.lines("subscribed to mqtt broker")), what="a subscription")
            async with agent(config, "cluster1") as one:
                await a.create("w1", "cluster1", data=bundle_data("first"))
                spec = await one.spec_of("w1", version=1)
                assert spec.type == event.SPEC_CREATE
                assert spec.source == "maestro"
                assert spec.data == bundle_data("first")
                assert json.loads(str(spec.extensions[event.METADATA]))["name"] == "w1"
                await one.tell("w1", 1)
                status = await told.spec_of("w1")
                assert json.loads(status.data)["manifestBundle"] == json.loads(bundle_data("first"))

                await a.update("w1", "cluster1", version=1, data=bundle_data("second"))
                assert (await one.spec_of("w1", version=2)).data == bundle_data("second")
                await one.tell("w1", 2)
                await told.take(lambda e: is_about(e, "w1", version=2))

                await a.delete("w1", "cluster1")
                await one.take(is_deleting)
                await one.tell("w1", 2, "Deleted")
                await told.take(lambda e: b'"Deleted"' in e.data)
                assert await server.bundle("w1") is None
                await harness.until(server.has_nothing_pending, what="an empty queue")

    harness.play(scenario())
