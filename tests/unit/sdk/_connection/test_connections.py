"""Clients belong to the event loop in which they are used first, and say when they are closed."""

import asyncio

import httpx
import pytest

from maestropy import AsyncMaestro, errors
from maestropy.sdk._connection import connections
from maestropy.sdk._connection.subscription_hub import EventQueue
from maestropy.sdk.settings import Settings


def test_a_client_belongs_to_one_loop() -> None:
    connection = connections.rest_connection(Settings(api_url="http://127.0.0.1:1"))

    async def use() -> httpx.AsyncClient:
        return connection.current()

    async def use_twice() -> bool:
        return await use() is await use()

    assert asyncio.run(use_twice())
    with pytest.raises(errors.MaestroError, match=r"used in another event loop before.*create a client in each loop"):
        asyncio.run(use())


async def test_a_wait_that_close_ends_blames_no_server() -> None:
    client = AsyncMaestro(environ={}, api_url="http://127.0.0.1:1", grpc_url="127.0.0.1:1", source="s")
    queue = EventQueue()
    client._hub.join(queue)
    await client.close()
    with pytest.raises(errors.Unavailable, match="the client was closed; create a new one") as caught:
        await queue.wait()
    assert not caught.value.is_retryable
