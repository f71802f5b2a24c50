"""The console on the Go Maestro and on ours: the same works, and what a Go server cannot tell is said."""

from collections.abc import Callable

import httpx
import pytest

from maestropy import AsyncMaestro
from maestropy.console.serve import ConsoleOptions, serve
from maestropy.sdk.retry import RetryPolicy
from tests import waiting
from tests.peers.peer_clients import Agent
from tests.peers.peer_servers import RunningServer
from tests.peers.test_sdk_on_go_server import config_map, where

pytestmark = pytest.mark.peers


async def test_works_are_shown_and_followed(
    server: RunningServer, consumer: str, start_agent: Callable[[str], Agent]
) -> None:
    start_agent(consumer)
    retry = RetryPolicy(attempts=1)
    async with (
        AsyncMaestro(**where(server, "console")) as client,
        AsyncMaestro(environ={}, api_url=server.rest_url, retry=retry) as reader,
        serve(ConsoleOptions(client=reader, description="peer"), port=0) as address,
        httpx.AsyncClient(base_url=address, verify=False) as browser,
    ):
        works = client.works(consumer)
        await works.apply(config_map("shown", app="x"))

        async def shown(text: str) -> list[str]:
            page = (await browser.get("api/works", params={"q": f"consumer:{consumer} {text}"})).json()
            assert "items" in page, page
            return [item["id"] for item in page["items"]]

        found = await waiting.until(lambda: shown("is:healthy label:app=x"), what="the work")
        assert await shown("source:console") == found
        assert await shown("source:nobody") == []
        await works.apply(config_map("shown", "2", app="x"))

        async def version() -> bool:
            page = (await browser.get("api/works", params={"q": f"id:{found[0]}"})).json()
            return bool([item for item in page["items"] if item["version"] == item["observed"] == 2])

        await waiting.until(version, what="the second version")
        page = (await browser.get(f"api/works/{found[0]}")).json()
        assert page["work"]["code"] == "MW-001"
        source = (await browser.get("api/fleet")).json()["source"]
        assert source["problem"] == ""
        assert (source["history"], page["historyProblem"]) in {("yes", ""), ("unsupported", "unsupported")}
        await works.delete("shown", wait=True, timeout=60)
        await waiting.until(lambda: _is_gone(browser, found[0]), what="the end of the work", seconds=120)


async def _is_gone(browser: httpx.AsyncClient, work_id: str) -> bool:
    page = (await browser.get("api/works", params={"q": f"id:{work_id}"})).json()
    return not page["items"]
