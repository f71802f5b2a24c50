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

from tests.faults.fault_programs import Program
from tests.faults.fault_proxy import FaultProxy
from tests.faults.soak_rig import Rig

Fault = Callable[[], Awaitable[None]]


@dataclass
class Chaos:
    """Lets things go wrong, one after the other, for ever."""

    rig: Rig
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
        for proxy in (self.rig.to_database, self.rig.to_sources, self.rig.to_agents):
            proxy.heal()
        for program in self.rig.processes():
            program.resume()

    async def restore(self) -> None:
        """Start what is dead, and wait for all."""
        self.heal()
        for program in self.rig.processes():
            if not program.is_alive:
                program.launch()
        self.rig.balance()
        for program in self.rig.processes():
            await program.wait_ready()

    def _faults(self) -> Iterator[tuple[str, Fault]]:
        rig = self.rig
        while True:
            server, agent, kube = (
                self.chance.choice(each) for each in (rig.servers, list(rig.agents.values()), list(rig.kubes.values()))
            )
            turn: list[tuple[str, Fault]] = [
                ("kill -9 server", partial(self._kill, server)),
                ("kill -9 agent", partial(self._kill, agent)),
                ("restart kubernetes", partial(self._restart, kube)),
                ("kill -9 postgres", self._kill_postgres),
                ("freeze server", partial(self._freeze, server)),
                ("freeze agent", partial(self._freeze, agent)),
                ("cut sources", partial(self._cut, rig.to_sources)),
                ("strand agents", partial(self._strand, rig.to_agents)),
                ("cut database", partial(self._cut, rig.to_database)),
                ("partition database", partial(self._partition, rig.to_database)),
                ("partition agents", partial(self._partition, rig.to_agents)),
                ("kill -9 both servers", self._kill_servers),
            ]
            if rig.broker is not None:
                turn += [
                    ("kill -9 broker", partial(self._kill, rig.broker)),
                    ("freeze broker", partial(self._freeze, rig.broker)),
                ]
            self.chance.shuffle(turn)
            yield from turn

    async def _kill(self, program: Program) -> None:
        await program.kill()
        self.rig.balance()
        await asyncio.sleep(self.chance.uniform(0.0, 3.0))
        program.launch()
        await program.wait_ready()
        self.rig.balance()

    async def _kill_servers(self) -> None:
        for server in self.rig.servers:
            await server.kill()
        for server in self.rig.servers:
            server.launch()
        for server in self.rig.servers:
            await server.wait_ready()
        self.rig.balance()

    async def _restart(self, program: Program) -> None:
        await program.stop()
        await asyncio.sleep(self.chance.uniform(0.0, 3.0))
        program.launch()
        await program.wait_ready()

    async def _kill_postgres(self) -> None:
        self.rig.postgres.kill()
        await asyncio.sleep(self.chance.uniform(0.0, 3.0))
        await asyncio.to_thread(self.rig.postgres.start)
        self.rig.to_database.target = self.rig.postgres.socket
        self.rig.to_database.cut()

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
