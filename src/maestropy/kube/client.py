"""Send requests to one Kubernetes API server.

One connection pool, one rate limit, one translation of failures into `maestropy.kube.errors`. Objects are plain JSON.
It tries a request again only when the API server itself asks for it (`limits`), or once after a rejected proof of
identity that can be renewed; everything else is for the caller, who knows what the failure means.
"""

import asyncio
import io
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import aiohttp
import orjson
from yarl import URL

from maestropy.aio.clock import Clock
from maestropy.kube import errors, limits, request
from maestropy.kube.address import ClusterAddress
from maestropy.kube.credentials import Keyring, Proof
from maestropy.kube.objects import Json
from maestropy.kube.request import Deletion, Page, Patch, Request, ResourceType, Selector, Write
from maestropy.kube.trust import TlsContexts

_FAILURE_BYTES = 256 * 1024
_LARGE_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How hard we may press the API server, and how long we wait for it."""

    user_agent: str = "work-agent"
    """The API server also takes it as the field manager of plain writes, so a fixed word keeps ownership stable."""
    qps: float = 50.0
    """Requests a second in the long run; 0 means no limit."""
    burst: int = 100
    """Requests at once after a quiet time."""
    timeout: float = 30.0
    """Seconds for one attempt, answer included."""
    connect_timeout: float = 10.0
    """Seconds for TCP and TLS."""
    keep_alive: float = 45.0
    """Seconds a connection is kept for the next request; a burst then begins without TLS greetings. Less than the API
    server (90 s) and the usual load balancers (from 50 s) allow, so that none is used just as it ends."""
    concurrent: int = 64
    """Requests under way at once; watches do not count, each has a connection of its own."""
    page_size: int = 500
    """Items a list asks for at a time, as kubectl does."""
    patience: limits.Patience = limits.PATIENT


class OnAnswer(Protocol):
    """Who wants to know how requests went."""

    def __call__(self, method: str, *, host: str, code: str, seconds: float) -> None:
        """Note one; `code` is the status, or `<error>` when no answer came."""


class KubeClient:
    """The API server at `address`, while entered."""

    def __init__(
        self,
        address: ClusterAddress,
        *,
        settings: ClientSettings | None = None,
        clock: Clock | None = None,
        on_answer: OnAnswer | None = None,
    ) -> None:
        self.address = address
        self._on_answer = on_answer
        self.settings = settings or ClientSettings()
        self._clock = clock or Clock()
        self._keyring = Keyring(address.credentials, clock=self._clock)
        self._tls = TlsContexts(address)
        self._places = asyncio.Semaphore(self.settings.concurrent)
        self._bucket = limits.full_bucket(qps=self.settings.qps, burst=self.settings.burst, now=self._clock.monotonic())

    async def __aenter__(self) -> Self:
        if self.address.credentials.plugin is None:
            # Certificates and tokens that cannot be used are to stop the start, not the first request.
            self._tls.current(await self._keyring.current())
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=self.settings.keep_alive),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Compressing costs the API server and us more than the network between us.
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
        self, resource: ResourceType, *, namespace: str = "", selector: Selector = request.EVERYTHING
    ) -> Sequence[Json]:
        """Return all objects of a resource, in one namespace or in all."""
        try:
            pages = [each async for each in self.pages(resource, namespace=namespace, selector=selector)]
        except errors.Gone:
            # It changed so much while we turned pages that the API server forgot the first one.
            whole = request.list_objects(resource, namespace=namespace, selector=selector)
            pages = [await self.send(whole)]
        # The API server leaves these out of built-in kinds in a list.
        missing = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [missing | item for page in pages for item in page.get("items") or ()]

    async def pages(
        self,
        resource: ResourceType,
        *,
        namespace: str = "",
        selector: Selector = request.EVERYTHING,
    ) -> AsyncGenerator[Json, None]:
        """Yield a list page by page, as answered; raises Gone when turning them took too long."""
        page: Page | None = Page(limit=self.settings.page_size)
        while page is not None:
            answer = await self.send(request.list_objects(resource, namespace=namespace, selector=selector, page=page))
            yield answer
            token = (answer.get("metadata") or {}).get("continue")
            page = replace(page, token=token) if token else None

    async def create(
        self, resource: ResourceType, manifest: Mapping[str, Any], *, write: Write = request.PLAIN
    ) -> Json:
        """Make an object and return it as it became; raises AlreadyExists."""
        return await self.send(request.create(resource, manifest, write=write))

    async def update(
        self, resource: ResourceType, manifest: Mapping[str, Any], *, write: Write = request.PLAIN
    ) -> Json:
        """Replace an object and return it as it became; raises Conflict if its resourceVersion is not the newest."""
        return await self.send(request.update(resource, manifest, write=write))

    async def patch(
        self, resource: ResourceType, name: str, *, change: Patch, namespace: str = "", write: Write = request.PLAIN
    ) -> Json:
        """Change parts of an object and return it as it became."""
        return await self.send(request.patch(resource, name, change=change, namespace=namespace, write=write))

    async def apply(self, resource: ResourceType, manifest: Mapping[str, Any], *, write: Write) -> Json:
        """Apply a manifest on the server's side; raises Conflict if another manager owns a field."""
        return await self.send(request.apply(resource, manifest, write=write))

    async def delete(
        self, resource: ResourceType, name: str, *, namespace: str = "", deletion: Deletion = request.IN_BACKGROUND
    ) -> Json:
        """Delete an object; returns it while finalizers hold it, otherwise a Status."""
        return await self.send(request.delete(resource, name, namespace=namespace, deletion=deletion))

    async def send(self, wish: Request) -> Json:
        """Send any request and return the JSON object it is answered with."""
        attempt = 1
        while True:
            try:
                return await self._attempt(wish)
            except (errors.TooManyRequests, errors.ServerError) as error:
                wait = limits.wait_before_retry(error, attempt=attempt, patience=self.settings.patience)
                if wait is None or not wish.is_idempotent:
                    raise
            await asyncio.sleep(wait)
            attempt += 1

    @asynccontextmanager
    async def stream(self, wish: Request, *, idle: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a request whose answer does not end, as an iterator of raw chunks.

        Silence for `idle` seconds raises Timeout, so a dead connection is noticed.
        """
        await self._wait_for_turn()
        waits = aiohttp.ClientTimeout(total=None, sock_connect=self.settings.connect_timeout, sock_read=idle)
        async with self._exchange(wish, waits=waits) as response:
            yield response.content.iter_any()

    async def _attempt(self, wish: Request) -> Json:
        await self._wait_for_turn()
        waits = aiohttp.ClientTimeout(total=self.settings.timeout, sock_connect=self.settings.connect_timeout)
        async with self._places:
            try:
                return await self._answer(wish, waits=waits)
            except errors.Unauthorized:
                if not self._keyring.can_renew:
                    raise
            # The proof may have been renewed under the same name a moment ago.
            return await self._answer(wish, waits=waits)

    async def _answer(self, wish: Request, *, waits: aiohttp.ClientTimeout) -> Json:
        async with self._exchange(wish, waits=waits) as response:
            body = await response.read()
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise _not_kubernetes(wish, response.status) from error
        if not isinstance(answer, dict):
            raise _not_kubernetes(wish, response.status)
        return answer

    @asynccontextmanager
    async def _exchange(self, wish: Request, *, waits: aiohttp.ClientTimeout) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send and check the status; the library's errors are translated here, those met while reading included."""
        proof = await self._keyring.current()
        started, code = self._clock.monotonic(), "<error>"
        try:
            async with self._session.request(
                wish.method,
                URL(self.address.server + wish.target, encoded=True),
                headers=self._headers(wish, proof),
                data=_body(wish),
                timeout=waits,
                ssl=self._tls.current(proof) or True,
                server_hostname=self.address.tls_server_name or None,
                # Our proof of identity must not follow a redirect.
                allow_redirects=False,
            ) as response:
                code = str(response.status)
                if response.status >= 300:
                    error = await _failure(response)
                    if isinstance(error, errors.Unauthorized):
                        self._keyring.reject(proof)
                    raise error
                try:
                    yield response
                finally:
                    _hang_up(response)
        except TimeoutError as error:
            raise errors.Timeout(f"the API server did not answer {wish.method} {wish.path} in time") from error
        except aiohttp.ClientError as error:
            raise errors.Unreachable(
                f"the API server at {self.address.server} cannot be reached for {wish.method} {wish.path}"
            ) from error
        finally:
            if self._on_answer is not None:
                host = self.address.server.partition("://")[2]
                self._on_answer(wish.method, host=host, code=code, seconds=self._clock.monotonic() - started)

    def _headers(self, wish: Request, proof: Proof) -> Sequence[tuple[str, str]]:
        ours = [("Authorization", proof.authorization)] if proof.authorization else []
        accept = [] if any(name == "Accept" for name, _ in wish.headers) else [("Accept", "application/json")]
        # A request that speaks for somebody else does so instead of the configured impersonation, not beside it.
        has_own = any(name == "Impersonate-User" for name, _ in wish.headers)
        as_whom = () if has_own else self.address.credentials.impersonation
        return [*ours, *accept, *as_whom, *wish.headers]

    async def _wait_for_turn(self) -> None:
        self._bucket, wait = limits.take(self._bucket, now=self._clock.monotonic())
        if wait > 0:
            await asyncio.sleep(wait)


def _body(wish: Request) -> bytes | io.BytesIO | None:
    # What is large is sent piece by piece, so that nothing else waits for it.
    return io.BytesIO(wish.body) if wish.body is not None and len(wish.body) > _LARGE_BYTES else wish.body


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """End a connection whose answer was not read to its end, such as a watch.

    Closing would keep the socket for half a minute, waiting for a polite goodbye of TLS.
    """
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


async def _failure(response: aiohttp.ClientResponse) -> errors.KubeError:
    """Return the error an answer means; only a Status of Kubernetes is quoted."""
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
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and found.get("kind") == "Status" else None


def _seconds(text: str) -> float | None:
    # Kubernetes writes seconds; the other form of the header, a date, would need a clock both sides share.
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _not_kubernetes(wish: Request, status: int) -> errors.Unreachable:
    return errors.Unreachable(f"what answered {wish.method} {wish.path} is not a Kubernetes API server", status=status)
