"""The cases of every transport, over a real Mosquitto."""

import asyncio
from pathlib import Path

import pytest

from tests.conformance import transport_cases
from tests.conformance.mqtt_rig import LIMIT, Broker, mqtt_rig
from tests.conformance.transport_cases import Case
from tests.peers.mosquitto import mosquitto

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("case", transport_cases.CASES.values(), ids=transport_cases.CASES.keys())
async def test_mosquitto(case: Case, tmp_path: Path) -> None:
    with mosquitto(tmp_path / "mosquitto", settings=f"max_packet_size {LIMIT}") as running:

        async def start() -> None:
            await asyncio.to_thread(running.start)

        async def stop() -> None:
            await asyncio.to_thread(running.stop)

        async with mqtt_rig(Broker(config=running.config(), start=start, stop=stop)) as rig:
            await case(rig)
