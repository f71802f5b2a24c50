"""Call the REST API: single requests with retries, and lists that fetch their pages.

Pages follow each other by the last object, not by number: an object that is created or deleted while a list is read can
neither hide another object nor repeat one. A maestropy server sends a token for the next page, which spares it to count
again; for a Go server, which ignores the token, the ID of the last object stands in the search.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from maestropy.aio import clock
from maestropy.sdk import selector
from maestropy.sdk._connection import error_mapping, responses
from maestropy.sdk._connection.connections import ReloadingConnection
from maestropy.sdk.errors import Invalid, MaestroError, Unauthorized
from maestropy.sdk.retry import Retrier
from maestropy.sdk.settings import Settings
from maestropy.wire import json_values, kubernetes_names, positions

PAGE_SIZE = 400
"""The page size of the Go client; a page of large resource bundles has some megabytes."""

_MOST_PAGES = 100_000
_EMPTY_PAGES = 3
"""How often an empty page with a total is read: a Go server counts first, and all may be deleted until it reads."""
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
    expected: responses.Expected
    """What the response has to be."""
    query: dict[str, str] | None = None
    body: object = None
    operation_id: str = ""
    is_idempotent: bool = True
    position: str = ""
    """The position in the database that the response has to hold; empty: everything."""

    @property
    def is_write(self) -> bool:
        """Whether it may change something."""
        return self.method != "GET"


class RestClient:
    """A client of the REST API."""

    def __init__(
        self,
        connection: ReloadingConnection[httpx.AsyncClient],
        *,
        settings: Settings,
        retrier: Retrier,
        seen: positions.Seen | None = None,
    ) -> None:
        self._seen = positions.Seen() if seen is None else seen
        self._connection = connection
        self._settings = settings
        self._retrier = retrier

    async def ask(self, call: RestCall) -> Any:
        """Return the object of the response; None for a call that expects nothing."""
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

        if not call.is_write:
            return await self._retrier.run(once, is_idempotent=call.is_idempotent)
        begun, position = self._seen.begin(), ""
        try:
            body, headers = await self._retrier.run(once, is_idempotent=call.is_idempotent)
            position = headers.get(positions.HEADER, "")
            return body, headers
        finally:
            self._seen.end(begun, position)

    async def _once(self, call: RestCall, *, request: error_mapping.Operation) -> tuple[Any, httpx.Headers]:
        client = self._connection.current()
        headers = {"X-Operation-ID": request.operation_id}
        if call.position:
            headers[positions.HEADER] = call.position
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
        except (httpx.TransportError, ssl.SSLError, TimeoutError) as error:
            # A server of TLS 1.3 rejects a client certificate after the handshake: httpx does not translate that error.
            raise self._no_response(error, client=client, request=request) from error
        if response.is_success:
            body = responses.decode(content, request=request)
            return responses.checked(body, call.expected, request=request), response.headers
        if response.is_redirect:
            raise responses.redirect(response, request=request)
        if token and "Authorization" not in headers and response.status_code == httpx.codes.UNAUTHORIZED:
            raise Unauthorized(
                "the server wants a token, and a token is not sent without TLS",
                doing=request.doing,
                advice=f"use the https address of the server, not {client.base_url.copy_with(path='/')}",
                operation_id=request.operation_id,
            )
        raise responses.error_of(
            response.status_code, content, request=request, retry_after=response.headers.get("Retry-After", "")
        )

    def _no_response(
        self,
        error: httpx.TransportError | ssl.SSLError | TimeoutError,
        *,
        client: httpx.AsyncClient,
        request: error_mapping.Operation,
    ) -> MaestroError:
        in_time = not isinstance(error, httpx.TimeoutException | TimeoutError)
        missing = "no complete response" if isinstance(error, TimeoutError) else "no response"
        # httpx leaves the text of a timeout and of a closed connection empty.
        closed = "the server closed the connection" if isinstance(error, httpx.NetworkError) else type(error).__name__
        cause = str(error) or closed
        return error_mapping.from_no_response(
            f"{missing} from {client.base_url.copy_with(path='/')}: {cause}",
            request=request,
            was_sent=not isinstance(error, _NOT_REACHED),
            in_time=in_time,
            credentials=error_mapping.Credentials(
                uses_tls=client.base_url.scheme == "https",
                client_cert_file=str(self._settings.client_cert_file or ""),
            ),
        )

    async def page(
        self, path: str, *, kind: str, doing: str, query: Mapping[str, str | int], position: str = ""
    ) -> dict[str, Any]:
        """Return one page of a collection of a kind as the server sends it, with what it says in headers.

        `continue` is the token for the next page, `total_is_estimate` says that the total was not counted. With a
        `position` the page may come from a read replica that has reached it; without one it is as new as the database.
        """
        parameters = {name: str(value) for name, value in query.items() if value != ""}
        expected = responses.Expected(kind=kind)
        call = RestCall(method="GET", path=path, doing=doing, expected=expected, query=parameters, position=position)
        reason = ""
        for _ in range(_EMPTY_PAGES):
            page = await self._page(call)
            reason = responses.missing_items(page, parameters)
            if not reason:
                return page
        raise responses.incomplete(reason, doing=doing)

    async def _page(self, call: RestCall) -> dict[str, Any]:
        body, headers = await self._ask(call)
        page: dict[str, Any] = body
        if token := headers.get(CONTINUE_HEADER):
            page["continue"] = token
        if headers.get(TOTAL_HEADER) == "estimate":
            page["total_is_estimate"] = True
        return page

    async def pages(  # noqa: PLR0913 - one for each part of a list
        self,
        path: str,
        *,
        kind: str,
        doing: str,
        search: str,
        page_size: int = PAGE_SIZE,
        allow_lag: bool = False,
        fields: Iterable[str] = (),
    ) -> AsyncGenerator[Any, None]:
        """Yield every object of a collection that matches the search, each once, ordered by ID.

        With `fields`, objects have only these keys and `id`.

        With `allow_lag` a read replica may answer that has all writes of this client, and perhaps not yet those of
        others: enough for a list that somebody looks at, not for a watch, which would miss what others changed.
        """
        if page_size < 1:
            raise Invalid(f"page_size is {page_size}", doing=doing, advice="use 1 or more")
        last, token, number, count = "", "", 1, 0
        before: set[str] = set()
        for _ in range(_MOST_PAGES):
            query = {"orderBy": "id", "page": "1", "size": str(page_size), "fields": ",".join(fields)}
            # A token belongs to the search that it came with.
            after = f"id > {selector.quoted(last)}" if last and not token else ""
            query["search"] = " and ".join(filter(None, [f"({search})" if search and after else search, after]))
            position = str(self._seen) if allow_lag else ""
            page = await self.page(path, kind=kind, doing=doing, query={**query, "continue": token}, position=position)
            if token and page.get("page") != number:
                # A Go server behind the same address does not know the token, and sent the first page.
                token = ""
                continue
            items = page.get("items") or []
            ids = {str(item["id"]) for item in items}
            if ids & before:
                raise responses.incomplete("the server sent objects again that it had sent before", doing=doing)
            for item in items:
                yield item
            count += len(items)
            if not items or (len(items) < page_size and not _has_more(page, count=count if token else len(items))):
                return
            last, token, number = str(items[-1]["id"]), str(page.get("continue") or ""), number + 1
            before = ids
        raise responses.incomplete(f"it has more than {_MOST_PAGES} pages", doing=doing)


def _has_more(page: Mapping[str, Any], *, count: int) -> bool:
    """Return whether objects follow a page that is shorter than asked for: a server or a proxy may cap pages."""
    return bool(page.get("continue") or page.get("total_is_estimate") or count < int(page.get("total") or 0))
