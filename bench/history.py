"""What does the history cost: CPU time of the server and of PostgreSQL for each create and each status, on and off?

    python -m bench.history [--rounds 60] [--requests 64] [--grpc]

One server in this process, on a PostgreSQL of its own. Requests come in as serialised events, `--requests` at once,
and are decoded, checked and stored. Without `--grpc` the transport is left out, which shows what the history adds
most exactly. With it, a source and an agent in another process send them over gRPC and receive each spec and each
status: the share of the history of what a server does. Rounds with and without history alternate on the same server
and database, each with its own works, so that what else happens on the machine hits both. Two figures are shown: the
middle round, and the tenth of the rounds that took least, because other load only adds CPU time; where they disagree,
the machine was too busy to tell. The bounds are found by resampling the rounds. CPU time is measured, so nothing
waits for the disk (fsync is off).

Creates are of works with one ConfigMap of a kilobyte. A status is the first one of a work, or a transition (every one
changes a condition: the worst case), or a repeat that changes a message only, as agents send them most.
"""

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import grpc_clients, usage
from maestropy.sandbox.postgres import PostgresCluster
from maestropy.server.api.grpc.agents import AgentService
from maestropy.server.api.grpc.sources import SourceService
from maestropy.server.api.grpc.subscriptions import Heartbeats
from maestropy.server.auth.agents import AgentIdentityPolicy
from maestropy.server.auth.sources import AuthnMode, SourceAccessControl
from maestropy.store.migrations import migrate
from maestropy.transport import peer_identity
from maestropy.wire.events import event, grpc_binding
from tests.stack import clients, harness

CONSUMER = "c"
DATA = clients.bundle_data("x" * 1000)
PEER = peer_identity.Peer(address="10.0.0.1", identity=peer_identity.PeerIdentity(user="system:serviceaccount:a:b"))
Figures = tuple[float, float]
"""Microseconds of CPU of the server and of PostgreSQL for each request."""


@dataclass(kw_only=True)
class Side:
    """The works of one way, and what was measured of them."""

    name: str
    works: list[str] = field(default_factory=list)
    figures: dict[str, list[Figures]] = field(default_factory=dict)


class Load:
    """Makes requests and hands them to the services of a server."""

    def __init__(self, server: harness.InProcess) -> None:
        controllers, context = server.server, server.context
        heartbeats = Heartbeats(seconds=None, new_id=context.new_id)
        self.controllers = controllers
        self.sources = SourceService(
            context=context,
            spec_writer=controllers.spec_writer,
            status_dispatcher=controllers.status_dispatcher,
            answers=controllers.source_answers,
            subscribers=controllers.source_subscribers,
            access_control=SourceAccessControl(AuthnMode.OPEN, reviews=None, clock=time.monotonic),
            history=controllers.history,
            heartbeats=heartbeats,
        )
        self.agents = AgentService(
            context=context,
            intake=controllers.status_intake,
            resync=controllers.resync,
            answers=controllers.agent_answers,
            subscribers=controllers.agent_subscribers,
            policy=AgentIdentityPolicy.ANY,
            history=controllers.history,
            heartbeats=heartbeats,
        )
        self._source = clients.Source(address="127.0.0.1:1")
        self._agent = clients.Agent(address="127.0.0.1:1", consumer=CONSUMER)
        self._transitions = controllers.status_writer._transitions

    def turn(self, side: Side) -> None:
        """Turn the history on or off."""
        is_on = side.name == "on"
        self.controllers.spec_writer._keeps_history = is_on
        self.controllers.status_writer._transitions = self._transitions if is_on else None

    def creates(self, side: Side, count: int) -> Iterator[event.CloudEvent]:
        """Yield requests for new works."""
        side.works = [str(uuid.uuid4()) for _ in range(count)]
        for work_id in side.works:
            yield self._source.spec(event.SPEC_CREATE, work_id, CONSUMER, data=DATA)

    def statuses(self, side: Side, *, value: str, message: str) -> Iterator[event.CloudEvent]:
        """Yield a status of each of the last works."""
        for work_id in side.works:
            conditions = [
                {**clients.condition("Applied"), "message": message},
                {**clients.condition("Available", status=value), "message": message},
            ]
            meta = {"ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps"}
            of_object = {"resourceMeta": {**meta, "name": "cm", "namespace": "default"}, "conditions": conditions}
            data = json.dumps({"conditions": conditions, "resourceStatus": [of_object]}).encode()
            yield replace(self._agent.report(work_id, 1), data=data)


def kinds(load: Load, side: Side, count: int) -> dict[str, Callable[[], Iterator[event.CloudEvent]]]:
    """Return the requests of a round, by kind, in the order in which they are sent."""
    return {
        "creates": lambda: load.creates(side, count),
        "first statuses": lambda: load.statuses(side, value="True", message="m"),
        "transitions": lambda: load.statuses(side, value="False", message="m"),
        "repeats": lambda: load.statuses(side, value="False", message="another"),
    }


async def one_round(
    load: Load, side: Side, *, count: int, postmaster: int, remote: grpc_clients.Remote | None = None
) -> None:
    """Send one batch of each kind, and note what it costs."""
    load.turn(side)
    for kind, make in kinds(load, side, count).items():
        is_spec = kind == "creates"
        publish = load.sources.publish if is_spec else load.agents.publish
        messages = [grpc_binding.encode_publish(each) for each in make()]
        before = time.process_time(), usage.family_run_seconds(postmaster)
        if remote is not None:
            await remote.publish(messages, is_spec=is_spec)
        else:
            await asyncio.gather(*(publish(grpc_binding.decode_publish(message), PEER) for message in messages))
        server = time.process_time() - before[0]
        database = usage.family_run_seconds(postmaster) - before[1]
        side.figures.setdefault(kind, []).append((1e6 * server / count, 1e6 * database / count))


async def measure(folder: Path, *, rounds: int, count: int, is_over_grpc: bool) -> Table:
    """Return the table of all figures."""
    cluster = PostgresCluster(folder / "data", max_connections=60, is_ephemeral=True)
    address = cluster.start()
    try:
        await migrate.migrate(address)
        postmaster = int((folder / "data" / "postgres" / "postmaster.pid").read_text().split()[0])
        on, off = Side(name="on"), Side(name="off")
        async with harness.in_process(address) as server, contextlib.AsyncExitStack() as stack:
            await server.add_consumer(CONSUMER)
            load = Load(server)
            remote = None
            if is_over_grpc:
                clients_of = grpc_clients.remote(sources=server.sources, agents=server.agents, consumer=CONSUMER)
                remote = await asyncio.to_thread(clients_of.__enter__)
                stack.push(clients_of.__exit__)
            for number in range(rounds + 3):
                for side in (on, off) if number % 2 else (off, on):
                    await one_round(load, side, count=count, postmaster=postmaster, remote=remote)
    finally:
        cluster.stop()
    return table(on, off)


def table(on: Side, off: Side) -> Table:
    """Return the figures of both ways, and what the difference is."""
    heads = ("requests", "rounds", "off: server, PostgreSQL µs", "on: server, PostgreSQL µs", "cost", "95 %")
    shown_table = Table(*heads)
    for kind in on.figures:
        # The first rounds warm up.
        pairs = list(zip(on.figures[kind][3:], off.figures[kind][3:], strict=True))
        for name, figure in (("middle", statistics.median), ("least tenth", _least)):
            with_it, without = (_figures(side, figure) for side in zip(*pairs, strict=True))
            shown = (f"{side[0]:.0f}, {side[1]:.0f}" for side in (without, with_it))
            shown_table.add_row(kind, name, *shown, *_cost(pairs, figure))
    return shown_table


Figure = Callable[[Sequence[float]], float]
"""One figure for those of many rounds."""


def _least(figures: Sequence[float]) -> float:
    """Return what the tenth of the rounds that took least took at most."""
    return sorted(figures)[len(figures) // 10]


def _figures(side: Sequence[Figures], figure: Figure) -> Figures:
    server, database = (figure(column) for column in zip(*side, strict=True))
    return server, database


def _cost(pairs: Sequence[tuple[Figures, Figures]], figure: Figure) -> tuple[str, str]:
    """Return how much more CPU time it takes with it on, and between which bounds."""
    dice = random.Random(1)
    drawn = sorted(_ratio(dice.choices(pairs, k=len(pairs)), figure) for _ in range(1000))
    low, high = drawn[25], drawn[-26]
    return f"{100 * (_ratio(pairs, figure) - 1):+.1f} %", f"{100 * (low - 1):+.1f} to {100 * (high - 1):+.1f} %"


def _ratio(pairs: Sequence[tuple[Figures, Figures]], figure: Figure) -> float:
    on, off = (sum(_figures(side, figure)) for side in zip(*pairs, strict=True))
    return on / off


def main(words: Sequence[str] | None = None) -> None:
    """Measure once, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.history", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="rounds of each way")
    parser.add_argument("--requests", type=int, default=64, help="requests of each kind at once")
    parser.add_argument("--grpc", action="store_true", help="with the transport: clients in another process")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="maestropy-bench-") as place:
        measured = measure(Path(place), rounds=options.rounds, count=options.requests, is_over_grpc=options.grpc)
        Console(width=110).print(asyncio.run(measured))


if __name__ == "__main__":
    main()
