"""A real Mosquitto is killed, frozen, cut off and made to forget: resyncs make up for all it loses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from maestropy.store.postgres import locks
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt.agent import MqttTransport
from tests import waiting
from tests.faults import fault_programs
from tests.faults.fault_ledger import GONE, Ledger
from tests.faults.fault_parties import LightAgent, Listener, SourceClient, running, source_client
from tests.faults.fault_programs import MosquittoProgram, ServerProgram
from tests.faults.fault_proxy import FaultProxy, proxies
from tests.faults.fault_world import FLAGS, objects_of, settles
from tests.stack import harness

pytestmark = pytest.mark.peers

SENDING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = $1"


@dataclass(frozen=True, kw_only=True)
class Rig:
    """Two servers and an agent around one broker, each way through a proxy."""

    database: Dsn
    broker: MosquittoProgram
    servers: list[ServerProgram]
    agent: LightAgent
    client: SourceClient
    listener: Listener
    to_servers: FaultProxy
    """Between the servers and the broker."""
    to_agent: FaultProxy
    """Between the agent and the broker."""
    ledger: Ledger

    async def settles(self) -> None:
        await settles(
            self.ledger,
            address=self.database,
            objects=objects_of([self.agent]),
            listeners=[self.listener],
            seconds=60,
        )


@pytest.fixture
def broker(tmp_path: Path) -> MosquittoProgram:
    """A broker that keeps nothing when it ends."""
    try:
        return fault_programs.mosquitto(tmp_path)
    except LookupError as missing:
        pytest.skip(str(missing))


@asynccontextmanager
async def rig(database: Dsn, folder: Path, ledger: Ledger, broker: MosquittoProgram) -> AsyncIterator[Rig]:
    where = ("127.0.0.1", broker.port)
    async with fault_programs.programs(broker), proxies(where, where) as (to_servers, to_agent):
        config = fault_programs.mqtt_config(folder / "server.yaml", to_servers.port, share="maestro")
        flags = [*FLAGS, "--message-broker-type=mqtt", f"--message-broker-config-file={config}"]
        servers = [fault_programs.server(folder, database, *flags, name=name) for name in ("one", "two")]
        endpoint = mqtt_config.read(
            fault_programs.mqtt_config(folder / "agent.yaml", to_agent.port), flag="--workload-source-config"
        ).endpoint
        transport = MqttTransport(
            endpoint, consumer="cluster1", client_id="cluster1-work-agent", on_problem=pytest.fail
        )
        agent = LightAgent(transport, consumer="cluster1", ledger=ledger, in_order=False)
        listener = Listener([server.sources for server in servers], ledger)
        async with fault_programs.programs(*servers):
            await servers[0].running().add_consumer("cluster1")
            async with (
                source_client(*(server.sources for server in servers), ledger=ledger) as client,
                running(agent.run, listener.run),
            ):
                yield Rig(
                    database=database,
                    broker=broker,
                    servers=servers,
                    agent=agent,
                    client=client,
                    listener=listener,
                    to_servers=to_servers,
                    to_agent=to_agent,
                    ledger=ledger,
                )
            assert all("Traceback" not in server.log.read_text() for server in servers)


async def live(client: SourceClient, prefix: str) -> None:
    """Let bundles live, some to the end."""

    async def one(number: int) -> None:
        bundle = f"{prefix}{number}"
        await client.insist(bundle, "cluster1", "first")
        await client.insist(bundle, "cluster1", "second")
        if number % 2:
            await client.insist(bundle, "cluster1", GONE)

    await asyncio.gather(*(one(number) for number in range(40)))


async def kill(here: Rig) -> None:
    """What it had not delivered is lost, as are its subscriptions."""
    await here.broker.kill()
    await asyncio.sleep(0.5)
    await here.broker.start()


async def freeze(here: Rig) -> None:
    here.broker.pause()
    await asyncio.sleep(3)
    here.broker.resume()


async def cut_servers_off(here: Rig) -> None:
    here.to_servers.partition()
    await asyncio.sleep(3)
    here.to_servers.heal()


async def strand_servers(here: Rig) -> None:
    here.to_servers.strand()


async def cut_agent_off(here: Rig) -> None:
    here.to_agent.partition()
    await asyncio.sleep(3)
    here.to_agent.heal()


async def strand_agent(here: Rig) -> None:
    here.to_agent.strand()


async def freeze_a_sender(here: Rig) -> None:
    """Freeze a server while it holds the locks under which it sends; the other one leaves its bundles to it."""
    victim = here.servers[0]
    for _ in range(300):
        victim.pause()
        if await harness.value(here.database, SENDING, locks.SENDING):
            break
        victim.resume()
        await asyncio.sleep(0.002)
    await asyncio.sleep(5)
    victim.resume()


FAULTS = [kill, freeze, cut_servers_off, strand_servers, cut_agent_off, strand_agent, freeze_a_sender]


@pytest.mark.parametrize("fault", [pytest.param(each, id=each.__name__.replace("_", "-")) for each in FAULTS])
async def test_between_the_broker_and_its_users(
    fault: object, database: Dsn, tmp_path: Path, ledger: Ledger, broker: MosquittoProgram
) -> None:
    assert callable(fault)

    async with rig(database, tmp_path, ledger, broker) as here:
        living = asyncio.ensure_future(live(here.client, "during"))
        await waiting.until(lambda: here.agent.received > 5, what="a load")
        await fault(here)
        await living
        await live(here.client, "after")
        await here.settles()
