"""Which broker is between servers and agents, by what the servers log."""

import pytest

from maestropy.trace.logs.log_records import RecordKind
from maestropy.trace.logs.read.log_writers import LogWriter, broker_of


def server(*kinds: RecordKind) -> LogWriter:
    writer = LogWriter(path="maestro-0.log", pod="maestro-0")
    writer.kinds.update(kinds)
    return writer


@pytest.mark.parametrize(
    ("kinds", "broker"),
    [
        pytest.param((RecordKind.GRPC_BROKER, RecordKind.PUBLISHING), "grpc", id="its-start"),
        pytest.param((RecordKind.AGENT_SUBSCRIBED,), "grpc", id="an-agent-connects"),
        pytest.param((RecordKind.NO_AGENT_HERE, RecordKind.PUBLISHING), "grpc", id="agent-of-another-instance"),
        pytest.param((RecordKind.MESSAGE_BROKER, RecordKind.NO_AGENT_HERE), "mqtt", id="event-of-another-instance"),
        pytest.param((RecordKind.MESSAGE_BROKER,), "mqtt", id="message-broker"),
        pytest.param((RecordKind.PUBLISHING,), "mqtt", id="publishes"),
        pytest.param((), "unknown", id="nothing"),
    ],
)
def test_start_of_a_server_decides_before_its_other_records(kinds: tuple[RecordKind, ...], broker: str) -> None:
    assert broker_of((server(*kinds),)) == broker
