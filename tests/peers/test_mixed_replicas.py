"""A Go and a Python server are one Maestro: on one database and broker, under load, nothing is lost or doubled."""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from maestropy import AsyncMaestro, EventType, Work
from maestropy.store.dsn import Dsn
from tests import waiting
from tests.go_delete_recovery import go_replica, go_round
from tests.peers import peer_postgres
from tests.peers.mosquitto import Mosquitto, mosquitto
from tests.peers.peer_build import Programs
from tests.peers.peer_clients import Agent, Json, Lines, rest
from tests.peers.peer_servers import REPUBLISH_INTERVAL, RunningServer, go_server, python_server
from tests.waiting import wait_for

pytestmark = pytest.mark.peers
NUMBERS = itertools.count(1)
CONSUMERS = ("c1", "c2", "c3", "c4")
WORKS = 20
"""Of each source on each consumer."""
BATCH = 20
"""Deletions that are sent again in a round."""
AT_ONCE = 8
"""Requests of one source under way at the same time."""


class LoadAgent(Agent):
    """An agent of the Go SDK whose statuses no limiter holds back."""

    def __init__(self, programs: Programs, way: list[str | Path], *, cluster: str, log: Path) -> None:
        Lines.__init__(self, [programs.fakeagent, *way, "-cluster", cluster, "-rate", "1000"], log=log)
        self.wait_event("sent", type_ends="spec.resync_request")

    def specs(self) -> Counter[tuple[str, str, int]]:
        """Return how often each state of each bundle was sent, but for answers to resyncs."""
        found: Counter[tuple[str, str, int]] = Counter()
        for line in self.printed():
            body: Json = line.get("cloudevent", {})
            kind = body.get("type", "").rpartition(".")[2]
            if line["event"] == "received" and kind in ("create_request", "update_request", "delete_request"):
                action = "delete" if "deletiontimestamp" in body else "spec"
                found[body["resourceid"], action, body["resourceversion"]] += 1
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Two servers and the agents behind them."""

    go: RunningServer
    python: RunningServer
    agents: dict[str, LoadAgent]
    database: Dsn


@pytest.fixture(params=["grpc", "mqtt-shared", "mqtt-broadcast"])
def fleet(
    request: pytest.FixtureRequest,
    programs: Programs,
    postgres: peer_postgres.Cluster,
    tmp_path: Path,
    shown_logs: list[Path],
) -> Iterator[Fleet]:
    """One server of each kind on one database; two consumers' agents at each of them, or all behind the broker."""
    broker_type, _, sharing = request.param.partition("-")
    database = postgres.create(f"mixed{next(NUMBERS)}")
    logs = list(shown_logs)
    with ExitStack() as stack:
        flags = ["--v=2"]
        broker = stack.enter_context(mosquitto(tmp_path / "mosquitto")) if broker_type == "mqtt" else None
        if broker is not None:
            config = broker.config("server", share="maestro" if sharing == "shared" else "")
            flags += [f"--message-broker-config-file={config}", f"--subscription-type={sharing}"]
        for kind in ("go", "python"):
            (tmp_path / kind).mkdir()
        go = stack.enter_context(
            go_server(
                programs,
                database=database,
                folder=tmp_path / "go",
                flags=[*flags, "--client-id=maestro-go"],
                broker=broker_type,
            )
        )
        python = stack.enter_context(
            python_server(
                database=database,
                folder=tmp_path / "python",
                # The interval of the Go replica, so that neither sends a deletion again that is under way.
                flags=[
                    *flags,
                    "--client-id=maestro-python",
                    f"{REPUBLISH_INTERVAL}=60",
                    f"--delete-event-republish-batch-size={BATCH}",
                ],
                broker=broker_type,
            )
        )
        shown_logs += [go.log, python.log]
        agents = {}
        for name, server in zip(CONSUMERS, itertools.cycle((go, python))):
            rest(go, "POST", "/consumers", {"name": name})
            way = way_of(server, broker)
            agents[name] = stack.enter_context(
                LoadAgent(programs, way, cluster=name, log=tmp_path / f"agent-{name}.log")
            )
        yield Fleet(go=go, python=python, agents=agents, database=Dsn.parse(database.dsn))
    shown_logs[:] = logs


def way_of(server: RunningServer, broker: Mosquitto | None) -> list[str | Path]:
    return ["-grpc", server.broker_addr] if broker is None else ["-mqtt-config", broker.config("agent")]


@dataclass(slots=True, kw_only=True)
class Source:
    """A program that asks for works through one of the servers, and what it was told."""

    maestro: AsyncMaestro
    statuses: dict[str, int] = field(default_factory=dict)
    """The newest version of each work that is available."""
    ends: Counter[str] = field(default_factory=Counter)

    async def listen(self) -> None:
        async with self.maestro.all_works().watch() as events:
            async for told in events:
                if told.type is EventType.DELETED:
                    self.ends[told.work.id] += 1
                elif told.work.is_true("Available"):
                    self.statuses[told.work.id] = max(told.work.version, self.statuses.get(told.work.id, 0))


@contextlib.asynccontextmanager
async def source(server: RunningServer, name: str) -> AsyncIterator[Source]:
    async with AsyncMaestro(environ={}, api_url=server.rest_url, grpc_url=server.grpc_addr, source=name) as maestro:
        made = Source(maestro=maestro)
        listener = asyncio.ensure_future(made.listen())
        try:
            yield made
        finally:
            listener.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listener


def work(name: str, value: str) -> Work:
    meta = {"name": name, "namespace": "default"}
    return Work(name).add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": value}})


async def change_all(one: Source, what: str) -> set[str]:
    """Create, update or delete every work of a source, several at a time; return their ids."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def change(consumer: str, name: str) -> str:
        works = one.maestro.works(consumer)
        async with turns:
            if what == "create":
                await works.create(work(name, "1"))
            elif what == "update":
                await works.patch(name, lambda found: found.with_manifests(list(manifests(name, "2"))), version=1)
            else:
                await works.delete(name)
        return works.id_of(name)

    names = itertools.product(CONSUMERS, (f"work{number}" for number in range(WORKS)))
    return set(await asyncio.gather(*(change(consumer, name) for consumer, name in names)))


def manifests(name: str, value: str) -> Iterator[Json]:
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"value": value},
    }


async def test_nothing_is_lost_and_nothing_doubled(fleet: Fleet) -> None:
    async with source(fleet.go, "via-go") as one, source(fleet.python, "via-python") as other:
        both = (one, other)
        ids: list[set[str]] = await asyncio.gather(*(change_all(each, "create") for each in both))
        await told(both, ids, version=1)
        await asyncio.gather(*(change_all(each, "update") for each in both))
        await told(both, ids, version=2)
        await asyncio.gather(*(change_all(each, "delete") for each in both))
        await waiting.until(
            lambda: all(set(each.ends) == mine for each, mine in zip(both, ids, strict=True)),
            what="every end",
            seconds=120,
        )
        assert {count for each in both for count in each.ends.values()} == {1}, "an end was told twice"
    wait_for(lambda: rest(fleet.go, "GET", "/resource-bundles?size=0")["total"] == 0, what="an empty table")
    sent = sum((agent.specs() for agent in fleet.agents.values()), Counter())
    expected = len(CONSUMERS) * WORKS * 2
    by_kind = Counter(action for _, action, _ in sent)
    assert by_kind == {"spec": 2 * expected, "delete": expected}, "every state of every bundle was sent"
    assert {key: count for key, count in sent.items() if count > 1} == {}, "and none of them twice"


async def told(both: tuple[Source, ...], ids: list[set[str]], *, version: int) -> None:
    wanted = [dict.fromkeys(mine, version) for mine in ids]
    await waiting.until(
        lambda: [each.statuses for each in both] == wanted,
        what=f"the statuses of version {version}",
        seconds=120,
    )


async def test_lost_deletions_are_sent_again_once_by_both_kinds_of_server(fleet: Fleet) -> None:
    """Delete recovery of our server and of a Go replica on one schedule, while another source creates and updates."""
    async with source(fleet.go, "via-go") as one, source(fleet.python, "via-python") as other:
        lost = await change_all(one, "create")
        await told((one,), [lost], version=1)
        async with go_replica(fleet.database) as go:
            await go.execute(
                "UPDATE resources SET deleted_at = now() - interval '90 seconds' WHERE id = ANY($1::text[])", list(lost)
            )
            load = asyncio.ensure_future(create_and_update(other))
            by_go: list[str] = []
            async with asyncio.timeout(120):
                while set(one.ends) != lost:
                    by_go += await go_round(go, batch=BATCH) or []
                    await asyncio.sleep(0.3)
            await load
    again = sum((agent.specs() for agent in fleet.agents.values()), Counter())
    deletions = {key: count for key, count in again.items() if key[1] == "delete"}
    assert {id_ for id_, _, _ in deletions} == lost
    assert set(deletions.values()) == {1}, "a deletion was sent again twice"
    assert 0 < len(by_go) < len(lost), "both kinds took part"


async def create_and_update(one: Source) -> None:
    ids = await change_all(one, "create")
    await told((one,), [ids], version=1)
    await change_all(one, "update")
    await told((one,), [ids], version=2)
