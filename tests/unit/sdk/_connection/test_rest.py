import re
import traceback
from typing import Any, cast

import httpx
import pytest

from maestropy.sdk import errors, settings
from maestropy.sdk._connection import responses
from maestropy.sdk._connection.rest import RestCall, RestClient
from maestropy.sdk.retry import Retrier, RetryPolicy


class OneClient:
    """A connection that never changes."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    def current(self) -> httpx.AsyncClient:
        return self._client


@pytest.mark.parametrize(
    ("scheme", "message"), [("http", "a token is not sent without TLS"), ("https", "Account is unauthorized")]
)
async def test_token_that_was_not_sent_is_named(scheme: str, message: str) -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(401, json={"kind": "Error", "code": "maestro-15", "reason": "Account is unauthorized"})

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url=f"{scheme}://maestro.example:8000")
    resolved = settings.Settings(api_url=f"{scheme}://maestro.example:8000", token="hunter2")
    rest = RestClient(
        cast("Any", OneClient(client)), settings=resolved, retrier=Retrier(policy=RetryPolicy(attempts=1))
    )
    with pytest.raises(errors.Unauthorized, match=message) as raised:
        await rest.ask(RestCall(method="GET", path="/consumers", doing="list consumers", expected=responses.NOTHING))
    assert ("Authorization" in requests[0].headers) == (scheme == "https")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(("code", "reason"), [(400, "maestro-8"), (500, 'violates "fk_resources_consumers"')])
async def test_the_token_that_a_server_repeats_is_hidden(code: int, reason: str) -> None:
    def echo(request: httpx.Request) -> httpx.Response:
        said = f"{reason} {request.headers['Authorization']}"
        return httpx.Response(code, json={"kind": "Error", "code": "maestro-8", "reason": said})

    client = httpx.AsyncClient(transport=httpx.MockTransport(echo), base_url="https://maestro.example:8000")
    resolved = settings.Settings(api_url="https://maestro.example:8000", token="hunter2")
    retrier = Retrier(policy=RetryPolicy(attempts=1), current_token=resolved.current_token)
    rest = RestClient(cast("Any", OneClient(client)), settings=resolved, retrier=retrier)
    with pytest.raises(errors.MaestroError) as raised:
        await rest.ask(RestCall(method="GET", path="/consumers", doing="list consumers", expected=responses.NOTHING))
    # A note is part of the traceback.
    said = "".join(traceback.format_exception(raised.value))
    assert "[redacted]" in said
    assert "hunter2" not in said.replace('token="hunter2"', "")


class Server:
    """Answers lists of ten objects; `knows_tokens` is a maestropy server, the others are Go servers."""

    def __init__(self, *, knows_tokens: bool) -> None:
        self.knows_tokens = knows_tokens
        self.queries: list[dict[str, str]] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        query = dict(request.url.params)
        self.queries.append(query)
        ids = [f"id{number}" for number in range(10)]
        token = query.get("continue", "") if self.knows_tokens else ""
        total = len(ids)
        if after := re.search(r"id > '(.*?)'", query.get("search", "")):
            ids = [name for name in ids if name > after[1]]
            total = len(ids)
        elif token:
            ids = ids[int(token) :]
        size = int(query["size"])
        page = 1 + int(token or 0) // size
        headers = {"X-Maestro-Continue": str(page * size)} if self.knows_tokens and len(ids) > size else {}
        items = [{"id": name} for name in ids[:size]]
        body = {"kind": "ResourceBundleList", "items": items, "page": page, "total": total}
        return httpx.Response(200, json=body, headers=headers)


def client_of(server: Server) -> RestClient:
    client = httpx.AsyncClient(transport=httpx.MockTransport(server.answer), base_url="http://maestro.example:8000")
    resolved = settings.Settings(api_url="http://maestro.example:8000")
    return RestClient(
        cast("Any", OneClient(client)), settings=resolved, retrier=Retrier(policy=RetryPolicy(attempts=1))
    )


async def listed(server: Server) -> list[str]:
    pages = client_of(server).pages(
        "/resource-bundles", kind="ResourceBundleList", doing="list", search="a = 'b'", page_size=4
    )
    return [item["id"] async for item in pages]


@pytest.mark.parametrize(
    ("knows_tokens", "searches"),
    [
        pytest.param(True, ["a = 'b'", "a = 'b'", "a = 'b'"], id="maestropy"),
        pytest.param(False, ["a = 'b'", "(a = 'b') and id > 'id3'", "(a = 'b') and id > 'id7'"], id="go"),
    ],
)
async def test_list_continues_by_token_or_by_id(knows_tokens: bool, searches: list[str]) -> None:
    server = Server(knows_tokens=knows_tokens)

    assert await listed(server) == [f"id{number}" for number in range(10)]

    assert [query["search"] for query in server.queries] == searches


async def test_list_notices_a_go_server_behind_the_same_address() -> None:
    server = Server(knows_tokens=True)

    def replaced(request: httpx.Request) -> httpx.Response:
        response = Server.answer(server, request)
        server.knows_tokens = False
        return response

    server.answer = replaced  # type: ignore[method-assign]

    assert await listed(server) == [f"id{number}" for number in range(10)]

    assert "continue" in server.queries[1]
    assert "id > 'id3'" in server.queries[2]["search"]


async def test_page_carries_what_the_headers_say() -> None:
    page = await client_of(Server(knows_tokens=True)).page(
        "/x", kind="ResourceBundleList", doing="list", query={"size": 4, "search": ""}
    )

    assert page["continue"] == "4"
