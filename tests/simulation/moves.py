"""Move a consumer from one cell to another, as `docs/scale.md` says, with a kill at any point of it.

A cell is a database with its servers. The mover is an operator's program: it may be killed at any point, and is started
again from the beginning, because all it knows is in the two databases. Clients reach a cell by `Network.routes`, the
name that leads a consumer's agent and its sources to one cell.
"""

import asyncio
import random
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from tests.simulation import memory_rows
from tests.simulation.actors import Server
from tests.simulation.memory_postgres import Engine, Row
from tests.simulation.schedule import PAUSE_KIND, UPHEAVAL_KINDS, Schedule, Step, draw

if TYPE_CHECKING:
    from tests.simulation.play import Run

NEW_SERVER = "server-new"
_DATABASE_ID = "the-new-cell"
_PAUSE_SECONDS = 0.25
_ATTEMPTS = 2000


class Point(IntEnum):
    """Where a move can be interrupted: before each of these."""

    FREEZE = 0
    WAIT_FOR_WRITERS = 1
    COPY = 2
    MIDDLE_OF_COPY = 3
    CHECK = 4
    DECIDE = 5
    ROUTE_SOURCES = 6
    HAND_OVER_AGENT = 7
    ADOPT = 8
    REMOVE = 9
    END = 10


VICTIMS = ("mover", "agent", "old server", "new server", "everything")


def plan(point: Point, victim: str) -> int:
    """Return the number of a step that kills a victim at a point."""
    return len(Point) * VICTIMS.index(victim) + point


def draw_move(seed: int) -> Schedule:
    """Return the schedule of a seed with a move in it; one consumer over gRPC, and nothing that loses a database."""
    dice = random.Random(f"{seed}/move")
    drawn = draw(seed)
    resources = tuple((name, source, "c0") for name, source, _ in drawn.resources)
    others = UPHEAVAL_KINDS | {PAUSE_KIND}  # a pause is no part of what is copied
    kept = [step for step in drawn.steps if step.kind not in others and not step.who.endswith("c1")]
    number = plan(Point(dice.randrange(len(Point))), dice.choice(VICTIMS))
    move = Step(at=dice.uniform(0.5, drawn.seconds), kind="move consumer", who="c0", number=number)
    return replace(
        drawn,
        consumers=("c0",),
        resources=resources,
        steps=tuple(sorted([*kept, move], key=lambda step: step.at)),
        uses_mqtt=False,
    )


class _MoverKilled(Exception):
    """The mover was killed."""


@dataclass(eq=False)
class Move:
    """One move; what is in the fields outlives the mover, because it is in a database or is what clients see."""

    run: "Run"
    consumer: str
    point: Point
    victim: str
    old: Engine
    new: Engine
    is_interrupted: bool = False
    moved: set[str] = field(default_factory=set)
    """A table of the old cell: the consumers that have moved for good."""

    async def mover(self) -> None:
        """Carry the move out from wherever it stands."""
        await self._at(Point.FREEZE)
        self.old.frozen.add(self.consumer)
        await self._at(Point.WAIT_FOR_WRITERS)
        await self.wait_for_writers()
        if self.consumer not in self.moved:
            await self._copy_until_equal()
            await self._at(Point.DECIDE)
            # From here on there is no way back: sources may write to the new cell.
            self.moved.add(self.consumer)
            self.run.ledger.moved(self.old, self.new)
        await self._at(Point.ROUTE_SOURCES)
        self._route_sources()
        await self._at(Point.HAND_OVER_AGENT)
        await self._hand_over_agent()
        await self._at(Point.ADOPT)
        await self._adopt()
        await self._at(Point.REMOVE)
        # As a DELETE waits: a transaction of the delete recovery would write the row back here.
        await self.wait_for_writers()
        self._remove()
        await self._at(Point.END)

    async def wait_for_writers(self) -> None:
        """Wait for the transactions that were writing when the consumer was frozen."""
        for _ in range(_ATTEMPTS):
            if not any(table == "resources" for table, _ in self.old.row_locks):
                return
            await asyncio.sleep(0.01)
        raise AssertionError("a transaction of the old cell does not end")

    async def _copy_until_equal(self) -> None:
        for _ in range(_ATTEMPTS):
            await self._at(Point.CHECK)
            if self.is_copied():
                return
            await self._at(Point.COPY)
            await self.copy()

    def is_copied(self) -> bool:
        """Whether the new cell has the rows of the old one, and no others of this consumer."""
        old, new = (
            {id_: memory_rows.content(row) for id_, row in self._rows(each).items()} for each in (self.old, self.new)
        )
        return old == new and self.consumer in self.new.tables["consumers"]

    async def copy(self) -> None:
        """Copy the rows, each in a transaction of its own; what an earlier attempt left is removed first."""
        self.new.tables["consumers"][self.consumer] = dict(self.old.tables["consumers"][self.consumer])
        for id_ in self._rows(self.new):
            del self.new.tables["resources"][id_]
        for number, (id_, row) in enumerate(self._rows(self.old).items()):
            if number:
                await self._at(Point.MIDDLE_OF_COPY)
            schedule = {name: None for name in row if name.startswith("delete_retry_")}
            self.new.tables["resources"][id_] = {**row, **schedule}
            await self.run.network.hop("mover/database")

    def _rows(self, engine: Engine) -> dict[str, Row]:
        rows = engine.tables["resources"].items()
        return {id_: row for id_, row in sorted(rows) if row["consumer_name"] == self.consumer}

    def _route_sources(self) -> None:
        run = self.run
        run.engine = self.new
        for source in run.sources.values():
            run.network.routes[source.name] = frozenset({NEW_SERVER})
            source.engine = self.new
            run.network.break_wires(source.name)

    async def _hand_over_agent(self) -> None:
        agent = self.run.agents[self.consumer]
        if self.run.network.routes.get(agent.name) != frozenset({NEW_SERVER}):
            await agent.kill()
            self.run.network.routes[agent.name] = frozenset({NEW_SERVER})
        await agent.start()

    async def _adopt(self) -> None:
        """Adopt what the agent holds of the old cell; never works that the new cell does not have."""
        for _ in range(_ATTEMPTS):
            hold = self.new.tables["holds"].get(self.consumer)
            if hold is not None and not self.absent_works(hold):
                hold_id = hold["columns"][0]
                self.new.tables["adoptions"][hold_id] = {"id": hold_id, "hold_id": hold_id}
            if hold is None and self._has_answered():
                return
            await asyncio.sleep(_PAUSE_SECONDS)
            self.run._check()
        raise AssertionError(f"the agent still holds {self.new.tables['holds']}")

    def absent_works(self, hold: dict[str, Any]) -> list[str]:
        """Return the held works that the new cell does not have: their objects would be deleted."""
        return [id_ for id_ in hold["columns"][5] if id_ not in self.new.tables["resources"]]

    def _has_answered(self) -> bool:
        """Whether the agent has reported from the new cell: it has applied, or confirmed the deletion of, all works."""
        rows = self._rows(self.new).values()
        origins = self.run.ledger.origins(self.consumer)
        return all(row["id"] not in origins or origins[row["id"]] == _DATABASE_ID for row in rows)

    def _remove(self) -> None:
        """Remove the consumer from the old cell, which no agent and no source uses any more; by SQL, not by the API."""
        for id_ in self._rows(self.old):
            del self.old.tables["resources"][id_]
        self.old.tables["consumers"].pop(self.consumer, None)

    async def _at(self, point: Point) -> None:
        await self.run.network.hop("mover/pause")
        if self.is_interrupted or point != self.point:
            return
        self.is_interrupted = True
        run = self.run
        for victim in VICTIMS[:-1] if self.victim == "everything" else (self.victim,):
            match victim:
                case "agent":
                    await run.agents[self.consumer].kill()
                    run.loop.create_task(_later(run.agents[self.consumer]), name="restart")
                case "old server" | "new server":
                    names = [NEW_SERVER] if victim == "new server" else list(run.schedule.servers)
                    for name in names:
                        await run.servers[name].kill()
                        run.loop.create_task(_later(run.servers[name]), name="restart")
        if self.victim in ("mover", "everything"):
            raise _MoverKilled


async def _later(actor: Any) -> None:
    await asyncio.sleep(1.0)
    await actor.start()


async def move_consumer(run: "Run", step: Step) -> None:
    """Move a consumer to a new cell; `number` is a `plan`."""
    victim, point = divmod(step.number, len(Point))
    new = Engine(lambda owner: run.network.hop(f"{owner}/database"))
    new.database_id = _DATABASE_ID
    old = run.engine
    for name in (*run.sources, *(agent.name for agent in run.agents.values())):
        run.network.routes.setdefault(name, frozenset(run.schedule.servers))
    server = Server(
        NEW_SERVER,
        engine=new,
        network=run.network,
        clock=run.loop.clock(),
        log_line=run._log_line if run.follow else None,
        uses_mqtt=False,
    )
    run.servers[NEW_SERVER] = server
    run.ledger.watch(new)
    await server.start()
    move = Move(run, step.who, Point(point), VICTIMS[victim], old, new)
    for _ in range(2):
        try:
            await move.mover()
            return
        except _MoverKilled:
            run._log_line("STEP the mover is started again")
            await asyncio.sleep(1.0)
