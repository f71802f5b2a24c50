"""Send requests to one Kubernetes API server.

One connection pool, one rate limit, one translation of failures to `maestropy.kube.errors`. Objects are plain JSON.
A request is retried only when the API server asks for it with Retry-After (`rate_limit`), or once after rejected
credentials that can be renewed; the caller decides about all other failures.
"""

import asyncio
import io
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, Self

import aiohttp
import orjson
from yarl import URL

from maestropy.aio.clock import Clock
from maestropy.kube import errors, rate_limit, request
from maestropy.kube.config.address import ClusterAddress
from maestropy.kube.config.credentials import RequestAuth, RequestAuthSource
from maestropy.kube.config.tls import TlsContexts
from maestropy.kube.objects import Json
from maestropy.kube.request import (
    ApiRequest,
    DeleteOptions,
    ListPage,
    ObjectSelector,
    Patch,
    ResourceType,
    WriteOptions,
)

_FAILURE_BYTES = 256 * 1024
_LARGE_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Rate limits, timeouts and paging of a client."""

    user_agent: str = "work-agent"
    """Also the default field manager of plain writes; a fixed name keeps field ownership stable."""
    qps: float = 50.0
    """Requests a second in the long run; 0 means no limit."""
    burst: int = 100
    """Requests at once after a quiet time."""
    timeout: float = 30.0
    """Seconds for one attempt, including the response."""
    connect_timeout: float = 10.0
    """Seconds for TCP and TLS."""
    keep_alive: float = 45.0
    """Seconds an idle connection is kept, so that a burst needs no TLS handshakes. Less than the limits of the API
    server (90 s) and of usual load balancers (from 50 s), so that no request meets a closing connection."""
    concurrent: int = 64
    """Requests in flight at once, without watches: each has its own connection."""
    page_size: int = 500
    """Items per page of a list, as in kubectl."""
    retries: rate_limit.RetryLimits = rate_limit.DEFAULT_RETRIES


class OnResponse(Protocol):
    """Callback for metrics of requests."""

    def __call__(self, method: str, *, host: str, code: str, seconds: float) -> None:
        """Record one request; `code` is the HTTP status, or `<error>` without a response."""


class KubeClient:
    """A client of the API server at `address`; an async context manager."""

    def __init__(
        self,
        address: ClusterAddress,
        *,
        settings: ClientSettings | None = None,
        clock: Clock | None = None,
        on_response: OnResponse | None = None,
    ) -> None:
        self.address = address
        self._on_response = on_response
        self.settings = settings or ClientSettings()
        self._clock = clock or Clock()
        self._auth_source = RequestAuthSource(address.credentials, clock=self._clock)
        self._tls = TlsContexts(address)
        self._last_date: tuple[str, float] | None = None
        """The last Date header, and the time of this host when it arrived."""
        self._slots = asyncio.Semaphore(self.settings.concurrent)
        self._bucket = rate_limit.full_bucket(
            qps=self.settings.qps, burst=self.settings.burst, now=self._clock.monotonic()
        )

    @property
    def clock_skew_seconds(self) -> float | None:
        """How far the clock of this host is ahead of that of the API server, by its last answer; None if unknown."""
        if self._last_date is None:
            return None
        text, received_at = self._last_date
        try:
            # The header has whole seconds: on average half a second has passed since.
            return received_at - (parsedate_to_datetime(text).timestamp() + 0.5)
        except ValueError:
            return None

    async def __aenter__(self) -> Self:
        if self.address.credentials.plugin is None:
            # Unusable certificates and tokens must fail the start, not the first request.
            self._tls.current(await self._auth_source.current())
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=self.settings.keep_alive),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Compression costs both sides more than the network.
            headers={"User-Agent": self.settings.user_agent, "Accept-Encoding": "identity"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.settings.connect_timeout),
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, resource: ResourceType, name: str, *, namespace: str = "", subresource: str = "") -> Json:
        """Return one object."""
        return await self.send(request.get(resource, name, namespace=namespace, subresource=subresource))

    async def list(
        self, resource: ResourceType, *, namespace: str = "", selector: ObjectSelector = request.EVERYTHING
    ) -> Sequence[Json]:
        """Return all objects of a resource, in one namespace or in all."""
        try:
            pages = [page async for page in self.pages(resource, namespace=namespace, selector=selector)]
        except errors.Gone:
            # The continue token expired between two pages.
            whole = request.list_objects(resource, namespace=namespace, selector=selector)
            pages = [await self.send(whole)]
        # Items of a list of a built-in kind lack both.
        missing = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [missing | item for page in pages for item in page.get("items") or ()]

    async def pages(
        self,
        resource: ResourceType,
        *,
        namespace: str = "",
        selector: ObjectSelector = request.EVERYTHING,
    ) -> AsyncGenerator[Json, None]:
        """Yield the pages of a list; raises Gone when the continue token expires."""
        page: ListPage | None = ListPage(limit=self.settings.page_size)
        while page is not None:
            document = await self.send(
                request.list_objects(resource, namespace=namespace, selector=selector, page=page)
            )
            yield document
            token = (document.get("metadata") or {}).get("continue")
            page = replace(page, token=token) if token else None

    async def create(
        self, resource: ResourceType, manifest: Mapping[str, Any], *, write: WriteOptions = request.DEFAULT_WRITE
    ) -> Json:
        """Create an object and return the stored one; raises AlreadyExists."""
        return await self.send(request.create(resource, manifest, write=write))

    async def update(
        self, resource: ResourceType, manifest: Mapping[str, Any], *, write: WriteOptions = request.DEFAULT_WRITE
    ) -> Json:
        """Replace an object and return the stored one; raises Conflict if its resourceVersion is not current."""
        return await self.send(request.update(resource, manifest, write=write))

    async def patch(
        self,
        resource: ResourceType,
        name: str,
        *,
        change: Patch,
        namespace: str = "",
        write: WriteOptions = request.DEFAULT_WRITE,
    ) -> Json:
        """Patch an object and return the stored one."""
        return await self.send(request.patch(resource, name, change=change, namespace=namespace, write=write))

    async def apply(self, resource: ResourceType, manifest: Mapping[str, Any], *, write: WriteOptions) -> Json:
        """Apply a manifest with server-side apply; raises Conflict if another manager owns a field."""
        return await self.send(request.apply(resource, manifest, write=write))

    async def delete(
        self, resource: ResourceType, name: str, *, namespace: str = "", deletion: DeleteOptions = request.IN_BACKGROUND
    ) -> Json:
        """Delete an object; returns it while finalizers hold it, otherwise a Status."""
        return await self.send(request.delete(resource, name, namespace=namespace, deletion=deletion))

    async def send(self, api_request: ApiRequest) -> Json:
        """Send a request and return the JSON object of the response."""
        attempt = 1
        while True:
            try:
                return await self._attempt(api_request)
            except (errors.TooManyRequests, errors.ServerError) as error:
                wait = rate_limit.wait_before_retry(error, attempt=attempt, retries=self.settings.retries)
                if wait is None or not api_request.is_idempotent:
                    raise
            await asyncio.sleep(wait)
            attempt += 1

    @asynccontextmanager
    async def stream(self, api_request: ApiRequest, *, idle: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request with an endless response, and yield an iterator of its chunks.

        Silence for `idle` seconds raises Timeout, so that a dead connection is found.
        """
        await self._wait_for_token()
        client_timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.settings.connect_timeout, sock_read=idle)
        async with self._exchange(api_request, client_timeout=client_timeout) as response:
            yield response.content.iter_any()

    async def _attempt(self, api_request: ApiRequest) -> Json:
        await self._wait_for_token()
        client_timeout = aiohttp.ClientTimeout(total=self.settings.timeout, sock_connect=self.settings.connect_timeout)
        async with self._slots:
            try:
                return await self._response_object(api_request, client_timeout=client_timeout)
            except errors.Unauthorized:
                if not self._auth_source.can_renew:
                    raise
            # The token file or plugin may have newer credentials.
            return await self._response_object(api_request, client_timeout=client_timeout)

    async def _response_object(self, api_request: ApiRequest, *, client_timeout: aiohttp.ClientTimeout) -> Json:
        async with self._exchange(api_request, client_timeout=client_timeout) as response:
            body = await response.read()
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise _not_kubernetes(api_request, response.status) from error
        if not isinstance(document, dict):
            raise _not_kubernetes(api_request, response.status)
        return document

    @asynccontextmanager
    async def _exchange(
        self, api_request: ApiRequest, *, client_timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and check the status; translates errors of the library, also while the body is read."""
        auth = await self._auth_source.current()
        started, code = self._clock.monotonic(), "<error>"
        try:
            async with self._session.request(
                api_request.method,
                URL(self.address.server + api_request.target, encoded=True),
                headers=self._headers(api_request, auth),
                data=_body(api_request),
                timeout=client_timeout,
                ssl=self._tls.current(auth) or True,
                server_hostname=self.address.tls_server_name or None,
                # Our credentials must not follow a redirect.
                allow_redirects=False,
            ) as response:
                code = str(response.status)
                if date := response.headers.get("Date"):
                    self._last_date = (date, self._clock.epoch())
                if response.status >= 300:
                    error = await _error_of(response)
                    if isinstance(error, errors.Unauthorized):
                        self._auth_source.reject(auth)
                    raise error
                try:
                    yield response
                finally:
                    _abort(response)
        except TimeoutError as error:
            raise errors.Timeout(
                f"the API server did not answer {api_request.method} {api_request.path} in time"
            ) from error
        except aiohttp.ClientError as error:
            raise errors.Unreachable(
                f"the API server at {self.address.server} cannot be reached for {api_request.method} {api_request.path}"
            ) from error
        finally:
            if self._on_response is not None:
                host = self.address.server.partition("://")[2]
                self._on_response(api_request.method, host=host, code=code, seconds=self._clock.monotonic() - started)

    def _headers(self, api_request: ApiRequest, auth: RequestAuth) -> Sequence[tuple[str, str]]:
        authorization = [("Authorization", auth.authorization)] if auth.authorization else []
        accept = [] if any(name == "Accept" for name, _ in api_request.headers) else [("Accept", "application/json")]
        # The impersonation of a request replaces the configured one.
        has_own = any(name == "Impersonate-User" for name, _ in api_request.headers)
        impersonation = () if has_own else self.address.credentials.impersonation
        return [*authorization, *accept, *impersonation, *api_request.headers]

    async def _wait_for_token(self) -> None:
        self._bucket, wait = rate_limit.take(self._bucket, now=self._clock.monotonic())
        if wait > 0:
            await asyncio.sleep(wait)


def _body(api_request: ApiRequest) -> bytes | io.BytesIO | None:
    # A large body is sent in chunks, so that the event loop is not blocked.
    return (
        io.BytesIO(api_request.body)
        if api_request.body is not None and len(api_request.body) > _LARGE_BYTES
        else api_request.body
    )


def _abort(response: aiohttp.ClientResponse) -> None:
    """Abort a connection whose response was not read to its end, such as a watch.

    Closing would keep the socket for half a minute for the TLS shutdown.
    """
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


async def _error_of(response: aiohttp.ClientResponse) -> errors.KubeError:
    """Return the error for a response; only a Kubernetes Status is quoted."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _FAILURE_BYTES:
            break
    return errors.from_status(
        response.status, _status_in(bytes(body)), retry_after=_seconds(response.headers.get("Retry-After", ""))
    )


def _status_in(body: bytes) -> Json | None:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) and document.get("kind") == "Status" else None


def _seconds(text: str) -> float | None:
    # Kubernetes sends seconds; a date would need synchronized clocks.
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _not_kubernetes(api_request: ApiRequest, status: int) -> errors.Unreachable:
    return errors.Unreachable(
        f"what answered {api_request.method} {api_request.path} is not a Kubernetes API server", status=status
    )
