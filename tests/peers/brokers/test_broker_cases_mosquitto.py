"""The cases of every broker backend, over a real Mosquitto."""

import pytest

from tests.conformance import broker_cases
from tests.conformance.broker_rigs import MqttRig
from tests.peers.mosquitto import Mosquitto

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("case", broker_cases.CASES.values(), ids=broker_cases.CASES.keys())
async def test_mosquitto(case: broker_cases.Case, broker: Mosquitto) -> None:
    async with MqttRig(broker.config()).running() as rig:
        await case(rig)
