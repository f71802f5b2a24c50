"""The cases of every broker backend, over gRPC streams and over MQTT."""

from pathlib import Path

import pytest

from tests.conformance import broker_cases
from tests.conformance.broker_rigs import GrpcRig, MqttRig
from tests.conformance.memory_broker import memory_broker

CASES = [pytest.param(case, id=name.replace("_", "-")) for name, case in broker_cases.CASES.items()]


@pytest.mark.parametrize("case", CASES)
async def test_grpc_streams(case: broker_cases.Case) -> None:
    await case(GrpcRig())


@pytest.mark.parametrize("case", CASES)
async def test_mqtt(case: broker_cases.Case, tmp_path: Path) -> None:
    async with memory_broker() as memory, MqttRig(memory.config(tmp_path)).running() as rig:
        await case(rig)
