"""Ask the REST API: one request with its retries, and lists whose pages nobody sees.

Pages follow each other by id, not by number: an object that comes or goes while a list is read can neither hide
another one nor show one twice.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from maestropy.aio import clock
from maestropy.sdk import failures, selector
from maestropy.sdk.errors import Invalid, MaestroError, ServerError
from maestropy.sdk.links import Link
from maestropy.sdk.retry import Retrier
from maestropy.sdk.settings import Settings

PAGE_SIZE = 400
"""What the Go client asks for; a page of large bundles is still some megabytes."""

_NOT_REACHED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request."""

    method: str
    path: str
    doing: str
    query: dict[str, str] | None = None
    body: object = None
    operation_id: str = ""
    is_idempotent: bool = True


class Rest:
    """The REST API."""

    def __init__(self, link: Link[httpx.AsyncClient], *, settings: Settings, retrier: Retrier) -> None:
        self._link = link
        self._settings = settings
        self._retrier = retrier

    async def ask(self, call: Call) -> Any:
        """Return the answer's JSON, None if it has none."""
        operation_id = call.operation_id or clock.new_id()
        request = failures.Request(doing=call.doing, operation_id=operation_id)

        async def once() -> Any:
            return await self._once(call, request=request)

        return await self._retrier.run(once, is_idempotent=call.is_idempotent)

    async def _once(self, call: Call, *, request: failures.Request) -> Any:
        client = self._link.current()
        headers = {"X-Operation-ID": request.operation_id}
        token = self._settings.current_token()
        # A token on a line that anyone can read would soon be anyone's.
        if token and client.base_url.scheme == "https":
            headers["Authorization"] = f"Bearer {token}"
        try:
            answer = await client.request(call.method, call.path, params=call.query, json=call.body, headers=headers)
        except httpx.TransportError as error:
            raise _silence(error, client=client, request=request) from error
        if answer.is_success:
            return _decode(answer, request=request)
        raise _refusal(answer, request=request)

    async def page(self, path: str, *, doing: str, query: Mapping[str, str | int]) -> dict[str, Any]:
        """Return one page of a collection as the server sends it."""
        asked = {name: str(value) for name, value in query.items() if value != ""}
        found: dict[str, Any] = await self.ask(Call(method="GET", path=path, doing=doing, query=asked))
        return found

    async def pages(
        self, path: str, *, doing: str, search: str, page_size: int = PAGE_SIZE
    ) -> AsyncGenerator[Any, None]:
        """Yield every object of a collection that `search` finds, each once, in the order of their ids."""
        if page_size < 1:
            raise Invalid(f"page_size is {page_size}", doing=doing, advice="use 1 or more")
        last = ""
        while True:
            query = {"orderBy": "id", "page": "1", "size": str(page_size)}
            terms = [f"({search})" if search and last else search, f"id > {selector.quoted(last)}" if last else ""]
            if any(terms):
                query["search"] = " and ".join(filter(None, terms))
            answer = await self.ask(Call(method="GET", path=path, doing=doing, query=query))
            items = answer.get("items") or [] if isinstance(answer, dict) else []
            for item in items:
                yield item
            if len(items) < page_size:
                return
            last = str(items[-1]["id"])


def _decode(answer: httpx.Response, *, request: failures.Request) -> Any:
    if not answer.content:
        return None
    try:
        return msgspec.json.decode(answer.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ServerError(
            "the answer is no JSON",
            doing=request.doing,
            advice="check that MAESTRO_API_URL leads to Maestro's REST API",
            operation_id=request.operation_id,
        ) from error


def _silence(error: httpx.TransportError, *, client: httpx.AsyncClient, request: failures.Request) -> MaestroError:
    in_time = not isinstance(error, httpx.TimeoutException)
    # httpx leaves the text of a timeout empty.
    text = f"no answer from {client.base_url.copy_with(path='/')}: {str(error) or type(error).__name__}"
    return failures.from_silence(text, request=request, was_sent=not isinstance(error, _NOT_REACHED), in_time=in_time)


def _refusal(answer: httpx.Response, *, request: failures.Request) -> MaestroError:
    try:
        body = msgspec.json.decode(answer.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    code, reason = "", ""
    if isinstance(body, dict):
        code, reason = str(body.get("code") or ""), str(body.get("reason") or "")
    error = failures.from_http(answer.status_code, code=code, reason=reason, request=request)
    wait = answer.headers.get("Retry-After", "")
    error.retry_after = float(wait) if wait.isascii() and wait.isdecimal() else None
    return error
