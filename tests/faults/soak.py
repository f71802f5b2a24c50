"""Run the whole system under load while everything in it is killed in turn, and compare what was told with what is.

`make soak MINUTES=30`, or `python tests/faults/soak.py --help`. Ends with the differences, of which there should be
none, and writes the result as JSON. `--seed` repeats the order of the faults.
"""

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tests.faults import fault_programs
from tests.faults.fault_ledger import GONE, untold
from tests.faults.fault_world import read
from tests.faults.soak_chaos import Chaos
from tests.faults.soak_rig import LIGHT, REAL, Rig, rig

SETTLE_SECONDS = 300.0
_LANES = 24
# Clusters with a real agent cost far more of a small computer than light ones.
_SHARE_OF_REAL = 0.25


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to run."""

    minutes: float
    creates: int
    seed: int
    broker: str
    result: Path | None
    folder: Path | None


def arguments(given: list[str]) -> Wanted:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30, help="how long the faults go on (default 30)")
    parser.add_argument("--creates", type=int, default=10_000, help="acknowledged creations to reach (default 10000)")
    parser.add_argument("--seed", type=int, default=None, help="repeat the faults of an earlier run")
    parser.add_argument(
        "--broker", choices=("grpc", "mqtt"), default="grpc", help="what carries events to the agents (default grpc)"
    )
    parser.add_argument("--result", type=Path, default=None, help="where to write the result as JSON")
    parser.add_argument("--folder", type=Path, default=None, help="where logs are kept; else they go with the run")
    found = parser.parse_args(given)
    return Wanted(**{**vars(found), "seed": random.randrange(2**32) if found.seed is None else found.seed})


class Load:
    """Bundles that are created at a steady rate, changed, and mostly deleted after a while."""

    def __init__(self, here: Rig, *, chance: random.Random, per_second: float, wanted: int) -> None:
        self._here = here
        self._chance = chance
        self._per_second = per_second
        self._wanted = wanted
        self._begun = 0
        self._slots = asyncio.Semaphore(_LANES)

    async def run(self) -> None:
        """Begin lives until enough were begun, and wait for their last requests."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as lives:
            while self._begun < self._wanted:
                due = int((time.monotonic() - began) * self._per_second) + 1
                while self._begun < min(due, self._wanted):
                    await self._slots.acquire()
                    self._begin(lives)
                await asyncio.sleep(0.05)

    def _begin(self, lives: asyncio.TaskGroup) -> None:
        chance = random.Random(self._chance.random())
        consumer = chance.choice(REAL if chance.random() < _SHARE_OF_REAL else LIGHT)
        lives.create_task(self._live(f"b{self._begun}", consumer, chance))
        self._begun += 1

    async def _live(self, bundle: str, consumer: str, chance: random.Random) -> None:
        client = self._here.client
        try:
            await client.insist(bundle, consumer, "first", seconds=600)
        finally:
            self._slots.release()
        for number in range(chance.choice((0, 0, 1, 2))):
            await asyncio.sleep(chance.uniform(0, 10))
            await client.insist(bundle, consumer, f"text {number}", seconds=600)
        if chance.random() < 0.9:
            await asyncio.sleep(chance.uniform(0, 30))
            await client.insist(bundle, consumer, GONE, seconds=600)


@contextlib.asynccontextmanager
async def shown(here: Rig, chaos: Chaos, wanted: Wanted) -> AsyncIterator[None]:
    """Show how far it is, where somebody looks."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=wanted.creates)

        async def draw() -> None:
            while True:
                text = f"{here.ledger.taken} created, {chaos.done.total()} faults, {chaos.now}"
                progress.update(bar, completed=here.ledger.taken, description=text)
                await asyncio.sleep(0.25)

        drawing = asyncio.ensure_future(draw())
        try:
            yield
        finally:
            drawing.cancel()
            await asyncio.gather(drawing, return_exceptions=True)


async def soak(wanted: Wanted, folder: Path, postgres: fault_programs.Postgres) -> dict[str, Any]:
    """Run it and return the result."""
    began = time.monotonic()
    async with rig(folder, postgres, with_broker=wanted.broker == "mqtt") as here:
        chaos = Chaos(here, random.Random(wanted.seed))
        per_second = wanted.creates / (wanted.minutes * 60 * 0.9)
        load = Load(here, chance=random.Random(wanted.seed + 1), per_second=per_second, wanted=wanted.creates)
        async with shown(here, chaos, wanted):
            async with asyncio.TaskGroup() as group:
                harm = group.create_task(chaos.run())
                loading = group.create_task(load.run())
                await asyncio.sleep(wanted.minutes * 60)
                harm.cancel()
                await asyncio.wait([harm])
                await chaos.restore()
                await loading
            faults_seconds = time.monotonic() - began
            differences, settle_seconds = await settled(here)
        latencies = sorted(here.client.latencies)
        return {
            "seed": wanted.seed,
            "broker": wanted.broker,
            "seconds_of_faults": round(faults_seconds, 1),
            "seconds_to_settle": round(settle_seconds, 1),
            "told": dict(sorted(here.ledger.counts.items())),
            "faults": dict(sorted(chaos.done.items())),
            "starts": {program.name: program.starts for program in here.processes()},
            "subscriber_connections": here.listener.lives,
            "create_seconds": {
                name: round(latencies[int(len(latencies) * share)], 4)
                for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
            },
            "server_memory_mib": {server.name: server.memory_bytes() >> 20 for server in here.servers},
            "differences": [asdict(difference) for difference in differences],
        }


async def settled(here: Rig) -> tuple[list[Any], float]:
    """Wait until nothing differs; return what does all the same, and how long it took."""
    began = time.monotonic()
    while True:
        world = await read(here.postgres.address, here.objects)
        found = here.ledger.differences(world) + untold(world.rows, here.listener.sequences)
        seconds = time.monotonic() - began
        # What was noticed on the way stays; only the rest can still come right.
        if len(found) == len(here.ledger.noticed) or seconds > SETTLE_SECONDS:
            return found, seconds
        await asyncio.sleep(1)


def main(given: list[str]) -> int:
    """Run the command; 0 when nothing differs, 1 when something does, 130 after Ctrl-C."""
    wanted = arguments(given)
    console = Console(stderr=True)
    console.print(f"soak: {wanted.minutes:g} minutes, {wanted.creates} creations, --seed={wanted.seed}")
    with contextlib.ExitStack() as stack:
        folder = wanted.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        folder.mkdir(parents=True, exist_ok=True)
        try:
            result = asyncio.run(soak(wanted, folder, stack.enter_context(fault_programs.postgres())))
        except KeyboardInterrupt:
            console.print("soak: interrupted; everything that was started has ended")
            return 130
        except LookupError as missing:
            console.print(f"soak: {missing}")
            return 2
    text = json.dumps(result, indent=2)
    if wanted.result:
        wanted.result.parent.mkdir(parents=True, exist_ok=True)
        wanted.result.write_text(text + "\n")
    sys.stdout.write(text + "\n")
    differences = len(result["differences"])
    console.print(f"soak: {result['told'].get('create taken', 0)} creations acknowledged, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
