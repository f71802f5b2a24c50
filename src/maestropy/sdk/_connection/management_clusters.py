"""List the management clusters of the HyperFleet API.

The list may be a bare array, or pages under `items` with a `total`. Retryable failures are retried within the timeout.
`targeting` chooses a cluster from the list.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from maestropy.sdk import settings
from maestropy.sdk._connection import error_mapping, responses
from maestropy.sdk.errors import ConfigError, Invalid, NotFound, ServerError
from maestropy.sdk.retry import Retrier, RetryPolicy

PATH = "/api/v1/management-clusters"
PAGE_SIZE = 100
_GRACE_SECONDS = 0.1
"""httpx, which knows the step that took too long, reports its own timeouts first."""
_MOST_BYTES = 8 * 2**20
"""The limit of one page, which has kilobytes."""
_OTHER_SERVICE = "check that the address leads to the HyperFleet API"
_MAX_PAGES = 1000
"""A server with more pages, a hundred thousand clusters, repeats itself."""

_NAME_KEYS = ("consumer_name", "consumer", "name", "id")
_LOAD_KEYS = ("load", "hosted_clusters", "cluster_count", "clusters")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCluster:
    """A management cluster that a work can be sent to."""

    consumer: str
    load: float | None = None
    """Its load, in a unit that all clusters share; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagementClusterList:
    """A list request to the HyperFleet API."""

    api_url: str
    query: Mapping[str, str]
    """Filters such as region and status."""
    token_file: Path | None = None
    timeout: float = 10.0
    """Seconds for one response, and for all retries."""

    def __post_init__(self) -> None:
        """Raise ConfigError for an address that errors must not show."""
        settings.reject_login(self.api_url, origin="api_url")

    async def read(self) -> list[TargetCluster]:
        """Return all clusters of the list, each once."""
        by_consumer: dict[str, TargetCluster] = {}
        # Without TLS nothing is verified, and loading the system's authorities takes longer than the request.
        is_https = self.api_url.lower().startswith("https:")
        async with httpx.AsyncClient(timeout=self.timeout, verify=is_https) as client:
            async for page in self._pages(client):
                by_consumer |= {candidate.consumer: candidate for candidate in parse_management_clusters(page)}
        return list(by_consumer.values())

    async def _pages(self, client: httpx.AsyncClient) -> AsyncIterator[Any]:
        retrier = Retrier(policy=RetryPolicy(deadline_seconds=self.timeout))
        read_items = 0
        for number in range(1, _MAX_PAGES + 1):

            async def once(number: int = number) -> Any:
                return await self._ask(client, number)

            page = await retrier.run(once)
            yield page
            items = page.get("items") if isinstance(page, Mapping) else None
            total = page.get("total") if isinstance(page, Mapping) else None
            read_items += len(items) if isinstance(items, list) else 0
            if not items or not isinstance(total, int) or read_items >= total:
                return

    async def _ask(self, client: httpx.AsyncClient, number: int) -> Any:
        request = error_mapping.Operation(doing=f"list management clusters of {self.api_url}")
        query = {**self.query, "page": str(number), "size": str(PAGE_SIZE)}
        url = f"{self.api_url.rstrip('/')}{PATH}"
        try:
            async with (
                asyncio.timeout(self.timeout + _GRACE_SECONDS),
                client.stream("GET", url, params=query, headers=self._headers()) as response,
            ):
                content = await responses.read_body(response, request=request, most=_MOST_BYTES, advice=_OTHER_SERVICE)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise ConfigError(
                f"{self.api_url} is not an address: {error}", advice="write http(s)://host:port"
            ) from error
        except (httpx.TransportError, ssl.SSLError, TimeoutError) as error:
            raise error_mapping.from_no_response(
                f"no response: {str(error) or type(error).__name__}",
                request=request,
                was_sent=True,
                in_time=not isinstance(error, httpx.TimeoutException | TimeoutError),
            ) from error
        if response.status_code == 404:
            advice = f"check the address: it must serve {PATH}"
            raise NotFound("the API has no such list (HTTP 404)", doing=request.doing, advice=advice)
        if response.is_redirect:
            raise responses.redirect(response, request=request, advice=_OTHER_SERVICE)
        if not response.is_success:
            raise error_mapping.from_http(response.status_code, code="", reason="", request=request)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ServerError("the response is not JSON", doing=request.doing, advice=_OTHER_SERVICE) from error

    def _headers(self) -> dict[str, str]:
        if self.token_file is None:
            return {}
        return {"Authorization": f"Bearer {settings.read_token(self.token_file)}"}


def parse_management_clusters(page: Any) -> list[TargetCluster]:
    """Parse a list of management clusters, a bare array or under `items`."""
    items = page.get("items") if isinstance(page, Mapping) else page
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise Invalid("the list of management clusters is malformed", advice="expected a list of objects with a name")
    return [_management_cluster(item) for item in items]


def _management_cluster(item: Mapping[str, Any]) -> TargetCluster:
    name = next((item[key] for key in _NAME_KEYS if isinstance(item.get(key), str) and item[key]), None)
    if name is None:
        raise Invalid(f"a management cluster has no name, only {', '.join(item) or 'nothing'}")
    load = next((item[key] for key in _LOAD_KEYS if isinstance(item.get(key), (int, float))), None)
    return TargetCluster(consumer=name, load=None if load is None else float(load))
