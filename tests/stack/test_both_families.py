"""A server on all interfaces serves clients of IPv4 and of IPv6, and its log shows their addresses as Go's does."""

import json
import socket

import httpx
import pytest

from maestropy.store.dsn import Dsn
from tests.stack import harness

ACCEPTED = {"insecure_rest": "true", "insecure_grpc": "true", "insecure_grpc_broker": "true"}


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this host has no IPv6")
@pytest.mark.parametrize("hostname", ["", "[::]"])
async def test_server_on_all_interfaces_serves_both_families(database: Dsn, hostname: str) -> None:
    async with (
        harness.in_process(database, server_hostname=hostname, **ACCEPTED) as server,
        httpx.AsyncClient(timeout=20) as client,
    ):
        for host in ("127.0.0.1", "[::1]"):
            rest, health = (f"http://{host}:{url.rpartition(':')[2]}" for url in (server.rest, server.health))
            assert (await client.get(f"{rest}/api/maestro/v1/consumers")).status_code == 200
            assert (await client.get(f"{health}/livez")).status_code == 200
        lines = [json.loads(line["msg"])["request_remote_ip"] for line in server.lines("request_remote_ip")]
    assert [line.rpartition(":")[0] for line in lines] == ["127.0.0.1", "[::1]"]
