"""The cases of every medium, over a real Mosquitto."""

import asyncio
from pathlib import Path

import pytest
from conformance import transport_cases
from conformance.mqtt_rig import LIMIT, Broker, rigged
from conformance.transport_cases import Case
from mosquitto import Mosquitto, mosquitto
from stack import harness

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("case", transport_cases.CASES.values(), ids=transport_cases.CASES.keys())
def test_mosquitto(case: Case, tmp_path: Path) -> None:
    async def scenario(running: Mosquitto) -> None:
        async def start() -> None:
            await asyncio.to_thread(running.start)

        async def stop() -> None:
            await asyncio.to_thread(running.stop)

        async with rigged(Broker(config=running.config(), start=start, stop=stop)) as rig:
            await case(rig)

    with mosquitto(tmp_path / "mosquitto", settings=f"max_packet_size {LIMIT}") as running:
        harness.play(scenario(running))
