"""Requests of other sites and without the token do not reach the protocol."""

import httpx
import pytest
from starlette.responses import PlainTextResponse

from maestropy.mcp.http_gate import HttpGate

TOKEN = "a-token-of-the-user"
HOSTS = ("127.0.0.1", "localhost", "::1", "maestro.example")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8765"}, 200),
        ({"host": "[::1]:8765"}, 200),
        ({"host": "maestro.example"}, 200),
        ({"origin": "http://127.0.0.1:8765"}, 200),
        ({"host": "maestro.example", "origin": "http://maestro.example"}, 200),
        ({"host": "maestro.example", "origin": "http://maestro.example:80"}, 200),
        ({"origin": "http://127.0.0.1:6274"}, 403),
        ({"origin": "http://localhost:8765"}, 403),
        ({"origin": "http://127.0.0.1:99999"}, 403),
        ({"origin": "https://127.0.0.1:8765"}, 403),
        ({"host": "evil.example:8765"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": ""}, 421),
        ({"host": "[::1"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1.evil.example"}, 403),
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"authorization": f"bearer {TOKEN}"}, 200),
    ],
)
async def test_gate(headers: dict[str, str], status: int) -> None:
    gate = HttpGate(app=PlainTextResponse("in"), hosts=HOSTS, token=TOKEN)
    given = {"authorization": f"Bearer {TOKEN}", "host": "127.0.0.1:8765", **headers}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(gate), base_url="http://127.0.0.1:8765") as client:
        response = await client.post("/mcp", headers=given)
    assert response.status_code == status, response.text
    assert (response.text == "in") == (status == 200)


async def test_without_a_token_none_is_needed() -> None:
    gate = HttpGate(app=PlainTextResponse("in"), hosts=HOSTS)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(gate), base_url="http://127.0.0.1") as client:
        assert (await client.get("/mcp")).status_code == 200
