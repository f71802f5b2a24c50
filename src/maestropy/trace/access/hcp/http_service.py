"""Query the services of a hosted control plane over HTTP and interpret their responses.

A 404 counts as absent only if the body is an error of the service itself: a proxy's 404 proves nothing. A service that
cannot be reached, or does not respond in time, is asked once; all its other queries have the same result.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import orjson

from maestropy.trace.access.hcp.http_requests import MOST_PAGES, PAGE_SIZE, HttpRead
from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.documents import matching
from maestropy.trace.hcp.documents.document_types import RecognisedDocument
from maestropy.trace.hcp.query import (
    Document,
    HopQuery,
    HopQueryResult,
    System,
    absent_result,
    found_result,
    unknown_result,
)

_MOST_BYTES = 64 * 1024 * 1024


class HttpService:
    """One service at one address."""

    def __init__(self, client: httpx.AsyncClient, *, base: str, system: System) -> None:
        self._client = client
        self._base = base.rstrip("/")
        self._place = system
        self._first = asyncio.Lock()
        self._has_responded = False
        self._dead: HopQueryResult | None = None

    async def run_query(self, query: HopQuery, reads: list[HttpRead]) -> HopQueryResult:
        """Try the requests in order; return the first result with documents, else the first absence."""
        absences: list[HopQueryResult] = []
        for read in reads:
            result = await self._read(query, read)
            if result.outcome == "found" or self._dead:
                return result
            absences.append(result)
        own = [refusal for refusal in absences if refusal.outcome == "absent"]
        return (own or absences or [unknown_result(f"{self._place.value} has no API for the {query.topic.value}")])[0]

    async def _read(self, query: HopQuery, read: HttpRead) -> HopQueryResult:
        documents: list[Document] = []
        notes: tuple[str, ...] = ()
        for page in range(1, MOST_PAGES + 1):
            parameters = {**read.query, **({"page": str(page), "size": str(PAGE_SIZE)} if read.is_list else {})}
            body = await self._get(read.path, parameters)
            if isinstance(body, HopQueryResult):
                return body
            if not read.is_list:
                return found_result(Document(value=body, where=self._where(read)))
            items = lookup.objects(body, "items")
            documents += [Document(value=item, where=self._where(read)) for item in items]
            total = lookup.number(body, "total") or 0
            if not items or len(documents) >= total:
                break
        else:
            notes = (f"{self._place.value} has more than {len(documents)} of them; the list is cut",)
        fitting = [document for document in documents if _fits(document, query)]
        if fitting:
            return found_result(*fitting, notes=notes)
        return absent_result(f"{self._place.value} finds none ({self._where(read)})")

    async def _get(self, path: str, parameters: Mapping[str, str]) -> Mapping[str, Any] | HopQueryResult:
        """Send one request. Until the service has responded once, requests wait for the first one."""
        if not self._has_responded:
            async with self._first:
                if not self._has_responded:
                    return await self._request(path, parameters)
        return await self._request(path, parameters)

    async def _request(self, path: str, parameters: Mapping[str, str]) -> Mapping[str, Any] | HopQueryResult:
        if self._dead:
            return self._dead
        try:
            response = await self._client.get(self._base + path, params=parameters)
        except httpx.TimeoutException:
            self._dead = unknown_result(f"{self._place.value} at {self._base} did not respond in time")
            return self._dead
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            self._dead = unknown_result(f"{self._place.value} at {self._base} cannot be reached ({error})")
            return self._dead
        self._has_responded = True
        return _interpret(response, system=self._place, base=self._base)

    def _where(self, read: HttpRead) -> str:
        return f"{self._place.value} {read.path}"


def _interpret(response: httpx.Response, *, system: System, base: str) -> Mapping[str, Any] | HopQueryResult:
    body = response.content
    try:
        document = orjson.loads(body) if len(body) <= _MOST_BYTES else None
    except orjson.JSONDecodeError:
        document = None
    message = _error_message(document)
    match response.status_code:
        case 200 if isinstance(document, Mapping):
            return document
        case 200:
            return unknown_result(f"the response of {system.value} at {base} is not JSON, or truncated")
        case 404 if message:
            return absent_result(f"{system.value} says {message}")
        case 404:
            return unknown_result(f"404 at {base}, but not in the words of {system.value}: is this its address?")
        case 401 | 403 as status:
            return unknown_result(
                f"{system.value} denies access ({status}{f', {message}' if message else ''}): log in, or request access"
            )
        case status:
            return unknown_result(f"{system.value} responded with {status}{f', {message}' if message else ''}")


def _error_message(document: object) -> str:
    """Return the error message of a service: in the format of ARM, or of Maestro and Clusters Service."""
    arm = ": ".join(filter(None, (lookup.text(document, "error", "code"), lookup.text(document, "error", "message"))))
    own = lookup.text(document, "reason") if lookup.text(document, "kind") == "Error" else ""
    return (arm or own)[:300]


def _fits(document: Document, query: HopQuery) -> bool:
    """Whether an item matches the query: an older service returns more than was searched."""
    return matching.matches(RecognisedDocument(topic=query.topic, value=document.value), query)
