from typing import Any, cast

import httpx
import pytest

from maestropy.sdk import errors, settings
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
        return httpx.Response(401, json={"code": "maestro-15", "reason": "Account is unauthorized"})

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url=f"{scheme}://maestro.example:8000")
    resolved = settings.Settings(api_url=f"{scheme}://maestro.example:8000", token="hunter2")
    rest = RestClient(
        cast("Any", OneClient(client)), settings=resolved, retrier=Retrier(policy=RetryPolicy(attempts=1))
    )
    with pytest.raises(errors.Unauthorized, match=message) as raised:
        await rest.ask(RestCall(method="GET", path="/consumers", doing="list consumers"))
    assert ("Authorization" in requests[0].headers) == (scheme == "https")
    assert "hunter2" not in str(raised.value)
