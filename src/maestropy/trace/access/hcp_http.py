"""Ask the services of an HCP over HTTP, and tell what their answers mean.

A service that says it has none is believed only if it says so in its own words: a proxy's 404 tells nothing.
"""

from collections.abc import Mapping
from typing import Any

import httpx
import orjson

from maestropy.trace.hcp import matching, reading
from maestropy.trace.hcp.question import Answer, Document, Place, Question, absent, found, unknown
from maestropy.trace.hcp.recognise import Recognised
from maestropy.trace.hcp.requests import MOST_PAGES, PAGE_SIZE, HttpRead

_MOST_BYTES = 64 * 1024 * 1024


class HttpService:
    """One service at one address."""

    def __init__(self, client: httpx.AsyncClient, *, base: str, place: Place) -> None:
        self._client = client
        self._base = base.rstrip("/")
        self._place = place

    async def answer(self, question: Question, reads: list[HttpRead]) -> Answer:
        """Try the requests in turn; the first real answer counts, a refusal only if none is better."""
        refusals: list[Answer] = []
        for read in reads:
            told = await self._read(question, read)
            if told.outcome == "found":
                return told
            refusals.append(told)
        own = [each for each in refusals if each.outcome == "absent"]
        return (own or refusals or [unknown(f"{self._place.value} cannot be asked for the {question.topic.value}")])[0]

    async def _read(self, question: Question, read: HttpRead) -> Answer:
        documents: list[Document] = []
        notes: tuple[str, ...] = ()
        for page in range(1, MOST_PAGES + 1):
            query = {**read.query, **({"page": str(page), "size": str(PAGE_SIZE)} if read.is_list else {})}
            told = await self._get(read.path, query)
            if isinstance(told, Answer):
                return told
            if not read.is_list:
                return found(Document(value=told, where=self._where(read)))
            items = reading.objects(told, "items")
            documents += [Document(value=each, where=self._where(read)) for each in items]
            total = reading.number(told, "total") or 0
            if not items or len(documents) >= total:
                break
        else:
            notes = (f"{self._place.value} has more than {len(documents)} of them; the list is cut",)
        fitting = [each for each in documents if _fits(each, question)]
        if fitting:
            return found(*fitting, notes=notes)
        return absent(f"{self._place.value} finds none ({self._where(read)})")

    async def _get(self, path: str, query: Mapping[str, str]) -> Mapping[str, Any] | Answer:
        try:
            response = await self._client.get(self._base + path, params=query)
        except httpx.TimeoutException:
            return unknown(f"{self._place.value} at {self._base} did not answer in time")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return unknown(f"{self._place.value} at {self._base} cannot be reached ({error})")
        return _meaning(response, place=self._place, base=self._base)

    def _where(self, read: HttpRead) -> str:
        return f"{self._place.value} {read.path}"


def _meaning(response: httpx.Response, *, place: Place, base: str) -> Mapping[str, Any] | Answer:
    body = response.content
    try:
        told = orjson.loads(body) if len(body) <= _MOST_BYTES else None
    except orjson.JSONDecodeError:
        told = None
    said = _words(told)
    match response.status_code:
        case 200 if isinstance(told, Mapping):
            return told
        case 200:
            return unknown(f"what {place.value} answered at {base} is no JSON, or cut")
        case 404 if said:
            return absent(f"{place.value} says {said}")
        case 404:
            return unknown(f"404 at {base}, but not in the words of {place.value}: is this its address?")
        case 401 | 403 as status:
            return unknown(
                f"{place.value} refuses us ({status}{f', {said}' if said else ''}): log in, or ask for access"
            )
        case status:
            return unknown(f"{place.value} answered {status}{f', {said}' if said else ''}")


def _words(told: object) -> str:
    """Return what a service says about an error, in its own form: ARM's, or that of Maestro and Clusters Service."""
    arm = ": ".join(filter(None, (reading.text(told, "error", "code"), reading.text(told, "error", "message"))))
    own = reading.text(told, "reason") if reading.text(told, "kind") == "Error" else ""
    return (arm or own)[:300]


def _fits(document: Document, question: Question) -> bool:
    """Whether an item is what was asked for: an old service searches more widely than it was asked to."""
    return matching.matches(Recognised(topic=question.topic, value=document.value), question)
