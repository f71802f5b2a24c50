"""What goes wrong in a soak: processes are killed, frozen and started again; the network is cut, stranded and held.

One fault follows the other in an order that chance gives and the seed repeats; each kind of process has its turn
before any has its next.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from fault_programs import Program
from fault_proxy import FaultProxy
from soak_stage import Stage

Fault = Callable[[], Awaitable[None]]


@dataclass
class Chaos:
    """Lets things go wrong, one after the other, for ever."""

    stage: Stage
    chance: random.Random
    pause_seconds: tuple[float, float] = (2.0, 10.0)
    done: Counter[str] = field(default_factory=Counter)
    now: str = "calm"

    async def run(self) -> None:
        """Do harm until cancelled."""
        try:
            for name, fault in self._faults():
                await asyncio.sleep(self.chance.uniform(*self.pause_seconds))
                self.now = name
                await fault()
                self.done[name] += 1
                self.now = "calm"
        finally:
            self.heal()

    def heal(self) -> None:
        """Take back what can be taken back at once."""
        for proxy in (self.stage.to_database, self.stage.to_sources, self.stage.to_agents):
            proxy.heal()
        for program in self.stage.processes():
            program.resume()

    async def restore(self) -> None:
        """Start what is dead, and wait for all."""
        self.heal()
        for program in self.stage.processes():
            if not program.is_alive:
                program.launch()
        self.stage.balance()
        for program in self.stage.processes():
            await program.wait_ready()

    def _faults(self) -> Iterator[tuple[str, Fault]]:
        stage = self.stage
        while True:
            server, agent, kube = (
                self.chance.choice(each)
                for each in (stage.servers, list(stage.agents.values()), list(stage.kubes.values()))
            )
            turn: list[tuple[str, Fault]] = [
                ("kill -9 server", partial(self._kill, server)),
                ("kill -9 agent", partial(self._kill, agent)),
                ("restart kubernetes", partial(self._restart, kube)),
                ("kill -9 postgres", self._kill_postgres),
                ("freeze server", partial(self._freeze, server)),
                ("freeze agent", partial(self._freeze, agent)),
                ("cut sources", partial(self._cut, stage.to_sources)),
                ("strand agents", partial(self._strand, stage.to_agents)),
                ("cut database", partial(self._cut, stage.to_database)),
                ("partition database", partial(self._partition, stage.to_database)),
                ("partition agents", partial(self._partition, stage.to_agents)),
                ("kill -9 both servers", self._kill_servers),
            ]
            if stage.broker is not None:
                turn += [
                    ("kill -9 broker", partial(self._kill, stage.broker)),
                    ("freeze broker", partial(self._freeze, stage.broker)),
                ]
            self.chance.shuffle(turn)
            yield from turn

    async def _kill(self, program: Program) -> None:
        await program.kill()
        self.stage.balance()
        await asyncio.sleep(self.chance.uniform(0.0, 3.0))
        program.launch()
        await program.wait_ready()
        self.stage.balance()

    async def _kill_servers(self) -> None:
        for server in self.stage.servers:
            await server.kill()
        for server in self.stage.servers:
            server.launch()
        for server in self.stage.servers:
            await server.wait_ready()
        self.stage.balance()

    async def _restart(self, program: Program) -> None:
        await program.stop()
        await asyncio.sleep(self.chance.uniform(0.0, 3.0))
        program.launch()
        await program.wait_ready()

    async def _kill_postgres(self) -> None:
        self.stage.postgres.kill()
        await asyncio.sleep(self.chance.uniform(0.0, 3.0))
        await asyncio.to_thread(self.stage.postgres.start)
        self.stage.to_database.target = self.stage.postgres.socket
        self.stage.to_database.cut()

    async def _freeze(self, program: Program) -> None:
        program.pause()
        await asyncio.sleep(self.chance.uniform(1.0, 8.0))
        program.resume()

    async def _cut(self, proxy: FaultProxy) -> None:
        proxy.cut()

    async def _strand(self, proxy: FaultProxy) -> None:
        proxy.strand()

    async def _partition(self, proxy: FaultProxy) -> None:
        proxy.partition()
        await asyncio.sleep(self.chance.uniform(1.0, 8.0))
        proxy.heal()
