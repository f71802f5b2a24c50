"""Through Pub/Sub ours and the Go server understand each other, and instances of both kinds share one subscription."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from maestropy.store.dsn import Dsn
from maestropy.wire.events import event
from tests import waiting
from tests.faults.fault_proxy import FaultProxy
from tests.peers import peer_postgres
from tests.peers.brokers.pubsub_agents import agent
from tests.peers.brokers.test_mqtt_peers import is_gone, work
from tests.peers.peer_build import Programs
from tests.peers.peer_clients import WorkClient, rest
from tests.peers.peer_servers import RunningServer, go_server, python_server
from tests.peers.pubsub_emulator import Emulator, emulator
from tests.stack import harness
from tests.stack.clients import source

pytestmark = pytest.mark.peers
NUMBERS = itertools.count(1)


@pytest.fixture
def pubsub(tmp_path: Path) -> Iterator[Emulator]:
    """An emulator of this test's own, with the subscriptions of one agent."""
    with emulator(tmp_path / "pubsub") as running:
        running.add_consumer("cluster1")
        yield running


@pytest.fixture
def server(
    request: pytest.FixtureRequest,
    programs: Programs,
    postgres: peer_postgres.Cluster,
    pubsub: Emulator,
    tmp_path: Path,
    shown_logs: list[Path],
) -> Iterator[RunningServer]:
    """A server of the kind that the test names, or both kinds on one database."""
    database = postgres.create(f"pubsub{next(NUMBERS)}")
    flags = [f"--message-broker-config-file={pubsub.config(tmp_path / 'server.yaml')}"]
    with ExitStack() as stack:
        running = []
        for kind in request.param.split("+"):
            folder = tmp_path / kind
            folder.mkdir()
            how: dict[str, Any] = {"database": database, "folder": folder, "broker": "pubsub"}
            how["flags"] = [*flags, f"--client-id={kind}"]
            running.append(stack.enter_context(go_server(programs, **how) if kind == "go" else python_server(**how)))
        shown_logs += [each.log for each in running]
        yield running[0]
        for each in running:
            shown_logs.remove(each.log)


@pytest.mark.parametrize("server", ["go", "python+go"], indirect=True)
async def test_our_agent(server: RunningServer, programs: Programs, pubsub: Emulator, tmp_path: Path) -> None:
    rest(server, "POST", "/consumers", {"name": "cluster1"})
    with WorkClient(programs, server, source="go", log=tmp_path / "client.log") as client:
        async with agent(pubsub.config(tmp_path / "agent.yaml", "cluster1"), "cluster1") as ours:
            names = [f"work{number}" for number in range(20)]
            uids = {}
            for name in names:
                created = await asyncio.to_thread(client.create, "cluster1", work(name))
                uids[name] = created["metadata"]["uid"]
            for uid in uids.values():
                await ours.spec_of(uid, version=1)
                await ours.tell(uid, 1)
            for name in names:
                await waiting.until(lambda: bool(client.get("cluster1", name).get("status", {}).get("conditions")))
                await asyncio.to_thread(client.delete, "cluster1", name)
            for uid in uids.values():
                await ours.take(lambda e: e.text(event.RESOURCE_ID) == uid and event.DELETION_TIMESTAMP in e.extensions)
                await ours.tell(uid, 1, "Deleted")
            for name in names:
                await waiting.until(lambda: is_gone(client, name), what=f"the end of {name}")


async def test_instances_share_a_subscription(database: Dsn, pubsub: Emulator, tmp_path: Path) -> None:
    config = str(pubsub.config(tmp_path / "server.yaml"))

    def served(name: str) -> contextlib.AbstractAsyncContextManager[harness.InProcess]:
        return harness.in_process(
            database, message_broker_type="pubsub", message_broker_config_file=config, client_id=name
        )

    stored = "SELECT count(*) FROM resources WHERE status ->> 'sequenceid' <> ''"
    async with served("a") as remaining:
        await remaining.add_consumer("cluster1")
        async with agent(pubsub.config(tmp_path / "agent.yaml", "cluster1"), "cluster1") as one:
            obeying = asyncio.create_task(one.obey(), name="agent")
            async with source(remaining.sources) as a:
                async with served("b") as leaving:
                    for server in (remaining, leaving):
                        await waiting.until(lambda: len(server.lines("subscribed to pubsub")) == 2)
                    await asyncio.gather(*(a.create(f"w{number}", "cluster1") for number in range(60)))
                    await waiting.until(lambda: counts(remaining, stored, 60), what="all statuses")
                    shares = [len(server.lines("Received event")) for server in (remaining, leaving)]
                    # Pub/Sub promises one receiver for a message, and nothing about how large a share is.
                    assert sum(shares) < 2 * 60, f"an instance handled what the other had acknowledged: {shares}"
                await asyncio.gather(*(a.create(f"later{number}", "cluster1") for number in range(20)))
                await waiting.until(lambda: counts(remaining, stored, 80), what="the statuses after one has left")
            obeying.cancel()
            await asyncio.wait([obeying])


async def counts(server: harness.InProcess, statement: str, expected: int) -> bool:
    return bool(await server.value(statement) == expected)


async def test_connection_that_hangs_is_noticed(database: Dsn, pubsub: Emulator, tmp_path: Path) -> None:
    """Nothing answers and nothing is closed, as behind a firewall that forgets: only time tells."""
    async with FaultProxy(("127.0.0.1", pubsub.port)) as proxy:
        config = pubsub.config(tmp_path / "server.yaml")
        config.write_text(config.read_text().replace(str(pubsub.port), str(proxy.port)))
        flags = {"message_broker_type": "pubsub", "message_broker_config_file": str(config)}
        async with harness.in_process(database, **flags) as server, source(server.sources) as a:
            await server.add_consumer("cluster1")
            await waiting.until(lambda: len(server.lines("subscribed to pubsub")) == 2, what="a subscription")
            proxy.up.hold()
            proxy.down.hold()
            await a.create("w1", "cluster1")
            await waiting.until(lambda: bool(server.lines("is disconnected")), what="the loss")
            proxy.up.release()
            proxy.down.release()
            async with agent(pubsub.config(tmp_path / "agent.yaml", "cluster1"), "cluster1") as one:
                await one.spec_of("w1")
