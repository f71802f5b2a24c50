"""A server that is not Maestro, or a proxy before it, ends with one clear error: bounded in time and in memory."""

import asyncio
import dataclasses
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest

from maestropy.sdk import errors, settings
from maestropy.sdk._connection import error_mapping, responses
from maestropy.sdk._connection.rest import RestCall, RestClient
from maestropy.sdk.retry import Retrier, RetryPolicy

GET = RestCall(
    method="GET",
    path="/consumers/1",
    doing="get consumer 1",
    expected=responses.Expected(kind="Consumer", id="1"),
)
DELETE = RestCall(method="DELETE", path="/consumers/1", doing="delete consumer 1", expected=responses.NOTHING)


class OneClient:
    """A connection that never changes."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    def current(self) -> httpx.AsyncClient:
        return self._client


def rest_client(client: httpx.AsyncClient, *, timeout: float = 30.0) -> RestClient:
    resolved = settings.Settings(api_url=str(client.base_url), timeout=timeout)
    retrier = Retrier(policy=RetryPolicy(attempts=1))
    return RestClient(cast("Any", OneClient(client)), settings=resolved, retrier=retrier)


def answering(response: httpx.Response) -> RestClient:
    transport = httpx.MockTransport(lambda _: response)
    return rest_client(httpx.AsyncClient(transport=transport, base_url="http://maestro.example:8000"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "the response is a list, not an object"),
        ("x", "the response is text, not an object"),
        ({"id": 5}, "id is a number, not text"),
        ({"labels": "x"}, "labels is text, not an object"),
        ({"version": True}, "version is a boolean, not a number"),
    ],
)
async def test_an_object_of_a_wrong_type_is_named(body: Any, message: str) -> None:
    with pytest.raises(errors.ServerError, match=message) as caught:
        await answering(httpx.Response(200, json=body)).ask(GET)
    assert "MAESTRO_API_URL" in caught.value.advice


async def test_an_empty_response_is_an_error_where_an_object_is_needed() -> None:
    with pytest.raises(errors.ServerError, match="the response is empty"):
        await answering(httpx.Response(200)).ask(GET)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "the response is a list"),
        ({"items": {}}, "items is an object, not a list"),
        ({"items": [1]}, r"items\[0\] is a number, not an object"),
        ({"items": [{"id": "a"}, {"name": {}}]}, r"items\[1\]\.name is an object, not text"),
        ({"items": [], "total": "many"}, "total is text, not a number"),
    ],
)
async def test_a_list_of_a_wrong_type_is_named(body: Any, message: str) -> None:
    with pytest.raises(errors.ServerError, match=message):
        [
            item
            async for item in answering(httpx.Response(200, json=body)).pages(
                "/x", kind="ConsumerList", doing="list", search=""
            )
        ]


async def test_a_redirect_names_the_location_and_the_remedy() -> None:
    response = httpx.Response(302, headers={"Location": "https://login.example/x"})
    with pytest.raises(errors.ServerError, match=r"redirects to https://login\.example/x") as caught:
        await answering(response).ask(GET)
    assert "--rest-url" in caught.value.advice


async def test_a_body_that_cannot_be_decompressed_is_an_error() -> None:
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip"))
    )
    client = rest_client(httpx.AsyncClient(transport=transport, base_url="http://maestro.example:8000"))
    with pytest.raises(errors.ServerError, match="cannot be decompressed"):
        await client.ask(GET)


async def test_a_response_is_read_to_its_limit_and_no_further() -> None:
    read = 0

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            nonlocal read
            while read < 100_000:
                read += 1000
                yield b" " * 1000

    response = httpx.Response(200, stream=Endless())
    with pytest.raises(errors.ServerError, match="which is the limit"):
        await responses.read_body(response, request=error_mapping.Operation(doing="list"), most=5000)
    assert read == 6000


async def test_the_limit_counts_what_is_decompressed() -> None:
    packed = httpx.Response(
        200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(gzip.compress(b" " * 10**6))
    )
    with pytest.raises(errors.ServerError, match="which is the limit"):
        await responses.read_body(packed, request=error_mapping.Operation(doing="list"), most=5000)


class Dripping(httpx.AsyncByteStream):
    """A body that never ends, byte by byte: each read is in time."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)


async def test_the_timeout_is_that_of_the_whole_request() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Dripping()))
    client = httpx.AsyncClient(transport=transport, base_url="http://maestro.example:8000")
    with pytest.raises(errors.Timeout, match="no complete response"):
        await rest_client(client, timeout=0.1).ask(GET)


class Capped:
    """Serves ten objects, at most three a page, whatever is asked for."""

    def __init__(self, *, repeats: bool = False, total: int | None = None) -> None:
        self.repeats = repeats
        self.total = total
        self.requests = 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        ids = [f"id{number}" for number in range(10)]
        search = request.url.params.get("search", "")
        if "id > " in search and not self.repeats:
            ids = [name for name in ids if name > search.partition("'")[2].rstrip("'")]
        items = [{"id": name} for name in ids[:3]]
        body = {"kind": "ConsumerList", "items": items, "page": 1, "size": 3, "total": self.total or len(ids)}
        return httpx.Response(200, text=json.dumps(body))

    def client(self) -> RestClient:
        transport = httpx.MockTransport(self.answer)
        return rest_client(httpx.AsyncClient(transport=transport, base_url="http://maestro.example:8000"))


async def test_a_list_whose_pages_are_capped_is_read_to_its_end() -> None:
    server = Capped()
    listed = [
        item["id"]
        async for item in server.client().pages("/x", kind="ConsumerList", doing="list", search="", page_size=400)
    ]
    assert listed == [f"id{number}" for number in range(10)]
    assert server.requests == 4


async def test_a_list_that_ends_before_its_total_is_not_complete() -> None:
    server = Capped(total=10**12)
    with pytest.raises(errors.ServerError, match="the list is not complete: it has 1000000000000 objects"):
        [item async for item in server.client().pages("/x", kind="ConsumerList", doing="list", search="")]


async def test_a_server_that_repeats_a_page_is_not_asked_for_ever() -> None:
    server = Capped(repeats=True)
    with pytest.raises(errors.ServerError, match="the list is not complete"):
        [
            item
            async for item in server.client().pages("/x", kind="ConsumerList", doing="list", search="", page_size=400)
        ]
    assert server.requests == 2


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"hello": "world"}, "the response is not a consumer: its kind is missing"),
        ({"kind": "ResourceBundle", "id": "1"}, "not a consumer: its kind is ResourceBundle"),
        ({"kind": "Consumer", "name": "a"}, "not a consumer: it has no id"),
        ({"kind": "Consumer", "id": "77"}, "the response is another consumer: 77"),
        # A Go server that cannot write its error sends this with status 200.
        ({"type": "Error", "id": "1000", "code": "maestro-1000", "reason": "An unexpected error"}, "unexpected error"),
    ],
)
async def test_only_the_object_that_was_asked_for_is_accepted(body: Any, message: str) -> None:
    with pytest.raises(errors.ServerError, match=message):
        await answering(httpx.Response(200, json=body)).ask(GET)


async def test_the_case_of_an_id_does_not_matter() -> None:
    body = {"kind": "Consumer", "id": "AB", "name": "c"}
    asked = dataclasses.replace(GET, expected=responses.Expected(kind="Consumer", id="ab"))
    assert (await answering(httpx.Response(200, json=body)).ask(asked))["name"] == "c"


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "ConsumerList", "total": 3, "items": None},
        {"kind": "ConsumerList", "total": 3, "items": []},
        {"kind": "ConsumerList", "page": 1, "total": 10**9, "items": [], "continue": "more"},
    ],
)
async def test_a_list_without_its_objects_is_not_complete(body: Any) -> None:
    client = answering(httpx.Response(200, json=body))
    with pytest.raises(errors.ServerError, match="the list is not complete"):
        [item async for item in client.pages("/x", kind="ConsumerList", doing="list", search="")]
    with pytest.raises(errors.ServerError, match="the list is not complete"):
        await client.page("/x", kind="ConsumerList", doing="list", query={"page": 1, "size": 100})


async def test_a_page_behind_the_end_may_be_empty() -> None:
    client = answering(httpx.Response(200, json={"kind": "ConsumerList", "page": 9, "total": 3, "items": []}))
    assert (await client.page("/x", kind="ConsumerList", doing="list", query={"page": 9, "size": 100}))["total"] == 3


async def test_a_page_that_was_emptied_between_count_and_read_is_read_again() -> None:
    answers = iter(
        [{"kind": "ConsumerList", "total": 1, "items": []}, {"kind": "ConsumerList", "total": 0, "items": []}]
    )
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=next(answers)))
    client = rest_client(httpx.AsyncClient(transport=transport, base_url="http://maestro.example:8000"))
    assert [item async for item in client.pages("/x", kind="ConsumerList", doing="list", search="")] == []


async def test_another_list_is_no_list() -> None:
    client = answering(httpx.Response(200, json={"kind": "PodList", "items": []}))
    with pytest.raises(errors.ServerError, match="the response is not a consumer list: its kind is PodList"):
        [item async for item in client.pages("/x", kind="ConsumerList", doing="list", search="")]


_GO_404 = {"kind": "Error", "id": "7", "code": "maestro-7", "reason": "Consumer with id='1' not found"}


@pytest.mark.parametrize(
    ("response", "is_not_found"),
    [
        pytest.param(httpx.Response(404, json=_GO_404), True, id="maestro"),
        pytest.param(httpx.Response(404, html="<html>404 nginx</html>"), False, id="nginx"),
        pytest.param(httpx.Response(404, json={"kind": "Error", "reason": "no"}), False, id="error-without-code"),
        pytest.param(httpx.Response(404, json={**_GO_404, "code": "HYPERFLEET-7"}), False, id="another-service"),
        pytest.param(
            httpx.Response(
                404,
                json={
                    "type": "Error",
                    "code": "maestro-404",
                    "reason": "The requested resource '/x/api' doesn't exist",
                },
            ),
            False,
            id="path-that-maestro-does-not-know",
        ),
    ],
)
async def test_only_an_error_of_maestro_says_that_an_object_is_gone(
    response: httpx.Response, is_not_found: bool
) -> None:
    with pytest.raises(errors.NotFound if is_not_found else errors.ServerError) as caught:
        await answering(response).ask(GET)
    assert is_not_found or "check that the address leads to Maestro's REST API" in str(caught.value)


async def test_a_deletion_has_no_body() -> None:
    assert await answering(httpx.Response(204)).ask(DELETE) is None
    with pytest.raises(errors.ServerError, match="the response has a body"):
        await answering(httpx.Response(200, json={"hello": "world"})).ask(DELETE)
    with pytest.raises(errors.ServerError, match="not JSON"):
        await answering(httpx.Response(200, html="<html>login</html>")).ask(DELETE)
