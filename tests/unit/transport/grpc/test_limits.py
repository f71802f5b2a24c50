"""Limits of a gRPC listener as options of the library."""

import pytest

from maestropy.transport.grpc.limits import GrpcLimits


@pytest.mark.parametrize(
    ("connections", "waiting"),
    [
        pytest.param(100, 5_000, id="many-calls-of-few-connections"),
        pytest.param(15_000, 15_000, id="one-call-of-each-agent-of-a-fleet"),
    ],
)
def test_library_cancels_no_call_while_a_fleet_reconnects(connections: int, waiting: int) -> None:
    options = dict(GrpcLimits(max_connections=connections).options())
    assert options["grpc.server.max_pending_requests"] == waiting
    assert options["grpc.server.max_pending_requests_hard_limit"] == 2 * waiting
