"""Clocks that are an hour wrong: nothing is lost, doubled, purged early or taken for dead."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from tests import waiting
from tests.faults import fault_programs
from tests.faults.fault_ledger import GONE, Ledger
from tests.faults.fault_parties import Listener, SourceClient, running, source_client
from tests.faults.fault_world import FLAGS, light_agent, objects_of, settles

pytestmark = pytest.mark.peers

CONSUMERS = ("cluster1", "cluster2")
# Finished events go at once, as by default: who purges by a wrong clock would take what others still need.
AT_ONCE = [flag for flag in FLAGS if "retention" not in flag]


@pytest.fixture(scope="session")
def faketime() -> Path:
    """The library that lies about the time; Debian's package is taken where we may."""
    if not _libraries() and os.geteuid() == 0 and shutil.which("apt-get"):
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "libfaketime"]
        subprocess.run(
            command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, check=False
        )
    if not _libraries():
        pytest.skip("libfaketime is needed: `apt-get install libfaketime`")
    return _libraries()[0]


def _libraries() -> list[Path]:
    return sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


async def lives(client: SourceClient, prefix: str) -> None:
    async def one(number: int) -> None:
        bundle, consumer = f"{prefix}{number}", CONSUMERS[number % 2]
        await client.insist(bundle, consumer, "first")
        await client.insist(bundle, consumer, "second")
        if number % 3 == 0:
            await client.insist(bundle, consumer, GONE)

    await asyncio.gather(*(one(number) for number in range(40)))


@pytest.mark.parametrize("skew", ["+1h", "-1h"])
async def test_server_clock_is_an_hour_off(
    skew: str, faketime: Path, database: Dsn, tmp_path: Path, ledger: Ledger
) -> None:
    """Two servers share a database. Each has an agent and a subscriber of its own, and both take spec requests."""

    lies = {"LD_PRELOAD": str(faketime), "FAKETIME": skew, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    sound = fault_programs.server(tmp_path, database, *AT_ONCE, name="sound")
    skewed = fault_programs.server(tmp_path, database, *AT_ONCE, name="skewed", env=lies)
    agents = [light_agent(s.agents, c, ledger) for s, c in zip((sound, skewed), CONSUMERS, strict=True)]
    listeners = [Listener([server.sources], ledger) for server in (sound, skewed)]
    async with (
        fault_programs.programs(sound, skewed),
        source_client(sound.sources, skewed.sources, ledger=ledger) as client,
        running(*(one.run for one in agents), *(one.run for one in listeners)),
    ):
        for consumer in CONSUMERS:
            await skewed.running().add_consumer(consumer)
        for turn in range(3):
            await lives(client, f"turn{turn}-")
            await settles(ledger, address=database, objects=objects_of(agents), listeners=listeners)
        for server in (sound, skewed):
            for _ in range(20):
                assert await server.running().probe() == 200, f"{server.name} is not ready"
                await asyncio.sleep(0.25)
        gone = {bundle for bundle, account in ledger.accounts.items() if account.deletion_was_taken}
        for listener in listeners:
            await waiting.until(lambda: listener.ended >= gone, what="every end, told")
