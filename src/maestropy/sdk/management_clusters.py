"""Ask the HyperFleet API which management clusters there are.

The list may come bare, or in pages under `items` with a `total`. Answers that can be better later are asked for again,
within the time that the caller allows. Which cluster to take is for `targeting`.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from maestropy.sdk import failures
from maestropy.sdk.errors import ConfigError, Invalid, NotFound, ServerError
from maestropy.sdk.retry import Retrier, RetryPolicy

PATH = "/api/v1/management-clusters"
PAGE_SIZE = 100
_MOST_PAGES = 1000
"""Nobody has a hundred thousand management clusters: a server that has more pages repeats itself."""

_NAME_KEYS = ("consumer_name", "consumer", "name", "id")
_LOAD_KEYS = ("load", "hosted_clusters", "cluster_count", "clusters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A cluster that a work could go to."""

    consumer: str
    load: float | None = None
    """How much it carries already, in whatever unit all candidates share; None if nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A list to ask for."""

    api_url: str
    query: Mapping[str, str]
    """Such as region and status."""
    token_file: Path | None = None
    timeout: float = 10.0
    """Seconds for an answer, and for asking again."""

    async def read(self) -> list[Candidate]:
        """Return all clusters that the list holds, each once."""
        found: dict[str, Candidate] = {}
        # Without TLS there is nothing to verify, and to load all authorities takes longer than to ask.
        is_https = self.api_url.lower().startswith("https:")
        async with httpx.AsyncClient(timeout=self.timeout, verify=is_https) as client:
            async for page in self._pages(client):
                found |= {each.consumer: each for each in candidates(page)}
        return list(found.values())

    async def _pages(self, client: httpx.AsyncClient) -> AsyncIterator[Any]:
        retrier = Retrier(policy=RetryPolicy(deadline_seconds=self.timeout))
        seen = 0
        for number in range(1, _MOST_PAGES + 1):

            async def once(number: int = number) -> Any:
                return await self._ask(client, number)

            answer = await retrier.run(once)
            yield answer
            items = answer.get("items") if isinstance(answer, Mapping) else None
            total = answer.get("total") if isinstance(answer, Mapping) else None
            seen += len(items) if isinstance(items, list) else 0
            if not items or not isinstance(total, int) or seen >= total:
                return

    async def _ask(self, client: httpx.AsyncClient, number: int) -> Any:
        request = failures.Request(doing=f"ask {self.api_url} for management clusters")
        query = {**self.query, "page": str(number), "size": str(PAGE_SIZE)}
        try:
            answer = await client.get(f"{self.api_url.rstrip('/')}{PATH}", params=query, headers=self._headers())
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise ConfigError(f"{self.api_url} is no address: {error}", advice="write http(s)://host:port") from error
        except httpx.TransportError as error:
            raise failures.from_silence(
                f"no answer: {str(error) or type(error).__name__}",
                request=request,
                was_sent=True,
                in_time=not isinstance(error, httpx.TimeoutException),
            ) from error
        if answer.status_code == 404:
            advice = f"check the address: it must serve {PATH}"
            raise NotFound("the API has no such list (HTTP 404)", doing=request.doing, advice=advice)
        if not answer.is_success:
            raise failures.from_http(answer.status_code, code="", reason="", request=request)
        try:
            return answer.json()
        except ValueError as error:
            advice = "check that the address leads to the HyperFleet API"
            raise ServerError("the answer is no JSON", doing=request.doing, advice=advice) from error

    def _headers(self) -> dict[str, str]:
        if self.token_file is None:
            return {}
        try:
            return {"Authorization": f"Bearer {self.token_file.read_text().strip()}"}
        except OSError as error:
            raise ConfigError(f"the token file {self.token_file} cannot be read: {error.strerror}") from error


def candidates(answer: Any) -> list[Candidate]:
    """Read a list of management clusters, bare or under `items`."""
    items = answer.get("items") if isinstance(answer, Mapping) else answer
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise Invalid("the list of management clusters cannot be read", advice="expected a list of objects with a name")
    return [_candidate(item) for item in items]


def _candidate(item: Mapping[str, Any]) -> Candidate:
    name = next((item[key] for key in _NAME_KEYS if isinstance(item.get(key), str) and item[key]), None)
    if name is None:
        raise Invalid(f"a management cluster has no name, only {', '.join(item) or 'nothing'}")
    load = next((item[key] for key in _LOAD_KEYS if isinstance(item.get(key), (int, float))), None)
    return Candidate(consumer=name, load=None if load is None else float(load))
