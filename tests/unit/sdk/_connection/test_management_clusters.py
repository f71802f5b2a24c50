"""The list of management clusters from an address that is not the API: one clear error, bounded in time and memory."""

import asyncio
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from maestropy.sdk import errors
from maestropy.sdk._connection.management_clusters import ManagementClusterList


async def asked(respond: Callable[[httpx.Request], httpx.Response], *, timeout: float = 10.0) -> object:
    listing = ManagementClusterList(api_url="http://api.example", query={}, timeout=timeout)
    async with httpx.AsyncClient(transport=httpx.MockTransport(respond)) as client:
        return await listing._ask(client, 1)


async def test_a_page_is_read() -> None:
    assert await asked(lambda _: httpx.Response(200, json={"items": []})) == {"items": []}


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        pytest.param(httpx.Response(200, html="<html>"), "the response is not JSON", id="html"),
        pytest.param(
            httpx.Response(302, headers={"Location": "http://login.example/"}),
            "HTTP 302: the server redirects to http://login.example/; redirects are not followed",
            id="redirect",
        ),
    ],
)
async def test_an_answer_that_is_not_of_the_api_is_named(response: httpx.Response, reason: str) -> None:
    with pytest.raises(
        errors.ServerError, match=f"cannot list management clusters of http://api.example: {reason}"
    ) as e:
        await asked(lambda _: response)
    assert e.value.advice.endswith("check that the address leads to the HyperFleet API")


async def test_a_response_without_end_is_read_up_to_the_limit() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 2**16

    with pytest.raises(errors.ServerError, match="the response has more than 8 MiB, which is the limit"):
        await asked(lambda _: httpx.Response(200, content=endless()))


async def test_a_response_that_comes_byte_by_byte_ends_at_the_timeout() -> None:
    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.001)

    with pytest.raises(errors.Timeout, match="no response: TimeoutError"):
        await asked(lambda _: httpx.Response(200, content=drip()), timeout=0.05)
