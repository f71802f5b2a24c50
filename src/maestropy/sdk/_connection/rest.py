"""Call the REST API: single requests with retries, and lists that fetch their pages.

Pages follow each other by the last object, not by number: an object that is created or deleted while a list is read can
neither hide another object nor repeat one. A maestropy server sends a token for the next page, which spares it to count
again; for a Go server, which ignores the token, the ID of the last object stands in the search.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from maestropy.aio import clock
from maestropy.sdk import selector
from maestropy.sdk._connection import error_mapping, responses
from maestropy.sdk._connection.connections import ReloadingConnection
from maestropy.sdk.errors import Invalid, MaestroError, Unauthorized
from maestropy.sdk.retry import Retrier
from maestropy.sdk.settings import Settings
from maestropy.wire import json_values, kubernetes_names

PAGE_SIZE = 400
"""The page size of the Go client; a page of large resource bundles has some megabytes."""

_MOST_PAGES = 100_000
_GRACE_SECONDS = 0.1
"""httpx, which knows the step that took too long, reports its own timeouts first."""
_NOT_REACHED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

CONTINUE_HEADER = "X-Maestro-Continue"
TOTAL_HEADER = "X-Maestro-Total"

WITH_EXECUTOR = {"include": "executor"}
"""A query that asks for the executor too: without it, writing back what was read would drop the executor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestCall:
    """One REST request."""

    method: str
    path: str
    doing: str
    query: dict[str, str] | None = None
    body: object = None
    operation_id: str = ""
    is_idempotent: bool = True
    has_result: bool = True
    """Whether the response must be an object."""


class RestClient:
    """A client of the REST API."""

    def __init__(
        self, connection: ReloadingConnection[httpx.AsyncClient], *, settings: Settings, retrier: Retrier
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._retrier = retrier

    async def ask(self, call: RestCall) -> Any:
        """Return the object of the response; None for a call that has no result."""
        body, _ = await self._ask(call)
        return body

    async def _ask(self, call: RestCall) -> tuple[Any, httpx.Headers]:
        unusable = json_values.problems({"query": call.query, "body": call.body, "operation_id": call.operation_id})
        if unusable:
            raise Invalid(kubernetes_names.join(unusable), doing=json_values.escape_surrogates(call.doing))
        operation_id = call.operation_id or clock.new_id()
        request = error_mapping.Operation(doing=call.doing, operation_id=operation_id)

        async def once() -> tuple[Any, httpx.Headers]:
            return await self._once(call, request=request)

        return await self._retrier.run(once, is_idempotent=call.is_idempotent)

    async def _once(self, call: RestCall, *, request: error_mapping.Operation) -> tuple[Any, httpx.Headers]:
        client = self._connection.current()
        headers = {"X-Operation-ID": request.operation_id}
        token = self._settings.current_token()
        # A token must not be sent without TLS.
        if token and client.base_url.scheme == "https":
            headers["Authorization"] = f"Bearer {token}"
        try:
            # The timeout of httpx is that of one read: a server that sends byte by byte would never reach it.
            async with (
                asyncio.timeout(self._settings.timeout + _GRACE_SECONDS),
                client.stream(call.method, call.path, params=call.query, json=call.body, headers=headers) as response,
            ):
                content = await responses.read_body(response, request=request)
        except (httpx.TransportError, TimeoutError) as error:
            raise _no_response(error, client=client, request=request) from error
        if response.is_success:
            body = responses.decode(content, request=request)
            return responses.checked_object(body, request=request) if call.has_result else None, response.headers
        if response.is_redirect:
            raise responses.redirect(response, request=request)
        if token and "Authorization" not in headers and response.status_code == httpx.codes.UNAUTHORIZED:
            raise Unauthorized(
                "the server wants a token, and a token is not sent without TLS",
                doing=request.doing,
                advice=f"use the https address of the server, not {client.base_url.copy_with(path='/')}",
                operation_id=request.operation_id,
            )
        raise _error_response(response, content, request=request)

    async def page(self, path: str, *, doing: str, query: Mapping[str, str | int]) -> dict[str, Any]:
        """Return one page of a collection as the server sends it, with what it says in headers.

        `continue` is the token for the next page, `total_is_estimate` says that the total was not counted.
        """
        parameters = {name: str(value) for name, value in query.items() if value != ""}
        body, headers = await self._ask(RestCall(method="GET", path=path, doing=doing, query=parameters))
        page: dict[str, Any] = body
        if token := headers.get(CONTINUE_HEADER):
            page["continue"] = token
        if headers.get(TOTAL_HEADER) == "estimate":
            page["total_is_estimate"] = True
        return page

    async def pages(
        self, path: str, *, doing: str, search: str, page_size: int = PAGE_SIZE
    ) -> AsyncGenerator[Any, None]:
        """Yield every object of a collection that matches the search, each once, ordered by ID."""
        if page_size < 1:
            raise Invalid(f"page_size is {page_size}", doing=doing, advice="use 1 or more")
        last, token, number, count = "", "", 1, 0
        before: set[str] = set()
        for _ in range(_MOST_PAGES):
            query = {"orderBy": "id", "page": "1", "size": str(page_size)}
            # A token belongs to the search that it came with.
            after = f"id > {selector.quoted(last)}" if last and not token else ""
            query["search"] = " and ".join(filter(None, [f"({search})" if search and after else search, after]))
            page = await self.page(path, doing=doing, query={**query, "continue": token})
            if token and page.get("page") != number:
                # A Go server behind the same address does not know the token, and sent the first page.
                token = ""
                continue
            items = page.get("items") or []
            ids = {str(item.get("id") or "") for item in items}
            if ids & before:
                raise responses.incomplete("the server sent objects again that it had sent before", doing=doing)
            for item in items:
                yield item
            count += len(items)
            if not items or (len(items) < page_size and not _has_more(page, count=count if token else len(items))):
                return
            last, token, number = str(items[-1].get("id") or ""), str(page.get("continue") or ""), number + 1
            if not last:
                raise responses.incomplete("an object has no id", doing=doing)
            before = ids
        raise responses.incomplete(f"it has more than {_MOST_PAGES} pages", doing=doing)


def _has_more(page: Mapping[str, Any], *, count: int) -> bool:
    """Return whether objects follow a page that is shorter than asked for: a server or a proxy may cap pages."""
    return bool(page.get("continue") or page.get("total_is_estimate") or count < int(page.get("total") or 0))


def _no_response(
    error: httpx.TransportError | TimeoutError, *, client: httpx.AsyncClient, request: error_mapping.Operation
) -> MaestroError:
    in_time = not isinstance(error, httpx.TimeoutException | TimeoutError)
    # httpx leaves the text of a timeout empty.
    missing = "no complete response" if isinstance(error, TimeoutError) else "no response"
    text = f"{missing} from {client.base_url.copy_with(path='/')}: {str(error) or type(error).__name__}"
    return error_mapping.from_no_response(
        text, request=request, was_sent=not isinstance(error, _NOT_REACHED), in_time=in_time
    )


def _error_response(response: httpx.Response, content: bytes, *, request: error_mapping.Operation) -> MaestroError:
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    code, reason = "", ""
    if isinstance(body, dict):
        code, reason = str(body.get("code") or ""), str(body.get("reason") or "")
    error = error_mapping.from_http(response.status_code, code=code, reason=reason, request=request)
    wait = response.headers.get("Retry-After", "")
    error.retry_after = float(wait) if wait.isascii() and wait.isdecimal() else None
    return error
