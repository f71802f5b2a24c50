import pytest

from maestropy.server.decide import carriage
from maestropy.wire.record import Parts


@pytest.mark.parametrize(
    ("metadata", "data", "complaint"),
    [
        pytest.param(0, 0, "", id="nothing"),
        pytest.param(1000, 7000, "", id="fits"),
        pytest.param(1000, 9000, "it needs about 11026 bytes and the message broker takes at most 10000", id="large"),
        pytest.param(65536, 0, "its metadata has 65536 bytes and MQTT carries at most 65535", id="metadata"),
    ],
)
def test_what_the_broker_carries(metadata: int, data: int, complaint: str) -> None:
    parts = Parts(envelope=b"{}", metadata=b"m" * metadata, data=b"d" * data)
    found = carriage.problem(parts, max_packet_bytes=10_000)
    assert found.startswith(complaint)
    assert bool(found) == bool(complaint)
