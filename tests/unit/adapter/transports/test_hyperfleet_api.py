import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from maestropy.adapter.decide import adapter_status, api_paths
from maestropy.adapter.event import Event
from maestropy.adapter.transports import hyperfleet_api
from maestropy.aio.clock import Clock
from maestropy.sdk import errors
from maestropy.sdk.retry import RetryPolicy
from tests.unit.adapter.samples import EVENT


@pytest.mark.parametrize(
    ("status", "code", "kind", "is_retryable"),
    [
        (404, "HYPERFLEET-NTF-001", errors.NotFound, False),
        (404, "HYPERFLEET-NTF-000", errors.ConfigError, False),
        (400, "HYPERFLEET-VAL-000", errors.Invalid, False),
        (401, "", errors.Unauthorized, False),
        (403, "HYPERFLEET-AUZ-001", errors.Forbidden, False),
        (405, "", errors.ConfigError, False),
        (409, "", errors.Conflict, False),
        (429, "", errors.Unavailable, True),
        (500, "", errors.Unavailable, True),
        (503, "", errors.Unavailable, True),
    ],
)
def test_error_class_of_failed_response(
    status: int, code: str, kind: type[errors.MaestroError], *, is_retryable: bool
) -> None:
    error = hyperfleet_api.error_from_response(status, {"code": code, "detail": "because"}, doing="put the status")
    assert type(error) is kind
    assert error.is_retryable is is_retryable
    assert "because" in str(error)


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (EVENT, "/api/hyperfleet/v1/clusters/abc"),
        (
            Event(resource_id="n", kind="NodePool", generation=1, owner_id="c"),
            "/api/hyperfleet/v1/clusters/c/nodepools/n",
        ),
        (Event(resource_id="x", kind="Widget", generation=1), "/api/hyperfleet/v1/resources/x"),
        (Event(resource_id="x", kind="Cluster", generation=1, href="/custom/x"), "/custom/x"),
        (Event(resource_id="x", kind="Cluster", generation=1, href="https://api/custom/x"), "/custom/x"),
    ],
)
def test_api_path_of_resource(event: Event, path: str) -> None:
    assert api_paths.path_of(event) == path


@pytest.mark.parametrize(
    ("available", "date", "reason"),
    [
        ("Unknown", "Thu, 20 Aug 2026 10:00:00 GMT", "Available is Unknown"),
        ("True", "Thu, 20 Aug 2026 10:00:00 GMT", "the API has a newer status"),
        ("True", "Thu, 20 Aug 2026 09:58:00 GMT", "120 s ahead of the API's"),
        ("True", "Thu, 20 Aug 2026 10:01:00 GMT", "60 s behind the API's"),
        ("True", "rubbish", "the API has a newer status"),
    ],
    ids=["unknown", "newer", "clock-ahead", "clock-behind", "no-date"],
)
async def test_discarded_status_has_a_reason(available: str, date: str, reason: str) -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        assert json.loads(request.content)["observed_generation"] == 5
        return httpx.Response(204, headers={"Date": date})

    async def scenario() -> hyperfleet_api.StatusReceipt:
        clock = Clock(epoch=lambda: 1787220000.0)
        async with hyperfleet_api.HyperFleetClient(hyperfleet_api.ApiSettings(url="http://api"), clock=clock) as client:
            client._http = httpx.AsyncClient(base_url="http://api", transport=httpx.MockTransport(respond))
            failed = adapter_status.failed("a", 5, reason="R", message="m", is_deleting=False)
            status = adapter_status.AdapterStatus(
                adapter="a",
                generation=5,
                applied=failed.applied,
                available=adapter_status.condition("Available", available, "R"),
                health=failed.health,
                finalized=failed.finalized,
            )
            return await client.put_status(EVENT, status)

    receipt = await scenario()
    assert isinstance(receipt, hyperfleet_api.StatusDiscarded)
    assert reason in receipt.reason


@pytest.mark.parametrize("url", ["http://u:s3cr3t@api", "file:///etc/passwd", "ftp://api", "http://", "api"])
def test_address_that_cannot_be_used_is_rejected_without_its_password(url: str) -> None:
    with pytest.raises(errors.ConfigError, match="HYPERFLEET_API_URL") as rejected:
        hyperfleet_api.HyperFleetClient(hyperfleet_api.ApiSettings(url=url))
    assert "s3cr3t" not in str(rejected.value)


async def fetched(respond: Callable[[httpx.Request], httpx.Response], *, timeout: float = 10.0) -> object:
    retry = RetryPolicy(attempts=1)
    settings = hyperfleet_api.ApiSettings(url="http://api.example", retry=retry, timeout=timeout)
    async with hyperfleet_api.HyperFleetClient(settings) as client:
        transport = httpx.MockTransport(respond)
        client._http = httpx.AsyncClient(base_url="http://api.example", transport=transport)
        return await client.fetch(EVENT)


RESOURCE = "http://api.example/api/hyperfleet/v1/clusters/abc"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        pytest.param(
            httpx.Response(200, html="<html>login</html>"),
            f"{RESOURCE} sent 18 bytes of text/html; charset=utf-8, which are not JSON",
            id="html",
        ),
        pytest.param(
            httpx.Response(302, headers={"Location": "http://login.example/"}),
            f"HTTP 302: {RESOURCE} redirects to http://login.example/; redirects are not followed",
            id="redirect",
        ),
        pytest.param(httpx.Response(304), f"HTTP 304: {RESOURCE} redirects to nowhere", id="no-location"),
        pytest.param(httpx.Response(200, json=[1]), f"{RESOURCE} sent JSON that is not an object", id="list"),
        pytest.param(httpx.Response(200, content=b"[" * 100_000), "which are not JSON", id="deep"),
    ],
)
async def test_an_answer_that_is_not_of_the_api_is_named_with_its_address(
    response: httpx.Response, reason: str
) -> None:
    with pytest.raises(errors.ServerError) as caught:
        await fetched(lambda _: response)
    assert reason in str(caught.value)
    assert "HYPERFLEET_API_URL" in caught.value.advice


async def test_a_response_without_end_is_read_up_to_the_limit() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 2**16
            yield b" " * 2**16

    with pytest.raises(errors.ServerError, match=f"{RESOURCE} sent more than 8 MiB, which is the limit"):
        await fetched(lambda _: httpx.Response(200, content=endless()))
    assert sent <= hyperfleet_api.MOST_BYTES + 2**16


async def test_a_response_that_comes_byte_by_byte_ends_at_the_timeout() -> None:
    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.001)

    with pytest.raises(errors.Timeout, match="did not answer in time"):
        await fetched(lambda _: httpx.Response(200, content=drip()), timeout=0.05)


async def test_an_empty_token_file_is_an_error_before_anything_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.touch()
    settings = hyperfleet_api.ApiSettings(url="http://127.0.0.1:1", token_file=path)
    async with hyperfleet_api.HyperFleetClient(settings) as client:
        with pytest.raises(errors.ConfigError, match=r"token is empty; .*; check HYPERFLEET_API_TOKEN_FILE"):
            await client.fetch(EVENT)


async def put(response: httpx.Response) -> object:
    settings = hyperfleet_api.ApiSettings(url="http://api.example", retry=RetryPolicy(attempts=1))
    async with hyperfleet_api.HyperFleetClient(settings) as client:
        client._http = httpx.AsyncClient(
            base_url="http://api.example", transport=httpx.MockTransport(lambda _: response)
        )
        status = adapter_status.failed("hello", 3, reason="x", message="y", is_deleting=False)
        return await client.put_status(EVENT, status)


@pytest.mark.parametrize("response", [httpx.Response(201), httpx.Response(201, json={}), httpx.Response(200, json={})])
async def test_a_status_is_stored_if_the_api_says_so(response: httpx.Response) -> None:
    assert await put(response) == hyperfleet_api.StatusStored()


@pytest.mark.parametrize("code", [200, 201])
async def test_a_login_page_stores_no_status(code: int) -> None:
    with pytest.raises(errors.ServerError, match="of text/html; charset=utf-8, which are not JSON"):
        await put(httpx.Response(code, html="<html>login</html>"))


@pytest.mark.parametrize("code", [302, 400, 500])
async def test_the_token_that_a_server_repeats_is_hidden(code: int, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2-token")

    def echo(request: httpx.Request) -> httpx.Response:
        sent = request.headers["Authorization"]
        return httpx.Response(code, headers={"Location": f"http://x/?{sent}"}, json={"code": sent, "detail": sent})

    settings = hyperfleet_api.ApiSettings(
        url="http://api.example", token_file=tmp_path / "token", retry=RetryPolicy(attempts=1)
    )
    async with hyperfleet_api.HyperFleetClient(settings) as client:
        client._http = httpx.AsyncClient(base_url="http://api.example", transport=httpx.MockTransport(echo))
        with pytest.raises(errors.MaestroError, match="redacted") as caught:
            await client.fetch(EVENT)
    assert "hunter2" not in f"{caught.value!r} {caught.value} {caught.value.reason}"
