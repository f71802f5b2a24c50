"""Through Mosquitto ours and the Go programs understand each other, and both kinds of server can share one database."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from maestropy.wire.events import event
from tests import waiting
from tests.peers import peer_postgres
from tests.peers.brokers.mqtt_agents import GoMqttAgent, MqttAgent, agent
from tests.peers.mosquitto import Mosquitto
from tests.peers.peer_build import Programs
from tests.peers.peer_clients import Json, Refused, WorkClient, rest
from tests.peers.peer_servers import RunningServer, go_server, python_server
from tests.stack import harness
from tests.waiting import wait_for

pytestmark = pytest.mark.peers
NUMBERS = itertools.count(1)


@pytest.fixture
def server(
    request: pytest.FixtureRequest,
    programs: Programs,
    postgres: peer_postgres.Cluster,
    broker: Mosquitto,
    tmp_path: Path,
    shown_logs: list[Path],
) -> Iterator[RunningServer]:
    """A server of the kind that the test names, or both kinds on one database."""
    database = postgres.create(f"broker{next(NUMBERS)}")
    flags = [f"--message-broker-config-file={broker.config()}"]
    with ExitStack() as stack:
        running = []
        for kind in request.param.split("+"):
            folder = tmp_path / kind
            folder.mkdir()
            named = [*flags, f"--client-id={kind}"]
            if kind == "go":
                running.append(
                    stack.enter_context(
                        go_server(programs, database=database, folder=folder, flags=named, broker="mqtt")
                    )
                )
            else:
                running.append(
                    stack.enter_context(python_server(database=database, folder=folder, flags=named, broker="mqtt"))
                )
        shown_logs += [each.log for each in running]
        yield running[0]
        for each in running:
            shown_logs.remove(each.log)


def work(name: str, *, value: str = "1") -> Json:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"value": value},
    }
    return {"metadata": {"name": name}, "spec": {"workload": {"manifests": [manifest]}}}


def is_available(found: Json, generation: int) -> bool:
    conditions = found.get("status", {}).get("conditions", [])
    return any(
        condition["type"] == "Available" and condition["observedGeneration"] == generation for condition in conditions
    )


def is_gone(client: WorkClient, name: str) -> bool:
    try:
        client.get("cluster1", name)
    except Refused as refused:
        return refused.reason == "NotFound"
    return False


@pytest.mark.parametrize("server", ["go", "python", "python+go"], indirect=True)
def test_a_go_agent(server: RunningServer, programs: Programs, broker: Mosquitto, tmp_path: Path) -> None:
    rest(server, "POST", "/consumers", {"name": "cluster1"})
    with (
        WorkClient(programs, server, source="go", log=tmp_path / "client.log") as client,
        GoMqttAgent(programs, broker.config("agent"), cluster="cluster1", log=tmp_path / "agent.log") as go_agent,
    ):
        created = client.create("cluster1", work("first"))
        uid = created["metadata"]["uid"]
        go_agent.wait_event("received", type_ends="spec.create_request", resource=uid)
        found = wait_for(lambda: available(client, "first", 1), what="the status")
        changed = {**found, "spec": work("first", value="2")["spec"]}
        client.patch("cluster1", found, changed)
        wait_for(lambda: available(client, "first", 2), what="the second status")
        client.delete("cluster1", "first")
        wait_for(lambda: is_gone(client, "first"), what="the end")


def available(client: WorkClient, name: str, generation: int) -> Json | None:
    found = client.get("cluster1", name)
    return found if is_available(found, generation) else None


@pytest.mark.parametrize("server", ["python"], indirect=True)
def test_a_go_agent_that_was_away(server: RunningServer, programs: Programs, broker: Mosquitto, tmp_path: Path) -> None:
    """It asks before it subscribes: the broker throws some answers of a Go server away; ours comes again."""
    rest(server, "POST", "/consumers", {"name": "cluster1"})
    with WorkClient(programs, server, source="go", log=tmp_path / "client.log") as client:
        created = client.create("cluster1", work("first"))
        # Nobody listens, so the broker throws it away; were it sent later, the agent would have no question left.
        wait_for(lambda: asyncio.run(has_nothing_pending(server)), what="an empty queue")
        config = broker.config("agent")
        with GoMqttAgent(programs, config, cluster="cluster1", log=tmp_path / "agent.log") as go_agent:
            uid = created["metadata"]["uid"]
            go_agent.wait_event("received", type_ends="spec.resync_response", resource=uid)
            wait_for(lambda: available(client, "first", 1), what="the status")


async def has_nothing_pending(server: RunningServer) -> bool:
    address = Dsn.parse(server.database.dsn)
    return bool(await harness.value(address, "SELECT count(*) FROM events WHERE reconciled_date IS NULL") == 0)


@pytest.mark.parametrize("server", ["go", "python", "python+go"], indirect=True)
async def test_our_agent(server: RunningServer, programs: Programs, broker: Mosquitto, tmp_path: Path) -> None:
    rest(server, "POST", "/consumers", {"name": "cluster1"})

    async def scenario(client: WorkClient) -> None:
        async with agent(broker.config("agent"), "cluster1") as ours:
            # It asks for nothing: a question still under way would bring the first work a second time.
            uids = []
            for number in range(20):
                created = await asyncio.to_thread(client.create, "cluster1", work(f"work{number}"))
                uids.append(created["metadata"]["uid"])
            for number, uid in enumerate(uids):
                await life(ours, client, uid, name=f"work{number}")
            specs = ours.seen
            assert specs == 2 * len(uids), "each spec was sent once"

    async def life(ours: MqttAgent, client: WorkClient, uid: str, *, name: str) -> None:
        await ours.spec_of(uid, version=1)
        await ours.tell(uid, 1)
        await waiting.until(lambda: bool(client.get("cluster1", name).get("status", {}).get("conditions")))
        await asyncio.to_thread(client.delete, "cluster1", name)
        await ours.take(lambda e: event.DELETION_TIMESTAMP in e.extensions)
        await ours.tell(uid, 1, "Deleted")
        await waiting.until(lambda: is_gone(client, name), what="the end")

    with WorkClient(programs, server, source="go", log=tmp_path / "client.log") as client:
        await scenario(client)


@pytest.mark.parametrize("server", ["go", "python"], indirect=True)
async def test_a_resync_request_with_nothing_to_send_is_answered(
    server: RunningServer, programs: Programs, broker: Mosquitto, tmp_path: Path
) -> None:
    rest(server, "POST", "/consumers", {"name": "cluster1"})

    with WorkClient(programs, server, source="go", log=tmp_path / "client.log") as client:
        async with agent(broker.config("agent"), "cluster1") as ours:
            created = await asyncio.to_thread(client.create, "cluster1", work("first"))
            uid = created["metadata"]["uid"]
            await ours.spec_of(uid)
            await ours.resync({uid: 1})
            assert await ours.is_resync_answered()
            # A server that takes a consumer over may also ask for statuses.
            assert not any(received.optional_text(event.RESOURCE_ID) == uid for received in ours.received), (
                "the agent has everything"
            )
